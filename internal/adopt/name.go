package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxName is how long the name of a policy may be; room is left for a number.
const maxName = 58

// word makes a DNS label of a text.
func word(text string) string {
	var b strings.Builder
	lower := false
	for _, r := range text {
		capital := r >= 'A' && r <= 'Z'
		if capital && lower {
			b.WriteByte('-')
		}
		lower = r >= 'a' && r <= 'z'
		if capital {
			r += 'a' - 'A'
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	out := b.String()
	out = strings.Trim(out[:min(len(out), maxName)], "-")
	return cmp.Or(out, "x")
}

// nameAll names the policies by whom they are for and what they say. A name that
// several would have gets a number, in the order of their first members.
func nameAll(all []*draft) {
	slices.SortStableFunc(all, func(a, b *draft) int { return cmp.Compare(a.members[0].id, b.members[0].id) })
	used := map[string]bool{}
	for _, d := range all {
		base := word(d.whom() + d.what())
		name := base
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		used[name] = true
		d.policy.Name = name
	}
}

// whom is the single object that the policy is for, or the single value or
// namespace that selects several; empty for none of these.
func (d *draft) whom() string {
	w := d.policy.Workloads
	first := d.members[0].w
	one := !slices.ContainsFunc(d.members, func(t *template) bool { return t.w != first })
	switch {
	case one && first.Name != "":
		return first.Name + "-"
	case w.Pods != nil && len(w.Pods.Labels) == 1 && len(w.Pods.Labels[sortedKeys(w.Pods.Labels)[0]]) == 1:
		return w.Pods.Labels[sortedKeys(w.Pods.Labels)[0]][0] + "-"
	case len(w.Labels) == 1 && len(w.Labels[sortedKeys(w.Labels)[0]]) == 1:
		return w.Labels[sortedKeys(w.Labels)[0]][0] + "-"
	case len(w.Namespaces) == 1:
		return w.Namespaces[0] + "-"
	}
	return ""
}

// what is what the policy says, in one or two words; of more it is "placement".
func (d *draft) what() string {
	var slugs []string
	for _, p := range d.phrases {
		if !slices.Contains(slugs, p.slug) {
			slugs = append(slugs, p.slug)
		}
	}
	if len(slugs) > 2 {
		return "placement"
	}
	return strings.Join(slugs, "-")
}
