package apply

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// large returns a revision that does not compress into one part.
func large() *Revision {
	random := rand.New(rand.NewPCG(1, 2))
	r := &Revision{Format: revisionFormat, Number: 3, Cause: "apply", Tool: "test", Scope: Scope{Folders: []string{"placement"}}}
	for i := range 40_000 {
		r.Items = append(r.Items, Item{
			Version: "v1", Kind: "Pod", Namespace: "n", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprintf("%x-%x", random.Uint64(), random.Uint64())),
			Record: &ownership.Record{Fields: []ownership.Field{{Path: "/spec/x", Wrote: fmt.Sprintf("%x", random.Uint64())}}},
		})
	}
	return r
}

func TestRevisionInParts(t *testing.T) {
	t.Parallel()
	r := large()
	parts, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) < 2 {
		t.Fatalf("%d parts; the test wants more", len(parts))
	}
	for i, part := range parts {
		if len(part) > chunkSize {
			t.Errorf("part %d has %d bytes", i, len(part))
		}
	}
	back, err := decodeRevision(parts)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, back, cmpopts.IgnoreUnexported(Revision{})); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if _, err := decodeRevision(parts[:1]); err == nil {
		t.Error("a revision of which a part is missing was read")
	}
	r = &Revision{Format: 2, Tool: "v9"}
	parts, err = r.encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeRevision(parts); err == nil || !strings.Contains(err.Error(), "v9") {
		t.Errorf("another format: %v", err)
	}
}

func FuzzDecodeRevision(f *testing.F) {
	parts, err := (&Revision{Format: revisionFormat, Number: 1}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(parts[0])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := decodeRevision([][]byte{data}); err == nil && r.Format != revisionFormat {
			t.Errorf("it was read with format %d", r.Format)
		}
	})
}

// TestLargeRevisionInTheCluster stores a revision of several parts, reads it
// back, and lets go of the oldest.
func TestLargeRevisionInTheCluster(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.set.Namespace = l.namespace
	a := l.applier(nil)
	s := a.store(l.set)
	parent, err := s.saveParent(t.Context(), nil, l.scope, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := large()
	for number := 1; number <= 4; number++ {
		r.Number = number
		if err := s.open(t.Context(), parent, r); err != nil {
			t.Fatal(err)
		}
		if err := s.open(t.Context(), parent, r); err == nil || !strings.Contains(err.Error(), "another run") {
			t.Errorf("the same number opened twice: %v", err)
		}
		if number != 3 {
			if err := s.finish(t.Context(), r, Complete, a.now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := l.state()
	if len(state.Revisions) != 4 || len(state.Latest().Items) != len(r.Items) || state.Revision(3).State != Open {
		t.Fatalf("read %d revisions", len(state.Revisions))
	}
	if err := s.forget(t.Context(), state, 2); err != nil {
		t.Fatal(err)
	}
	state = l.state()
	if len(state.Revisions) != 2 || state.Revisions[0].Number != 3 {
		t.Errorf("%d revisions are left, the first %d", len(state.Revisions), state.Revisions[0].Number)
	}
	list, err := l.client.Kube.CoreV1().ConfigMaps(l.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: revisionLabel})
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * r.parts; len(list.Items) != want {
		t.Errorf("%d ConfigMaps are left, want %d", len(list.Items), want)
	}
}
