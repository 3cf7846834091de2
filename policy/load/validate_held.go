package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/gates"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// gates checks the gates intent: what the gate controller would refuse is refused
// here.
func (s subject) gates(name string, g *policy.Gates) {
	if g == nil {
		return
	}
	all := gates.Of(name, g)
	if len(all) == 0 {
		s.bad("policy/no-intent", []string{"gates"}, "gates waits for nothing; give it peers, object, quota, approval, notBefore or window")
	}
	if p := g.Peers; p != nil {
		at := []string{"gates", "peers", "labels"}
		if len(p.Labels) == 0 {
			s.bad("policy/empty-selector", at, "no label is given, so there are no peers; give one")
			return
		}
		s.selectorLabels(at, p.Labels)
		for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
			for i, value := range p.Labels[key] {
				if value != "*" && isGlob(value) {
					s.bad("policy/bad-glob", join(at, key, nth(i)), "%q is a pattern, and peers are told by exact values alone; list the values, or write \"*\" for any", value)
					return
				}
			}
		}
	}
	for _, gate := range all {
		if _, err := condition.Name(gate.Short); err != nil {
			s.bad("policy/bad-name", gate.Path, "%s; give the policy a shorter name", err)
		}
		for _, problem := range gate.Condition.Validate() {
			s.bad("policy/bad-gate", join(gate.Path, below(problem, gate.Condition.Kind())...), "%s", sentence(problem))
		}
	}
}

// sentence says what is wrong, with the value.
func sentence(problem *field.Error) string {
	switch value, isText := problem.BadValue.(string); {
	case problem.Type == field.ErrorTypeDuplicate:
		return fmt.Sprintf("%q is listed twice", fmt.Sprint(problem.BadValue))
	case problem.Type == field.ErrorTypeInvalid && isText:
		return fmt.Sprintf("%q %s", value, problem.Detail)
	case problem.Detail != "":
		return problem.Detail
	}
	return problem.ErrorBody()
}

// below returns the path of a problem below the kind of its condition.
func below(problem *field.Error, kind condition.Kind) []string {
	text := strings.TrimPrefix(strings.TrimPrefix(problem.Field, string(kind)), ".")
	text = strings.NewReplacer("[", ".", "]", "").Replace(text)
	if text == "" {
		return nil
	}
	return strings.Split(text, ".")
}

// cache checks the cache intent.
func (s subject) cache(c *policy.Cache) {
	if c == nil {
		return
	}
	at := []string{"cache", "datasets"}
	switch n := len(c.Datasets); {
	case n == 0:
		s.bad("policy/no-intent", at, "no dataset is given; name at least one")
	case n > args.MaxDatasets:
		s.bad("policy/cache", at, "%d datasets are given, and %d count at most; name those that are large", n, args.MaxDatasets)
	}
	sized, total := 0, int64(0)
	for _, name := range slices.Sorted(maps.Keys(c.Datasets)) {
		if err := args.DatasetName(name); err != nil {
			s.bad("policy/cache", join(at, name), "%s", err)
		}
		size := c.Datasets[name].Size
		if size == "" {
			continue
		}
		sized++
		bytes, err := args.DatasetSize(size)
		if err != nil {
			s.bad("policy/cache", join(at, name, "size"), "%s", err)
		}
		if total += bytes; total < 0 {
			s.bad("policy/cache", join(at, name, "size"), "the sizes of the datasets add up to more than 8Ei")
			return
		}
	}
	if sized > 0 && sized < len(c.Datasets) {
		s.bad("policy/cache", at, "datasets with sizes and without cannot be weighed against each other; give all a size, or none")
	}
}

// gpuMemory checks the gpuMemory intent.
func (s subject) gpuMemory(g *policy.GPUMemory) {
	if g == nil {
		return
	}
	at := []string{"gpuMemory"}
	if g.PerDevice == "" && g.MinDevice == "" {
		s.bad("policy/no-intent", at, "gpuMemory says no size; give it perDevice or minDevice")
	}
	sizes := map[string]int64{}
	for _, f := range []struct{ name, text string }{{"perDevice", g.PerDevice}, {"minDevice", g.MinDevice}} {
		if f.text == "" {
			continue
		}
		bytes, err := args.DeviceMemory(f.text)
		if err != nil {
			s.bad("policy/gpu-memory", join(at, f.name), "%s %s", f.name, err)
			continue
		}
		sizes[f.name] = bytes
	}
	if need, ok := sizes["perDevice"]; ok {
		if least, ok := sizes["minDevice"]; ok && need > least {
			s.bad("policy/gpu-memory", join(at, "minDevice"), "perDevice %s does not fit on a device of minDevice %s; make minDevice at least as large", g.PerDevice, g.MinDevice)
		}
	}
	for i, name := range g.Containers {
		if slices.Index(g.Containers, name) < i {
			s.bad("policy/bad-name", join(at, "containers", nth(i)), "%q is listed twice", name)
		}
	}
	if g.PerDevice != "" {
		return
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"devices", g.Devices != 0}, {"prefer", g.Prefer != ""}, {"containers", g.Containers != nil}} {
		if f.set {
			s.bad("policy/gpu-memory", join(at, f.name), "%s is about what the pod needs on each device, which perDevice says; add perDevice, or leave %s out", f.name, f.name)
		}
	}
}

// gang checks the gang intent.
func (s subject) gang(p *policy.Policy) {
	g, at := p.Gang, []string{"gang"}
	if g == nil {
		return
	}
	if g.Within != "" {
		s.topology(join(at, "within"), p, g.Within)
	}
	if g.Timeout == "" {
		return
	}
	t, err := time.ParseDuration(g.Timeout)
	if err != nil {
		s.bad("policy/gang", join(at, "timeout"), "%q is no duration; write one such as \"5m\"", g.Timeout)
		return
	}
	if t < args.MinGangTimeout || t > args.MaxGangTimeout {
		s.bad("policy/gang", join(at, "timeout"), "%s is out of bounds; write %s to %s", g.Timeout, short(args.MinGangTimeout), short(args.MaxGangTimeout))
	}
}

// short writes a duration without units that are nought.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}
