package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler/guard"
	"github.com/kubectl-sched/kubectl-sched/compiler/guard/guardtest"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// The places of the policies in what Policies returns.
const (
	pods = iota
	bindings
	templates
)

var (
	exact    = corev1.Toleration{Key: "example.com/gpu", Operator: "Equal", Value: "yes", Effect: "NoSchedule"}
	wildcard = corev1.Toleration{Operator: "Exists"}
	anna     = &user.DefaultInfo{Name: "anna@example.com", Groups: []string{"shop", "system:authenticated"}}
)

func evaluator(t testing.TB, pool guard.Pool, which int) *guardtest.Evaluator {
	t.Helper()
	e, err := guardtest.New(pool.Policies()[which].Policy)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func complaint(t testing.TB, e *guardtest.Evaluator, r guardtest.Request) string {
	t.Helper()
	messages, annotations, err := e.Complaints(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(messages, "\n")
	if len(annotations) > 0 && strings.Join(annotations, "\n") != "guard: "+text {
		t.Errorf("the audit log says %q, the user is told %q", annotations, text)
	}
	return text
}

func pod(edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Spec:       corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if edit != nil {
		edit(p)
	}
	return p
}

func tolerating(ts ...corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = ts }
}

func TestPods(t *testing.T) {
	t.Parallel()
	ungranted := `pool "gpu" is dedicated, and nothing grants it to service account "shop/default"; `
	byToleration := func(text string) string {
		return ungranted + `toleration "` + text + `" would let the pod onto its nodes; take it out, or have the grant added to the pool in the placement policy`
	}
	byName := ungranted + `spec.nodeName "g1" passes by the scheduler, and so by the taint of the pool, if the node is one of its; ask for nodes by nodeSelector or affinity instead, or have the grant added to the pool in the placement policy`
	onNode := func(p *corev1.Pod) { p.Spec.NodeName = "g1" }
	shop := guardtest.Namespace("shop", nil)
	vision := guardtest.Namespace("ml-vision", map[string]string{"team": "vision-1"})
	trainer := func(p *corev1.Pod) { tolerating(exact)(p); p.Spec.ServiceAccountName = "trainer" }
	tests := []struct {
		name      string
		namespace *corev1.Namespace
		by        user.Info
		edit      func(*corev1.Pod)
		old       *corev1.Pod
		want      string
	}{
		{name: "a plain pod", edit: nil},
		{name: "another taint's toleration", edit: tolerating(corev1.Toleration{Key: "other", Operator: "Exists"})},
		{name: "the exact toleration", edit: tolerating(exact), want: byToleration("example.com/gpu=yes:NoSchedule op=Equal")},
		{name: "the wildcard", edit: tolerating(corev1.Toleration{Key: "other"}, wildcard), want: byToleration("op=Exists")},
		{name: "by key only", edit: tolerating(corev1.Toleration{Key: "example.com/gpu", Operator: "Exists"}), want: byToleration("example.com/gpu op=Exists")},
		{name: "by effect only", edit: tolerating(corev1.Toleration{Operator: "Exists", Effect: "NoSchedule"}), want: byToleration(":NoSchedule op=Exists")},
		{name: "without an operator", edit: tolerating(corev1.Toleration{Key: "example.com/gpu", Value: "yes"}), want: byToleration("example.com/gpu=yes")},
		{name: "another effect", edit: tolerating(corev1.Toleration{Operator: "Exists", Effect: "NoExecute"})},
		{name: "another value", edit: tolerating(corev1.Toleration{Key: "example.com/gpu", Value: "no"})},
		{name: "a node by name", edit: onNode, want: byName},
		{name: "a node by name in a namespace without labels", namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, edit: onNode, want: byName},
		{name: "nobody has groups", by: &user.DefaultInfo{Name: "x"}, edit: onNode, want: byName},

		{name: "a toleration added later", edit: tolerating(exact), old: pod(nil), want: byToleration("example.com/gpu=yes:NoSchedule op=Equal")},
		{name: "a toleration widened", edit: tolerating(exact, wildcard), old: pod(tolerating(exact))},
		{name: "a running pod is labelled", old: pod(tolerating(wildcard)), edit: func(p *corev1.Pod) { tolerating(wildcard)(p); p.Labels = map[string]string{"a": "b"} }},
		{name: "a running pod on a node", old: pod(onNode), edit: onNode},

		{name: "a grant", namespace: vision, edit: trainer},
		{name: "the namespace's name alone", namespace: guardtest.Namespace("ml-vision", nil), edit: trainer, want: strings.Replace(byToleration("example.com/gpu=yes:NoSchedule op=Equal"), "shop/default", "ml-vision/trainer", 1)},
		{name: "the namespace's labels alone", namespace: guardtest.Namespace("shop", map[string]string{"team": "ml"}), edit: trainer, want: strings.Replace(byToleration("example.com/gpu=yes:NoSchedule op=Equal"), "shop/default", "shop/trainer", 1)},
		{name: "another service account", namespace: vision, edit: onNode, want: strings.Replace(byName, "shop/default", "ml-vision/default", 1)},
		{name: "a granted pod names a node", namespace: vision, edit: func(p *corev1.Pod) { trainer(p); onNode(p) }},
		{name: "a service account of one namespace", namespace: guardtest.Namespace("lab", map[string]string{"team": "ml"}), edit: func(p *corev1.Pod) { onNode(p); p.Spec.ServiceAccountName = "runner" }},
		{name: "its namesake elsewhere", namespace: vision, edit: func(p *corev1.Pod) { onNode(p); p.Spec.ServiceAccountName = "runner" }, want: strings.Replace(byName, "shop/default", "ml-vision/runner", 1)},
		{name: "a workload's label is no grant", edit: func(p *corev1.Pod) { onNode(p); p.Labels = map[string]string{"team": "ml"} }, want: byName},

		{name: "kube-system", namespace: guardtest.Namespace("kube-system", nil), edit: tolerating(wildcard)},
		{name: "an exempt namespace", namespace: guardtest.Namespace("monitoring", nil), edit: tolerating(wildcard)},
		{name: "an exempt glob", namespace: guardtest.Namespace("infra-dns", nil), edit: tolerating(wildcard)},
		{name: "an exempt service account", namespace: guardtest.Namespace("ops", nil), edit: func(p *corev1.Pod) { onNode(p); p.Spec.ServiceAccountName = "agent" }},
		{name: "its namesake is not", edit: func(p *corev1.Pod) { onNode(p); p.Spec.ServiceAccountName = "agent" }, want: strings.Replace(byName, "default", "agent", 1)},
		{name: "an exempt user", by: &user.DefaultInfo{Name: "ops@example.com"}, edit: onNode},
		{name: "an exempt group", by: &user.DefaultInfo{Name: "x", Groups: []string{"y", "ops"}}, edit: onNode},
		{name: "a mirror pod", by: &user.DefaultInfo{Name: "system:node:g1", Groups: []string{"system:nodes"}}, edit: func(p *corev1.Pod) {
			onNode(p)
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}},
		{name: "a mirror pod that no node made", edit: func(p *corev1.Pod) {
			onNode(p)
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}, want: byName},
		{name: "a node that makes other pods", by: &user.DefaultInfo{Name: "system:node:g1", Groups: []string{"system:nodes"}}, edit: onNode, want: byName},
	}
	e := evaluator(t, gpu(), pods)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.namespace == nil {
				test.namespace = shop
			}
			if test.by == nil {
				test.by = anna
			}
			if diff := cmp.Diff(test.want, complaint(t, e, guardtest.Pod(pod(test.edit), test.old, test.namespace, test.by))); diff != "" {
				t.Errorf("complaint differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBindings(t *testing.T) {
	t.Parallel()
	byHand := `pool "spot" is dedicated, and user "anna@example.com" is no scheduler that is known; binding a pod of namespace "shop" by hand passes by the taint of the pool, if the node is one of its; leave it to a scheduler, or, if this is one, have it named in dedicated.exempt.users of the pool`
	exempting := spot(policy.GuardDeny)
	exempting.Exempt = policy.GuardExempt{Users: []string{"system:serviceaccount:sched:second"}, Groups: []string{"schedulers"}, Namespaces: []string{"infra-*"}}
	byAccount := spot(policy.GuardDeny)
	byAccount.Grants.ServiceAccounts = []string{"batch/runner"}
	tests := []struct {
		name      string
		pool      guard.Pool
		namespace string
		by        user.Info
		want      string
	}{
		{name: "by hand", pool: spot(policy.GuardDeny), namespace: "shop", by: anna, want: byHand},
		{name: "by hand where the pool is granted", pool: spot(policy.GuardDeny), namespace: "batch", by: anna},
		{name: "by hand where only some service accounts are granted", pool: byAccount, namespace: "batch", by: anna, want: strings.Replace(byHand, `"shop"`, `"batch"`, 1)},
		{name: "the scheduler", pool: byAccount, namespace: "shop", by: &user.DefaultInfo{Name: "system:kube-scheduler"}},
		{name: "a scheduler in kube-system", pool: byAccount, namespace: "shop", by: &user.DefaultInfo{Name: "system:serviceaccount:kube-system:second", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}}},
		{name: "a scheduler elsewhere", pool: exempting, namespace: "shop", by: &user.DefaultInfo{Name: "system:serviceaccount:sched:second"}},
		{name: "schedulers by their group", pool: exempting, namespace: "shop", by: &user.DefaultInfo{Name: "x", Groups: []string{"schedulers"}}},
		{name: "an exempt namespace", pool: exempting, namespace: "infra-x", by: anna},
		{name: "kube-system", pool: exempting, namespace: "kube-system", by: anna},
		{name: "somebody else", pool: exempting, namespace: "shop", by: anna, want: byHand},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := evaluator(t, test.pool, bindings)
			r := guardtest.Request{
				Operation: admission.Create, Kind: corev1.SchemeGroupVersion.WithKind("Binding"),
				Resource: corev1.SchemeGroupVersion.WithResource("pods"), Subresource: "binding",
				Object:    &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: test.namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}},
				Namespace: guardtest.Namespace(test.namespace, nil), User: test.by,
			}
			if diff := cmp.Diff(test.want, complaint(t, e, r)); diff != "" {
				t.Errorf("complaint differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	bad := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{wildcard}}}
	named := corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "g1"}}
	exempt := corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "g1", ServiceAccountName: "agent"}}
	warned := `pool "gpu" is dedicated, and nothing grants it to service account "shop/default"; toleration "op=Exists" would let the pods onto its nodes; take it out, or have the grant added to the pool in the placement policy`
	metadata := metav1.ObjectMeta{Name: "web", Namespace: "shop"}
	owned := metadata
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: "web", APIVersion: "apps/v1", UID: "u"}}
	tests := []struct {
		name      string
		kind      string
		object    runtime.Object
		namespace string
		by        user.Info
		want      string
	}{
		{name: "a Deployment", kind: "Deployment", object: &appsv1.Deployment{ObjectMeta: metadata, Spec: appsv1.DeploymentSpec{Template: bad}}, want: warned},
		{name: "a Deployment without tolerations", kind: "Deployment", object: &appsv1.Deployment{ObjectMeta: metadata}},
		{
			name: "a Deployment that names a node", kind: "Deployment", object: &appsv1.Deployment{ObjectMeta: metadata, Spec: appsv1.DeploymentSpec{Template: named}},
			want: `pool "gpu" is dedicated, and nothing grants it to service account "shop/default"; spec.nodeName "g1" passes by the scheduler, and so by the taint of the pool, if the node is one of its; ask for nodes by nodeSelector or affinity instead, or have the grant added to the pool in the placement policy`,
		},
		{name: "a DaemonSet", kind: "DaemonSet", object: &appsv1.DaemonSet{ObjectMeta: metadata, Spec: appsv1.DaemonSetSpec{Template: bad}}, want: warned},
		{name: "a DaemonSet of kube-system", kind: "DaemonSet", namespace: "kube-system", object: &appsv1.DaemonSet{ObjectMeta: metadata, Spec: appsv1.DaemonSetSpec{Template: bad}}},
		{name: "a StatefulSet", kind: "StatefulSet", object: &appsv1.StatefulSet{ObjectMeta: metadata, Spec: appsv1.StatefulSetSpec{Template: bad}}, want: warned},
		{name: "a CronJob", kind: "CronJob", object: &batchv1.CronJob{ObjectMeta: metadata, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: bad}}}}, want: warned},
		{name: "a Job", kind: "Job", object: &batchv1.Job{ObjectMeta: metadata, Spec: batchv1.JobSpec{Template: bad}}, want: warned},
		{name: "a ReplicationController", kind: "ReplicationController", object: &corev1.ReplicationController{ObjectMeta: metadata, Spec: corev1.ReplicationControllerSpec{Template: &bad}}, want: warned},
		{name: "a ReplicaSet of a Deployment", kind: "ReplicaSet", object: &appsv1.ReplicaSet{ObjectMeta: owned, Spec: appsv1.ReplicaSetSpec{Template: bad}}},
		{name: "what a controller writes", kind: "Deployment", by: &user.DefaultInfo{Name: "system:serviceaccount:kube-system:deployment-controller", Groups: []string{"system:serviceaccounts:kube-system"}}, object: &appsv1.Deployment{ObjectMeta: metadata, Spec: appsv1.DeploymentSpec{Template: bad}}},
		{name: "an exempt service account", kind: "Deployment", namespace: "ops", object: &appsv1.Deployment{ObjectMeta: metadata, Spec: appsv1.DeploymentSpec{Template: exempt}}},
		{name: "an exempt user, whose controller is not", kind: "Deployment", by: &user.DefaultInfo{Name: "ops@example.com"}, object: &appsv1.Deployment{ObjectMeta: metadata, Spec: appsv1.DeploymentSpec{Template: bad}}, want: warned},
	}
	e := evaluator(t, gpu(), templates)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := guardtest.Request{
				Operation: admission.Create, Kind: appsv1.SchemeGroupVersion.WithKind(test.kind),
				Resource: appsv1.SchemeGroupVersion.WithResource(strings.ToLower(test.kind) + "s"),
				Object:   test.object, Namespace: guardtest.Namespace("shop", nil), User: anna,
			}
			if test.namespace != "" {
				r.Namespace = guardtest.Namespace(test.namespace, nil)
			}
			if test.by != nil {
				r.User = test.by
			}
			if diff := cmp.Diff(test.want, complaint(t, e, r)); diff != "" {
				t.Errorf("complaint differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTolerates holds that the policy takes a toleration for one of the pool's
// taint exactly where the scheduler does.
func TestTolerates(t *testing.T) {
	t.Parallel()
	numbers := []string{"5", "-5", "0", "9223372036854775807", "-9223372036854775808", "1234567890123456789"}
	strange := []string{"05", "+5", "-0", "5.0", "9223372036854775808", "-9223372036854775809", "99999999999999999999", "5x", "", "yes", "-"}
	for _, value := range append([]string{"yes", "", "05", "9223372036854775808"}, numbers...) {
		t.Run("value "+value, func(t *testing.T) {
			t.Parallel()
			pool := spot(policy.GuardDeny)
			pool.Taint = corev1.Taint{Key: "example.com/gpu", Value: value, Effect: corev1.TaintEffectNoSchedule}
			e := evaluator(t, pool, pods)
			shop := guardtest.Namespace("shop", nil)
			drawn := rapid.Custom(func(t *rapid.T) corev1.Toleration {
				return corev1.Toleration{
					Key:      rapid.SampledFrom([]string{"", "example.com/gpu", "example.com/gp", "gpu", "example.com/gpux"}).Draw(t, "key"),
					Operator: corev1.TolerationOperator(rapid.SampledFrom([]string{"", "Equal", "Exists", "Lt", "Gt", "exists"}).Draw(t, "operator")),
					Value:    rapid.OneOf(rapid.Just(value), rapid.SampledFrom(append(strange, numbers...)), rapid.StringMatching(`-?[0-9]{1,20}`)).Draw(t, "value"),
					Effect:   corev1.TaintEffect(rapid.SampledFrom([]string{"", "NoSchedule", "NoExecute", "PreferNoSchedule"}).Draw(t, "effect")),
				}
			})
			rapid.Check(t, func(t *rapid.T) {
				for _, ts := range rapid.SliceOfN(rapid.SliceOfN(drawn, 0, 3), 5, 5).Draw(t, "pods") {
					want := slices.ContainsFunc(ts, func(one corev1.Toleration) bool { return one.ToleratesTaint(klog.Logger{}, &pool.Taint, true) })
					messages, _, err := e.Complaints(t.Context(), guardtest.Pod(pod(tolerating(ts...)), nil, shop, anna))
					if err != nil {
						t.Fatal(err)
					}
					if got := len(messages) > 0; got != want {
						t.Fatalf("taint %s, tolerations %v: the guard says %v (%q), the scheduler %v", pool.Taint.ToString(), ts, got, messages, want)
					}
				}
			})
		})
	}
}

// BenchmarkPods is what a guard adds to the creation of a pod that has nothing to
// do with the pool, and of one that is refused.
func BenchmarkPods(b *testing.B) {
	shop := guardtest.Namespace("shop", nil)
	for name, subject := range map[string]*corev1.Pod{"plain": pod(nil), "refused": pod(tolerating(wildcard))} {
		b.Run(name, func(b *testing.B) {
			e := evaluator(b, gpu(), pods)
			for b.Loop() {
				if _, _, err := e.Complaints(b.Context(), guardtest.Pod(subject, nil, shop, anna)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
