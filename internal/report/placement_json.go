package report

import (
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// placementDocument is a result for tools.
func placementDocument(r *preview.Result, s *preview.Summary, pools preview.Pools, o Options) map[string]any {
	pods := make([]map[string]any, 0, len(r.Pods))
	for _, p := range r.Pods {
		pods = append(pods, podEntry(r, p, pools, o))
	}
	evicted := make([]map[string]any, 0, len(r.Evicted))
	for _, e := range r.Evicted {
		evicted = append(evicted, map[string]any{"namespace": e.Victim.Namespace, "name": e.Victim.Name, "node": e.Victim.Spec.NodeName})
	}
	stuck := make([]map[string]any, 0, len(r.Stuck))
	for _, s := range r.Stuck {
		entry := map[string]any{"workload": s.Workload.String(), "placed": s.Placed, "wanted": s.Wanted, "old": s.Old}
		set(entry, "pod", s.At)
		set(entry, "podDisruptionBudget", s.Budget)
		set(entry, "node", s.Node)
		stuck = append(stuck, entry)
	}
	growth := make([]map[string]any, 0, len(r.Growth))
	for _, g := range r.Growth {
		growth = append(growth, map[string]any{"pool": g.Pool, "nodes": g.Nodes})
	}
	nodes := make([]map[string]any, 0, len(s.Fill))
	for _, f := range s.Fill {
		nodes = append(nodes, map[string]any{
			"pool": f.Pool, "zone": f.Zone, "nodesBefore": f.Nodes, "nodesAfter": f.NodesAfter, "podsBefore": f.Pods, "podsAfter": f.PodsAfter,
			"milliCPUBefore": f.CPU, "milliCPUAfter": f.CPUAfter, "milliCPUTotal": f.CPUTotal,
			"memoryBytesBefore": f.Memory, "memoryBytesAfter": f.MemoryAfter, "memoryBytesTotal": f.MemoryTotal,
		})
	}
	n := s.Pods()
	document := map[string]any{
		"pods": pods, "evicted": evicted, "stuck": stuck, "newNodes": growth, "nodes": nodes,
		"summary": map[string]any{"moved": n.Moved, "movedByTie": n.ByTie, "restarted": n.Restarted, "added": n.Added, "removed": n.Removed, "pending": n.Waiting, "needsNodes": n.NeedsNodes},
		"seed":    r.Request.Seed, "assumptions": r.AllAssumptions(),
	}
	if r.Cut {
		document["cutOff"] = true
	}
	set(document, "cluster", r.Request.Snapshot.Cluster)
	if t := r.Request.Snapshot.Taken; !t.IsZero() {
		document["snapshotTaken"] = t
	}
	return document
}

// set sets a field unless it is empty.
func set(entry map[string]any, field, value string) {
	if value != "" {
		entry[field] = value
	}
}

// podEntry is what became of one pod.
func podEntry(r *preview.Result, p simulate.Pod, pools preview.Pools, o Options) map[string]any {
	entry := map[string]any{"namespace": p.Pod.Namespace, "name": p.Pod.Name, "workload": p.Workload.String(), "verdict": p.Verdict}
	if p.New {
		entry["new"] = true
	}
	set(entry, "before", p.Before)
	set(entry, "after", p.After)
	set(entry, "pool", p.Pool)
	if p.Attempt == nil {
		return entry
	}
	set(entry, "message", p.Attempt.Message)
	if p.Verdict == simulate.Waiting {
		entry["causes"] = causeEntries(r.Causes(p, pools), o)
	}
	if p.Attempt.Choice != nil {
		entry["choice"] = choiceEntry(p.Attempt.Choice)
	}
	return entry
}

func causeEntries(list []preview.Cause, o Options) []map[string]any {
	entries := make([]map[string]any, 0, len(list))
	for _, c := range list {
		entries = append(entries, map[string]any{
			"plugin": c.Plugin, "reason": c.Reason, "nodes": c.Count(), "nodesByPool": c.Nodes, "evictionHelps": !c.Unresolvable, "origins": o.origins(c.Origins),
		})
	}
	return entries
}

func choiceEntry(c *engine.Choice) map[string]any {
	return map[string]any{
		"total": c.Total, "tied": c.Tied, "scores": scoreEntries(c.Scores),
		"runnerUp": map[string]any{"node": c.RunnerUp, "total": c.RunnerUpTotal, "scores": scoreEntries(c.RunnerUpScores)},
	}
}

func scoreEntries(scores []engine.Score) []map[string]any {
	entries := make([]map[string]any, 0, len(scores))
	for _, s := range scores {
		entries = append(entries, map[string]any{"plugin": s.Plugin, "weight": s.Weight, "points": s.Points})
	}
	return entries
}
