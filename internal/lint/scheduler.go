package lint

import "github.com/kubectl-sched/kubectl-sched/policy/diag"

// schedulerRules are those of profile.Check, which reads a KubeSchedulerConfiguration
// as upstream does and then looks for what upstream accepts without a word.
func schedulerRules() []Rule {
	rules := []Rule{
		{ID: "scheduler/kind", Severity: diag.Error, Doc: "The file is no KubeSchedulerConfiguration of the version that this scheduler reads.", Fix: "Write apiVersion kubescheduler.config.k8s.io/v1 and kind KubeSchedulerConfiguration."},
		{ID: "scheduler/not-yaml", Severity: diag.Error, Doc: "The file is empty, has a second document, or is no YAML.", Fix: "Write one document."},
		{ID: "scheduler/duplicate-key", Severity: diag.Error, Doc: "A key is there twice, which the scheduler refuses.", Fix: "Keep one."},
		{ID: "scheduler/unknown-field", Severity: diag.Error, Doc: "There is no such field, and the scheduler refuses to start.", Fix: "Write the field that was meant; mind upper and lower case."},
		{ID: "scheduler/invalid", Severity: diag.Error, Doc: "The scheduler's own validation refuses a value: a percentage above 100, a profile without or with a taken name, arguments out of range, two extenders that bind, an extender that scores and has no weight, a lock that is no lease.", Fix: "Write a value of the range that the message names."},
		{ID: "scheduler/args", Severity: diag.Error, Doc: "The arguments of a plugin of the bundled scheduler do not fit it. Upstream's decoder would drop what it does not know.", Fix: "Write the fields and values that the message names."},
		{ID: "scheduler/unknown-plugin", Severity: diag.Error, Doc: "No plugin of kube-scheduler or the bundled scheduler has the name. Under enabled the scheduler does not start; under disabled and in pluginConfig it accepts the name without a word, and nothing happens. A name like no other is a warning, since a plugin may be somebody's own.", Fix: "Write the name as it is."},
		{ID: "scheduler/wrong-point", Severity: diag.Error, Doc: "A plugin is enabled at an extension point that it does not implement, and the scheduler does not start.", Fix: "Enable it at one of its points, or at multiPoint."},
		{ID: "scheduler/plugin-twice", Severity: diag.Error, Doc: "A plugin is enabled twice at one point, and the scheduler does not start.", Fix: "Keep one."},
		{ID: "scheduler/weight", Severity: diag.Error, Doc: "Weight 0 is taken for 1. A default plugin that is listed again without a weight counts 1, whatever it counts by default. A weight at a point that does not score, or of a plugin that scores nothing, has no effect. A negative one keeps the scheduler from starting.", Fix: "Say the weight that is meant; to leave a plugin out, disable it."},
		{ID: "scheduler/no-effect", Severity: diag.Warning, Doc: "Something is disabled that would not run anyway, or more is disabled than was meant.", Fix: "Leave it out, or name the plugins one by one."},
		{ID: "scheduler/idle-args", Severity: diag.Warning, Doc: "Arguments are given for a plugin that is not enabled in the profile; the scheduler accepts them, and they have no effect.", Fix: "Enable the plugin, or leave the arguments out."},
		{ID: "scheduler/bind-order", Severity: diag.Error, Doc: "Plugins of multiPoint, and so DefaultBinder, come before those of bind, and DefaultBinder leaves no pod to the next: a plugin that binds and stands behind it never runs. Or no plugin binds at all.", Fix: "Disable DefaultBinder at bind, and list it again behind the other."},
		{ID: "scheduler/order", Severity: diag.Warning, Doc: "At every extension point plugins that multiPoint enables, which are all the default ones, come before those that only the point lists, even where the point lists them behind. Upstream moves them without a word.", Fix: "Disable the default plugin at that point, and list it again behind the other."},
		{ID: "scheduler/no-queue-sort", Severity: diag.Error, Doc: "No plugin sorts the queue, and the scheduler does not start.", Fix: "Enable PrioritySort."},
		{ID: "scheduler/queue-sort", Severity: diag.Error, Doc: "All profiles share one queue, and must sort it by one plugin with the same arguments; a profile must have exactly one.", Fix: "Write the same in every profile."},
		{ID: "scheduler/gang-modes", Severity: diag.Error, Doc: "Profiles ask for different machineries for gangs, and a process has one. Or one asks for mode permit, which sorts the queue of all profiles by itself, and another sorts it otherwise.", Fix: "Use one mode; with permit leave queueSort out."},
		{ID: "scheduler/extender-url", Severity: diag.Error, Doc: "The address of an extender is none; the scheduler starts, and every pod fails when the extender is called.", Fix: "Write an address with http or https and a host."},
		{ID: "scheduler/extender-idle", Severity: diag.Warning, Doc: "An extender has no verb, so it is never called for anything.", Fix: "Name the verbs that it answers to, or leave it out."},
		{ID: "scheduler/extender-slow", Severity: diag.Warning, Doc: "An extender is called once or twice for every pod, one after the other: what it takes is added to each. Without httpTimeout a pod waits up to 5 s for one that does not answer; without ignorable the pod then fails; without nodeCacheCapable every call carries all nodes in full.", Fix: "Set a short httpTimeout, and managedResources, so that only the pods that need it ask."},
		{ID: "scheduler/lease", Severity: diag.Warning, Doc: "A second scheduler that uses the lease of the default one stands by for ever.", Fix: "Give leaderElection.resourceName a name of its own."},
	}
	for i := range rules {
		rules[i].Needs, rules[i].run = Files, configuration(rules[i].ID)
	}
	return rules
}
