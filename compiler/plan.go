package compiler

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Request is everything that a compilation depends on: equal requests give
// byte-equal plans.
type Request struct {
	Placement    *policy.Placement
	Workloads    []*workload.Workload
	Capabilities capability.Capabilities
	// Surface is how the result will reach the workloads.
	Surface policy.Surface
	// Set names the set that the objects of the admission surface belong to, by
	// the value of its label; empty for admission.DefaultSet.
	Set string
	// Installing says that the bundled scheduler is about to be given the profiles
	// of the plan, so that it is no error that they are not served yet.
	Installing bool
	// WithPlaced compiles also for what the admission surface has had its say on
	// already, to explain or to count it: it stays as it is, so nothing is reported
	// of it.
	WithPlaced bool
	// Now decides which exceptions have expired.
	Now time.Time
	// Incomplete says that policies or workloads are missing, because they have
	// errors of their own. Then only what is wrong whatever they say is reported,
	// and the Plan is of no use.
	Incomplete bool
}

// Plan is what the policies come to on one cluster. Its lists are ordered:
// changes as the workloads were given, everything else by name.
type Plan struct {
	// Cluster is the name of the cluster in the document, or empty.
	Cluster string
	// Changes has one entry for each pod template that any policy matched,
	// also where nothing has to change; under admission not what that has had its
	// say on, but for WithPlaced.
	Changes []Change
	// Objects are the objects that we create and own.
	Objects []Object
	// Nodes is what the pools ask of their nodes.
	Nodes []NodeEffect
	// Profiles are the profiles of the bundled scheduler that pods need, by name:
	// each must be served before a pod names it. profile.Configuration writes them.
	Profiles []ProfileUse
	// Exceptions are the exceptions in force that spared a workload.
	Exceptions []ExceptionUse
	// Policies names the policies that hold in this cluster, sorted.
	Policies []string
	// Unmatched names the policies that hold in this cluster and matched no
	// workload, sorted. Over a fleet only what is unmatched everywhere matters.
	Unmatched []string
}

// Change is the outcome for one pod template.
type Change struct {
	Workload *workload.Workload
	// Template is an index into Workload.Templates.
	Template int
	// Policies are the policies in force for the template, sorted.
	Policies []string
	// After is the template's whole placement with the policies; the before is
	// Workload.Templates[Template].Pods (without us) or .Current (as it is).
	After workload.PodFields
	// Effects explain every difference between Pods and After.
	Effects []Effect
	// Nowhere are the policies whose requirement of nodes excludes what the
	// template requires itself, sorted. On the admission surface alone: there the
	// API server, which knows no nodes, gives the pods the requirement all the same,
	// and then no node fits them.
	Nowhere []string
}

// Level is how far from the built-in fields an effect had to go.
type Level string

// The levels, from the one that is taken wherever it suffices.
const (
	// LevelBuiltin are fields and objects of the Kubernetes API itself.
	LevelBuiltin Level = "builtin"
	// LevelProfile is a profile of stock plugins, configured.
	LevelProfile Level = "profile"
	// LevelPlugin is a profile with a plugin of ours.
	LevelPlugin Level = "plugin"
)

// ProfileUse is a profile with what needs it.
type ProfileUse struct {
	profile.Profile
	// Workloads is how many of the given pod templates need it; on the admission
	// surface it may be there for pods to come.
	Workloads int
}

// Level is LevelPlugin where plugins run in the profile that kube-scheduler does
// not have, or does not run by default.
func (u ProfileUse) Level() Level { return profileLevel(u.Profile) }

func profileLevel(p profile.Profile) Level {
	if len(p.Plugins()) > 0 {
		return LevelPlugin
	}
	return LevelProfile
}

// Effect is one thing that a policy does to a pod template.
type Effect struct {
	// Field is the field of the pod spec, dotted
	// ("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution").
	Field string `json:"field"`
	// Value is what the policy adds to the field.
	Value any `json:"value"`
	// Level and Reason say where it is expressed, and why there.
	Level  Level  `json:"level"`
	Reason string `json:"reason"`
	// Origins are the policies' lines that ask for it, at least one.
	Origins []Origin `json:"origins"`
}

// Origin is the line of a policy that an effect comes from; Policy is empty
// where the line is a pool's.
type Origin struct {
	Policy string     `json:"policy"`
	Range  diag.Range `json:"range"`
}

// Object is an object of our own making.
type Object struct {
	// Object has its apiVersion and kind set: a PriorityClass, or an admission
	// policy or binding.
	Object  KubeObject
	Level   Level
	Reason  string
	Origins []Origin
}

// KubeObject is an object of the Kubernetes API.
type KubeObject interface {
	runtime.Object
	metav1.Object
}

// Kind returns the object's kind, such as "PriorityClass".
func (o Object) Kind() string { return o.Object.GetObjectKind().GroupVersionKind().Kind }

// ExceptionUse is an exception that spared a workload.
type ExceptionUse struct {
	Policy, Exception string
	Workload          string
	Reason, Expires   string
	Range             diag.Range
}
