package podgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func running(p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = corev1.PodRunning
	return bound(p)
}

func TestStatusOf(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	tests := []struct {
		name              string
		members           []*corev1.Pod
		succeeded, failed []*corev1.Pod
		want              groupStatus
	}{
		{"none has a node", []*corev1.Pod{by("run", pod("a", "g")), pod("b", "g")}, nil, nil, groupStatus{phase: phasePending, occupiedBy: "ns/job"}},
		{"a part has nodes", []*corev1.Pod{bound(pod("a", "g")), pod("b", "g")}, nil, nil, groupStatus{phase: phaseUnknown, scheduled: 1, started: start}},
		{"all have nodes", []*corev1.Pod{running(pod("a", "g")), bound(pod("b", "g"))}, nil, nil, groupStatus{phase: phaseScheduling, scheduled: 2, running: 1, started: start}},
		{"all run", []*corev1.Pod{running(pod("a", "g")), running(pod("b", "g"))}, nil, nil, groupStatus{phase: phaseRunning, scheduled: 2, running: 2, started: start}},
		{"one is done", []*corev1.Pod{running(pod("a", "g"))}, []*corev1.Pod{pod("b", "g")}, nil, groupStatus{phase: phaseRunning, scheduled: 2, running: 1, succeeded: 1, started: start}},
		{"both are done", nil, []*corev1.Pod{pod("a", "g"), pod("b", "g")}, nil, groupStatus{phase: phaseFinished, scheduled: 2, succeeded: 2, started: start}},
		{"one failed", []*corev1.Pod{running(pod("a", "g"))}, nil, []*corev1.Pod{pod("b", "g")}, groupStatus{phase: phaseFailed, scheduled: 1, running: 1, failed: 1, started: start}},
		{"one failed and was made anew", []*corev1.Pod{running(pod("a", "g")), running(pod("c", "g"))}, nil, []*corev1.Pod{pod("b", "g")}, groupStatus{phase: phaseRunning, scheduled: 2, running: 2, failed: 1, started: start}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.spec("g", "object", 2)
			for _, p := range append(append(test.members, test.succeeded...), test.failed...) {
				// A pod is a member first.
				f.setPod(bound(p.DeepCopy()))
				f.setPod(p)
			}
			for _, p := range test.succeeded {
				f.setFinished(p, false)
				f.removePod(p)
			}
			for _, p := range test.failed {
				f.setFinished(p, true)
				f.removePod(p)
			}
			all := f.statuses()
			if len(all) != 1 {
				t.Fatalf("%d statuses", len(all))
			}
			if diff := cmp.Diff(test.want, all[0].says, cmp.AllowUnexported(groupStatus{})); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatusWithoutPods holds that the end of a gang stays said when its pods are
// cleared away, and that nothing else does.
func TestStatusWithoutPods(t *testing.T) {
	t.Parallel()
	for was, want := range map[phase]phase{phaseFinished: phaseFinished, phaseFailed: phaseFailed, phaseRunning: phasePending, "": phasePending} {
		got := statusOf(nil, &spec{minMember: 2, status: objectStatus{says: groupStatus{phase: was}}})
		if got.phase != want {
			t.Errorf("phase %q became %q, want %q", was, got.phase, want)
		}
	}
}

// TestParseStatus holds that what we write is read back as the same, and that the
// owners of fields of the status are found, and no others.
func TestParseStatus(t *testing.T) {
	t.Parallel()
	says := groupStatus{phase: phaseRunning, occupiedBy: "ns/job", scheduled: 3, running: 2, succeeded: 1, failed: 4, started: 1767225600}
	u := &unstructured.Unstructured{Object: map[string]any{"status": says.object(true)}}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "user", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:minMember":{}},"f:status":{}}`)},
		{Manager: "controller", FieldsV1: metav1.NewFieldsV1(`{"f:status":{".":{},"f:phase":{}}}`), Subresource: "status"},
	})
	want := objectStatus{says: says, managers: map[string]bool{"controller": true}}
	if diff := cmp.Diff(want, parseStatus(u), cmp.AllowUnexported(objectStatus{}, groupStatus{})); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestStatusIsDue holds when a status is written: once, after it has stood for a
// while, and never over somebody else's.
func TestStatusIsDue(t *testing.T) {
	t.Parallel()
	engine := New(Options{Reporter: "us"})
	w := newStatusWriter(engine)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	says := func(running int32) groupStatus { return groupStatus{phase: phaseRunning, running: running} }
	by := func(managers ...string) objectStatus {
		s := objectStatus{managers: map[string]bool{}}
		for _, m := range managers {
			s.managers[m] = true
		}
		return s
	}
	type look struct {
		wanted wantedStatus
		after  time.Duration
		want   bool
	}
	ours := func(running int32, current objectStatus) wantedStatus {
		return wantedStatus{uid: types.UID("x"), says: says(running), members: true, current: current}
	}
	done := by("us")
	done.says = says(1)
	for name, looks := range map[string][]look{
		"new and stable":                {{ours(1, by()), 0, false}, {ours(1, by()), time.Second, true}},
		"changing":                      {{ours(1, by()), 0, false}, {ours(2, by()), time.Second, false}, {ours(2, by()), 2 * time.Second, true}},
		"changing for ever":             {{ours(1, by()), 0, false}, {ours(2, by()), 5 * time.Second, false}, {ours(3, by()), 10 * time.Second, true}},
		"said already":                  {{ours(1, done), 0, false}, {ours(1, done), time.Minute, false}},
		"another's":                     {{ours(1, by("them")), 0, false}, {ours(1, by("them")), time.Minute, false}},
		"another's beside ours":         {{ours(1, by("them", "us")), 0, true}},
		"no members and nothing by us":  {{wantedStatus{says: says(0), current: by()}, 0, false}, {wantedStatus{says: says(0), current: by()}, time.Minute, false}},
		"no members and a status by us": {{wantedStatus{says: says(0), current: done}, 0, false}, {wantedStatus{says: says(0), current: done}, time.Second, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noted := &notedStatus{}
			for i, look := range looks {
				if got := w.due(noted, look.wanted, start.Add(look.after)); got != look.want {
					t.Errorf("look %d: due %v, want %v", i+1, got, look.want)
				}
			}
		})
	}
}
