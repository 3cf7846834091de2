package capability

import (
	"slices"
	"strings"
)

// How the bundled scheduler is known in a cluster: by the label of its Deployment,
// which says in an annotation which profiles the configuration in force has, their
// names joined by commas.
const (
	SchedulerLabel     = "app.kubernetes.io/name"
	BundledScheduler   = "placement-scheduler"
	ProfilesAnnotation = "kubectl-sched.github.io/profiles"
)

// Scheduler is a scheduler that runs in the cluster.
type Scheduler struct {
	Name string `json:"name"`
	// Bundled says that it is the one of this project.
	Bundled bool `json:"bundled,omitempty"`
	// ProfilesKnown says that Profiles are all that it serves.
	ProfilesKnown bool `json:"profilesKnown,omitempty"`
	// Profiles are the values of schedulerName that it serves, sorted.
	Profiles []string `json:"profiles,omitempty"`
}

// ProfilesIn returns the profiles that the annotation of a bundled scheduler's
// Deployment says that it serves, sorted.
func ProfilesIn(annotations map[string]string) []string {
	var profiles []string
	for name := range strings.SplitSeq(annotations[ProfilesAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			profiles = append(profiles, name)
		}
	}
	slices.Sort(profiles)
	return profiles
}

// Serves reports whether the scheduler is known to serve pods that name the
// profile.
func (s Scheduler) Serves(profile string) bool { return slices.Contains(s.Profiles, profile) }
