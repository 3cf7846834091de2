package admission

// ProbeAnnotation is the annotation by which a pod asks whether a set is in
// force: a pod with it that is created as a dry run gets, as its value, the
// content of the place policy that saw it, whether or not any of the set's
// policies is for the pod. It is how `apply --wait` knows that every API server
// request is judged by the new content; on pods that are really created it is
// never read. Its value is the set's label value, so that a probe asks one set.
const ProbeAnnotation = "kubectl-sched.github.io/probe"
