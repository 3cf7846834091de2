package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// AdmissionStatus is how far the admission policies of a set have come among the
// running pods.
type AdmissionStatus struct {
	Step Step
	// Content is what the marks of pods say that were placed by what is in force
	// now.
	Content string
	// Expires is the first day (UTC, "2006-01-02") on which an exception that is
	// compiled in has ended, and the set must be applied again; empty for none.
	Expires string
	// Pods are all running pods where the policies act (under Observe: would act),
	// Placed those of them that carry a mark of the set.
	Pods, Placed int
	// Policies are sorted by name: those in force, and those that running pods were
	// still placed by.
	Policies []PolicyStatus
}

// PolicyStatus is how far one policy has come among the running pods.
type PolicyStatus struct {
	Policy string
	// Selected are the pods that the policy is for now.
	Selected int
	// Placed are the pods that it has placed, by the revision that was in force
	// when they were created; 0 stands for revisions that are not kept any more.
	Placed map[int]int
	// Predating are the selected pods that were not placed by what is in force now:
	// they were created before it.
	Predating int
	// Pending are, under Observe, the selected pods that would be changed if they
	// were created now. The API server changes also those whose own requirement of
	// nodes excludes the policy's: it knows no nodes.
	Pending int
	// Nowhere are those of Pending that would then fit no node at all, because of
	// the policy.
	Nowhere int
}

// PlacedPods is how many pods the policy has placed, by whichever revision.
func (p PolicyStatus) PlacedPods() int {
	n := 0
	for pods := range maps.Values(p.Placed) {
		n += pods
	}
	return n
}

// admissionStatus counts the running pods by their marks, and by what the
// document of the set's revision selects.
func (a *Applier) admissionStatus(ctx context.Context, state *State) (*AdmissionStatus, diag.Findings, error) {
	latest := state.Latest()
	status := &AdmissionStatus{Step: latest.Step, Content: latest.annotation(admission.ContentAnnotation), Expires: latest.annotation(admission.ExpiresAnnotation)}
	caps, findings := a.Client.Capabilities(ctx)
	if findings.HasErrors() {
		return nil, nil, findings
	}
	caps.Cluster = latest.Source.Cluster
	workloads, fs := a.Client.Workloads(ctx, cluster.Scope{Namespaces: state.Scope.Namespaces, Kinds: a.Kinds})
	findings = append(findings, fs...)
	if fs.HasErrors() {
		return nil, nil, fs
	}
	plan, _ := compiler.CompileContext(ctx, compiler.Request{
		Placement: latest.Source.Placement, Workloads: workloads, Capabilities: caps,
		Surface: policy.SurfaceAdmission, Set: state.Set.Label(), WithPlaced: true, Now: a.now(),
	})
	count := &podCount{set: state.Set, status: status, wishes: wishesOf(plan, admission.Annotation(state.Set.Label())), revisions: contents(state), policies: map[string]*PolicyStatus{}}
	for _, name := range plan.Policies {
		count.policy(name)
	}
	acting, err := latest.actingIn(caps.Namespaces)
	if err != nil {
		return nil, nil, err
	}
	// One list of all namespaces is less than one for each of many.
	namespaces := state.Scope.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		err := a.Client.RunningPods(ctx, namespace, func(pod *metav1.PartialObjectMetadata, owners []types.UID) error {
			if !caps.NamespacesKnown || acting[pod.Namespace] {
				count.add(pod, owners)
			}
			return nil
		})
		if err != nil {
			return nil, nil, fmt.Errorf("list pods: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count.policies)) {
		status.Policies = append(status.Policies, *count.policies[name])
	}
	return status, findings, nil
}

// annotation is what the admission policies of the revision say under the key;
// empty if none says anything.
func (r *Revision) annotation(key string) string {
	for _, o := range r.Objects {
		if value := o.unstructured().GetAnnotations()[key]; value != "" {
			return value
		}
	}
	return ""
}

// contents are the revisions of each content, the newest first. A revision that
// only observed has placed nothing.
func contents(state *State) map[string][]*Revision {
	revisions := map[string][]*Revision{}
	for _, r := range slices.Backward(state.Revisions) {
		if content := r.annotation(admission.ContentAnnotation); content != "" && !r.Step.Observe {
			revisions[content] = append(revisions[content], r)
		}
	}
	return revisions
}

// actingIn returns which of the namespaces, given with their labels, the policies
// of the revision act in.
func (r *Revision) actingIn(namespaces map[string]map[string]string) (map[string]bool, error) {
	role := admission.RolePlace
	if r.Step.Observe {
		role = admission.RoleAudit
	}
	var selectors []selector
	for _, o := range r.Objects {
		u := o.unstructured()
		if u.GetLabels()[admission.RoleLabel] != role {
			continue
		}
		at := "/spec/matchConstraints/namespaceSelector"
		if binds(wantedObject{object: u}) {
			at = "/spec/matchResources/namespaceSelector"
		}
		selectors = append(selectors, selector{u, at})
	}
	acting := map[string]bool{}
	for name, labels := range namespaces {
		ok := len(selectors) > 0
		for _, s := range selectors {
			matches, err := selects(s.object.Object, s.at, labels)
			if err != nil {
				return nil, err
			}
			ok = ok && matches
		}
		acting[name] = ok
	}
	return acting, nil
}

type selector struct {
	object *unstructured.Unstructured
	at     string
}

// wish is what the policies want of the pods of one workload.
type wish struct {
	policies []string
	// changes are those of the policies that change something.
	changes map[string]bool
	// nowhere are those after whose change no node fits.
	nowhere map[string]bool
	// daemonSet says that the template is placed, not the pods, and mark and
	// generation are what it carries.
	daemonSet        bool
	mark, generation string
}

// wishesOf returns what is wanted of the pods of each workload, by its UID. key is
// the annotation that marks what was placed. The
// pods of a workload with several templates are taken for those of any of them.
func wishesOf(plan *compiler.Plan, key string) map[types.UID]*wish {
	wishes := map[types.UID]*wish{}
	for _, change := range plan.Changes {
		uid := types.UID(change.Workload.UID)
		w := wishes[uid]
		if w == nil {
			w = &wish{changes: map[string]bool{}, nowhere: map[string]bool{}}
			wishes[uid] = w
		}
		w.policies = append(w.policies, change.Policies...)
		slices.Sort(w.policies)
		w.policies = slices.Compact(w.policies)
		for _, e := range change.Effects {
			for _, origin := range e.Origins {
				w.changes[origin.Policy] = true
			}
		}
		for _, name := range change.Nowhere {
			w.nowhere[name] = true
		}
		if change.Workload.Kind == "DaemonSet" && change.Workload.Group == "apps" {
			w.daemonSet = true
			w.generation = change.Workload.Annotations[templateGeneration]
			w.mark = change.Workload.Annotations[key]
		}
	}
	return wishes
}

// templateGeneration is the annotation by which a DaemonSet's controller knows
// its pods of the newest template; they have it as a label.
const templateGeneration = "deprecated.daemonset.template.generation"

// podCount counts running pods into a status.
type podCount struct {
	set       Set
	status    *AdmissionStatus
	wishes    map[types.UID]*wish
	revisions map[string][]*Revision
	policies  map[string]*PolicyStatus
}

func (c *podCount) policy(name string) *PolicyStatus {
	p := c.policies[name]
	if p == nil {
		p = &PolicyStatus{Policy: name, Placed: map[int]int{}}
		c.policies[name] = p
	}
	return p
}

func (c *podCount) add(pod *metav1.PartialObjectMetadata, owners []types.UID) {
	wanted := &wish{}
	for _, uid := range append([]types.UID{pod.UID}, owners...) {
		if w := c.wishes[uid]; w != nil {
			wanted = w
			break
		}
	}
	text := pod.Annotations[admission.Annotation(c.set.Label())]
	if wanted.daemonSet && pod.Labels["pod-template-generation"] == wanted.generation {
		text = wanted.mark
	}
	mark, placed := admission.ParseMark(text)
	c.status.Pods++
	if placed {
		c.status.Placed++
		for _, name := range mark.Policies {
			c.policy(name).Placed[c.revisionOf(mark.Content, pod.CreationTimestamp)]++
		}
	}
	for _, name := range wanted.policies {
		p := c.policy(name)
		p.Selected++
		current := placed && mark.Content == c.status.Content && slices.Contains(mark.Policies, name)
		switch {
		case current:
		case c.status.Step.Observe:
			if wanted.changes[name] {
				p.Pending++
			}
			if wanted.nowhere[name] {
				p.Nowhere++
			}
		default:
			p.Predating++
		}
	}
}

// revisionOf returns the revision whose content placed a pod at that time; 0 if
// it is not kept any more. Several steps of a rollout have the same content.
func (c *podCount) revisionOf(content string, created metav1.Time) int {
	number := 0
	for _, r := range c.revisions[content] {
		number = r.Number
		if !r.Started.After(created.Time) {
			break
		}
	}
	return number
}
