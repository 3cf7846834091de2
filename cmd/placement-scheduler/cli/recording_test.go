package cli

import (
	"testing"

	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/ptr"
)

// TestScoreEveryNode holds that a recorded scheduler scores every node, and that
// nobody who wants something else is overruled.
func TestScoreEveryNode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		global, profile *int32
		problem         string
	}{
		"unsaid":             {nil, nil, ""},
		"the default":        {ptr.To[int32](0), nil, ""},
		"the same":           {ptr.To[int32](100), ptr.To[int32](100), ""},
		"less":               {ptr.To[int32](50), nil, "percentageOfNodesToScore is 50"},
		"less for a profile": {nil, ptr.To[int32](30), `profile "x": percentageOfNodesToScore is 30`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &config.KubeSchedulerConfiguration{
				PercentageOfNodesToScore: test.global,
				Profiles:                 []config.KubeSchedulerProfile{{SchedulerName: "x", PercentageOfNodesToScore: test.profile}},
			}
			err := scoreEveryNode(c)
			check(t, err, test.problem)
			if err == nil && (*c.PercentageOfNodesToScore != 100 || c.Profiles[0].PercentageOfNodesToScore != nil) {
				t.Errorf("got %d and %v, want 100 for all", *c.PercentageOfNodesToScore, c.Profiles[0].PercentageOfNodesToScore)
			}
		})
	}
}
