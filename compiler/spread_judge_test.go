package compiler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// TestSpreads holds compiled spreads against what the language means by them,
// with the scheduler's own plugin as judge of the next pod of a rollout: it may
// go exactly where its revision's pods stay within the skew, over the domains
// that its pods can use.
func TestSpreads(t *testing.T) {
	t.Parallel()
	metrics.Register()
	allowed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		nodes := w.nodes(t)
		placement := w.placement(t)
		spreads := map[string]policy.Spread{}
		for i := range placement.Policies {
			drawSpreads(t, &placement.Policies[i], spreads)
		}
		subject := deployment(t, workload.PodFields{})
		if rapid.Bool().Draw(t, "counted") {
			n := int32(rapid.IntRange(1, 6).Draw(t, "replicas"))
			subject.Replicas = &n
		}
		plan, findings := compiler.Compile(request(placement, nodes, subject))
		if broken(findings) {
			return
		}
		after := plan.Changes[0].After
		var usable []capability.Node
		for _, n := range nodes {
			if selected, borne := judged(t, after, n); selected && borne {
				usable = append(usable, n)
			}
		}
		pods := drawPods(t, nodes)
		verdict := judgeSpread(t, after, nodes, pods)
		for _, n := range usable {
			want := true
			for key, s := range spreads {
				want = want && keepsSkew(spreads, key, s, n, usable, pods, subject.Replicas)
			}
			if got := verdict[n.Name]; got != want {
				t.Fatalf("node %v: the scheduler says %v, want %v\nspreads %s\nconstraints %s\npods %s", n, got, want, asJSON(spreads), asJSON(after.TopologySpreadConstraints), asJSON(pods))
			}
			if want {
				allowed++
			} else {
				refused++
			}
		}
	})
	enough(t, map[string]int{"allowed": allowed, "refused": refused})
}

var spreadKeys = map[string]string{"zone": zoneLabel, "node": "kubernetes.io/hostname"}

// drawSpreads gives a policy required spreads, and adds to all what they come
// to together.
func drawSpreads(t *rapid.T, p *policy.Policy, all map[string]policy.Spread) {
	for _, name := range []string{"zone", "node"} {
		key := spreadKeys[name]
		if rapid.Bool().Draw(t, "spread "+name) {
			continue
		}
		s := policy.Spread{Strength: policy.Require, MaxSkew: rapid.IntRange(1, 2).Draw(t, "skew "+name), Of: policy.Subject{Kind: policy.EachWorkload}}
		if rapid.Bool().Draw(t, "min "+name) {
			n := rapid.IntRange(1, 4).Draw(t, "minDomains "+name)
			s.MinDomains = &n
		}
		if p.Spread == nil {
			p.Spread = map[string]policy.Spread{}
		}
		p.Spread[name] = s
		if before, ok := all[key]; ok {
			s.MaxSkew = min(s.MaxSkew, before.MaxSkew)
			if s.MinDomains == nil || before.MinDomains != nil && *before.MinDomains > *s.MinDomains {
				s.MinDomains = before.MinDomains
			}
		}
		all[key] = s
	}
}

// drawPods places pods of the new and the old revision, of others, and of
// another namespace.
func drawPods(t *rapid.T, nodes []capability.Node) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
		out = append(out, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint("uid-", i)),
				Namespace: rapid.SampledFrom([]string{"shop", "shop", "shop", "other"}).Draw(t, "namespace"),
				Labels: map[string]string{
					"app":               rapid.SampledFrom([]string{"web", "web", "web", "db"}).Draw(t, "app"),
					"pod-template-hash": rapid.SampledFrom([]string{"new", "new", "old"}).Draw(t, "revision"),
				},
			},
			Spec: corev1.PodSpec{NodeName: nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "on")].Name},
		})
	}
	return out
}

// keepsSkew is the meaning of one required spread, for the next pod on a node.
func keepsSkew(all map[string]policy.Spread, key string, s policy.Spread, n capability.Node, usable []capability.Node, pods []*corev1.Pod, replicas *int32) bool {
	domain, ok := n.Labels[key]
	if !ok {
		return false
	}
	known := map[string]bool{}
	counts := map[string]int{}
	for _, u := range usable {
		if d, ok := u.Labels[key]; ok {
			known[d] = true
		}
		complete := true
		for k := range all {
			_, ok := u.Labels[k]
			complete = complete && ok
		}
		if !complete {
			continue
		}
		d := u.Labels[key]
		counts[d] += 0
		for _, p := range pods {
			if p.Spec.NodeName == u.Name && p.Namespace == "shop" && p.Labels["app"] == "web" && p.Labels["pod-template-hash"] == "new" {
				counts[d]++
			}
		}
	}
	least := 2
	switch {
	case s.MinDomains != nil:
		least = *s.MinDomains
	case key == zoneLabel:
		least = max(2, len(known))
		if replicas != nil {
			least = max(2, min(least, int(*replicas)))
		}
	}
	lowest := 0
	if len(counts) >= least {
		lowest = 1 << 30
		for _, c := range counts {
			lowest = min(lowest, c)
		}
	}
	return counts[domain]+1-lowest <= s.MaxSkew
}

// judgeSpread asks the scheduler's plugin on which nodes the next pod may go.
func judgeSpread(t *rapid.T, p workload.PodFields, nodes []capability.Node, pods []*corev1.Pod) map[string]bool {
	ctx := t.Context()
	var objects []*corev1.Node
	for _, n := range nodes {
		objects = append(objects, nodeOf(n))
	}
	snapshot := cache.NewSnapshot(pods, objects)
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil, frameworkruntime.WithSnapshotSharedLister(snapshot))
	if err != nil {
		t.Fatal(err)
	}
	made, err := podtopologyspread.New(ctx, &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, handle,
		feature.Features{EnableNodeInclusionPolicyInPodTopologySpread: true, EnableMatchLabelKeysInPodTopologySpread: true})
	if err != nil {
		t.Fatal(err)
	}
	plugin, ok := made.(*podtopologyspread.PodTopologySpread)
	if !ok {
		t.Fatalf("the plugin is a %T", made)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "next", Namespace: "shop", Labels: map[string]string{"app": "web", "pod-template-hash": "new"}},
		Spec:       corev1.PodSpec{NodeSelector: p.NodeSelector, Affinity: p.Affinity, Tolerations: p.Tolerations, TopologySpreadConstraints: p.TopologySpreadConstraints},
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	state := framework.NewCycleState()
	_, status := plugin.PreFilter(ctx, state, pod, infos)
	for _, info := range infos {
		out[info.Node().Name] = status.IsSkip() || plugin.Filter(ctx, state, pod, info).IsSuccess()
	}
	return out
}
