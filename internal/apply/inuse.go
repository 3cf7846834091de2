package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// What we made for pods must outlast the pods that need it, and those are not only
// the ones of the templates as they are: while a rollout is under way, held up by
// a partition or paused, controllers go on making pods of the old revision. A pod
// that names a PriorityClass that is gone cannot be created at all, and one that
// requires a label that no node has any more stays Pending.

// user is something that needs what is to be taken away.
type user struct {
	ref string
	// passing says that the run itself sees to it that it goes, with a rollout.
	passing bool
	// placed says that it belongs to a workload that the set places.
	placed bool
}

// users maps the names of PriorityClasses, and labels of nodes as "key=value", to
// what needs them.
type users struct {
	classes, labels map[string][]user
	// unknown is why nobody can tell; empty if it is known.
	unknown string
}

// keepUsed lets those PriorityClasses and node labels stay that the run would
// take away although something needs them that the run does not replace.
func (a *Applier) keepUsed(ctx context.Context, in *intent, cs *ChangeSet) (diag.Findings, error) {
	if !slices.ContainsFunc(cs.Objects, goingClass) && !slices.ContainsFunc(cs.Nodes, goingLabel) {
		return nil, nil
	}
	found, err := a.users(ctx, cs, true)
	if err != nil {
		return nil, err
	}
	for _, w := range in.read {
		found.template(w, w.Object, cs)
	}
	findings := keepClasses(cs, found, false)
	kept := map[string][]user{}
	for i := range cs.Nodes {
		n := &cs.Nodes[i]
		needed := found.labels[n.Label+"="+n.Value]
		if !goingLabel(*n) || len(needed) == 0 && found.unknown == "" {
			continue
		}
		n.Action, n.inUse = Keep, true
		kept[n.Mark().String()] = needed
	}
	for _, mark := range slices.Sorted(maps.Keys(kept)) {
		findings = append(findings, inUse("apply/label-in-use", "", "the "+mark+" of nodes", kept[mark], found.unknown))
	}
	return findings, nil
}

func goingClass(c ObjectChange) bool { return c.Action == Delete && c.Kind.Kind == priorityClass }

func goingLabel(c NodeChange) bool { return c.Action == Delete && c.Label != "" }

// keepClasses keeps the classes that have users; those whose users are all passing
// only if passing is true.
func keepClasses(cs *ChangeSet, found *users, passing bool) diag.Findings {
	var findings diag.Findings
	for i := range cs.Objects {
		c := &cs.Objects[i]
		stays := func(u user) bool { return passing || !u.passing }
		needed := found.classes[c.Name]
		if !goingClass(*c) || !slices.ContainsFunc(needed, stays) && found.unknown == "" {
			continue
		}
		c.Action, c.After, c.inUse = Keep, c.Before, true
		findings = append(findings, inUse("apply/class-in-use", c.Ref(), "it", needed, found.unknown))
	}
	return findings
}

// inUse is the finding on what is kept for its users.
func inUse(rule, subject, what string, needed []user, unknown string) diag.Finding {
	f := diag.Finding{Rule: rule, Severity: diag.Warning, Subject: subject}
	if len(needed) == 0 {
		f.Message = fmt.Sprintf("the set has no more use for %s, but whether pods still need it cannot be told (%s); it is kept", what, unknown)
		f.Fix = &diag.Fix{Message: "run the command again as somebody who may list pods, or remove it by hand"}
		return f
	}
	var refs []string
	for _, u := range needed {
		refs = append(refs, u.ref)
	}
	slices.Sort(refs)
	refs = slices.Compact(refs)
	verb := "needs"
	if len(refs) > 1 {
		verb = "need"
	}
	if len(refs) > 3 {
		refs = append(refs[:2:2], fmt.Sprintf("%d others", len(refs)-2))
	}
	f.Message = fmt.Sprintf("the set has no more use for %s, but %s still %s it; it is kept until nothing does", what, listed(refs), verb)
	f.Fix = &diag.Fix{Message: "run the same command again when the pods of the old revision are gone"}
	return f
}

func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// settle waits, before classes are deleted, until the pods of an old revision are
// gone that name them, and keeps those that are named even then.
func (r *run) settle(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, r.options.Settle)
	defer cancel()
	for {
		if !slices.ContainsFunc(r.cs.Objects, goingClass) {
			return nil
		}
		found, err := r.users(ctx, r.cs, false)
		if err != nil {
			return err
		}
		late := limit.Err() != nil
		r.findings = append(r.findings, keepClasses(r.cs, found, late)...)
		if late || !slices.ContainsFunc(r.cs.Objects, func(c ObjectChange) bool { return goingClass(c) && len(found.classes[c.Name]) > 0 }) {
			return nil
		}
		select {
		case <-limit.Done():
			if err := ctx.Err(); err != nil {
				return err
			}
		case <-time.After(settlePoll):
		}
	}
}

// settlePoll is the time between two looks at the pods.
const settlePoll = 500 * time.Millisecond

// users finds everything in the cluster that needs a class or a label: the
// workloads' templates (before the run's writes those that the change set leads
// to), and what stands between them and their pods.
func (a *Applier) users(ctx context.Context, cs *ChangeSet, planned bool) (*users, error) {
	found := &users{classes: map[string][]user{}, labels: map[string][]user{}}
	passing, placed := map[types.UID]bool{}, map[types.UID]bool{}
	for i := range cs.Workloads {
		placed[types.UID(cs.Workloads[i].Workload.UID)] = true
		if w := &cs.Workloads[i]; w.Action == Update || w.Action == Withdraw {
			passing[types.UID(w.Workload.UID)] = replacesAll(w.After)
		}
	}
	visit := func(s cluster.PodSpec) {
		of := func(workloads map[types.UID]bool) bool {
			return slices.ContainsFunc(s.Owners, func(uid types.UID) bool { return workloads[uid] })
		}
		u := user{ref: s.Ref, passing: of(passing), placed: of(placed)}
		found.add(u, s.Spec)
	}
	var namespaces []string
	err := a.Client.PodSpecs(ctx, nil, visit)
	if apierrors.IsForbidden(err) && len(cs.Scope.Namespaces) > 0 {
		namespaces = cs.Scope.Namespaces
		err = a.Client.PodSpecs(ctx, namespaces, visit)
	}
	if apierrors.IsForbidden(err) {
		found.unknown = cluster.Describe(err)
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find out which pods still need what is to be deleted: %w", err)
	}
	workloads, findings := a.Client.Workloads(ctx, cluster.Scope{Namespaces: namespaces, Kinds: a.Kinds})
	if findings.HasErrors() {
		return nil, findings
	}
	for _, w := range workloads {
		if planned {
			found.template(w, w.Object, cs)
		} else {
			found.template(w, w.Object, nil)
		}
	}
	for i := range cs.Workloads {
		if planned {
			found.template(cs.Workloads[i].Workload, cs.Workloads[i].After, nil)
		}
	}
	return found, nil
}

// add notes what a pod spec needs. Labels are the pool's, and go with it, whoever
// else has come to ask for them; for workloads of the set they were there.
func (f *users) add(u user, spec *corev1.PodSpec) {
	if spec.PriorityClassName != "" {
		f.classes[spec.PriorityClassName] = append(f.classes[spec.PriorityClassName], u)
	}
	if !u.placed {
		return
	}
	for label := range requiredLabels(spec) {
		f.labels[label] = append(f.labels[label], u)
	}
}

// template notes the class that a workload's own template names, unless the
// change set speaks of the workload.
func (f *users) template(w *workload.Workload, object map[string]any, unless *ChangeSet) {
	if unless != nil && slices.ContainsFunc(unless.Workloads, func(c WorkloadChange) bool { return c.Workload.UID == w.UID }) {
		return
	}
	for _, t := range w.Templates {
		path, ok := t.Paths[workload.PriorityClassName]
		if !ok {
			continue
		}
		if name, _ := valueAt(object, pointer(path)); name != nil {
			key := fmt.Sprint(name)
			f.classes[key] = append(f.classes[key], user{ref: w.Ref()})
		}
	}
}

// requiredLabels are the labels, as "key=value", that a pod asks of its node.
func requiredLabels(spec *corev1.PodSpec) map[string]bool {
	labels := map[string]bool{}
	for key, value := range spec.NodeSelector {
		labels[key+"="+value] = true
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return labels
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			for _, value := range e.Values {
				labels[e.Key+"="+value] = true
			}
		}
	}
	return labels
}

// replacesAll reports whether a rollout of the object ends with no pod of an old
// revision left, without anybody's help.
func replacesAll(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	strategy, _ := valueAt(object, "/spec/updateStrategy/type")
	switch kind {
	case "Deployment":
		paused, _ := valueAt(object, "/spec/paused")
		return paused != true
	case "DaemonSet":
		return strategy != "OnDelete"
	case "StatefulSet":
		partition, _ := valueAt(object, "/spec/updateStrategy/rollingUpdate/partition")
		return strategy != "OnDelete" && (partition == nil || fmt.Sprint(partition) == "0")
	}
	return false
}
