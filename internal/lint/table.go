package lint

// Rule is one thing that is looked for.
type Rule struct {
	// Name is the rule of its findings.
	Name string
	// Doc says what is wrong about it, in sentences.
	Doc string

	check func(*template)
}

// Rules returns the table, in the order of the documentation.
func Rules() []Rule { return append([]Rule(nil), rules...) }

// rules must not be changed; it is a variable only because Go has no constant
// slices.
var rules = []Rule{
	{
		Name:  "workload/spread-no-selector",
		Doc:   "A topology spread constraint without a label selector, or with an empty one, counts no pods, and so constrains nothing.",
		check: spreadNoSelector,
	},
	{
		Name:  "workload/spread-misses-own-pods",
		Doc:   "A topology spread constraint that does not select the pods it is on does not count them, and nothing keeps them from piling up.",
		check: spreadMissesOwnPods,
	},
	{
		Name:  "workload/spread-rollout",
		Doc:   "Without matchLabelKeys a required spread counts the pods of the old revision during a rollout, and the new ones end up uneven.",
		check: spreadRollout,
	},
	{
		Name:  "workload/spread-tainted-nodes",
		Doc:   "Without nodeTaintsPolicy: Honor a required spread counts domains whose nodes the pods cannot use, and pods stay Pending for the sake of those.",
		check: spreadTaintedNodes,
	},
	{
		Name:  "workload/topology-missing",
		Doc:   "Nodes without the label that tells domains apart belong to none: a required spread never uses them, and an affinity has no effect there.",
		check: topologyMissing,
	},
	{
		Name:  "workload/rollout-deadlock",
		Doc:   "With one pod on each node, as many replicas as nodes and no pod that may go first, every rollout waits for a node that is not there.",
		check: rolloutDeadlock,
	},
	{
		Name:  "workload/lone-preference",
		Doc:   "The weight of a single preferred term means nothing: it is scaled until the best node has the full score, and other scores can outvote it.",
		check: lonePreference,
	},
	{
		Name:  "workload/terms-are-alternatives",
		Doc:   "A node needs to meet one of several node selector terms, not all of them.",
		check: termsAreAlternatives,
	},
	{
		Name:  "workload/hostname-is-not-name",
		Doc:   "The label kubernetes.io/hostname may differ from the node's name.",
		check: hostnameIsNotName,
	},
	{
		Name:  "workload/daemonset-skips",
		Doc:   "A DaemonSet does not count the nodes whose taints it does not tolerate, and looks healthy without them.",
		check: daemonSetSkips,
	},
	{
		Name:  "workload/gang-mixed",
		Doc:   "Members of one gang that differ in priorityClassName, preemptionPolicy or schedulerName are never placed: the whole gang has one priority, one preemption policy and one profile.",
		check: gangMixed,
	},
}
