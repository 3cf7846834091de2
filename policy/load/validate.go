package load

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// validate checks what the schema cannot say: names that refer to something,
// the syntax of Kubernetes' own names, and fields that make no sense together.
func validate(m *merged) *validator {
	v := &validator{merged: m, pools: map[labels][]string{}}
	for i := range m.Clusters {
		v.cluster(&m.Clusters[i])
	}
	for i := range m.Pools {
		v.pool(&m.Pools[i])
	}
	v.poolCycles()
	for i := range m.Kinds {
		v.kind(&m.Kinds[i])
	}
	for i := range m.Policies {
		v.policy(&m.Policies[i])
	}
	for i := range m.Tests {
		v.test(&m.Tests[i])
	}
	v.layers()
	v.priorityClasses()
	return v
}

// validator collects the findings about one Placement.
type validator struct {
	*merged
	findings diag.Findings
	// pools are the pools that each object speaks of.
	pools map[labels][]string
}

// subject is what a check speaks of: its positions, and how findings name it.
type subject struct {
	v         *validator
	policy    string // the finding's Policy
	name      string // the finding's Subject
	positions policy.Positions
}

// bad adds an error at the field at path.
func (s subject) bad(rule string, path []string, format string, args ...any) *diag.Finding {
	s.v.findings = append(s.v.findings, diag.Finding{
		Rule: rule, Severity: diag.Error,
		Policy: s.policy, Subject: s.name, Range: s.positions.At(path...), Message: fmt.Sprintf(format, args...),
	})
	return &s.v.findings[len(s.v.findings)-1]
}

// relate adds another place to a finding.
func relate(f *diag.Finding, at diag.Range, message string) {
	f.Related = append(f.Related, diag.Related{Range: at, Message: message})
}

// join returns path with more labels at its end.
func join(path []string, more ...string) []string { return slices.Concat(path, more) }

// nth is a list index as a path has it.
func nth(i int) string { return strconv.Itoa(i) }

// suggest ends a message about an unknown name.
func suggest(name string, known []string) string {
	if near, ok := diag.Nearest(name, known); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return ""
	}
	slices.Sort(known)
	return "; there are " + quotedList(known)
}

// quotedList shows up to eight names.
func quotedList(names []string) string {
	const most = 8
	quoted := make([]string, 0, most)
	for _, n := range names[:min(len(names), most)] {
		quoted = append(quoted, strconv.Quote(n))
	}
	text := strings.Join(quoted, ", ")
	if len(names) > most {
		text += " and more"
	}
	return text
}

func (v *validator) cluster(c *policy.Cluster) {
	s := subject{v, "", "cluster " + c.Name, c.Positions}
	s.admission(c.Admission)
	s.schedulers(c)
	for _, name := range slices.Sorted(maps.Keys(c.Topology)) {
		path := []string{"topology", name}
		if builtinTopology[name] {
			s.bad("policy/topology", path, "%q is built in and cannot be given another label; choose another name", name)
			continue
		}
		s.labelKey(path, c.Topology[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Domains)) {
		path := []string{"domains", name}
		if _, ok := c.Topology[name]; !ok && !builtinTopology[name] {
			known := append(slices.Collect(maps.Keys(c.Topology)), slices.Collect(maps.Keys(builtinTopology))...)
			s.bad("policy/unknown-topology", path, "there is no topology %q%s", name, suggest(name, known))
		}
		for i, value := range c.Domains[name] {
			s.labelValue(join(path, nth(i)), value)
			if first := slices.Index(c.Domains[name], value); first < i {
				s.bad("policy/topology", join(path, nth(i)), "%q is listed twice", value)
			}
		}
	}
}

func (v *validator) pool(p *policy.Pool) {
	s := subject{v, "", "pool " + p.Name, p.Positions}
	if emptyTerm(p.Nodes) {
		s.bad("policy/empty-pool", []string{"nodes"}, "the pool has no nodes; say by their labels, names or zones which they are")
	}
	s.nodeTerm([]string{"nodes"}, p.Nodes)
	s.poolMakers(p)
	s.poolLabels(p)
	if p.Dedicated != nil {
		s.dedicated(p.Dedicated)
	}
}

// poolCycles reports pools that are described by each other.
func (v *validator) poolCycles() {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(p *policy.Pool)
	visit = func(p *policy.Pool) {
		state[p.Name] = visiting
		for i, name := range p.Nodes.Pools {
			next := v.Pool(name)
			switch {
			case next == nil:
			case state[name] == visiting:
				f := subject{v, "", "pool " + p.Name, p.Positions}.bad("policy/pool-cycle", []string{"nodes", "pools", nth(i)},
					"pool %q is described by itself; describe one of the pools by labels", name)
				if next != p {
					relate(f, next.Positions.At("nodes", "pools"), fmt.Sprintf("pool %q", name))
				}
			case state[name] == 0:
				visit(next)
			}
		}
		state[p.Name] = done
	}
	for i := range v.Pools {
		if state[v.Pools[i].Name] == 0 {
			visit(&v.Pools[i])
		}
	}
}

// groupKind is the name of a custom kind: "group/Kind".
var groupKind = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Z][A-Za-z0-9]*$`)

// fieldPath is a path to a pod spec, or to a field of one.
var fieldPath = regexp.MustCompile(`^([A-Za-z_$][-A-Za-z0-9_$]*|\*)(\[\*[A-Za-z0-9_]*\])?(\.([A-Za-z_$][-A-Za-z0-9_$]*|\*)(\[\*[A-Za-z0-9_]*\])?)*$`)

func (v *validator) kind(k *policy.Kind) {
	s := subject{v, "", "kind " + k.Name, k.Positions}
	if !groupKind.MatchString(k.Name) {
		s.bad("policy/kind", nil, "%q is no custom kind; write its group and kind, such as \"example.com/Widget\"", k.Name)
	}
	if len(k.Templates) == 0 {
		s.bad("policy/kind", []string{"templates"}, "the kind has no pod template; say where one is, or take the kind out")
	}
	for _, name := range slices.Sorted(maps.Keys(k.Templates)) {
		t, path := k.Templates[name], []string{"templates", name}
		if t.Path == "" && len(t.Fields) == 0 {
			s.bad("policy/kind", path, "the template has neither a path nor fields; say where its pod spec is")
		}
		check := func(at []string, value string) {
			if !fieldPath.MatchString(value) {
				s.bad("policy/kind", at, "%q is no path; write fields separated by dots, such as \"spec.groups[*name].template.spec\"", value)
			}
		}
		if t.Path != "" {
			check(join(path, "path"), t.Path)
		}
		if t.Labels != "" {
			check(join(path, "labels"), t.Labels)
		}
		if t.Annotations != "" {
			check(join(path, "annotations"), t.Annotations)
		}
		for _, field := range slices.Sorted(maps.Keys(t.Fields)) {
			check(join(path, "fields", field), t.Fields[field])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.PodLabels)) {
		s.labelKey([]string{"podLabels", key}, key)
		value := strings.NewReplacer("{name}", "x", "{template}", "x").Replace(k.PodLabels[key])
		if strings.ContainsAny(value, "{}") {
			s.bad("policy/kind", []string{"podLabels", key}, "%q has an unknown placeholder; there are \"{name}\" and \"{template}\"", k.PodLabels[key])
		} else {
			s.labelValue([]string{"podLabels", key}, value)
		}
	}
}
