package adopt

import (
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Proposal is the outcome of Propose. Its lists are sorted.
type Proposal struct {
	// Workloads is how many objects with pod templates were read, Placed how many
	// of them have any placement.
	Workloads int `json:"workloads"`
	Placed    int `json:"placed"`
	// Policies and Pools are what is proposed.
	Policies []Policy `json:"policies"`
	Pools    []Pool   `json:"pools,omitempty"`
	// Raw is what no intent says, and Left what stays in the manifests alone.
	Raw  []Remark `json:"raw,omitempty"`
	Left []Remark `json:"left,omitempty"`
	// Changes is what Modernize says in other words than the manifests.
	Changes []Remark `json:"changes,omitempty"`
	// Proof is what the compiler made of it.
	Proof Proof `json:"proof"`
	// Document is the CUE text, formatted.
	Document []byte `json:"-"`
	// Placement is what the document decodes to, without positions.
	Placement *policy.Placement `json:"-"`
}

// Policy is a policy of the proposal.
type Policy struct {
	Name string `json:"name"`
	// Says is what it says, in words, one for each piece.
	Says []string `json:"says"`
	// Workloads are those that it selects, by their Ref (and template).
	Workloads []string `json:"workloads"`
	// Selects says by what they are selected, and Why why by that.
	Selects string `json:"selects"`
	Why     string `json:"why"`
	Raw     bool   `json:"raw,omitempty"`
}

// Pool is a pool of the proposal, and why there is one.
type Pool struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Remark is a field with what was done about it.
type Remark struct {
	Field string `json:"field"`
	Value string `json:"value,omitempty"`
	// Why is the reason.
	Why string `json:"why"`
	// Workloads are those that it is about, by their Ref (and template).
	Workloads []string `json:"workloads"`
	// At is where the first of them has the field; for an object from a cluster the
	// zero Range.
	At diag.Range `json:"at"`
}

// Proof says how far the compiler gives back what was found.
type Proof struct {
	// Pieces is how many pieces of placement were found in what is imported, of
	// which Intents are said by intents, Raw by raw, and Left are not said.
	Pieces  int `json:"pieces"`
	Intents int `json:"intents"`
	Raw     int `json:"raw"`
	Left    int `json:"left"`
	// Unchanged is how many pod templates the policies were compiled into without
	// changing them, and Returned into how many the placement came back after it had
	// been taken out.
	Unchanged int `json:"unchanged"`
	Returned  int `json:"returned"`
}
