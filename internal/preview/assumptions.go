package preview

import "fmt"

// AllAssumptions are all that a result rests on, in words: those of the simulation, and
// what is not known of the schedulers and the cluster.
func (r *Result) AllAssumptions() []string {
	lines := append([]string{}, r.Assumptions...)
	if r.Request.AsConfigured {
		lines = append(lines, "nodes are sampled as the schedulers are configured to: this is one outcome of many, a statistic, and says neither which node is best nor where others would do as well")
	}
	for _, url := range r.Extenders {
		if r.Request.CallExtenders {
			lines = append(lines, fmt.Sprintf("extender %s was asked, and would say the same again", url))
		} else {
			lines = append(lines, fmt.Sprintf("extender %s is not asked: what it would say is not known (--call-extenders asks it)", url))
		}
	}
	for _, name := range r.Unknown {
		lines = append(lines, fmt.Sprintf("the configuration of scheduler %s is not known: it is taken to be upstream's default", name))
	}
	for _, name := range r.OneByOne {
		lines = append(lines, fmt.Sprintf("profile %s places gangs member by member (mode permit): here they are placed as pod groups, whole or not at all, which can make room by preemption and wait for no turn", name))
	}
	for _, m := range r.Request.Snapshot.Missing {
		lines = append(lines, fmt.Sprintf("%s could not be read and are taken to be none", m.Resource))
	}
	return lines
}
