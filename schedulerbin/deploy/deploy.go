package deploy

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/approval"
)

const (
	// Name is the name of the Deployment, its account and its lease, and the value
	// of NameLabel of all objects.
	Name = "placement-scheduler"
	// DefaultNamespace is where the scheduler runs if nothing is said.
	DefaultNamespace = "placement-system"
	// NameLabel is on every object, with Name.
	NameLabel = "app.kubernetes.io/name"
	// ProfilesAnnotation lists, on the Deployment, the profiles of its
	// configuration, by their scheduler names, with commas between.
	ProfilesAnnotation = "kubectl-sched.github.io/profiles"
	// ConfigKey is the key of the ConfigMap with the configuration.
	ConfigKey = "config.yaml"
	// DefaultReplicas is how many replicas there are if nothing is said.
	DefaultReplicas = 2

	image = "placement-scheduler" // as the base calls it
	// configName is the ConfigMap's, before the hash. It is not Name, because
	// kustomize gives the hash to every resourceName in a role that is alike.
	configName = Name + "-config"
)

//go:embed base/*.yaml
var base embed.FS

// Options say what to render.
type Options struct {
	// Namespace is where it runs; empty for DefaultNamespace.
	Namespace string
	// Image is the whole reference of the image.
	Image string
	// Replicas is how many there are; 0 for DefaultReplicas.
	Replicas int
	// Config is a KubeSchedulerConfiguration. What it says of leader election must
	// be what Configured writes.
	Config []byte
	// Profiles are the scheduler names of its profiles.
	Profiles []string
	// Overlay is a folder with a kustomize Component that changes what is rendered;
	// empty for none.
	Overlay string
	// Disk is where Overlay is; nil for the disk of the machine.
	Disk filesys.FileSystem
}

func (o Options) namespace() string {
	if o.Namespace == "" {
		return DefaultNamespace
	}
	return o.Namespace
}

// User is the name of the account as which the scheduler works.
func (o Options) User() string { return "system:serviceaccount:" + o.namespace() + ":" + Name }

// Render returns the objects in the order in which they are created: what others
// need comes before them, and the Deployment last. The list is the same for the
// same options.
func Render(o Options) ([]*unstructured.Unstructured, error) {
	if o.Image == "" {
		return nil, errors.New("no image is given")
	}
	if len(o.Profiles) == 0 {
		return nil, errors.New("the configuration has no profile")
	}
	memory := filesys.MakeFsInMemory()
	if err := writeBase(memory); err != nil {
		return nil, err
	}
	k, err := o.kustomization(memory)
	if err != nil {
		return nil, err
	}
	if o.Overlay != "" {
		if err := o.copyOverlay(memory); err != nil {
			return nil, err
		}
		k.Components = []string{"../" + overlayFolder}
	}
	text, err := yaml.Marshal(k)
	if err == nil {
		err = memory.WriteFile("root/kustomization.yaml", text)
	}
	if err != nil {
		return nil, err
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "root")
	if err != nil {
		return nil, fmt.Errorf("render the scheduler's objects: %w", err)
	}
	return objects(rendered)
}

// writeBase puts the base into folder "base".
func writeBase(memory filesys.FileSystem) error {
	return fs.WalkDir(base, "base", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := base.ReadFile(name)
		if err != nil {
			return err
		}
		return memory.WriteFile(name, data)
	})
}

// kustomization is what the options make of the base; the files that it names are
// written beside it.
func (o Options) kustomization(memory filesys.FileSystem) (*types.Kustomization, error) {
	replicas := o.Replicas
	if replicas == 0 {
		replicas = DefaultReplicas
	}
	profiles := slices.Sorted(slices.Values(o.Profiles))
	k := &types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{"../base", "policies.yaml"},
		Images:    []types.Image{imageOf(o.Image)},
		Replicas:  []types.Replica{{Name: Name, Count: int64(replicas)}},
		ConfigMapGenerator: []types.ConfigMapArgs{{GeneratorArgs: types.GeneratorArgs{
			Name: configName, KvPairSources: types.KvPairSources{FileSources: []string{ConfigKey}},
			Options: &types.GeneratorOptions{Labels: map[string]string{NameLabel: Name, "app.kubernetes.io/part-of": "kubectl-sched"}, Immutable: true},
		}}},
		Patches: []types.Patch{
			annotate("Deployment", ProfilesAnnotation, strings.Join(profiles, ",")),
			{Target: selector("Namespace"), Patch: replace("/metadata/name", o.namespace())},
		},
		Transformers: []string{"namespace.yaml"},
	}
	namespace := fmt.Sprintf("apiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: namespace, namespace: %s}\nsetRoleBindingSubjects: allServiceAccounts\nunsetOnly: true\n", o.namespace())
	policies, err := o.policies()
	if err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{ConfigKey: o.Config, "policies.yaml": policies, "namespace.yaml": []byte(namespace)} {
		if err := memory.WriteFile(path.Join("root", name), data); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// policies are the admission policies about the account and about approvals.
func (o Options) policies() ([]byte, error) {
	var out []byte
	accountPolicy, accountBinding := approval.Account(o.User())
	gatePolicy, gateBinding := approval.Objects(o.User())
	for _, object := range []runtime.Object{accountPolicy, accountBinding, gatePolicy, gateBinding} {
		converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: converted}
		u.SetLabels(map[string]string{NameLabel: Name, "app.kubernetes.io/part-of": "kubectl-sched"})
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(u.Object, "status")
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), text...)
	}
	return out, nil
}

// imageOf takes a reference apart as kustomize wants it.
func imageOf(reference string) types.Image {
	out := types.Image{Name: image}
	if at := strings.IndexByte(reference, '@'); at >= 0 {
		out.NewName, out.Digest = reference[:at], reference[at+1:]
		return out
	}
	out.NewName = reference
	if colon := strings.LastIndexByte(reference, ':'); colon > strings.LastIndexByte(reference, '/') {
		out.NewName, out.NewTag = reference[:colon], reference[colon+1:]
	}
	return out
}

func selector(kind string) *types.Selector {
	return &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: kind}}}
}

func annotate(kind, key, value string) types.Patch {
	return types.Patch{
		Target: selector(kind),
		Patch:  fmt.Sprintf("- op: add\n  path: /metadata/annotations\n  value: {%s: %q}\n", key, value),
	}
}

func replace(pointer, value string) string {
	return fmt.Sprintf("- op: replace\n  path: %s\n  value: %q\n", pointer, value)
}

// order is the place of a kind among the writes; kinds that an overlay adds come
// before the Deployment, and before nothing else.
var order = []string{
	"Namespace", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ConfigMap", "Service", "PodDisruptionBudget",
	"", "Deployment",
}

// objects returns what was rendered, in order.
func objects(rendered resmap.ResMap) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, r := range rendered.Resources() {
		m, err := r.Map()
		if err != nil {
			return nil, fmt.Errorf("read %s as it was rendered: %w", r.CurId(), err)
		}
		u := &unstructured.Unstructured{Object: m}
		if u.GroupVersionKind().Group == admissionv1.GroupName {
			u.SetNamespace("") // kustomize does not know that these have none
		}
		out = append(out, u)
	}
	place := func(u *unstructured.Unstructured) int {
		if i := slices.Index(order, u.GetKind()); i >= 0 {
			return i
		}
		return slices.Index(order, "")
	}
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int { return place(a) - place(b) })
	return out, nil
}
