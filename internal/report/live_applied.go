package report

import (
	"io"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
)

// Applied writes, for tools, what a run changed, or would change: the action on
// each object, the counts, and where the pods are if that was waited for. cluster
// is its name in the policies; empty where they speak of none.
func Applied(w io.Writer, format Format, cluster string, c *apply.ChangeSet, outcome apply.Outcome, landings []apply.Landing) error {
	fields := changeFields(cluster, c)
	fields["revision"], fields["unchanged"] = outcome.Revision, outcome.Unchanged
	if landings != nil {
		places := []map[string]any{}
		for _, l := range landings {
			places = append(places, map[string]any{"workload": l.Workload, "node": l.Node, "zone": l.Zone, "pool": l.Pool, "pods": l.Pods, "ready": l.Ready})
		}
		fields["places"] = places
	}
	return documents(w, format, "Applied", fields)
}

// Changes writes, for tools, what a run would change, with the
// PodDisruptionBudgets that cover pods which restart.
func Changes(w io.Writer, format Format, cluster string, c *apply.ChangeSet) error {
	fields := changeFields(cluster, c)
	budgets := []map[string]any{}
	for _, d := range c.Disruptions {
		budgets = append(budgets, map[string]any{"namespace": d.Namespace, "name": d.Name, "workloads": d.Workloads, "allowed": d.Allowed})
	}
	fields["unchanged"], fields["disruptionBudgets"] = c.Empty(), budgets
	return documents(w, format, "Changes", fields)
}

// changeFields are those of every document about a change set.
func changeFields(cluster string, c *apply.ChangeSet) map[string]any {
	objects := []map[string]any{}
	for _, o := range c.Objects {
		objects = append(objects, map[string]any{"object": o.Ref(), "action": o.Action})
	}
	for _, n := range c.Nodes {
		object := map[string]any{"object": "Node " + n.Name, "action": n.Action, "pool": n.Pool}
		if n.Label != "" {
			object["label"] = n.Label + "=" + n.Value
		} else {
			object["taint"] = n.Taint.ToString()
		}
		objects = append(objects, object)
	}
	for _, change := range c.Workloads {
		objects = append(objects, map[string]any{
			"object": change.Workload.Ref(), "action": change.Action, "policies": change.Policies,
			"restarts": change.Restarts, "pods": change.Pods,
		})
	}
	workloads, pods := c.Restarts()
	fields := map[string]any{
		"set": c.Set.Name, "namespace": c.Set.Namespace, "scope": c.Scope, "cause": c.Cause,
		"objects": objects, "restarts": map[string]any{"workloads": workloads, "pods": pods},
	}
	if c.Step.Admission() {
		fields["surface"], fields["observe"] = c.Step.Surface, c.Step.Observe
	}
	if cluster != "" {
		fields["cluster"] = cluster
	}
	return fields
}
