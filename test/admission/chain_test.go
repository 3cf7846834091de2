package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// TestDefaultClassGivesWay holds that a class which the API server gave the pod
// by default is no reason to leave it: the policy's class, its value and its
// preemption take its place. Not parallel: the class is every pod's.
func TestDefaultClassGivesWay(t *testing.T) {
	l := newLab(t, "class")
	l.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 3, GlobalDefault: true})
	t.Cleanup(func() {
		if err := l.SchedulingV1().PriorityClasses().Delete(context.WithoutCancel(t.Context()), "usual", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		l.uninstall()
	})
	p := policyFor("polite", "class-shop")
	p.Priority = &policy.Priority{Class: "very-polite", Value: new(int32(7)), Preemption: "never"}
	l.namespace("class-shop", nil, "default")
	// The class is everybody's as soon as the API server knows it.
	l.eventually("the default class is in force", func(ctx context.Context) (bool, error) {
		got, err := l.CoreV1().Pods("class-shop").Create(ctx, pod("p", "class-shop"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && got.Spec.PriorityClassName == "usual", nil
	})
	l.install(l.compile(policy.Placement{Policies: []policy.Policy{p}}, compiler.Request{Capabilities: capability.Capabilities{
		PriorityClasses: map[string]int32{"usual": 3}, DefaultPriorityClass: "usual",
	}}))
	got, err := l.stored(pod("p", "class-shop"))
	if err != nil {
		t.Fatal(err)
	}
	spec := got.(*corev1.Pod).Spec
	if spec.PriorityClassName != "very-polite" || *spec.Priority != 7 || *spec.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("the pod has class %q, priority %d, preemption %s", spec.PriorityClassName, *spec.Priority, *spec.PreemptionPolicy)
	}
	own := pod("p", "class-shop")
	own.Spec.PriorityClassName = "system-cluster-critical"
	if got, err := l.stored(own); err != nil || got.(*corev1.Pod).Spec.PriorityClassName != own.Spec.PriorityClassName {
		t.Errorf("a class of the pod's own gives way: %v %v", got, err)
	}
}

func (l *lab) eventually(what string, condition wait.ConditionWithContextFunc) {
	l.t.Helper()
	if err := wait.PollUntilContextTimeout(l.t.Context(), 100*time.Millisecond, 2*time.Minute, true, condition); err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
}

// tolerating is a policy that gives pods a toleration, which tells of it.
func tolerating(name, key string, namespaces ...string) policy.Policy {
	p := policyFor(name, namespaces...)
	p.Tolerate = &policy.Tolerate{Taints: map[string]policy.Taint{"x": {Key: key}}}
	return p
}

func keysOf(p *corev1.Pod) string {
	var keys []string
	for _, t := range p.Spec.Tolerations {
		if !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			keys = append(keys, t.Key)
		}
	}
	return strings.Join(keys, " ")
}

// TestLabelOfAnotherPolicy holds that a policy selects by a label that another
// mutation gives the pod, whichever of the two comes first.
func TestLabelOfAnotherPolicy(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"aaa.labels.example.com", "zzz.labels.example.com"} {
		t.Run(other, func(t *testing.T) {
			t.Parallel()
			set := other[:3]
			l, ns := newLab(t, set), set+"-shop"
			l.namespace(ns, map[string]string{"labelled-by": set}, "default")
			p := tolerating("web", "web", ns)
			p.Workloads.Pods = &policy.Pods{Labels: map[string]policy.Values{"tier": {"web"}}}
			l.put(&admissionregistrationv1.MutatingAdmissionPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: other},
				Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
					MatchConstraints: &admissionregistrationv1.MatchResources{
						NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"labelled-by": set}},
						ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
							Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
							Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
						}}},
					},
					ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
					Mutations: []admissionregistrationv1.Mutation{{
						PatchType: admissionregistrationv1.PatchTypeJSONPatch,
						JSONPatch: &admissionregistrationv1.JSONPatch{Expression: `[JSONPatch{op: "add", path: "/metadata/labels", value: {"tier": "web"}}]`},
					}},
				},
			})
			l.put(&admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: other}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: other}})
			l.install(l.compile(policy.Placement{Policies: []policy.Policy{p}}, compiler.Request{}))
			l.eventually("the pod is labelled", func(ctx context.Context) (bool, error) {
				got, err := l.CoreV1().Pods(ns).Create(ctx, pod("p", ns), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return err == nil && got.Labels["tier"] == "web", nil
			})
			got, err := l.stored(pod("p", ns))
			if err != nil {
				t.Fatal(err)
			}
			if keys := keysOf(got.(*corev1.Pod)); keys != "web" {
				t.Errorf("the pod tolerates %q, want \"web\"; marked %q", keys, got.(*corev1.Pod).Annotations[admission.Annotation(set)])
			}
		})
	}
}

// TestTwoSets holds that two sets place one pod, each by its own mark, and that
// a mark which the user wrote does not keep either off.
func TestTwoSets(t *testing.T) {
	t.Parallel()
	a, b := newLab(t, "two-a"), newLab(t, "two-b")
	a.namespace("two-shop", nil, "default")
	a.install(a.compile(policy.Placement{Policies: []policy.Policy{tolerating("one", "one", "two-shop")}}, compiler.Request{}))
	b.install(b.compile(policy.Placement{Policies: []policy.Policy{tolerating("two", "two", "two-shop")}}, compiler.Request{}))
	p := pod("p", "two-shop")
	p.Annotations = map[string]string{admission.Annotation("two-a"): "0000000000 forged", admission.Annotation("two-b"): "x", "mine": "stays"}
	got, err := a.stored(p)
	if err != nil {
		t.Fatal(err)
	}
	placed := got.(*corev1.Pod)
	// The API server calls the policies of the two in any order.
	keys := strings.Fields(keysOf(placed))
	slices.Sort(keys)
	if diff := cmp.Diff([]string{"one", "two"}, keys); diff != "" {
		t.Errorf("what the pod tolerates (-want +got):\n%s", diff)
	}
	for set, want := range map[string]string{"two-a": "one", "two-b": "two"} {
		mark, _ := admission.ParseMark(placed.Annotations[admission.Annotation(set)])
		if diff := cmp.Diff([]string{want}, mark.Policies); diff != "" {
			t.Errorf("the mark of set %s (-want +got):\n%s", set, diff)
		}
	}
	if placed.Annotations["mine"] != "stays" {
		t.Errorf("an annotation of the user's is gone: %v", placed.Annotations)
	}
}

// TestUpgradeIsAtomic creates pods while a set changes to and fro, and holds
// that each has the whole of the version that its mark names.
func TestUpgradeIsAtomic(t *testing.T) {
	t.Parallel()
	l := newLab(t, "upgrade")
	l.namespace("upgrade-shop", nil, "default")
	version := func(suffix string) *compiler.Plan {
		var ps []policy.Policy
		for i := range 5 {
			ps = append(ps, tolerating(fmt.Sprintf("p-%d", i), fmt.Sprintf("t%d%s", i, suffix), "upgrade-shop"))
		}
		return l.compile(policy.Placement{Policies: ps}, compiler.Request{})
	}
	old, young := version("old"), version("new")
	want := map[string]string{}
	for suffix, plan := range map[string]*compiler.Plan{"old": old, "new": young} {
		content := ""
		for _, o := range plan.Objects {
			content = admissionContent(o.Object, content)
		}
		want[content] = fmt.Sprintf("t0%[1]s t1%[1]s t2%[1]s t3%[1]s t4%[1]s", suffix)
	}
	l.install(old)
	var group sync.WaitGroup
	var stop atomic.Bool
	var created, bad atomic.Int64
	seen := sync.Map{}
	for range parallelPods {
		group.Go(func() {
			for !stop.Load() {
				got, err := l.CoreV1().Pods("upgrade-shop").Create(t.Context(), pod("p", "upgrade-shop"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err != nil {
					t.Error(err)
					return
				}
				created.Add(1)
				mark, ok := admission.ParseMark(got.Annotations[admission.Annotation(l.set)])
				if keys := keysOf(got); !ok || want[mark.Content] != keys {
					bad.Add(1)
					t.Errorf("the pod is marked %q and tolerates %q", got.Annotations[admission.Annotation(l.set)], keys)
					return
				}
				seen.Store(mark.Content, true)
			}
		})
	}
	for i := range 4 {
		l.install([]*compiler.Plan{young, old}[i%2])
	}
	stop.Store(true)
	group.Wait()
	versions := 0
	seen.Range(func(any, any) bool { versions++; return true })
	if versions != 2 {
		t.Errorf("%d versions placed pods, want both", versions)
	}
	t.Logf("%d pods created, %d in between", created.Load(), bad.Load())
}

// TestAuditSaysWhatWouldChange holds the policy that notes to what it says, by
// letting it refuse: without the place policy what would change, with it nothing.
func TestAuditSaysWhatWouldChange(t *testing.T) {
	t.Parallel()
	l := newLab(t, "audit")
	l.namespace("audit-shop", nil, "default")
	plan := l.compile(policy.Placement{Policies: []policy.Policy{tolerating("one", "one", "audit-shop")}}, compiler.Request{})
	for _, o := range plan.Objects {
		switch v := o.Object.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicy:
			l.put(v)
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			v = v.DeepCopy()
			v.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
			l.put(v)
		}
	}
	const why = "the placement policies one would change tolerations"
	l.eventually("the policy refuses", func(context.Context) (bool, error) {
		_, err := l.stored(pod("p", "audit-shop"))
		return isForbidden(err, why), nil
	})
	l.namespace("audit-elsewhere", nil, "default")
	if _, err := l.stored(pod("p", "audit-elsewhere")); err != nil {
		t.Errorf("a pod that no policy selects: %v", err)
	}
	for _, o := range plan.Objects {
		switch o.Object.(type) {
		case *admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding:
			l.put(o.Object)
		}
	}
	l.eventually("the placed pod is taken", func(context.Context) (bool, error) {
		_, err := l.stored(pod("p", "audit-shop"))
		return err == nil, nil
	})
}

// TestControllers holds that the pods which the controllers really make are
// placed as whose they are: a Deployment's through its ReplicaSet, a Job's of a
// CronJob, and a DaemonSet's by its template.
func TestControllers(t *testing.T) {
	t.Parallel()
	l := newLab(t, "controllers")
	const ns = "controllers-shop"
	l.namespace(ns, nil)
	deployments := tolerating("deployments", "deployment", ns)
	deployments.Workloads.Kinds, deployments.Workloads.Names = []string{"apps/Deployment"}, []string{"web"}
	deployments.Spread = map[string]policy.Spread{"zone": {Strength: policy.Prefer, MaxSkew: 1, Of: policy.Subject{Kind: policy.EachWorkload}}}
	daemons := tolerating("daemons", "daemon", ns)
	daemons.Workloads.Kinds = []string{"DaemonSet"}
	l.install(l.compile(policy.Placement{Policies: []policy.Policy{deployments, daemons}}, compiler.Request{}))

	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: pod("", "").Spec}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	if _, err := l.AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: selector, Template: template},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var pods *corev1.PodList
	l.eventually("the Deployment has pods", func(ctx context.Context) (bool, error) {
		var err error
		pods, err = l.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		return err == nil && len(pods.Items) == 2, err
	})
	for _, p := range pods.Items {
		if keys := keysOf(&p); keys != "deployment" {
			t.Errorf("%s tolerates %q", p.Name, keys)
		}
		if c := p.Spec.TopologySpreadConstraints; len(c) != 1 || !cmp.Equal(c[0].MatchLabelKeys, []string{"pod-template-hash"}) || c[0].LabelSelector.MatchLabels["app"] != "web" {
			t.Errorf("%s spreads by %v", p.Name, c)
		}
	}
	template.Labels, selector = map[string]string{"app": "agent"}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	made, err := l.AppsV1().DaemonSets(ns).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if mark, _ := admission.ParseMark(made.Annotations[admission.Annotation(l.set)]); !cmp.Equal(mark.Policies, []string{"daemons"}) {
		t.Errorf("the DaemonSet is marked %v", made.Annotations)
	}
	if got := made.Spec.Template; len(got.Spec.Tolerations) != 1 || got.Spec.Tolerations[0].Key != "daemon" || len(got.Annotations) > 0 {
		t.Errorf("its template is %+v", got)
	}
	// The stored mark is an older one's as soon as the set changes.
	daemons.Tolerate.Taints["y"] = policy.Taint{Key: "another"}
	l.install(l.compile(policy.Placement{Policies: []policy.Policy{daemons}}, compiler.Request{}))
	updated, err := l.AppsV1().DaemonSets(ns).Patch(t.Context(), "agent", types.MergePatchType, []byte(`{"metadata": {"labels": {"touched": "yes"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := updated.Spec.Template.Spec.Tolerations; len(got) != 2 || got[1].Key != "another" {
		t.Errorf("after an update of the set and of the DaemonSet it tolerates %v", got)
	}
}

// TestManyPolicies installs a set of 200 policies.
func TestManyPolicies(t *testing.T) {
	t.Parallel()
	l := newLab(t, "many")
	var placement policy.Placement
	for i := range 200 {
		p := tolerating(fmt.Sprintf("team-%d", i), fmt.Sprintf("t%d", i), fmt.Sprintf("many-%d", i))
		p.Nodes = &policy.Nodes{
			Require: &policy.NodeTerm{Labels: map[string]policy.Values{"team": {fmt.Sprint(i), "any"}}},
			Prefer:  &policy.Preference{NodeTerm: policy.NodeTerm{Zones: []string{fmt.Sprint(i)}}, Weight: 10},
		}
		p.Spread = map[string]policy.Spread{"zone": {Strength: policy.Require, MaxSkew: 1 + i%5, Of: policy.Subject{Kind: policy.EachWorkload}}}
		p.Apart = map[string]policy.Colocation{"x": {On: "node", Strength: policy.Prefer, Weight: 5, Of: policy.Subject{Kind: policy.EachWorkload}}}
		placement.Policies = append(placement.Policies, p)
	}
	plan := l.compile(placement, compiler.Request{})
	start := time.Now()
	l.install(plan)
	installed := time.Since(start)
	l.namespace("many-17", nil, "default")
	web := pod("p", "many-17")
	web.Labels = map[string]string{"app": "web"}
	got, err := l.stored(web)
	if err != nil {
		t.Fatal(err)
	}
	placed := got.(*corev1.Pod)
	if keys := keysOf(placed); keys != "t17" {
		t.Errorf("the pod tolerates %q", keys)
	}
	if c := placed.Spec.TopologySpreadConstraints; len(c) != 1 || c[0].MaxSkew != 3 {
		t.Errorf("the pod spreads by %v", c)
	}
	t.Logf("in force after %s", seconds(installed))
}
