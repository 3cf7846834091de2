// Package review says what a change of policies and manifests would do.
//
// It maps two compilations, that of the base and that of the head of a change, with
// what was simulated of each on one snapshot with one seed, to what is different: the
// policies by what they say, the compiled fields in groups of workloads that change
// alike, the workloads that restart, the pods that move or find no node. The package
// must not know revisions, files or formats, nor compile or simulate anything.
package review

import (
	"time"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Action is what a change does with something that has a name.
type Action string

// The actions.
const (
	Added   Action = "added"
	Removed Action = "removed"
	Changed Action = "changed"
)

// Review is what a change would do. Its lists are sorted.
type Review struct {
	// Base and Head name the two sides for people.
	Base string `json:"base"`
	Head string `json:"head"`
	// Policies are the policies, pools, clusters and kinds that differ in what they
	// say; comments and order do not count.
	Policies []Declaration `json:"policies"`
	// Sections are what becomes of the clusters; those for which it is the same share
	// one.
	Sections []Section `json:"sections"`
	// Findings are those of the head that the base does not have.
	Findings diag.Findings `json:"findings"`
	// Ignored are findings that the head says are to be ignored, and the base does not.
	Ignored []diag.Ignored `json:"ignored,omitempty"`
	// Mended is how many findings of the base the head does not have.
	Mended int `json:"mended"`
	// Problem says why there is nothing but findings: a side does not compile. It is
	// empty if both do.
	Problem string `json:"problem,omitempty"`
}

// Declaration is a policy, a pool, a cluster or a kind that differs.
type Declaration struct {
	// Sort is "policy", "pool", "cluster" or "kind".
	Sort   string `json:"sort"`
	Name   string `json:"name"`
	Action Action `json:"action"`
	// Range is where it is declared: in the head, or for one that is gone in the base.
	Range diag.Range `json:"range"`
	// Values are the values that changed; empty for what was added or removed.
	Values []Value `json:"values,omitempty"`
}

// Value is one value of a declaration that changed.
type Value struct {
	// Path leads to it, dotted: "spread.zone.maxSkew".
	Path string `json:"path"`
	// Before and After are as JSON; empty for none.
	Before string     `json:"before,omitempty"`
	After  string     `json:"after,omitempty"`
	Range  diag.Range `json:"range"`
}

// Section is what becomes of one cluster, or of several in the same way.
type Section struct {
	// Clusters are their names; none if the policies name no clusters.
	Clusters []string `json:"clusters,omitempty"`
	Restarts Restarts `json:"restarts"`
	// Workloads are those that only one side has.
	Workloads []Workload `json:"workloads,omitempty"`
	// Fields are what changes in pod templates, in groups.
	Fields []FieldChange `json:"fields,omitempty"`
	// Objects are what changes besides: objects that we own, what nodes of a pool are
	// to carry, profiles of the scheduler.
	Objects []Object `json:"objects,omitempty"`
	// Placement is what becomes of the pods; nil where nothing that scheduling reads
	// changes, so that none can move, or where there is no snapshot.
	Placement *Placement `json:"placement,omitempty"`
	// Unknown says that the placement is not known: there is no snapshot.
	Unknown bool `json:"placementUnknown,omitempty"`
}

// Restarts are what a rollout of the change restarts.
type Restarts struct {
	// Workloads are the names of the workloads, and Pods how many pods they have.
	Workloads []string `json:"workloads"`
	Pods      int      `json:"pods"`
	// Budgets are the PodDisruptionBudgets that cover them.
	Budgets []apply.Disruption `json:"podDisruptionBudgets"`
}

// Workload is one that only one side has.
type Workload struct {
	Name   string     `json:"name"`
	Action Action     `json:"action"`
	Range  diag.Range `json:"range"`
}

// FieldChange is a change of one field that is the same in several pod templates.
type FieldChange struct {
	// Field is the field of the pod spec, dotted.
	Field string `json:"field"`
	// Removed and Added are what goes and what comes, as YAML in one line. A selector
	// of a workload's own pods is written "its own pods", whatever their labels.
	Removed []string `json:"removed,omitempty"`
	Added   []string `json:"added,omitempty"`
	// Workloads are the names of those whose templates change so.
	Workloads []string `json:"workloads"`
	// Origins are the policies' lines behind it, in the head where something is added.
	Origins []compiler.Origin `json:"origins,omitempty"`
}

// Object is something that is no field of a pod template.
type Object struct {
	Name    string            `json:"name"`
	Action  Action            `json:"action"`
	Origins []compiler.Origin `json:"origins,omitempty"`
}

// Placement is what becomes of the pods of a cluster, compared with what would become
// of them without the change.
type Placement struct {
	// Cluster, Taken, Seed, Nodes and Pods say what was simulated.
	Cluster string    `json:"cluster,omitempty"`
	Taken   time.Time `json:"taken,omitzero"`
	Seed    uint64    `json:"seed"`
	Nodes   int       `json:"nodes"`
	Pods    int       `json:"pods"`
	// Moved counts the pods on other nodes than with the base, but for ByTie, those
	// for which the base's node would have been as good.
	Moved int `json:"moved"`
	ByTie int `json:"movedByTie"`
	// Added and Removed count the pods that workloads have more or fewer of, wherever
	// they are, and also where they have no node.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// Pending and NeedsNodes count pods without a node; new nodes of a pool that grows
	// would take the latter.
	Pending    Count `json:"pending"`
	NeedsNodes Count `json:"needsNodes"`
	// Evicted counts pods that make way for others.
	Evicted Count `json:"evicted"`
	// Moves are the workloads with pods that move, and Waiting those with pods that
	// wait only with the head, or for another reason.
	Moves   []Move    `json:"moves,omitempty"`
	Waiting []Waiting `json:"waiting,omitempty"`
	// Skews are the workloads that are spread otherwise than before.
	Skews []Skew `json:"skews,omitempty"`
	// Stuck are the rollouts that come to a halt with the head alone.
	Stuck []string `json:"stuck,omitempty"`
	// Fill is how full the pools and zones are, and Picture each node.
	Fill    []Fill `json:"fill,omitempty"`
	Picture []Node `json:"picture,omitempty"`
	// Assumptions are what all that rests on.
	Assumptions []string `json:"assumptions,omitempty"`
}

// Count is a number of both sides.
type Count struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// Move is a workload whose pods move.
type Move struct {
	Workload string `json:"workload"`
	// Moved leaves out those that only a tie decided, ByTie.
	Moved int `json:"moved"`
	ByTie int `json:"movedByTie"`
	// Before and After say how many pods are in which pool and zone.
	Before []Where   `json:"before"`
	After  []Where   `json:"after"`
	Pods   []PodMove `json:"pods"`
}

// Where is a number of pods in a group of nodes.
type Where struct {
	preview.Place
	Pods int `json:"pods"`
}

// PodMove is a pod that is on another node, or its successor.
type PodMove struct {
	// Pod is its name with the base: that in the cluster, unless it is new there too.
	Pod  string `json:"pod"`
	From string `json:"from"`
	To   string `json:"to"`
	Tie  bool   `json:"tie,omitempty"`
}

// Waiting are pods of a workload that find no node.
type Waiting struct {
	Workload string `json:"workload"`
	// Verdict is "pending", "needs nodes", "gated" or "no scheduler".
	Verdict string   `json:"verdict"`
	Pods    []string `json:"pods"`
	// Pool is where new nodes would help.
	Pool string `json:"pool,omitempty"`
	// Message is what the scheduler says, and Causes why, with the policies' lines.
	Message string  `json:"message,omitempty"`
	Causes  []Cause `json:"causes,omitempty"`
}

// Cause is why some nodes do not take a pod.
type Cause struct {
	Reason  string            `json:"reason"`
	Plugin  string            `json:"plugin"`
	Nodes   int               `json:"nodes"`
	Origins []compiler.Origin `json:"origins,omitempty"`
}

// Skew is how evenly the pods of a workload are spread over the domains of a topology
// key that its nodes are in.
type Skew struct {
	Workload string `json:"workload"`
	Key      string `json:"topologyKey"`
	// Asked says that a spread constraint of the workload names the key.
	Asked  bool `json:"asked"`
	Before int  `json:"before"`
	After  int  `json:"after"`
}

// Fill is how full the nodes of a pool in a zone are, in milliCPU and bytes.
type Fill struct {
	preview.Place
	Nodes  int   `json:"nodes"`
	Pods   Count `json:"pods"`
	CPU    Share `json:"milliCPU"`
	Memory Share `json:"memoryBytes"`
}

// Share is how much of a total is asked for.
type Share struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	Total  int64 `json:"total"`
}

// Node is one node of the picture.
type Node struct {
	Name string `json:"name"`
	preview.Place
	Pods Count `json:"pods"`
	CPU  Share `json:"milliCPU"`
}

// Nothing reports whether the change does nothing at all.
func (r *Review) Nothing() bool {
	if r.Problem != "" || len(r.Policies)+len(r.Findings)+len(r.Ignored) > 0 {
		return false
	}
	for _, s := range r.Sections {
		if !s.Nothing() {
			return false
		}
	}
	return true
}

// Nothing reports whether nothing becomes of the clusters.
func (s Section) Nothing() bool {
	return len(s.Restarts.Workloads)+len(s.Workloads)+len(s.Fields)+len(s.Objects) == 0 && s.Placement == nil
}
