package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// merged is the Placement of all folders, together with the names of the
// objects that could not be decoded: others may refer to them all the same.
type merged struct {
	*policy.Placement
	broken map[section][]string
	// overrides are those of the policies that could not be decoded, and
	// overridesUnknown that there are some whose overrides cannot be told.
	overrides        map[string][]string
	overridesUnknown bool
}

// ownedObject is an object as the folder that owns it has it.
type ownedObject struct {
	*object
	folder *folder
}

// merge puts the folders' objects together. An object belongs to the topmost
// folder whose files declare it; the folders below may use it and not change it.
func merge(results []*result) (*merged, diag.Findings) {
	m := &merged{Placement: &policy.Placement{}, broken: map[section][]string{}, overrides: map[string][]string{}}
	byFolder := map[*folder]*result{}
	for _, r := range results {
		byFolder[r.folder] = r
		m.Folders = append(m.Folders, r.folder.display)
	}
	slices.Sort(m.Folders)

	var findings diag.Findings
	owned := map[section]map[string][]ownedObject{}
	for _, r := range results {
		findings = append(findings, r.findings...)
		for _, o := range r.objects {
			owner := o.declaredIn[0]
			if owner != r.folder {
				if f, ok := foreign(r, o, owner, byFolder); ok {
					findings = append(findings, f)
				}
				continue
			}
			findings = append(findings, o.findings...)
			if owned[o.section] == nil {
				owned[o.section] = map[string][]ownedObject{}
			}
			owned[o.section][o.name] = append(owned[o.section][o.name], ownedObject{o, owner})
		}
	}
	for _, s := range sections {
		for _, name := range slices.Sorted(maps.Keys(owned[s])) {
			objects := owned[s][name]
			for _, twice := range objects[1:] {
				f := diag.Finding{
					Rule: "policy/defined-twice", Severity: diag.Error, Range: twice.positions[""],
					Message: fmt.Sprintf("%s %q is defined in two folders, %q and %q; rename one, or define it once",
						s.singular(), name, objects[0].folder.display, twice.folder.display),
					Related: []diag.Related{{Range: objects[0].positions[""], Message: "the other definition"}},
				}
				f.Policy, f.Subject = twice.labels()
				findings = append(findings, f)
			}
			findings = append(findings, m.add(objects[0])...)
		}
	}
	return m, findings
}

// foreign reports whether a folder adds to or changes an object that a folder
// above it owns, and the finding if so.
func foreign(r *result, o *object, owner *folder, byFolder map[*folder]*result) (diag.Finding, bool) {
	var theirs *object
	if above := byFolder[r.folder.above[len(r.folder.above)-1]]; above != nil && !above.failed {
		theirs = above.object(o.section, o.name)
	}
	f := diag.Finding{
		Rule: "policy/foreign-folder", Severity: diag.Error,
		Message: fmt.Sprintf("%s %q belongs to the folder %q, and another folder can only use it; move the change there, or ask for a parameter in params",
			o.section.singular(), o.name, owner.display),
	}
	f.Policy, f.Subject = o.labels()
	if at, ok := o.declaredAt[owner]; ok {
		f.Related = []diag.Related{{Range: at, Message: fmt.Sprintf("the %s is defined here", o.section.singular())}}
	}
	if at, ok := o.declaredAt[r.folder]; ok {
		f.Range = at
		return f, true
	}
	if theirs == nil || sameJSON(theirs.json, o.json) {
		return f, false
	}
	f.Range = o.suspect
	return f, true
}

// sameJSON reports whether two documents say the same, whatever the order of
// their fields. Nil stands for one that could not be evaluated.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// add decodes one object into the Placement and writes its defaults in.
func (m *merged) add(o ownedObject) diag.Findings {
	if o.json == nil {
		m.broken[o.section] = append(m.broken[o.section], o.name)
		m.overrides[o.name] = append(m.overrides[o.name], o.overrides...)
		m.overridesUnknown = m.overridesUnknown || o.overridesUnknown
		return nil
	}
	var err error
	switch o.section {
	case clustersSection:
		var c policy.Cluster
		err = o.decode(&c)
		c.Name, c.Positions = o.name, o.positions
		c.Surface = cmp.Or(c.Surface, policy.SurfaceRender)
		m.Clusters = append(m.Clusters, c)
	case poolsSection:
		var p policy.Pool
		err = o.decode(&p)
		p.Name, p.Positions = o.name, o.positions
		p.ManagedBy = cmp.Or(p.ManagedBy, policy.ManagedNodeGroup)
		if p.Dedicated != nil {
			p.Dedicated.Taint = poolTaint(p.Name, p.Dedicated.Taint)
			p.Dedicated.Guard = cmp.Or(p.Dedicated.Guard, policy.GuardOff)
		}
		m.Pools = append(m.Pools, p)
	case kindsSection:
		var k policy.Kind
		err = o.decode(&k)
		k.Name, k.Positions = o.name, o.positions
		m.Kinds = append(m.Kinds, k)
	case policiesSection:
		var p policy.Policy
		err = o.decode(&p)
		p.Name, p.Folder, p.Positions = o.name, filepath.ToSlash(o.folder.display), o.positions
		writeDefaults(&p)
		m.Policies = append(m.Policies, p)
	case testsSection:
		var t policy.Test
		err = o.decode(&t)
		t.Name, t.Folder, t.Positions = o.name, filepath.ToSlash(o.folder.display), o.positions
		m.Tests = append(m.Tests, t)
	}
	if err != nil {
		f := diag.Finding{Rule: "policy/decode", Severity: diag.Error, Range: o.positions[""], Message: err.Error()}
		f.Policy, f.Subject = o.labels()
		return diag.Findings{f}
	}
	return nil
}

// defaultTaintKey is the taint of a dedicated pool that names none; its value
// is the pool's name.
const defaultTaintKey = "kubectl-sched.github.io/pool"

func poolTaint(pool string, t *policy.Taint) *policy.Taint {
	if t == nil {
		return &policy.Taint{Key: defaultTaintKey, Value: &pool, Effect: "NoSchedule"}
	}
	t.Effect = cmp.Or(t.Effect, "NoSchedule")
	return t
}

// The defaults of a policy's fields, as the schema's comments state them.
const (
	defaultWeight  = 50
	mustWinWeight  = 100
	defaultMaxSkew = 1
	defaultOn      = "node"
)

func writeDefaults(p *policy.Policy) {
	p.Level = cmp.Or(p.Level, policy.Mandatory)
	if p.Nodes != nil {
		for _, pref := range []*policy.Preference{p.Nodes.Prefer, p.Nodes.Disfavor} {
			if pref != nil {
				pref.Weight = cmp.Or(pref.Weight, weightOf(pref.MustWin))
			}
		}
	}
	for key, s := range p.Spread {
		s.MaxSkew = cmp.Or(s.MaxSkew, defaultMaxSkew)
		s.Of.Kind = cmp.Or(s.Of.Kind, policy.EachWorkload)
		p.Spread[key] = s
	}
	for _, colocations := range []map[string]policy.Colocation{p.Together, p.Apart} {
		for name, c := range colocations {
			c.On = cmp.Or(c.On, defaultOn)
			c.Weight = cmp.Or(c.Weight, weightOf(c.MustWin))
			c.Of.Kind = cmp.Or(c.Of.Kind, policy.EachWorkload)
			colocations[name] = c
		}
	}
}

// weightOf is what a preference counts where the document does not say.
func weightOf(mustWin bool) int {
	if mustWin {
		return mustWinWeight
	}
	return defaultWeight
}
