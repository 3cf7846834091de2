package gangkey_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

var created = time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)

func TestOf(t *testing.T) {
	t.Parallel()
	owner := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: "owner", Controller: ptr.To(true)}}
	}
	const due = "29539440" // 2026-03-01 12:00 in minutes since 1970
	tests := []struct {
		name        string
		labels      map[string]string
		annotations map[string]string
		owners      []metav1.OwnerReference
		want        string // the key; empty for no gang
	}{
		{"no label", map[string]string{"app": "web"}, nil, nil, ""},
		{"an empty label", map[string]string{gangkey.Label: ""}, nil, nil, ""},
		{"label", map[string]string{gangkey.Label: "train"}, nil, nil, "x-k8s.io:train"},
		{"older label", map[string]string{gangkey.LabelOlder: "train"}, nil, nil, "sigs.k8s.io:train"},
		{"oldest label", map[string]string{gangkey.LabelOldest: "train"}, nil, nil, "label:train"},
		{"the newest wins", map[string]string{gangkey.LabelOldest: "a", gangkey.Label: "b", gangkey.LabelOlder: "c"}, nil, nil, "x-k8s.io:b"},
		{"one Job of a JobSet", map[string]string{gangkey.Label: "train"}, nil, owner("Job", "set-workers-0"), "x-k8s.io:train"},
		{"a run of a CronJob", map[string]string{gangkey.Label: "train"}, nil, owner("Job", "nightly-"+due), "x-k8s.io:train:owner"},
		{"a Job with another number", map[string]string{gangkey.Label: "train"}, nil, owner("Job", "batch-20260301"), "x-k8s.io:train"},
		{"no Job, though named like a run", map[string]string{gangkey.Label: "train"}, nil, owner("PyTorchJob", "nightly-"+due), "x-k8s.io:train"},
		{"marked", map[string]string{gangkey.Label: "train"}, map[string]string{gangkey.PerAnnotation: gangkey.PerController}, owner("PyTorchJob", "x"), "x-k8s.io:train:owner"},
		{"marked without a controller", map[string]string{gangkey.Label: "train"}, map[string]string{gangkey.PerAnnotation: gangkey.PerController}, nil, "x-k8s.io:train"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Labels: test.labels, Annotations: test.annotations, OwnerReferences: test.owners,
				CreationTimestamp: metav1.NewTime(created),
			}}
			gang, ok := gangkey.Of(pod)
			got := ""
			if ok {
				got = gang.Key()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestMinAvailable(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int32{"3": 3, "0": 0, "-1": 0, "many": 0, "": 0, "99999999999": 0} {
		pod := &metav1.ObjectMeta{Labels: map[string]string{gangkey.LabelMinAvailable: value}}
		if got := gangkey.MinAvailable(pod); got != want {
			t.Errorf("%q: got %d, want %d", value, got, want)
		}
	}
}

// TestKeys holds that two gangs never have one key, that no PodGroup object of the
// API can be called like one, and that the scheduler can split its own keys.
func TestKeys(t *testing.T) {
	t.Parallel()
	gang := rapid.Custom(func(t *rapid.T) gangkey.Gang {
		label := rapid.SampledFrom(gangkey.Labels()).Draw(t, "label")
		name := rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9._-]{0,5}[A-Za-z0-9])?`).Draw(t, "name")
		pod := &metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{label: name}}
		if rapid.Bool().Draw(t, "run") {
			uid := types.UID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "uid"))
			pod.Annotations = map[string]string{gangkey.PerAnnotation: gangkey.PerController}
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", UID: uid, Controller: ptr.To(true)}}
		}
		g, _ := gangkey.Of(pod)
		return g
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gang.Draw(t, "a"), gang.Draw(t, "b")
		if (a == b) != (a.Key() == b.Key()) {
			t.Fatalf("%v has key %q, %v has %q", a, a.Key(), b, b.Key())
		}
		if !strings.Contains(a.Key(), ":") || strings.Contains(a.Key(), "/") {
			t.Fatalf("key %q", a.Key())
		}
	})
}
