package emit

import (
	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
)

// ConfigurationFile is the name of the file for the scheduler's configuration. It
// is no object of a cluster, so that it is never written among manifests: whoever
// applies the folder would fail at it.
const ConfigurationFile = "scheduler-config.yaml"

// Profiles returns the file with the configuration of the bundled scheduler that
// serves the plan's profiles; none if the plan needs none.
func Profiles(plan *compiler.Plan) ([]File, error) {
	if len(plan.Profiles) == 0 {
		return nil, nil
	}
	profiles := make([]profile.Profile, len(plan.Profiles))
	for i, u := range plan.Profiles {
		profiles[i] = u.Profile
	}
	text, err := profile.Configuration(profiles)
	if err != nil {
		return nil, err
	}
	return []File{{Name: ConfigurationFile, After: text}}, nil
}
