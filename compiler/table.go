package compiler

// Intent is one entry of the table of what a policy can say, and of how it is
// carried out.
type Intent struct {
	// Name is the field of a policy.
	Name string
	// Doc says what it means, in sentences.
	Doc string
	// Example is CUE: the inside of a policy.
	Example string
	// Fields are the built-in fields, or the objects, that it compiles to.
	Fields []string
	// Limits says what the built-in fields cannot say of it, and what happens
	// then.
	Limits string

	// gather adds what the rule asks of the draft's template.
	gather func(*draft, *rule)
}

// Intents returns the table, in the order of the documentation.
func Intents() []Intent { return append([]Intent(nil), intents...) }

// intents must not be changed; it is a variable only because Go has no constant
// slices.
var intents = []Intent{
	{
		Name: "nodes",
		Doc: "Which nodes the pods must, must not, should and should not run on: by pool, label, zone, region, architecture, operating system or name. " +
			"require means every field. forbid forbids what meets any one of its fields: each pool, each label and each list by itself. " +
			"prefer and disfavor give weights; ranked lists several descriptions, the first the most preferred or the least wanted. " +
			"A label's value is one or several literals, \"*\" for any, or \">8\" and \"<8\" for numbers. " +
			"Requirements of several policies and of the manifest must all hold; preferences add up. " +
			"A required pool that is dedicated is tolerated too, if it grants the workload. " +
			"mustWin makes a preference outweigh all other scores of the scheduler together.",
		Example: "nodes: {\n\trequire: pools: [\"gpu\"]\n\tforbid: labels: \"example.com/retiring\": \"*\"\n\tprefer: {zones: [\"eu-1a\"], weight: 20}\n}",
		Fields: []string{
			requiredField + " (each term of the manifest AND each of ours)",
			preferredField,
			"nodeSelector, for kinds that carry no affinity",
			"tolerations, for dedicated pools",
			"schedulerName, for mustWin: a profile in which NodeAffinity outweighs all other scores",
		},
		Limits: "Node affinity has no globs, and no exact opposite of a comparison: \"forbid\" of \">8\" is an error that says what to write instead. A node by its name is matchFields metadata.name, never the hostname label, which may differ. At most 64 terms may come about. " +
			"mustWin needs the bundled scheduler, which then scores every node and not a sample. All node preferences of a pod are one score, of 100 whole points, so with mustWin the pod's other node preferences stand above other scores too, and where they could outvote it, that is an error; on the admission surface the pod's own preferences are not known.",
		gather: gatherNodes,
	},
	{
		Name: "spread",
		Doc: "Keeps the numbers of pods in the domains of one topology key alike: zone, region, node, a name of the cluster's topology, or a node label. " +
			"Several policies on one key join: require beats prefer, the lowest maxSkew and the highest minDomains count. " +
			"Without minDomains, a required spread asks for all domains that are known, but for no more than there are pods, and at least for two; of nodes, which come and go, always for two.",
		Example: "spread: {\n\tzone: {strength: \"require\", maxSkew: 1}\n\tnode: strength: \"prefer\"\n}",
		Fields:  []string{"topologySpreadConstraints", "schedulerName, for mustWin: a profile in which PodTopologySpread outweighs all other scores"},
		Limits: "A constraint counts pods of one namespace, by their labels alone, and must count the pods it is for; everything else is an error. A DaemonSet's pods are one on each node already, so a spread over nodes says nothing, and one that is required over anything else is an error. " +
			"plain leaves out what is added (matchLabelKeys, nodeTaintsPolicy, and minDomains where it is not said), for spreads as manifests have them; joined with one that is not plain, nothing is left out. mustWin is for a preferred spread and needs the bundled scheduler. All soft spreads of a pod are one score, so that one of them that is not mustWin is an error beside one that is.",
		gather: gatherSpread,
	},
	{
		Name:    "together",
		Doc:     "Puts the pods into the domain in which others are: those of the same workload, of all that the policy selects, or those with labels.",
		Example: "together: cache: {on: \"zone\", strength: \"prefer\", of: labels: app: \"redis\"}",
		Fields:  []string{"affinity.podAffinity", "schedulerName, for mustWin: a profile in which InterPodAffinity outweighs all other scores"},
		Limits: "Pods are counted by labels, without globs; namespaces by name, by \"*\", or by a glob where the namespaces are known. " +
			"mustWin is for a preference and needs the bundled scheduler. All preferences about pods are one score, which counts every pod: one of the pod's own that is not mustWin is an error beside one that is, and the preferences that other pods have about this one still count in it.",
		gather: gatherTogether,
	},
	{
		Name:    "apart",
		Doc:     "Keeps the pods out of the domains in which others are: those of the same workload, of all that the policy selects, or those with labels, such as a workload that competes for the same resource.",
		Example: "apart: replicas: {on: \"node\", strength: \"require\"}",
		Fields:  []string{"affinity.podAntiAffinity", "schedulerName, for mustWin"},
		Limits:  "As for together. Required over nodes it can hang a rollout, when every node has a pod and none may go first; that is predicted where the nodes are known.",
		gather:  gatherApart,
	},
	{
		Name: "tolerate",
		Doc: "Lets the pods onto tainted nodes without sending them there: those of a pool that grants it, or with a taint. " +
			"all tolerates every taint; with exceptPools every one that is known but theirs, and keeps off their nodes.",
		Example: "tolerate: {\n\tpools: [\"spot\"]\n\ttaints: lost: {key: \"node.kubernetes.io/unreachable\", effect: \"NoExecute\", seconds: 30}\n}",
		Fields:  []string{"tolerations", requiredField + ", for exceptPools"},
		Limits:  "The API cannot tolerate all taints but some, so with exceptPools the known ones are listed: the built-in, those of the other pools, those of the known nodes. A taint that comes up later needs another run.",
		gather:  gatherTolerate,
	},
	{
		Name:    "priority",
		Doc:     "Gives the pods a PriorityClass. With value the class is made, with the preemption that is said.",
		Example: "priority: {class: \"batch-low\", value: 100, preemption: \"never\"}",
		Fields:  []string{"priorityClassName", "preemptionPolicy", "PriorityClass"},
		Limits:  "A pod has one class, and a class one value: whatever differs is an error. Preemption belongs to the class, and admission refuses pods that say otherwise.",
		gather:  gatherPriority,
	},
	{
		Name: "gates",
		Doc: "Holds the pods back until all that it says has come to pass: so many other pods are there (peers), an object exists or has a value (object), a quota has room, somebody approves, a moment has come, a weekly window opens. " +
			"Each wait is a gate of its own, named after the policy and the field; those of several policies must all open. A gate opens once and for good.",
		Example: "gates: {\n\tquota: \"ml\"\n\tapproval: true\n\twindow: {zone: \"Europe/Berlin\", days: [\"Mon\", \"Tue\"], from: \"22:00\", to: \"06:00\"}\n}",
		Fields:  []string{"schedulingGates", "metadata.annotations of the pod, with the condition of each gate"},
		Limits: "Nothing built in opens a gate, so it needs the gate controller of the bundled scheduler, and is an error where none is known to run. A template with other gates is a rollout. " +
			"What a Job can do without is spec.suspend, which holds the Job and not its pods, and takes somebody to set it: no policy does. Pods whose manifest names their node cannot be held.",
		gather: gatherGates,
	},
	{
		Name: "cache",
		Doc: "Prefers nodes that have the pods' data warm, by the share of it that they have, and keeps off those that are draining their cache. Datasets are weighed by their sizes, if they have any. " +
			"A warm node is wanted less with each pod that was placed there since its cache last changed (penaltyPerPod).",
		Example: "cache: datasets: {\n\timagenet: size: \"120Gi\"\n\tvocab: size: \"2Gi\"\n}",
		Fields: []string{
			"metadata.annotations of the pod, and schedulerName: a profile with the plugin CacheLocality",
			preferredField + " and " + requiredField + ", with one dataset, penaltyPerPod: 0 and warmBy: \"label\"",
		},
		Limits: "Node affinity says all of it only where the value is fixed and nothing is counted: one dataset, no penalty, and nodes that name what they have by the label cache/warm-for alone.",
		gather: gatherCache,
	},
	{
		Name: "gpuMemory",
		Doc: "Counts the memory of GPUs device by device: perDevice on each of so many devices, so that pods share a device only where it has room. prefer says which device a pod gets. " +
			"The containers are shown their devices by NVIDIA_VISIBLE_DEVICES: those that are named, or all that do not set it. minDevice is how large the node's devices must be.",
		Example: "gpuMemory: {perDevice: \"12Gi\", devices: 2, prefer: \"best-fit\", minDevice: \"24Gi\"}",
		Fields: []string{
			requiredField + ", for minDevice: nvidia.com/gpu.memory of GPU Feature Discovery, in MiB",
			"metadata.annotations of the pod, and schedulerName: a profile with the plugin GPUMemory",
			"env of the containers, by the downward API",
		},
		Limits: "A resource request counts whole devices, so perDevice needs the plugin. It keeps the books; nothing stops a container from using more than it asked for. A kind that carries no containers is an error.",
		gather: gatherGPUMemory,
	},
	{
		Name: "gang",
		Doc: "Places the pods of a workload together or not at all: min of them, or all, must find a place at once. Of single pods, those that the policy selects in a namespace are one gang, and each run of a CronJob is one of its own. " +
			"A group that the manifest names already is adopted. within keeps the gang in one domain of a topology.",
		Example: "gang: {min: \"all\", within: \"zone\", timeout: \"5m\"}",
		Fields: []string{
			"schedulerName: a profile with the plugin Gang",
			"schedulingGroup and a PodGroup of scheduling.k8s.io, where the API server has them",
			"metadata.labels of the pod and a PodGroup of scheduling.x-k8s.io, where that is served; else labels alone",
			"affinity.podAffinity, for within",
		},
		Limits: "A min above what the workload makes at a time is an error, and so is \"all\" where the object does not say how many those are. within is required pod affinity: the first pod chooses the domain, and the gang waits though another might have room; " +
			"only PodGroups of the API that take a topology try each. On the admission surface labels say the gang, so min must be a number and within cannot be said.",
		gather: gatherGang,
	},
	{
		Name: "pack",
		Doc: "Fills nodes up, so that others stay empty and can be taken away: nodes score the better the more of their resources is requested. " +
			"resources says which count, with weights; upTo is the percentage at which a node is filled best.",
		Example: "pack: {resources: {cpu: 1, memory: 1}, upTo: 85}",
		Fields:  []string{"schedulerName: a profile with NodeResourcesFit's scoring strategy"},
		Limits: "No field of a pod says it, so it needs the bundled scheduler. Two scores that work against it are displaced: NodeResourcesBalancedAllocation is off, since an empty node has its full score, " +
			"and so are the spread constraints that PodTopologySpread adds to pods which have none. What the pod itself prefers or spreads over still counts, with twice the weight, and so does the image that a node has (ImageLocality). Every node is scored, and not a sample of them, which takes longer in large clusters. It counts requests, not what is used.",
		gather: gatherNothing,
	},
	{
		Name: "balance",
		Doc: "Puts the pods where the least is requested, and keeps the shares of each resource alike. " +
			"resources says which count, with weights.",
		Example: "balance: resources: {cpu: 1, memory: 1, \"nvidia.com/gpu\": 3}",
		Fields:  []string{"schedulerName: a profile with NodeResourcesFit's scoring strategy and the resources of NodeResourcesBalancedAllocation"},
		Limits: "No field of a pod says it, so it needs the bundled scheduler. ImageLocality is displaced, which draws pods to the nodes that ran the same image before. The shares are kept alike without weights, " +
			"because NodeResourcesBalancedAllocation takes no other than 1. The spread constraints that upstream adds by default still count. It cannot be together with pack.",
		gather: gatherNothing,
	},
	{
		Name: "raw",
		Doc: "Fragments for what no intent says. " +
			"pod is one of a pod spec. Placement fields unite with the manifest's as those of the intents do; other maps merge, and other values are set where the manifest has none or the same. " +
			"profile is one of a profile of the bundled scheduler (KubeSchedulerProfile). Its maps unite with what other policies ask of the profile, arguments by the plugin's name; what is enabled at an extension point is one value.",
		Example: "raw: pod: {\n\truntimeClassName: \"gvisor\"\n\tterminationGracePeriodSeconds: 60\n}",
		Fields:  []string{"spec of the pod: any field", "schedulerName: a profile with the fragment"},
		Limits: "A value that differs from the manifest's is an error, as is an unknown field, or a fragment for a kind that carries placement fields alone. " +
			"A fragment of a profile is checked as lint checks a scheduler's configuration, and everything that is found is an error; it needs the bundled scheduler. Extenders and other fields of a whole configuration are no part of a profile.",
		gather: gatherRaw,
	},
}

// gatherNothing is for intents that only ask something of the profile (needs.go).
func gatherNothing(*draft, *rule) {}
