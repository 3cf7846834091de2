// Package policy is the placement language: its CUE schema, and the typed
// Placement that a document decodes to.
//
// It maps folders of CUE to a Placement with the source position of every
// field. It must not know workloads, clusters or what an intent compiles to.
package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Placement is everything that the given policy folders say, decoded and
// validated. Its lists are sorted by name.
type Placement struct {
	Clusters []Cluster `json:"clusters,omitempty"`
	Pools    []Pool    `json:"pools,omitempty"`
	Kinds    []Kind    `json:"kinds,omitempty"`
	Policies []Policy  `json:"policies,omitempty"`
	// Tests are unit tests of the policies; what is compiled and applied does not
	// depend on them.
	Tests []Test `json:"tests,omitempty"`
	// Folders are the folders that were read, as the user named them, sorted.
	Folders []string `json:"folders,omitempty"`
}

// Pool returns the pool of that name, or nil.
func (p *Placement) Pool(name string) *Pool {
	for i := range p.Pools {
		if p.Pools[i].Name == name {
			return &p.Pools[i]
		}
	}
	return nil
}

// Cluster returns the cluster of that name, or nil.
func (p *Placement) Cluster(name string) *Cluster {
	for i := range p.Clusters {
		if p.Clusters[i].Name == name {
			return &p.Clusters[i]
		}
	}
	return nil
}

// Positions maps JSON pointers below one cluster, pool, kind, policy or
// test
// ("/nodes/require/pools/0") to where the user wrote them. The empty pointer is
// the declaration itself.
type Positions map[string]diag.Range

// At returns where the field under the given path was written, or where its
// nearest known ancestor was. List indices are given in decimal.
func (ps Positions) At(path ...string) diag.Range {
	for n := len(path); n > 0; n-- {
		if r, ok := ps[Pointer(path[:n]...)]; ok {
			return r
		}
	}
	return ps[""]
}

// Pointer returns the JSON pointer (RFC 6901) of a path.
func Pointer(path ...string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(p))
	}
	return b.String()
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// Values is what a label may be: any of its elements. An element is a literal,
// a glob, "*" for "the label is there", or, on nodes alone, ">N" or "<N".
type Values []string

// UnmarshalJSON accepts one string for a list of one.
func (v *Values) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*v = Values{s}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(v))
}

// Surface is how policies reach the workloads of a cluster.
type Surface string

// The surfaces.
const (
	SurfaceRender    Surface = "render"
	SurfaceLive      Surface = "live"
	SurfaceAdmission Surface = "admission"
)

// FailurePolicy is what becomes of a pod when an admission policy cannot be
// evaluated.
type FailurePolicy string

// The failure policies.
const (
	FailureIgnore FailurePolicy = "ignore"
	FailureFail   FailurePolicy = "fail"
)

// Admission is how the admission policies of a cluster behave.
type Admission struct {
	FailurePolicy FailurePolicy    `json:"failurePolicy,omitempty"`
	Exempt        *AdmissionExempt `json:"exempt,omitempty"`
}

// AdmissionExempt is where no admission policy of ours acts, besides kube-system.
type AdmissionExempt struct {
	Namespaces []string `json:"namespaces,omitempty"`
}

// Cluster is one cluster that the document speaks of.
type Cluster struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels,omitempty"`
	Surface Surface           `json:"surface"`
	// Admission is nil where the document says nothing of it.
	Admission *Admission `json:"admission,omitempty"`
	// Context is the kubeconfig context, or empty.
	Context string `json:"context,omitempty"`
	// Version is the Kubernetes minor version ("1.37"), or empty if not said.
	Version string `json:"version,omitempty"`
	// Topology maps names to node label keys, besides the built-in ones.
	Topology map[string]string `json:"topology,omitempty"`
	// PodGroups is "api", "crd", "labels", or empty if not said.
	PodGroups string `json:"podGroups,omitempty"`
	// Domains maps topology names to the values that are known to exist.
	Domains map[string][]string `json:"domains,omitempty"`
	// Schedulers are those that run there besides the default one, by name.
	Schedulers map[string]Scheduler `json:"schedulers,omitempty"`

	Positions Positions `json:"positions,omitempty"`
}

// Scheduler is a scheduler that runs in a cluster.
type Scheduler struct {
	// Bundled says that it is the one of this project.
	Bundled bool `json:"bundled,omitempty"`
	// Profiles are the values of schedulerName that it serves; empty where the
	// document does not say.
	Profiles []string `json:"profiles,omitempty"`
}

// ManagedBy is who makes the nodes of a pool.
type ManagedBy string

// Who may make nodes. Only for ManagedLive are nodes written by us.
const (
	ManagedNodeGroup ManagedBy = "nodegroup"
	ManagedKarpenter ManagedBy = "karpenter"
	ManagedKubelet   ManagedBy = "kubelet"
	ManagedLive      ManagedBy = "live"
)

// Pool is a named set of nodes.
type Pool struct {
	Name      string     `json:"name"`
	Nodes     NodeTerm   `json:"nodes"`
	Dedicated *Dedicated `json:"dedicated,omitempty"`
	ManagedBy ManagedBy  `json:"managedBy"`
	// Labels are labels that the pool's nodes shall carry; Nodes alone says which
	// nodes those are.
	Labels map[string]string `json:"labels,omitempty"`
	// Karpenter and NodeGroup are nil where the document says nothing of them.
	Karpenter *Karpenter `json:"karpenter,omitempty"`
	NodeGroup *NodeGroup `json:"nodeGroup,omitempty"`

	Positions Positions `json:"positions,omitempty"`
}

// Karpenter says which NodePools make the nodes of a pool.
type Karpenter struct {
	NodePools []string `json:"nodePools"`
}

// NodeGroup says which node groups make the nodes of a pool.
type NodeGroup struct {
	// Provider is empty where the document does not say it.
	Provider Provider `json:"provider,omitempty"`
	Names    []string `json:"names,omitempty"`
}

// Provider is whose node groups they are.
type Provider string

// The providers of node groups.
const (
	ProviderEKS        Provider = "eks"
	ProviderGKE        Provider = "gke"
	ProviderAKS        Provider = "aks"
	ProviderClusterAPI Provider = "cluster-api"
)

// Dedicated is the taint of a pool, and who may tolerate it. After loading,
// Taint is always set (the default is written in).
type Dedicated struct {
	Taint  *Taint  `json:"taint,omitempty"`
	Grants *Grants `json:"grants,omitempty"`
	// Guard is GuardOff where the document does not say.
	Guard  Guard        `json:"guard,omitempty"`
	Exempt *GuardExempt `json:"exempt,omitempty"`
}

// Guard is what the API server does about pods that would use a dedicated pool
// without a grant.
type Guard string

// The guards.
const (
	GuardOff   Guard = "off"
	GuardAudit Guard = "audit"
	GuardWarn  Guard = "warn"
	GuardDeny  Guard = "deny"
)

// GuardExempt names those whom a guard does not watch; each list by itself
// exempts.
type GuardExempt struct {
	Namespaces []string `json:"namespaces,omitempty"`
	// ServiceAccounts are those of the pods, "namespace/name"; Users and Groups
	// those of whoever makes the request.
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	Users           []string `json:"users,omitempty"`
	Groups          []string `json:"groups,omitempty"`
}

// Grants says who may use a dedicated pool. Fields AND; a nil Grants is everyone
// whom a policy sends there.
type Grants struct {
	Namespaces      []string          `json:"namespaces,omitempty"`
	NamespaceLabels map[string]Values `json:"namespaceLabels,omitempty"`
	ServiceAccounts []string          `json:"serviceAccounts,omitempty"`
}

// SplitAccount takes apart a service account as Grants and GuardExempt name it:
// "namespace/name", or "name" for that of any namespace, which ok tells. Both
// parts may be globs.
func SplitAccount(account string) (namespace, name string, ok bool) {
	if namespace, name, ok = strings.Cut(account, "/"); ok {
		return namespace, name, true
	}
	return "", account, false
}

// Kind teaches a custom kind that has pod templates.
type Kind struct {
	// Name is "group/Kind".
	Name      string                  `json:"name"`
	Templates map[string]KindTemplate `json:"templates"`
	PodLabels map[string]string       `json:"podLabels,omitempty"`

	Positions Positions `json:"positions,omitempty"`
}

// KindTemplate is where one kind of pod template is in a custom kind; see
// #Kind in the schema for the language of its paths.
type KindTemplate struct {
	Path   string            `json:"path,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
	Labels string            `json:"labels,omitempty"`
	// Annotations leads to the pods' annotations.
	Annotations string `json:"annotations,omitempty"`
}

// Level says whether other policies may override a policy.
type Level string

// The levels.
const (
	Mandatory Level = "mandatory"
	Default   Level = "default"
)

// Policy is one placement intent, for the workloads that it selects.
type Policy struct {
	Name string `json:"name"`
	// Folder is the folder that defines it, one of Placement.Folders.
	Folder    string               `json:"folder"`
	When      map[string]Values    `json:"when,omitempty"`
	Workloads Workloads            `json:"workloads"`
	Level     Level                `json:"level"`
	Overrides []string             `json:"overrides,omitempty"`
	Reason    string               `json:"reason,omitempty"`
	Except    map[string]Exception `json:"except,omitempty"`

	Nodes    *Nodes                `json:"nodes,omitempty"`
	Spread   map[string]Spread     `json:"spread,omitempty"`
	Together map[string]Colocation `json:"together,omitempty"`
	Apart    map[string]Colocation `json:"apart,omitempty"`
	Tolerate *Tolerate             `json:"tolerate,omitempty"`
	Priority *Priority             `json:"priority,omitempty"`

	Gates     *Gates     `json:"gates,omitempty"`
	Cache     *Cache     `json:"cache,omitempty"`
	GPUMemory *GPUMemory `json:"gpuMemory,omitempty"`
	Gang      *Gang      `json:"gang,omitempty"`

	Pack    *Pack    `json:"pack,omitempty"`
	Balance *Balance `json:"balance,omitempty"`
	Raw     *Raw     `json:"raw,omitempty"`

	Positions Positions `json:"positions,omitempty"`
}

// Exception spares workloads from a policy until the end of the day Expires
// (UTC, "2006-01-02").
type Exception struct {
	Workloads Workloads `json:"workloads"`
	Reason    string    `json:"reason"`
	Expires   string    `json:"expires"`
}

// Workloads selects workloads: fields AND, the values of a list OR.
type Workloads struct {
	Namespaces      []string          `json:"namespaces,omitempty"`
	NamespaceLabels map[string]Values `json:"namespaceLabels,omitempty"`
	Kinds           []string          `json:"kinds,omitempty"`
	Names           []string          `json:"names,omitempty"`
	Labels          map[string]Values `json:"labels,omitempty"`
	Pods            *Pods             `json:"pods,omitempty"`
	Templates       []string          `json:"templates,omitempty"`
	Not             *Workloads        `json:"not,omitempty"`
}

// Pods selects by the labels in the pod template.
type Pods struct {
	Labels map[string]Values `json:"labels"`
}

// NodeTerm describes nodes: fields AND, the values of a list OR.
type NodeTerm struct {
	Pools   []string          `json:"pools,omitempty"`
	Labels  map[string]Values `json:"labels,omitempty"`
	Zones   []string          `json:"zones,omitempty"`
	Regions []string          `json:"regions,omitempty"`
	Arch    []string          `json:"arch,omitempty"`
	OS      []string          `json:"os,omitempty"`
	Names   []string          `json:"names,omitempty"`
}

// Nodes says which nodes the pods must, must not, should and should not run on.
// Require means every field; Forbid forbids what meets any one of its fields.
type Nodes struct {
	Require  *NodeTerm   `json:"require,omitempty"`
	Forbid   *NodeTerm   `json:"forbid,omitempty"`
	Prefer   *Preference `json:"prefer,omitempty"`
	Disfavor *Preference `json:"disfavor,omitempty"`
}

// Preference is one description of nodes, or several in order of rank.
type Preference struct {
	NodeTerm
	Ranked []NodeTerm `json:"ranked,omitempty"`
	// Weight is from 1 to 100.
	Weight int `json:"weight"`
	// MustWin says that it outweighs all other scores together.
	MustWin bool `json:"mustWin,omitempty"`
}

// Strength is whether an intent binds or only counts.
type Strength string

// The strengths of spread, together and apart.
const (
	Require Strength = "require"
	Prefer  Strength = "prefer"
)

// SubjectKind is which pods an intent counts.
type SubjectKind string

// The kinds of subject.
const (
	// EachWorkload counts the pods of each workload by itself.
	EachWorkload SubjectKind = "workload"
	// AllSelected counts the pods of all that the policy selects.
	AllSelected SubjectKind = "selected"
	// ByLabels counts the pods with Subject.Labels.
	ByLabels SubjectKind = "labels"
)

// Subject says which pods a spread, together or apart counts.
type Subject struct {
	Kind SubjectKind
	// Labels and Namespaces are set for ByLabels alone. Without Namespaces the
	// pod's own namespace is meant.
	Labels     map[string]Values
	Namespaces []string
}

type subjectLabels struct {
	Labels     map[string]Values `json:"labels"`
	Namespaces []string          `json:"namespaces,omitempty"`
}

// UnmarshalJSON accepts the two words, or the labels.
func (s *Subject) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(&s.Kind))
	}
	var l subjectLabels
	if err := json.Unmarshal(data, &l); err != nil {
		return fmt.Errorf("subject: %w", err)
	}
	*s = Subject{Kind: ByLabels, Labels: l.Labels, Namespaces: l.Namespaces}
	return nil
}

// MarshalJSON is the inverse of UnmarshalJSON.
func (s Subject) MarshalJSON() ([]byte, error) {
	if s.Kind == ByLabels {
		return json.Marshal(subjectLabels{s.Labels, s.Namespaces})
	}
	return json.Marshal(string(s.Kind))
}

// Spread keeps the numbers of pods in the domains of one topology key alike.
type Spread struct {
	Strength Strength `json:"strength"`
	MaxSkew  int      `json:"maxSkew"`
	// MinDomains is nil where the user leaves it to the compiler.
	MinDomains *int    `json:"minDomains,omitempty"`
	Of         Subject `json:"of"`
	// MustWin counts for Prefer alone.
	MustWin bool `json:"mustWin,omitempty"`
	// Plain leaves out matchLabelKeys, nodeTaintsPolicy, and MinDomains where it is
	// nil.
	Plain bool `json:"plain,omitempty"`
}

// Colocation puts pods into one domain (together) or into different ones (apart).
type Colocation struct {
	On       string   `json:"on"`
	Strength Strength `json:"strength"`
	// Weight is from 1 to 100 and counts for Prefer alone, as MustWin does.
	Weight  int     `json:"weight"`
	Of      Subject `json:"of"`
	MustWin bool    `json:"mustWin,omitempty"`
	// Plain leaves out matchLabelKeys.
	Plain bool `json:"plain,omitempty"`
}

// Taint is a taint as a toleration names it: Value nil tolerates any value,
// Effect empty any effect, Seconds nil for ever.
type Taint struct {
	Key     string  `json:"key"`
	Value   *string `json:"value,omitempty"`
	Effect  string  `json:"effect,omitempty"`
	Seconds *int64  `json:"seconds,omitempty"`
}

// Tolerate lets pods onto tainted nodes without sending them there.
type Tolerate struct {
	Pools       []string         `json:"pools,omitempty"`
	Taints      map[string]Taint `json:"taints,omitempty"`
	All         bool             `json:"all,omitempty"`
	ExceptPools []string         `json:"exceptPools,omitempty"`
}

// Priority gives the pods a PriorityClass; with Value the class is made by us.
type Priority struct {
	Class       string `json:"class"`
	Value       *int32 `json:"value,omitempty"`
	Preemption  string `json:"preemption,omitempty"`
	Description string `json:"description,omitempty"`
}

// Raw holds fragments that no intent can say.
type Raw struct {
	// Pod is a fragment of a pod spec, and Profile one of a scheduler's profile, as
	// JSON.
	Pod     map[string]any `json:"pod,omitempty"`
	Profile map[string]any `json:"profile,omitempty"`
}

// Pack fills nodes up, so that others stay empty.
type Pack struct {
	// Resources maps those that count to their weights; nil for cpu and memory alike.
	Resources map[string]int `json:"resources,omitempty"`
	// UpTo is a percentage of a node's resources; 0 for all of them.
	UpTo int `json:"upTo,omitempty"`
}

// Balance puts pods where the least is in use. Resources are as for Pack.
type Balance struct {
	Resources map[string]int `json:"resources,omitempty"`
}
