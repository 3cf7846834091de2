package admission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// Conditions on the pod that wishes may use.
const (
	// DaemonSet holds for the template of a DaemonSet.
	DaemonSet = "variables.daemonSet"
	// Labels are the labels of the pod, or of the template, as a map.
	Labels = "variables.labels"
	// Namespace is the name of the pod's namespace.
	Namespace = "variables.podNamespace"
)

// Granted returns the condition that the pod may use the dedicated pool.
func Granted(pool string) string { return "variables." + grantVariable(pool) }

func grantVariable(pool string) string { return "grant_" + identifier(pool) }

// identifier turns a DNS label into an identifier; no two become one.
func identifier(name string) string { return strings.ReplaceAll(name, "-", "_") }

// program is the variables of a policy in the making, in order.
type program struct {
	variables []variable
	// changed are expressions that name the fields which change.
	changed []string
	// unsettled are conditions of which one holds if any field changes; see settling.
	unsettled []string
	// unasked says that the changes which are added do not count for unsettled.
	unasked bool
	// made are the maps that the patch makes first, operations the rest of it.
	made       []parent
	operations []string
	// while is a condition on what is added to the three; empty for none.
	while string
	// group is the group that each policy is in, by name; see groups.
	group map[string]string
	// cells are the pod's possible cells, whose policies stand for their groups; nil
	// where they are too many.
	cells []cell
}

type variable struct{ name, text string }

// define adds a variable; the format's lines are joined as they are.
func (p *program) define(name, format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	p.variables = append(p.variables, variable{name, text})
}

var reference = regexp.MustCompile(`\bvariables\.([a-zA-Z_0-9]+)`)

// needed returns the variables that the expressions use, directly or not, in
// their order: those that nobody uses still cost something in every evaluation.
func (p *program) needed(expressions ...string) []admissionregistrationv1.Variable {
	used := map[string]bool{}
	note := func(expression string) {
		for _, m := range reference.FindAllStringSubmatch(expression, -1) {
			used[m[1]] = true
		}
	}
	for _, e := range expressions {
		note(e)
	}
	var out []admissionregistrationv1.Variable
	for _, v := range slices.Backward(p.variables) {
		if used[v.name] {
			note(v.text)
			out = append(out, admissionregistrationv1.Variable{Name: v.name, Expression: v.text})
		}
	}
	slices.Reverse(out)
	return out
}

// pod defines what is known of the pod, its workload and its namespace.
func (p *program) pod(s Set) {
	p.define("daemonSet", `request.resource.resource == "daemonsets"`)
	p.define("pod", `variables.daemonSet ? object.spec.template : object`)
	p.define("spec", `variables.pod.spec`)
	p.define("path", `variables.daemonSet ? "/spec/template/spec" : "/spec"`)
	p.define("metadataPath", `variables.daemonSet ? "/spec/template/metadata" : "/metadata"`)
	p.define("labels", `variables.pod.?metadata.?labels.orValue({})`)
	p.define("objectLabels", `object.metadata.?labels.orValue({})`)
	p.define("podNamespace", `request.namespace`)
	p.define("namespaceLabels", `namespaceObject.metadata.?labels.orValue({})`)
	p.define("serviceAccount", `variables.spec.?serviceAccountName.orValue("default")`)
	p.define("mark", `object.metadata.?annotations[?%s].orValue("")`, cel.Quote(Annotation(s.Name)))
	p.workload(s)
}

// workload defines whose pod it is: a pod shows its immediate owner alone, but
// those of ReplicaSets and CronJobs are named after theirs.
func (p *program) workload(s Set) {
	p.define("owner", `object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false))`)
	p.define("hash", `variables.labels[?"rollouts-pod-template-hash"].orValue(variables.labels[?"pod-template-hash"].orValue(""))`)
	var cronJobs []string
	for _, k := range s.Known {
		if k.Group == "batch" && k.Kind == "CronJob" {
			cronJobs = append(cronJobs, k.Namespace+"/"+k.Name)
		}
	}
	slices.Sort(cronJobs)
	ofCronJob := ""
	if len(cronJobs) > 0 {
		ofCronJob = `
: variables.cronJob.size() > 0 ? ["batch", "CronJob", string(variables.cronJob[0])]`
	}
	p.define("cronJob", `variables.owner.exists(o, o.kind == "Job" && o.name.matches("-[0-9]+$"))
  ? variables.owner.map(o, o.name.substring(0, o.name.lastIndexOf("-"))).filter(n, variables.podNamespace + "/" + n in %s)
  : []`, texts(slices.Compact(cronJobs)))
	p.define("workload", "%s", `variables.daemonSet ? ["apps", "DaemonSet", string(object.metadata.name)]
: variables.owner.size() == 0 ? ["", "Pod", string(object.metadata.?name.orValue(""))]`+ofCronJob+`
: variables.owner[0].kind == "ReplicaSet" && variables.hash != "" && variables.owner[0].name.endsWith("-" + variables.hash)
  ? [
      "rollouts-pod-template-hash" in variables.labels ? "argoproj.io" : "apps",
      "rollouts-pod-template-hash" in variables.labels ? "Rollout" : "Deployment",
      string(variables.owner[0].name.substring(0, variables.owner[0].name.size() - variables.hash.size() - 1))
    ]
: [
    variables.owner[0].apiVersion.contains("/") ? string(variables.owner[0].apiVersion.split("/")[0]) : "",
    string(variables.owner[0].kind),
    string(variables.owner[0].name)
  ]`)
	p.define("group", `variables.workload[0]`)
	p.define("kind", `variables.workload[1]`)
	p.define("name", `variables.workload[2]`)
	p.define("groupKind", `variables.group == "" ? variables.kind : variables.group + "/" + variables.kind`)
}

// policies defines which policies are in force.
func (p *program) policies(s Set) {
	for _, g := range s.Grants {
		p.define(grantVariable(g.Pool), "%s", g.Holds)
	}
	groups, members := s.groups()
	p.group = map[string]string{}
	for _, g := range groups {
		for _, name := range members[g.Name] {
			p.group[name] = g.Name
		}
	}
	if expression, cells, ok := cellsOf(groups); ok {
		p.cells = cells
		p.define("cell", "%s", expression)
		p.policiesOfCells(members)
		return
	}
	p.groupsInForce(groups)
	var names []row
	for _, g := range groups {
		if list := members[g.Name]; len(list) > 1 {
			names = append(names, row{cel.Quote(g.Name), texts(list)})
		}
	}
	if len(names) == 0 {
		p.define("policies", "variables.groups")
	} else {
		p.define("policies", `variables.groups.map(g, %s.orValue([g])).flatten().sort()`, p.lookup("members", names, "g"))
	}
	p.define("policyNames", `variables.policies.join(",")`)
}

// policiesOfCells defines which policies are in force where there are cells, by the
// names of the policies of each group.
func (p *program) policiesOfCells(members map[string][]string) {
	lists, joined := make([]string, len(p.cells)), make([]string, len(p.cells))
	for i, c := range p.cells {
		var names []string
		for _, group := range c.policies {
			names = append(names, members[group]...)
		}
		slices.Sort(names)
		lists[i], joined[i] = texts(names), cel.Quote(strings.Join(names, ","))
	}
	p.define("policies", "%s", p.byCell("policiesOf", lists, `[""].filter(n, false)`))
	p.define("policyNames", "%s", p.byCell("policyNamesOf", joined, `""`))
}

// groups returns the policies, of those that select the same pods the first alone,
// and by its name the names of all of them, sorted: what they ask for is joined
// once and for all then, and not for each pod. Policies that others replace, or
// that replace others, stand for themselves.
func (s Set) groups() (firsts []Policy, members map[string][]string) {
	alone := map[string]bool{}
	for _, policy := range s.Policies {
		for _, by := range policy.ReplacedBy {
			alone[by], alone[policy.Name] = true, true
		}
	}
	members = map[string][]string{}
	first := map[string]string{}
	for _, policy := range s.Policies {
		key := policy.Selects.Text()
		name, ok := first[key]
		if !ok || alone[policy.Name] {
			name = policy.Name
			firsts = append(firsts, policy)
			if !alone[name] {
				first[key] = name
			}
		}
		members[name] = append(members[name], policy.Name)
		slices.Sort(members[name])
	}
	return firsts, members
}

// groupsInForce defines the groups of which the policies are in force.
func (p *program) groupsInForce(groups []Policy) {
	selected := p.selected(groups)
	var replaced []row
	for _, policy := range groups {
		if len(policy.ReplacedBy) > 0 {
			replaced = append(replaced, row{cel.Quote(policy.Name), texts(policy.ReplacedBy)})
		}
	}
	if len(replaced) == 0 {
		p.define("groups", "%s", selected)
		return
	}
	p.define("selected", "%s", selected)
	p.define("groups", `variables.selected.filter(p, !%s.orValue([]).exists(by, by in variables.selected))`, p.lookup("overrides", replaced, "p"))
}
