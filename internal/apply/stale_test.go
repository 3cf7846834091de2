package apply

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// busy writes the object right before each of the first n patches of it that come
// through, as a controller does that is rolling it out.
type busy struct {
	lab    *lab
	object *unstructured.Unstructured
	n      int32
	writes atomic.Int32
}

func (b *busy) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		if b.object != nil && req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/deployments/"+b.object.GetName()) {
			if n := b.writes.Add(1); n <= b.n {
				b.lab.patch(b.object, types.MergePatchType, fmt.Sprintf(`{"metadata":{"annotations":{"busy":"%d"}}}`, n), "controller")
			}
		}
		return next.RoundTrip(req)
	})
}

// fewWaits are 30 tries: the object's real controller takes some of them, too.
var fewWaits = wait.Backoff{Duration: 5 * time.Millisecond, Factor: 1, Steps: 30}

func TestWriteThatComesSecondIsRepeated(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int32{"a-while": 12, "for-ever": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			b := &busy{lab: l, n: n}
			a := l.applier(b.wrap)
			a.retries = &fewWaits
			u := l.create(deployment("web"))
			l.apply(a, matching(all(tolerate("gpu"), require("class", "gpu")), "web"))
			changes, findings := l.prepare(a)
			if findings.HasErrors() {
				t.Fatal(findings)
			}
			b.object = u
			_, findings, err := a.Run(t.Context(), changes, RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if n < int32(fewWaits.Steps) {
				if keys := tolerationKeys(l.get(u)); findings.HasErrors() || keys != "" {
					t.Errorf("findings %v, and the tolerations are %q", findings, keys)
				}
				return
			}
			want := `Deployment ` + l.namespace + `/web: somebody else changed it each time before our write came, 30 times; see in its managedFields who does, and run the command again when that has ended`
			if len(findings) != 1 || findings[0].Rule != "apply/refused" || findings[0].String() != want {
				t.Errorf("findings are %v,\nwant %s", findings, want)
			}
			if keys := tolerationKeys(l.get(u)); keys != "gpu" {
				t.Errorf("the tolerations are %q", keys)
			}
		})
	}
}

func TestWaitsBetweenTriesGrow(t *testing.T) {
	t.Parallel()
	waits := (&Applier{}).betweenAttempts()
	var all []time.Duration
	var sum time.Duration
	for range waits.Steps - 1 {
		all = append(all, waits.Step())
		sum += all[len(all)-1]
	}
	if all[0] > 20*time.Millisecond || sum < 20*time.Second || sum > 45*time.Second {
		t.Errorf("the waits are %v, together %v", all, sum)
	}
}
