package emit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// APIVersion is the version of the documents PlanDocument and PlanList. Within
// one version fields are only added.
const APIVersion = "kubectl-sched.github.io/v1alpha1"

// PlanList is the document for a fleet: one plan for each outcome.
type PlanList struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"` // "PlanList"
	Items      []PlanDocument `json:"items"`
}

// PlanDocument is a Plan as tools read it. Lists that hold nothing are absent,
// except Workloads.
type PlanDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"` // "Plan"
	// Clusters are the clusters of the policy document that the plan is for,
	// sorted; absent if it is for none by name.
	Clusters []string `json:"clusters,omitempty"`
	// Workloads has one entry for each pod template that a policy is about, in
	// the order of the input.
	Workloads []WorkloadEntry `json:"workloads"`
	// Objects are the objects that the plan makes, by name.
	Objects []ObjectEntry `json:"objects,omitempty"`
	// Nodes is what the pools ask of their nodes, by pool.
	Nodes []NodeEntry `json:"nodes,omitempty"`
	// Profiles are the profiles of the bundled scheduler that pods need, by name.
	Profiles []ProfileEntry `json:"profiles,omitempty"`
	// Exceptions are the exceptions in force that spared a workload.
	Exceptions []ExceptionEntry `json:"exceptions,omitempty"`
	// Unmatched names the policies that hold here and matched no workload.
	Unmatched []string `json:"unmatched,omitempty"`
}

// WorkloadEntry is the outcome for one pod template.
type WorkloadEntry struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Template names the pod template among several of one object.
	Template string `json:"template,omitempty"`
	// Source is where the object was read from; absent for a cluster.
	Source *diag.Pos `json:"source,omitempty"`
	// Policies are the policies in force, sorted.
	Policies []string `json:"policies"`
	// Changes says that After differs from what the template has now: writing
	// the plan out changes the object.
	Changes bool `json:"changes"`
	// Before is the placement without us, After the one with the policies.
	Before workload.PodFields `json:"before"`
	After  workload.PodFields `json:"after"`
	// Effects explain every difference between Before and After.
	Effects []compiler.Effect `json:"effects,omitempty"`
}

// ObjectEntry is an object of our own making.
type ObjectEntry struct {
	Object  map[string]any    `json:"object"`
	Level   compiler.Level    `json:"level"`
	Reason  string            `json:"reason"`
	Origins []compiler.Origin `json:"origins"`
}

// NodeEntry is what a pool asks of its nodes.
type NodeEntry struct {
	Pool      string           `json:"pool"`
	ManagedBy policy.ManagedBy `json:"managedBy"`
	// Makers are the names of the NodePools or node groups that make the nodes,
	// and Provider is whose node groups they are, if that is known.
	Makers   []string        `json:"makers,omitempty"`
	Provider policy.Provider `json:"provider,omitempty"`
	// Taint is the pool's own; absent if it is not dedicated. Taints are all that
	// its nodes shall carry, Labels the labels.
	Taint  *corev1.Taint     `json:"taint,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Requirements are what the description demands besides the labels.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	// Members are all nodes of the pool, Nodes those that lack the taint or a
	// label; absent where they are not known.
	Members []string `json:"members,omitempty"`
	Nodes   []string `json:"nodes,omitempty"`
	// NewNodes says how nodes that join later come by it.
	NewNodes string            `json:"newNodes"`
	Level    compiler.Level    `json:"level"`
	Reason   string            `json:"reason"`
	Origins  []compiler.Origin `json:"origins"`
}

// ProfileEntry is a profile of the bundled scheduler.
type ProfileEntry struct {
	Name string `json:"name"`
	// Workloads is how many of the pod templates need it.
	Workloads int            `json:"workloads"`
	Level     compiler.Level `json:"level"`
	// Plugins are those that run in it besides kube-scheduler's default ones.
	Plugins []string `json:"plugins,omitempty"`
	// Needs are what is asked of it.
	Needs []NeedEntry `json:"needs"`
}

// NeedEntry is one thing that a policy asks of a profile.
type NeedEntry struct {
	// Feature is what the profile is named after.
	Feature string          `json:"feature"`
	Reason  string          `json:"reason"`
	Origin  compiler.Origin `json:"origin"`
}

// ExceptionEntry is an exception that spared a workload.
type ExceptionEntry struct {
	Policy    string `json:"policy"`
	Exception string `json:"exception"`
	Workload  string `json:"workload"`
	Reason    string `json:"reason"`
	// Expires is the last day of the exception, "2006-01-02" in UTC.
	Expires string     `json:"expires"`
	Range   diag.Range `json:"range"`
}

// Document returns the plan as its document. Clusters are the clusters that it
// is for, the plan's own if nil.
func Document(plan *compiler.Plan, clusters []string) (PlanDocument, error) {
	if clusters == nil && plan.Cluster != "" {
		clusters = []string{plan.Cluster}
	}
	d := PlanDocument{
		APIVersion: APIVersion, Kind: "Plan", Clusters: clusters,
		Workloads: make([]WorkloadEntry, 0, len(plan.Changes)), Unmatched: plan.Unmatched,
	}
	for _, c := range plan.Changes {
		d.Workloads = append(d.Workloads, workloadEntry(c))
	}
	for _, o := range plan.Objects {
		object, err := Unstructured(o)
		if err != nil {
			return PlanDocument{}, err
		}
		d.Objects = append(d.Objects, ObjectEntry{Object: object, Level: o.Level, Reason: o.Reason, Origins: o.Origins})
	}
	for _, n := range plan.Nodes {
		d.Nodes = append(d.Nodes, NodeEntry{
			Pool: n.Pool, ManagedBy: n.ManagedBy, Makers: n.Makers, Provider: n.Provider, Taint: n.Taint, Taints: n.Taints,
			Labels: n.Labels, Requirements: n.Requirements, Members: n.Members, Nodes: n.Nodes, NewNodes: n.NewNodes(),
			Level: n.Level, Reason: n.Reason, Origins: n.Origins,
		})
	}
	for _, u := range plan.Profiles {
		entry := ProfileEntry{Name: u.Name, Workloads: u.Workloads, Level: u.Level(), Plugins: u.Plugins()}
		for _, w := range u.Need.Wishes() {
			entry.Needs = append(entry.Needs, NeedEntry{Feature: w.Feature, Reason: w.Reason, Origin: compiler.Origin(w.Origin)})
		}
		d.Profiles = append(d.Profiles, entry)
	}
	for _, e := range plan.Exceptions {
		d.Exceptions = append(d.Exceptions, ExceptionEntry(e))
	}
	return d, nil
}

func workloadEntry(c compiler.Change) WorkloadEntry {
	w, t := c.Workload, &c.Workload.Templates[c.Template]
	entry := WorkloadEntry{
		Group: w.Group, Version: w.Version, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Template: t.Name,
		Policies: c.Policies, Changes: !SamePlacement(t.Current, c.After),
		Before: t.Pods, After: c.After, Effects: c.Effects,
	}
	if entry.Policies == nil {
		entry.Policies = []string{}
	}
	if at := w.Source.At(); at.Start.IsValid() {
		entry.Source = &at.Start
	}
	return entry
}

// SamePlacement reports whether two placements say the same, byte for byte of
// their JSON.
func SamePlacement(a, b workload.PodFields) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y) && (len(a.Raw) == 0 && len(b.Raw) == 0 || reflect.DeepEqual(a.Raw, b.Raw))
}

// Encoding is how a document is written.
type Encoding string

// The encodings.
const (
	JSON Encoding = "json"
	YAML Encoding = "yaml"
)

// Encode returns the plans' document, ended by a newline: a Plan for one, a
// PlanList for several. Equal plans give equal bytes.
func Encode(as Encoding, plans []PlanDocument) ([]byte, error) {
	var document any = PlanList{APIVersion: APIVersion, Kind: "PlanList", Items: plans}
	if len(plans) == 1 {
		document = plans[0]
	}
	switch as {
	case JSON:
		var b strings.Builder
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(document); err != nil {
			return nil, fmt.Errorf("encode the plan: %w", err)
		}
		return []byte(b.String()), nil
	case YAML:
		text, err := objectyaml.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("encode the plan: %w", err)
		}
		return text, nil
	}
	return nil, fmt.Errorf("unknown encoding %q: it is \"json\" or \"yaml\"", as)
}
