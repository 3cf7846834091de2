package admission

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
)

// Set is everything that the objects of one set are made of.
//
// Lists are in the order in which their wishes are carried out, and where two
// wishes for one field exclude each other the first one wins.
type Set struct {
	// Name is the value of the set's label; empty for DefaultSet.
	Name string
	// FailClosed refuses pods for which the expressions fail; otherwise they come
	// in as they are.
	FailClosed bool
	// Exempt are namespaces in which nothing is done.
	Exempt []string
	// DefaultClass is the cluster's default PriorityClass, or empty.
	DefaultClass string

	Policies []Policy
	Grants   []Grant

	NodeLabels  []NodeLabel
	Required    Required
	Preferred   []Preferred
	Tolerations []Toleration
	Spreads     []Spread
	// RawSpreads are constraints that are joined after Spreads, one by one.
	RawSpreads  []RawSpread
	Colocations []Colocation
	Scalars     []Scalar
	Keys        []Key
	Gates       []Gate
	Devices     []Devices
	Leaves      []Leaf

	Known []Known
	Kinds []Kind
}

// Policy is one policy: whom it selects, and which others put it out of force.
type Policy struct {
	Name string
	// Selects says whom the policy selects and no exception spares.
	Selects Selection
	// ReplacedBy are the policies that override it where they select too.
	ReplacedBy []string
}

// Grant is who may use a dedicated pool.
type Grant struct {
	Pool string
	// Holds is a condition over the variables.
	Holds string
}

// NodeLabel is a label of the nodeSelector.
type NodeLabel struct {
	When       When
	Key, Value string
}

// Required is what is required of nodes: the table's rule of merging is carried
// out with the expressions whose condition holds.
type Required struct {
	Table *nodeexpr.Table
	// When says for each of Table.Expressions when it is required.
	When []When
}

// Preferred is a preferred term of the node affinity with all that asks for it.
// Weights add up to 100 at most.
type Preferred struct {
	Term    corev1.NodeSelectorTerm
	Weights []Weight
}

// Weight is what one policy gives to a term, from 1 to 100.
type Weight struct {
	When   Case
	Weight int32
}

// Toleration is a toleration; its operator is never empty.
type Toleration struct {
	When       When
	Toleration corev1.Toleration
	// Covers are the places in the list of those of which it tolerates all and
	// more.
	Covers []int
}

// Subject is which pods a constraint counts.
type Subject struct {
	// Own counts the pods of the pod's own workload; the other fields are not
	// used then.
	Own bool
	// Selector selects pods by labels.
	Selector *metav1.LabelSelector
	// Namespaces are those in which pods are counted, by name; if the only one is
	// the pod's own, it is left out.
	Namespaces []string
}

// Spread is a spread constraint. Those for the same key and pods join: require
// beats prefer, the lowest skew, the highest number of domains.
type Spread struct {
	When    When
	Key     string
	Subject Subject
	Require bool
	MaxSkew int32
	// MinDomains is 0 where no policy says.
	MinDomains int32
	// Plain leaves out what no policy says, while all that join are plain.
	Plain bool
}

// RawSpread is a whole constraint.
type RawSpread struct {
	When       When
	Constraint corev1.TopologySpreadConstraint
}

// Colocation is a term of pod affinity, or with Apart of pod anti-affinity.
type Colocation struct {
	When            When
	Apart, Required bool
	// Weight is from 1 to 100, and counts where it is not required.
	Weight int32
	// Own says that the pods of the pod's own workload are meant; of Term nothing
	// counts then but the topology key.
	Own bool
	// Plain counts the pods of all revisions and runs, too.
	Plain bool
	Term  corev1.PodAffinityTerm
}

// Scalar is a field of the pod spec with one value, of the type string.
type Scalar struct {
	When         When
	Field, Value string
}

// Key is one key of the pod's labels, or with Annotation of its annotations, that
// is set where there is none yet. Value is not empty.
type Key struct {
	When       When
	Annotation bool
	Key        string
	// Value is the value, or an expression over the variables if Computed.
	Value    string
	Computed bool
}

// Gate is a scheduling gate. Pods that name their node cannot have any.
type Gate struct {
	When When
	Name string
}

// Devices shows containers the value of an annotation of the pod as an environment
// variable, by the downward API, where they do not set the variable themselves.
type Devices struct {
	When                 When
	Variable, Annotation string
	// Containers are nil for all.
	Containers []string
}

// Leaf is a value of the pod spec that is set where there is none yet, or only
// the one that the API server fills in.
type Leaf struct {
	When When
	Path []string
	// Value is a JSON value.
	Value any
}

// Known is a workload that was there when the set was compiled.
type Known struct {
	Namespace, Group, Kind, Name string
	// Selector selects its pods; nil where it is what anybody would take, the
	// pod's labels.
	Selector *metav1.LabelSelector
	// Domains are the least numbers of domains of required spreads that name
	// none, by topology key, where they are not 2.
	Domains map[string]int32
}

// Kind is what the controllers of a kind put on their pods.
type Kind struct {
	Group, Kind string
	// Labels are the labels that tell the pods of one object (and one template of
	// it) from all others.
	Labels []string
	// MatchKeys are the labels that tell its revisions, or runs, apart, and so
	// narrow what is counted.
	MatchKeys []string
}
