package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

func volumeClass(name string) *storagev1.StorageClass {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "disk.example.com", VolumeBindingMode: &mode}
}

func claim(name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		},
	}
}

// mounting returns a pod that waits and has a volume of the claim.
func mounting(name, claim string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := lone("3", func(p *corev1.Pod) {
		p.Name, p.UID = name, types.UID(name)
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	})
	for _, f := range edit {
		f(p)
	}
	return p
}

// on returns where each pod is, by name; the verdict where it is nowhere.
func on(out *Outcome) map[string]string {
	where := map[string]string{}
	for _, p := range out.Pods {
		where[p.Pod.Name] = p.After
		if p.After == "" {
			where[p.Pod.Name] = string(p.Verdict)
		}
	}
	return where
}

func inZone(zone string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone} }
}

// A volume is provisioned where its first pod goes. Others that share the claim are
// held to its zone, and not to its node.
func TestSharedClaimHoldsToZone(t *testing.T) {
	t.Parallel()
	s := &snapshot.Snapshot{
		Taken: taken, Nodes: zones(2), StorageClasses: []*storagev1.StorageClass{volumeClass("late")},
		PersistentVolumeClaims: []*corev1.PersistentVolumeClaim{claim("data", "late")},
		Pods:                   []*corev1.Pod{mounting("p0", "data", inZone("b")), mounting("p1", "data"), mounting("p2", "data")},
	}
	out := run(t, s, Pending{})
	where := on(out)
	nodes := []string{where["p0"], where["p1"]}
	slices.Sort(nodes)
	if diff := cmp.Diff([]string{"b0", "b1"}, nodes); diff != "" || where["p2"] != string(Waiting) {
		t.Errorf("pods are on %v, want the first two on the nodes of zone b, and no room for the third: %s", where, diff)
	}
	const want = `volumes that StorageClass "late" provisions are made for the node of their first pod, and reached from nodes with the same topology.kubernetes.io/zone: the topology of its driver is not known`
	if diff := cmp.Diff([]string{want}, out.Assumptions); diff != "" {
		t.Error(diff)
	}
	for _, p := range out.Pods {
		if p.Pod.Name == "p2" && !strings.Contains(p.Attempt.Message, "4 node(s) didn't match PersistentVolume's node affinity") {
			t.Errorf("p2's message is %q, want that the volume is in another zone", p.Attempt.Message)
		}
	}
}

// The driver's topology and the class's say from where a volume can be reached.
func TestTopologyOfVolumes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*snapshot.Snapshot)
		want string // where the second pod goes
	}{
		"a driver whose volumes are of one node": {func(s *snapshot.Snapshot) {
			for _, n := range s.Nodes {
				s.CSINodes = append(s.CSINodes, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{
					Drivers: []storagev1.CSINodeDriver{{Name: "disk.example.com", NodeID: n.Name, TopologyKeys: []string{corev1.LabelHostname}}},
				}})
			}
		}, string(Waiting)},
		"a driver without topology": {func(s *snapshot.Snapshot) {
			for _, n := range s.Nodes {
				s.CSINodes = append(s.CSINodes, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{
					Drivers: []storagev1.CSINodeDriver{{Name: "disk.example.com", NodeID: n.Name}},
				}})
			}
		}, "c0"},
		"a class for a rack": {func(s *snapshot.Snapshot) {
			for i, n := range s.Nodes {
				n.Labels["rack"] = []string{"r1", "r2", "r1"}[i]
			}
			s.StorageClasses[0].AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "rack", Values: []string{"r1", "r2"}}}}}
		}, "c0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &snapshot.Snapshot{
				Taken: taken, Nodes: zones(1), StorageClasses: []*storagev1.StorageClass{volumeClass("late")},
				PersistentVolumeClaims: []*corev1.PersistentVolumeClaim{claim("data", "late")},
				Pods: []*corev1.Pod{mounting("p0", "data", inZone("a")), mounting("p1", "data", func(p *corev1.Pod) {
					p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
						Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"c"}}}},
					}}}}
				})},
			}
			test.edit(s)
			out := run(t, s, Pending{})
			if where := on(out); where["p0"] != "a0" || where["p1"] != test.want {
				t.Errorf("pods are on %v, want p0 on a0 and p1 on %s", where, test.want)
			}
			if len(out.Assumptions) != 1 {
				t.Errorf("assumptions are %q, want one", out.Assumptions)
			}
		})
	}
}

// Volumes that are there are bound as upstream's binder has it, each to one claim,
// and the smallest that will do.
func TestVolumesThatAreThere(t *testing.T) {
	t.Parallel()
	class := volumeClass("local")
	class.Provisioner = noProvisioner
	s := &snapshot.Snapshot{Taken: taken, Nodes: zones(1), StorageClasses: []*storagev1.StorageClass{class}}
	for zone, size := range map[string]string{"a": "100Gi", "b": "10Gi"} {
		s.PersistentVolumes = append(s.PersistentVolumes, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "disk-" + zone, UID: types.UID("disk-" + zone)},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: "local", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				Capacity:     corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
		})
	}
	large := claim("large", "local")
	large.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("50Gi")
	s.PersistentVolumeClaims = []*corev1.PersistentVolumeClaim{large, claim("small", "local"), claim("third", "local")}
	s.Pods = []*corev1.Pod{mounting("p0", "large"), mounting("p1", "small"), mounting("p2", "third")}
	if diff := cmp.Diff(map[string]string{"p0": "a0", "p1": "b0", "p2": string(Waiting)}, on(run(t, s, Pending{}))); diff != "" {
		t.Error(diff)
	}
}

// A StatefulSet that grows gets claims of its own, and a pod that is made anew goes
// back to where its volume is.
func TestStatefulSetKeepsItsVolumes(t *testing.T) {
	t.Parallel()
	replicas := int32(0)
	sts := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, Template: template("db", "3"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim("data", "late")},
		},
	}
	sts.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = nil // the default one
	late := volumeClass("late")
	late.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	s := &snapshot.Snapshot{Taken: taken, Nodes: zones(1), StatefulSets: []*appsv1.StatefulSet{sts}, StorageClasses: []*storagev1.StorageClass{late}}
	w := newWorld(t, s)
	if err := w.Take(t.Context(), Scale{Ref{"StatefulSet", "shop", "db"}, 3}); err != nil {
		t.Fatal(err)
	}
	before := on(w.Outcome())
	if len(before) != 3 || slices.Contains([]string{before["db-0"], before["db-1"], before["db-2"]}, string(Waiting)) {
		t.Fatalf("pods are on %v, want one on each node", before)
	}
	changed := sts.DeepCopy()
	three := int32(3)
	changed.Spec.Replicas, changed.Spec.Template.Spec.PriorityClassName = &three, "other"
	if err := w.Take(t.Context(), Rollout{changed}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, on(w.Outcome())); diff != "" {
		t.Error(diff)
	}
	// Where the zone of the volume is lost, the pod waits.
	if err := w.Take(t.Context(), Lose{[]string{before["db-1"]}}, AddNodes{Template: node("new", "x", "4"), Count: 1}); err != nil {
		t.Fatal(err)
	}
	if after := on(w.Outcome()); after["db-1"] != string(Waiting) {
		t.Errorf("pods are on %v, want db-1 to wait for a node in its volume's zone", after)
	}
}

// devices returns a class, a slice with so many devices for each node, and a template
// that claims one.
func devices(s *snapshot.Snapshot, perNode int) {
	s.DeviceClasses = []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}},
	}}}
	for _, n := range s.Nodes {
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID("slice-" + n.Name)},
			Spec:       resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, ResourceSliceCount: 1}},
		}
		for i := range perNode {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i)})
		}
		s.ResourceSlices = append(s.ResourceSlices, slice)
	}
	s.ResourceClaimTemplates = []*resourcev1.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one-gpu"}, Spec: resourcev1.ResourceClaimTemplateSpec{
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}}},
	}}}
}

// Pods that are made of a template that claims devices get claims of their own, and
// give the devices back when they go.
func TestDevicesOfTemplates(t *testing.T) {
	t.Parallel()
	d := deployment("web", 0, "100m")
	template := "one-gpu"
	d.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	d.Spec.Template.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	s := world(zones(1), d)
	devices(s, 1)
	w := newWorld(t, s)
	placed := func(steps ...Step) (placed, waiting int) {
		t.Helper()
		if err := w.Take(t.Context(), steps...); err != nil {
			t.Fatal(err)
		}
		for _, where := range on(w.Outcome()) {
			if where == string(Waiting) {
				waiting++
			} else {
				placed++
			}
		}
		return placed, waiting
	}
	web := Ref{"Deployment", "shop", "web"}
	if p, n := placed(Scale{web, 4}); p != 3 || n != 1 {
		t.Errorf("of four pods %d are placed and %d wait, want three on the three devices", p, n)
	}
	if p, n := placed(Replay{}); p != 3 || n != 1 {
		t.Errorf("placed anew %d are placed and %d wait, want the same", p, n)
	}
	if p, n := placed(Scale{web, 1}); p != 1 || n != 0 {
		t.Errorf("scaled down %d are placed and %d wait, want one placed", p, n)
	}
	if p, n := placed(Scale{web, 3}); p != 3 || n != 0 {
		t.Errorf("scaled up again %d are placed and %d wait, want all on devices that were given back", p, n)
	}
	claims := 0
	for name := range w.pods {
		pod, _ := w.engine.Pod(name)
		for range resourceclaim.PodClaims(pod) {
			claims++
		}
	}
	if claims != 3 {
		t.Errorf("there are %d claims of the pods, want one a pod", claims)
	}
}
