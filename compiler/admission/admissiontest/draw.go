package admissiontest

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

const (
	zoneLabel = corev1.LabelTopologyZone
	hostLabel = corev1.LabelHostname
)

// World is a document, what is known of a cluster, and workloads, drawn from so
// few words that they often meet and often clash.
type World struct {
	Placement    *policy.Placement
	Capabilities capability.Capabilities
	// Workloads are objects as manifests have them, of the kinds that make pods.
	Workloads []map[string]any
	// Known says that the workloads are there when the set is compiled. Otherwise
	// no nodes are known either, and each workload selects its pods by all labels
	// of its template, so that what comes out must be the same.
	Known bool
}

// Draw draws a world with so many policies and workloads, at most; of workloads
// half as many at least.
func Draw(t *rapid.T, policies, workloads int) World {
	d := drawer{t}
	w := World{Known: d.one("known", 2), Placement: &policy.Placement{Clusters: []policy.Cluster{{
		Name: "here", Surface: policy.SurfaceRender, Positions: somewhere("clusters", 0),
	}}}}
	w.Capabilities = capability.Capabilities{
		Cluster: "here", Minor: 37, NamespacesKnown: true,
		Namespaces: map[string]map[string]string{
			"shop": {"team": "a"}, "ml": {"team": "b", "gpu": "yes"}, "kube-system": {},
		},
		SchedulersKnown: true, Schedulers: []capability.Scheduler{{Name: capability.BundledScheduler, Bundled: true}},
	}
	for name, labels := range w.Capabilities.Namespaces {
		labels[corev1.LabelMetadataName] = name
	}
	if w.Known {
		w.Capabilities.NodesKnown, w.Capabilities.Nodes = true, d.nodes()
	}
	w.Placement.Pools = d.pools()
	for i := range rapid.IntRange(1, policies).Draw(t, "policies") {
		p := d.policy(i, w.Placement)
		w.Placement.Policies = append(w.Placement.Policies, p)
	}
	for i := range rapid.IntRange((workloads+1)/2, workloads).Draw(t, "workloads") {
		w.Workloads = append(w.Workloads, d.workload(i, w.Known))
	}
	return w
}

func somewhere(what string, line int) policy.Positions {
	return policy.Positions{"": diag.At(diag.Pos{File: what, Line: line + 1, Column: 1})}
}

type drawer struct{ t *rapid.T }

// one is true once in so many times.
func (d drawer) one(label string, in int) bool { return rapid.IntRange(1, in).Draw(d.t, label) == 1 }

func pick[T any](d drawer, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(d.t, label)
}

func some[T comparable](d drawer, label string, most int, from ...T) []T {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, most, rapid.ID[T]).Draw(d.t, label)
}

func (d drawer) nodes() []capability.Node {
	out := make([]capability.Node, rapid.IntRange(1, 6).Draw(d.t, "nodes"))
	for i := range out {
		out[i] = capability.Node{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{hostLabel: fmt.Sprintf("ip-%d", i), zoneLabel: pick(d, "zone", "a", "b", "c")}}
		for _, k := range []string{"k1", "k2"} {
			if d.one("has", 2) {
				out[i].Labels[k] = pick(d, "value", "a", "b", "c")
			}
		}
		if d.one("tainted", 4) {
			out[i].Taints = append(out[i].Taints, d.taint())
		}
	}
	return out
}

func (d drawer) taint() corev1.Taint {
	return corev1.Taint{
		Key: pick(d, "taint", "t1", "t2"), Value: pick(d, "taintValue", "", "x", "y"),
		Effect: pick(d, "effect", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
	}
}

func (d drawer) values() policy.Values {
	if d.one("any", 5) {
		return policy.Values{"*"}
	}
	return some(d, "values", 2, "a", "b", "c")
}

// nodeTerm draws a description of nodes; an exact one has a negation.
func (d drawer) nodeTerm(exact bool, pools []policy.Pool) policy.NodeTerm {
	out := policy.NodeTerm{}
	label := func(key string, values policy.Values) {
		if out.Labels == nil {
			out.Labels = map[string]policy.Values{}
		}
		out.Labels[key] = values
	}
	for _, k := range []string{"k1", "k2"} {
		if d.one(k, 3) {
			label(k, d.values())
		}
	}
	if !exact && d.one("compare", 4) {
		label("size", some(d, "sizes", 2, ">1", ">2", "<3", "<2", "4"))
	}
	if d.one("zoned", 3) {
		out.Zones = some(d, "zones", 2, "a", "b", "c")
	}
	if d.one("named", 6) {
		out.Names = some(d, "names", 3, "n0", "n1", "n2")
	}
	if len(pools) > 0 && d.one("pooled", 2) {
		out.Pools = d.poolNames(pools)
	}
	if len(out.Labels)+len(out.Zones)+len(out.Names)+len(out.Pools) == 0 {
		out.Zones = []string{pick(d, "zone", "a", "b")}
	}
	return out
}

func (d drawer) poolNames(pools []policy.Pool) []string {
	names := make([]string, len(pools))
	for i, p := range pools {
		names[i] = p.Name
	}
	return some(d, "pools", min(2, len(names)), names...)
}

func (d drawer) pools() []policy.Pool {
	var out []policy.Pool
	for i := range rapid.IntRange(0, 3).Draw(d.t, "poolCount") {
		p := policy.Pool{Name: fmt.Sprintf("pool-%d", i), Nodes: d.nodeTerm(true, nil), ManagedBy: policy.ManagedNodeGroup, Positions: somewhere("pools", i)}
		if d.one("dedicated", 2) {
			taint := d.taint()
			p.Dedicated = &policy.Dedicated{Taint: &policy.Taint{Key: taint.Key, Value: &taint.Value, Effect: string(taint.Effect)}}
			if d.one("granted", 2) {
				p.Dedicated.Grants = &policy.Grants{}
				if d.one("byNamespace", 2) {
					p.Dedicated.Grants.Namespaces = pick(d, "grantNamespaces", []string{"shop"}, []string{"m*", "kube-system"}, []string{"*"})
				}
				if d.one("byLabels", 3) {
					p.Dedicated.Grants.NamespaceLabels = map[string]policy.Values{"team": pick(d, "grantTeam", policy.Values{"a"}, policy.Values{"*"}, policy.Values{"b", "c"})}
				}
				if d.one("byAccount", 3) {
					p.Dedicated.Grants.ServiceAccounts = pick(d, "grantAccount", []string{"default"}, []string{"shop/*"}, []string{"ml/trainer", "robot*"})
				}
			}
		}
		out = append(out, p)
	}
	return out
}

func (d drawer) policy(i int, all *policy.Placement) policy.Policy {
	p := policy.Policy{Name: fmt.Sprintf("p-%d", i), Level: policy.Mandatory, Workloads: d.workloads(true), Positions: somewhere("policies", i)}
	if d.one("default", 3) {
		p.Level = policy.Default
	}
	for _, o := range all.Policies {
		if o.Level == policy.Default && d.one("overrides", 4) {
			p.Overrides, p.Reason = append(p.Overrides, o.Name), "because"
		}
	}
	if d.one("except", 4) {
		p.Except = map[string]policy.Exception{"x": {Workloads: d.workloads(true), Reason: "because", Expires: "2099-01-31"}}
	}
	p.Nodes = d.nodeIntent(all.Pools)
	if d.one("tolerate", 3) {
		p.Tolerate = d.tolerate(all.Pools)
	}
	d.counting(&p)
	d.gates(&p)
	if i < mostProfiled {
		d.profiled(&p)
	}
	if d.one("raw", 4) {
		if p.Raw == nil {
			p.Raw = &policy.Raw{}
		}
		p.Raw.Pod = d.raw()
	}
	return p
}

// workloads draws a selection such as a pod can be judged by.
func (d drawer) workloads(outer bool) policy.Workloads {
	var out policy.Workloads
	if d.one("namespaces", 3) {
		out.Namespaces = pick(d, "namespaces", []string{"shop"}, []string{"ml", "shop"}, []string{"s*"}, []string{"kube-system", "m?"}, []string{"[k-s]*"})
	}
	if d.one("namespaceLabels", 5) {
		out.NamespaceLabels = map[string]policy.Values{"team": pick(d, "team", policy.Values{"a"}, policy.Values{"*"}, policy.Values{"b*", "c"})}
	}
	if d.one("kinds", 3) {
		out.Kinds = pick(d, "kinds", []string{"Deployment"}, []string{"apps/*"}, []string{"Job", "CronJob", "core/Pod"}, []string{"*Set"}, []string{"Deployment", "apps/DaemonSet", "Pod"})
	}
	if d.one("names", 4) {
		out.Names = pick(d, "names", []string{"w-1*"}, []string{"w-0", "w-2", "w-4"}, []string{"*-?"})
	}
	if d.one("pods", 4) {
		out.Pods = &policy.Pods{Labels: map[string]policy.Values{"tier": pick(d, "tier", policy.Values{"web"}, policy.Values{"*"}, policy.Values{"d*", "web"})}}
	}
	if outer && d.one("not", 4) {
		not := d.workloads(false)
		out.Not = &not
	}
	return out
}

func (d drawer) nodeIntent(pools []policy.Pool) *policy.Nodes {
	n := &policy.Nodes{}
	if d.one("require", 2) {
		term := d.nodeTerm(false, pools)
		n.Require = &term
	}
	if d.one("forbid", 4) {
		term := d.nodeTerm(true, pools)
		n.Forbid = &term
	}
	if d.one("prefer", 3) {
		n.Prefer = d.preference(pools)
	}
	if d.one("disfavor", 4) {
		n.Disfavor = d.preference(pools)
	}
	return n
}

func (d drawer) preference(pools []policy.Pool) *policy.Preference {
	out := &policy.Preference{Weight: rapid.IntRange(3, 100).Draw(d.t, "weight")}
	if d.one("ranked", 3) {
		for range rapid.IntRange(1, 3).Draw(d.t, "ranks") {
			out.Ranked = append(out.Ranked, d.nodeTerm(true, pools))
		}
		return out
	}
	out.NodeTerm = d.nodeTerm(true, pools)
	return out
}

func (d drawer) tolerate(pools []policy.Pool) *policy.Tolerate {
	out := &policy.Tolerate{}
	if len(pools) > 0 && d.one("pools", 2) {
		out.Pools = d.poolNames(pools)
	}
	if d.one("taint", 2) {
		taint := d.taint()
		want := policy.Taint{Key: taint.Key}
		if d.one("value", 2) {
			want.Value = &taint.Value
		}
		if d.one("effect", 2) {
			want.Effect = string(taint.Effect)
		}
		out.Taints = map[string]policy.Taint{"x": want}
	}
	if d.one("lost", 3) {
		out.Taints = map[string]policy.Taint{"lost": {Key: pick(d, "lostKey", corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady), Effect: "NoExecute", Seconds: new(int64(pick(d, "seconds", 30, 300, 600)))}}
	}
	if d.one("all", 5) {
		out.All = true
		if len(pools) > 0 && d.one("exceptPools", 2) {
			out.ExceptPools = d.poolNames(pools)
		}
	}
	return out
}

func (d drawer) subject() policy.Subject {
	if !d.one("labels", 4) {
		return policy.Subject{Kind: policy.EachWorkload}
	}
	return policy.Subject{Kind: policy.ByLabels, Labels: map[string]policy.Values{"tier": pick(d, "countedTier", policy.Values{"web"}, policy.Values{"*"}, policy.Values{"db", "web"})}}
}

func (d drawer) strength() policy.Strength {
	return pick(d, "strength", policy.Require, policy.Prefer)
}

// counting draws spread, together, apart and priority.
func (d drawer) counting(p *policy.Policy) {
	for _, key := range []string{"zone", "node"} {
		if !d.one("spread", 4) {
			continue
		}
		s := policy.Spread{Strength: d.strength(), MaxSkew: rapid.IntRange(1, 3).Draw(d.t, "skew"), Of: d.subject()}
		if s.Strength == policy.Require && d.one("min", 2) {
			s.MinDomains = new(rapid.IntRange(1, 4).Draw(d.t, "minDomains"))
		}
		s.Plain = d.one("plain", 3)
		if p.Spread == nil {
			p.Spread = map[string]policy.Spread{}
		}
		p.Spread[key] = s
	}
	colocation := func(label string) map[string]policy.Colocation {
		if !d.one(label, 5) {
			return nil
		}
		c := policy.Colocation{On: pick(d, "on", "zone", "node"), Strength: d.strength(), Weight: rapid.IntRange(1, 100).Draw(d.t, "weight"), Of: d.subject(), Plain: d.one("plain", 3)}
		if c.Of.Kind == policy.ByLabels && d.one("elsewhere", 3) {
			c.Of.Namespaces = pick(d, "countedNamespaces", []string{"shop"}, []string{"*"}, []string{"ml", "shop"})
		}
		return map[string]policy.Colocation{"x": c}
	}
	p.Together, p.Apart = colocation("together"), colocation("apart")
	if d.one("priority", 5) {
		p.Priority = pick(d, "class",
			&policy.Priority{Class: "low", Value: new(int32(5))},
			&policy.Priority{Class: "polite", Value: new(int32(7)), Preemption: "never"})
	}
}

// mostProfiled is how many policies may ask something of a profile: more of them for
// one pod are no matter of an admission policy.
const mostProfiled = 4

// profiled draws what a profile of the scheduler is needed for.
func (d drawer) profiled(p *policy.Policy) {
	if d.one("profile", 3) {
		switch pick(d, "profiled", "pack", "balance", "raw") {
		case "pack":
			p.Pack = pick(d, "pack", &policy.Pack{}, &policy.Pack{Resources: map[string]int{"cpu": 2}}, &policy.Pack{Resources: map[string]int{"memory": 1}})
		case "balance":
			p.Balance = &policy.Balance{}
		case "raw":
			p.Raw = &policy.Raw{Profile: map[string]any{"plugins": map[string]any{"score": map[string]any{"disabled": []any{map[string]any{"name": "ImageLocality"}}}}}}
		}
	}
	if d.one("cache", 5) {
		p.Cache = pick(d, "cacheOf",
			&policy.Cache{Datasets: map[string]policy.Dataset{"imagenet": {Size: "120Gi"}, "vocab": {Size: "2Gi"}}},
			&policy.Cache{Datasets: map[string]policy.Dataset{"imagenet": {}}},
			&policy.Cache{Datasets: map[string]policy.Dataset{"imagenet": {}}, PenaltyPerPod: new(0), WarmBy: policy.WarmByLabel})
	}
	if d.one("gpuMemory", 5) {
		p.GPUMemory = pick(d, "gpuMemoryOf",
			&policy.GPUMemory{PerDevice: "12Gi"}, &policy.GPUMemory{MinDevice: "40Gi"},
			&policy.GPUMemory{PerDevice: "12Gi", Devices: 2, Prefer: "best-fit", Containers: []string{"d"}})
	}
	if d.one("gang", 6) {
		p.Gang = &policy.Gang{Min: policy.GangMin(pick(d, "members", 1, 1, 2))}
	}
}

// gates draws what holds a pod until something happens.
func (d drawer) gates(p *policy.Policy) {
	if d.one("gates", 4) {
		p.Gates = pick(d, "gatesOf",
			&policy.Gates{Quota: "ml"}, &policy.Gates{Approval: true, NotBefore: "2026-11-30T22:00:00Z"},
			&policy.Gates{
				Peers:  &policy.Peers{Labels: map[string]policy.Values{"tier": {"db", "web"}}, Min: 2},
				Object: map[string]policy.AwaitedObject{"model": {APIVersion: "v1", Kind: "ConfigMap", Name: "model"}},
			})
	}
}

// raw draws a fragment of a pod spec.
func (d drawer) raw() map[string]any {
	out := map[string]any{}
	for key, value := range map[string]any{
		"schedulerName":                 "other-scheduler",
		"terminationGracePeriodSeconds": float64(60),
		"hostPID":                       true,
		"securityContext":               map[string]any{"fsGroup": float64(5), "supplementalGroups": []any{float64(1), float64(2)}},
		"dnsConfig":                     map[string]any{"nameservers": []any{"10.0.0.1"}, "options": []any{map[string]any{"name": "ndots", "value": "2"}, map[string]any{"name": "debug"}}},
		"nodeSelector":                  map[string]any{"k1": "a"},
		"tolerations":                   []any{map[string]any{"key": "t1", "value": "x", "effect": "NoSchedule"}},
		"topologySpreadConstraints": []any{map[string]any{
			"maxSkew": float64(2), "topologyKey": zoneLabel, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": map[string]any{"matchLabels": map[string]any{"tier": "web"}},
		}},
		"affinity": map[string]any{
			"nodeAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
				"weight": float64(7), "preference": map[string]any{"matchExpressions": []any{map[string]any{"key": "k2", "operator": "In", "values": []any{"b", "a"}}}},
			}}},
			"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
				"topologyKey": hostLabel, "labelSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "In", "values": []any{"web", "db"}}}},
			}}},
		},
	} {
		if d.one(key, 5) {
			out[key] = value
		}
	}
	if len(out) == 0 {
		out["hostIPC"] = true
	}
	return maps.Clone(out)
}
