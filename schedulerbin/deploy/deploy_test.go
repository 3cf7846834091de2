package deploy_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	psaapi "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
)

const config = `# what it is for
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: placement-pack
- schedulerName: placement-gang
`

func options(t *testing.T, change func(*deploy.Options)) deploy.Options {
	t.Helper()
	o := deploy.Options{Image: "registry.example.com:5000/team/scheduler:v1.2.3"}
	if change != nil {
		change(&o)
	}
	var err error
	if o.Config == nil {
		if o.Config, o.Profiles, err = deploy.Configured([]byte(config), o.Namespace); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// render renders the options and returns the objects, decoded strictly.
func render(t *testing.T, o deploy.Options) []*unstructured.Unstructured {
	t.Helper()
	objects, err := deploy.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// typed returns the objects of one kind of the API.
func typed[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	var out []T
	for _, u := range objects {
		if u.GetKind() != kind {
			continue
		}
		var object T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &object, true); err != nil {
			t.Fatalf("%s %s: %v", kind, u.GetName(), err)
		}
		out = append(out, object)
	}
	return out
}

// TestObjects holds that all that is rendered is known to the API, in an order in
// which it can be created, in one namespace, and under the label that finds it.
func TestObjects(t *testing.T) {
	t.Parallel()
	objects := render(t, options(t, func(o *deploy.Options) { o.Namespace = "elsewhere" }))
	var kinds []string
	for _, u := range objects {
		kinds = append(kinds, u.GetKind())
		known, err := scheme.Scheme.New(u.GroupVersionKind())
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, known, true)
		}
		if err != nil {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
		if u.GetLabels()[deploy.NameLabel] != deploy.Name {
			t.Errorf("%s %s has the labels %v", u.GetKind(), u.GetName(), u.GetLabels())
		}
		switch {
		case u.GetKind() == "Namespace":
			if u.GetName() != "elsewhere" {
				t.Errorf("the namespace is %q", u.GetName())
			}
		case u.GetName() == "placement-scheduler:authentication-reader":
			if u.GetNamespace() != "kube-system" {
				t.Errorf("%s is in %q", u.GetName(), u.GetNamespace())
			}
		case strings.HasPrefix(u.GetKind(), "Cluster") || strings.HasPrefix(u.GetKind(), "Validating"):
			if u.GetNamespace() != "" {
				t.Errorf("%s %s is in namespace %q", u.GetKind(), u.GetName(), u.GetNamespace())
			}
		case u.GetNamespace() != "elsewhere":
			t.Errorf("%s %s is in %q", u.GetKind(), u.GetName(), u.GetNamespace())
		}
	}
	want := []string{
		"Namespace", "ServiceAccount", "ClusterRole", "ClusterRole", "ClusterRole", "Role",
		"ClusterRoleBinding", "ClusterRoleBinding", "ClusterRoleBinding", "ClusterRoleBinding", "RoleBinding", "RoleBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicyBinding",
		"ConfigMap", "Service", "PodDisruptionBudget", "Deployment",
	}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: deploy.Name, Namespace: "elsewhere"}
	for _, b := range typed[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
		if d := cmp.Diff([]rbacv1.Subject{account}, b.Subjects); d != "" {
			t.Errorf("%s: %s", b.Name, d)
		}
	}
	for _, b := range typed[rbacv1.RoleBinding](t, objects, "RoleBinding") {
		if d := cmp.Diff([]rbacv1.Subject{account}, b.Subjects); d != "" {
			t.Errorf("%s: %s", b.Name, d)
		}
	}
	lease := typed[rbacv1.Role](t, objects, "Role")[0].Rules[1]
	if d := cmp.Diff([]string{deploy.Name}, lease.ResourceNames); d != "" {
		t.Errorf("the role is for another lease: %s", d)
	}
	for _, u := range objects {
		if strings.HasPrefix(u.GetKind(), "ValidatingAdmissionPolicy") && !strings.HasSuffix(u.GetKind(), "Binding") {
			if text, _ := u.MarshalJSON(); !strings.Contains(string(text), "system:serviceaccount:elsewhere:placement-scheduler") {
				t.Errorf("%s does not name the account", u.GetName())
			}
		}
	}
}

// TestDeployment holds that the pods may run where Pod Security is restricted, find
// their configuration, and are replaced without a gap.
func TestDeployment(t *testing.T) {
	t.Parallel()
	o := options(t, func(o *deploy.Options) { o.Replicas = 3 })
	objects := render(t, o)
	d := typed[appsv1.Deployment](t, objects, "Deployment")[0]
	if *d.Spec.Replicas != 3 || d.Annotations[deploy.ProfilesAnnotation] != "placement-gang,placement-pack" {
		t.Errorf("%d replicas, annotations %v", *d.Spec.Replicas, d.Annotations)
	}
	container := d.Spec.Template.Spec.Containers[0]
	if container.Image != o.Image || !*container.SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("image %q, security context %v", container.Image, container.SecurityContext)
	}
	if d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
		t.Errorf("a broken replica would replace one that runs: %v", d.Spec.Strategy)
	}
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if probe == nil {
			t.Error("a probe is missing")
		}
	}
	evaluator, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(restricted, &d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec) {
		if !result.Allowed {
			t.Errorf("restricted Pod Security forbids it: %s %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	maps := typed[corev1.ConfigMap](t, objects, "ConfigMap")
	if name := d.Spec.Template.Spec.Volumes[0].ConfigMap.Name; len(maps) != 1 || maps[0].Name != name || maps[0].Data[deploy.ConfigKey] != string(o.Config) || !*maps[0].Immutable {
		t.Errorf("the pods mount %q, the configuration is in %v", name, maps)
	}
	budget := typed[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget")[0]
	for key, value := range budget.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("the budget selects %s=%s, the pods have %v", key, value, d.Spec.Template.Labels)
		}
	}
	other := render(t, options(t, func(o *deploy.Options) {
		o.Config, o.Profiles = []byte(config+"# changed\n"), []string{"placement-gang"}
	}))
	if typed[corev1.ConfigMap](t, other, "ConfigMap")[0].Name == maps[0].Name {
		t.Error("another configuration has the same name")
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	for _, reference := range []string{"scheduler", "localhost:5000/scheduler", "ghcr.io/a/b:v1", "ghcr.io/a/b@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"} {
		objects := render(t, options(t, func(o *deploy.Options) { o.Image = reference }))
		if got := typed[appsv1.Deployment](t, objects, "Deployment")[0].Spec.Template.Spec.Containers[0].Image; got != reference {
			t.Errorf("got %q, want %q", got, reference)
		}
	}
}

// TestOverlay holds that a user's Component changes what is rendered, and that
// anything else is refused with what to write.
func TestOverlay(t *testing.T) {
	t.Parallel()
	overlay := func(kustomization string) func(*deploy.Options) {
		return func(o *deploy.Options) {
			o.Disk, o.Overlay = filesys.MakeFsInMemory(), "/mine"
			for name, text := range map[string]string{
				"kustomization.yaml": kustomization,
				"pull.yaml":          "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: placement-scheduler}\nspec: {template: {spec: {imagePullSecrets: [{name: pull}]}}}\n",
			} {
				if err := o.Disk.WriteFile(filepath.Join(o.Overlay, name), []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	objects := render(t, options(t, overlay("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: pull.yaml}]\n")))
	secrets := typed[appsv1.Deployment](t, objects, "Deployment")[0].Spec.Template.Spec.ImagePullSecrets
	if !slices.Equal(secrets, []corev1.LocalObjectReference{{Name: "pull"}}) {
		t.Errorf("the patch is not in it: %v", secrets)
	}
	for name, change := range map[string]func(*deploy.Options){
		`kind: Component`:         overlay("kind: Kustomization\nresources: [../base]\n"),
		"no kustomization.yaml":   func(o *deploy.Options) { o.Disk, o.Overlay = filesys.MakeFsInMemory(), "/none" },
		"no image":                func(o *deploy.Options) { o.Image = "" },
		"has no profile":          func(o *deploy.Options) { o.Config = []byte(config) },
		"no matches for Id Missi": overlay("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{patch: '{apiVersion: v1, kind: Missing, metadata: {name: a}}'}]\n"),
	} {
		if _, err := deploy.Render(options(t, change)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

func TestConfigured(t *testing.T) {
	t.Parallel()
	deployed, profiles, err := deploy.Configured([]byte(config), "")
	if err != nil {
		t.Fatal(err)
	}
	want := config + "leaderElection:\n  resourceName: placement-scheduler\n  resourceNamespace: placement-system\n"
	if d := cmp.Diff(want, string(deployed)); d != "" || !slices.Equal(profiles, []string{"placement-pack", "placement-gang"}) {
		t.Errorf("profiles %v (-want +got):\n%s", profiles, d)
	}
	if again, _, err := deploy.Configured(deployed, ""); err != nil || string(again) != string(deployed) {
		t.Errorf("what is deployed is changed: %v\n%s", err, again)
	}
	for name, text := range map[string]string{
		"JSON":          `{"profiles": [{"schedulerName": "a"}]}`,
		"a lease alone": "leaderElection: # ours\n  resourceName: placement-scheduler\nprofiles: [{schedulerName: a}]\n",
		"a duration":    "leaderElection: {leaseDuration: 30s}\nprofiles: [{schedulerName: a}]\n",
	} {
		deployed, _, err := deploy.Configured([]byte(text), "b")
		var read struct {
			LeaderElection map[string]string `json:"leaderElection"`
		}
		if err = errors.Join(err, yaml.Unmarshal(deployed, &read)); err != nil || read.LeaderElection["resourceName"] != deploy.Name || read.LeaderElection["resourceNamespace"] != "b" {
			t.Errorf("%s: %v\n%s", name, err, deployed)
		}
		if strings.Contains(text, "# ours") != strings.Contains(string(deployed), "# ours") {
			t.Errorf("%s: the comment is lost:\n%s", name, deployed)
		}
	}
	for says, text := range map[string]string{
		"no YAML":                         "profiles: [",
		"no profiles":                     "kind: KubeSchedulerConfiguration\n",
		"profiles[1] has no schedulerNam": "profiles: [{schedulerName: a}, {}]",
		`names lease "kube-scheduler"`:    config + "leaderElection: {resourceName: kube-scheduler, resourceNamespace: kube-system}\n",
		"two replicas would schedule":     config + "leaderElection: {leaderElect: false, resourceName: placement-scheduler, resourceNamespace: placement-system}\n",
		"is no file":                      config + "clientConnection: {kubeconfig: /home/me/.kube/config}\n",
	} {
		if _, _, err := deploy.Configured([]byte(text), ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}
