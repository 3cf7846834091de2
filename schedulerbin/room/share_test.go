package room_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/room"
)

func TestSeats(t *testing.T) {
	t.Parallel()
	type list = map[corev1.ResourceName]string
	for _, test := range []struct {
		name        string
		member, pod list
		want        float64
	}{
		{"alike", list{"cpu": "2"}, list{"cpu": "2"}, 1},
		{"larger", list{"cpu": "500m"}, list{"cpu": "2"}, 4},
		{"smaller in one", list{"cpu": "2", "memory": "4Gi"}, list{"cpu": "2", "memory": "1Gi"}, 0.25},
		{"without a device", list{"cpu": "1", "nvidia.com/gpu": "1"}, list{"cpu": "64"}, 0},
		{"a member that asks for nothing", list{}, list{}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := room.Seats(st.MakePod().Req(test.member).Obj())(st.MakePod().Req(test.pod).Obj()); got != test.want {
				t.Errorf("%v seats; want %v", got, test.want)
			}
		})
	}
}
