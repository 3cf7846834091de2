package snapshot

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// complete fills in what the API server, the controllers and the kubelet would
// have by the time a scheduler reads it. Sources are the defaults of the API
// (pkg/apis/*/v1/defaults.go of Kubernetes 1.37.2) and the admission plugins Priority,
// DefaultTolerationSeconds and DefaultStorageClass.
func (t *textReader) complete() {
	t.addNamespaces()
	completeNodes(t.s)
	t.completeClasses()
	completeWorkloads(t.s)
	t.completePods()
	completeVolumes(t.s)
	completeDevices(t.s)
	t.identify()
}

// addNamespaces makes the namespaces that objects are in and that nobody wrote
// down, and gives each the label with its name.
func (t *textReader) addNamespaces() {
	have := map[string]bool{}
	for _, n := range t.s.Namespaces {
		have[n.Name] = true
	}
	for _, k := range allKinds() {
		for o := range k.All(t.s) {
			if name := o.GetNamespace(); name != "" && !have[name] {
				have[name] = true
				t.s.Namespaces = append(t.s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
		}
	}
	for _, n := range t.s.Namespaces {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[corev1.LabelMetadataName] = n.Name
	}
}

// identify gives every object the UID that it lacks: one that follows from its kind
// and name, so that the same text gives the same snapshot. Owners are found by their
// names.
func (t *textReader) identify() {
	byName := map[string]types.UID{}
	key := func(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }
	for _, k := range allKinds() {
		for o := range k.All(t.s) {
			kind := k.Kind
			if u, ok := o.(*unstructured.Unstructured); ok {
				kind = u.GetKind()
			}
			group := k.Group
			if k == Custom() {
				group = o.GetObjectKind().GroupVersionKind().Group
			}
			if o.GetUID() == "" {
				o.SetUID(uidOf(group, kind, o.GetNamespace(), o.GetName()))
			}
			byName[key(kind, o.GetNamespace(), o.GetName())] = o.GetUID()
		}
	}
	for _, k := range allKinds() {
		for o := range k.All(t.s) {
			owners := o.GetOwnerReferences()
			for i := range owners {
				if owners[i].UID != "" {
					continue
				}
				for _, namespace := range []string{o.GetNamespace(), ""} {
					if uid := byName[key(owners[i].Kind, namespace, owners[i].Name)]; uid != "" {
						owners[i].UID = uid
						break
					}
				}
				if owners[i].UID == "" { // of an owner that is not in the snapshot
					owners[i].UID = uidOf("", owners[i].Kind, o.GetNamespace(), owners[i].Name)
				}
			}
			if len(owners) > 0 {
				o.SetOwnerReferences(owners)
			}
		}
	}
	claims := map[string]types.UID{}
	for _, c := range t.s.PersistentVolumeClaims {
		claims[c.Namespace+"/"+c.Name] = c.UID
	}
	for _, v := range t.s.PersistentVolumes {
		if ref := v.Spec.ClaimRef; ref != nil && ref.UID == "" {
			ref.UID = claims[ref.Namespace+"/"+ref.Name]
		}
	}
}

// uidOf makes a UID of a name.
func uidOf(group, kind, namespace, name string) types.UID {
	h := sha256.Sum256([]byte(group + "\x00" + kind + "\x00" + namespace + "\x00" + name))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // as a UUID of a form of one's own (RFC 9562)
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16]))
}
