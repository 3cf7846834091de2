package report

import (
	"io"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
)

// Applied writes, for tools, what a run changed, or would change: the action on
// each object, the counts, and where the pods are if that was waited for.
func Applied(w io.Writer, format Format, c *apply.ChangeSet, outcome apply.Outcome, landings []apply.Landing) error {
	objects := []map[string]any{}
	for _, o := range c.Objects {
		objects = append(objects, map[string]any{"object": o.Ref(), "action": o.Action})
	}
	for _, n := range c.Nodes {
		objects = append(objects, map[string]any{"object": "Node " + n.Name, "action": n.Action, "taint": n.Taint.ToString(), "pool": n.Pool})
	}
	for _, change := range c.Workloads {
		objects = append(objects, map[string]any{
			"object": change.Workload.Ref(), "action": change.Action, "policies": change.Policies,
			"restarts": change.Restarts, "pods": change.Pods,
		})
	}
	places := []map[string]any{}
	for _, l := range landings {
		places = append(places, map[string]any{"workload": l.Workload, "node": l.Node, "zone": l.Zone, "pool": l.Pool, "pods": l.Pods, "ready": l.Ready})
	}
	workloads, pods := c.Restarts()
	fields := map[string]any{
		"set": c.Set.Name, "namespace": c.Set.Namespace, "scope": c.Scope, "cause": c.Cause,
		"revision": outcome.Revision, "unchanged": outcome.Unchanged, "objects": objects,
		"restarts": map[string]any{"workloads": workloads, "pods": pods},
	}
	if c.Step.Admission() {
		fields["surface"], fields["observe"] = c.Step.Surface, c.Step.Observe
	}
	if landings != nil {
		fields["places"] = places
	}
	return documents(w, format, "Applied", fields)
}
