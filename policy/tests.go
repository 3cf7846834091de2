package policy

import (
	"encoding/json"
	"fmt"
)

// Test is a unit test of policies, as #Test of the schema describes it. Defaults are
// not written in: they are those of whoever runs it.
type Test struct {
	Name string `json:"name"`
	// Folder is the folder that declares it, as the user named it.
	Folder  string `json:"folder"`
	Cluster string `json:"cluster,omitempty"`
	Version string `json:"version,omitempty"`
	// Now is a date, or empty.
	Now       string                  `json:"now,omitempty"`
	Snapshot  string                  `json:"snapshot,omitempty"`
	Objects   string                  `json:"objects,omitempty"`
	Nodes     map[string]TestNodes    `json:"nodes,omitempty"`
	Running   map[string]TestRunning  `json:"running,omitempty"`
	Workloads map[string]TestWorkload `json:"workloads,omitempty"`
	Manifests []string                `json:"manifests,omitempty"`
	After     []TestStep              `json:"after,omitempty"`
	Expect    TestExpect              `json:"expect"`
	Positions Positions               `json:"positions,omitempty"`
}

// TestNodes is a group of nodes that are alike.
type TestNodes struct {
	// Count is nil where the document does not say.
	Count     *int                 `json:"count,omitempty"`
	Zones     []string             `json:"zones,omitempty"`
	Region    string               `json:"region,omitempty"`
	Labels    map[string]string    `json:"labels,omitempty"`
	Taints    map[string]TestTaint `json:"taints,omitempty"`
	Resources map[string]string    `json:"resources,omitempty"`
	Grows     bool                 `json:"grows,omitempty"`
}

// TestTaint is a taint of a test's nodes; an empty Effect is "NoSchedule".
type TestTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect,omitempty"`
}

// TestRunning are pods that nobody controls, one on each node of On.
type TestRunning struct {
	On        []string          `json:"on"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Requests  map[string]string `json:"requests,omitempty"`
}

// TestWorkload is a workload in a few lines.
type TestWorkload struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Replicas is nil where the document does not say.
	Replicas *int              `json:"replicas,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
	// Pod is a fragment of a pod spec.
	Pod map[string]any `json:"pod,omitempty"`
}

// TestStep is one thing that happens to a test's cluster: one of its fields is set.
type TestStep struct {
	Drain    []string          `json:"drain,omitempty"`
	Lose     map[string]string `json:"lose,omitempty"`
	Scale    map[string]int    `json:"scale,omitempty"`
	Rollout  []string          `json:"rollout,omitempty"`
	AddNodes map[string]int    `json:"addNodes,omitempty"`
	Replay   bool              `json:"replay,omitempty"`
}

// TestExpect is what must have come of a test.
type TestExpect struct {
	Workloads  map[string]TestOutcome `json:"workloads,omitempty"`
	Findings   []TestFinding          `json:"findings,omitempty"`
	NoFindings bool                   `json:"noFindings,omitempty"`
}

// TestFinding describes a finding; an empty field says nothing.
type TestFinding struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity,omitempty"`
	Subject  string `json:"subject,omitempty"`
	Text     string `json:"text,omitempty"`
}

// TestOutcome is what must have become of a workload; what is nil or empty says
// nothing.
type TestOutcome struct {
	Placed     *TestCount                `json:"placed,omitempty"`
	Zones      []string                  `json:"zones,omitempty"`
	Pools      []string                  `json:"pools,omitempty"`
	Nodes      []string                  `json:"nodes,omitempty"`
	NodeLabels map[string]Values         `json:"nodeLabels,omitempty"`
	PerDomain  map[string]map[string]int `json:"perDomain,omitempty"`
	MaxSkew    map[string]int            `json:"maxSkew,omitempty"`
	Apart      map[string]string         `json:"apart,omitempty"`
	Together   map[string]string         `json:"together,omitempty"`
	Pending    *TestPending              `json:"pending,omitempty"`
	NeedsNodes *TestNeeds                `json:"needsNodes,omitempty"`
	// Gang is "whole", "waits" or empty.
	Gang     string        `json:"gang,omitempty"`
	Compiled *TestCompiled `json:"compiled,omitempty"`
}

// TestPending are pods that are on no node.
type TestPending struct {
	// Count is nil for at least one.
	Count  *TestCount `json:"count,omitempty"`
	Plugin string     `json:"plugin,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Policy string     `json:"policy,omitempty"`
}

// TestNeeds are new nodes of a pool; zero stands for at least one.
type TestNeeds struct {
	Pool  string `json:"pool"`
	Nodes int    `json:"nodes,omitempty"`
	Pods  int    `json:"pods,omitempty"`
}

// TestCompiled is what policies made of a workload.
type TestCompiled struct {
	Level string `json:"level,omitempty"`
	// Policies is nil where the document does not say.
	Policies *[]string         `json:"policies,omitempty"`
	Fields   map[string]string `json:"fields,omitempty"`
}

// TestCount is a number of pods, or all of them.
type TestCount struct {
	All bool
	N   int
}

// Of returns the number, of so many pods in all.
func (c TestCount) Of(all int) int {
	if c.All {
		return all
	}
	return c.N
}

// UnmarshalJSON accepts "all", "none" and a number.
func (c *TestCount) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"all"`:
		*c = TestCount{All: true}
		return nil
	case `"none"`:
		*c = TestCount{}
		return nil
	}
	if err := json.Unmarshal(data, &c.N); err != nil {
		return fmt.Errorf("a count is \"all\", \"none\" or a number: %w", err)
	}
	return nil
}

// MarshalJSON is the inverse of UnmarshalJSON.
func (c TestCount) MarshalJSON() ([]byte, error) {
	if c.All {
		return []byte(`"all"`), nil
	}
	return json.Marshal(c.N)
}

// Checks reports whether the outcome says anything.
func (o *TestOutcome) Checks() bool {
	return o.Compiled.checks() || o.Placed != nil || len(o.Zones)+len(o.Pools)+len(o.Nodes)+len(o.NodeLabels)+len(o.PerDomain)+
		len(o.MaxSkew)+len(o.Apart)+len(o.Together) > 0 || o.Pending != nil || o.NeedsNodes != nil || o.Gang != ""
}

// checks reports whether anything is said of what is compiled.
func (c *TestCompiled) checks() bool {
	return c != nil && (c.Level != "" || c.Policies != nil || len(c.Fields) > 0)
}

// Fields is how many things the step says; a step that makes sense says one.
func (s TestStep) Fields() int {
	n := 0
	for _, has := range []bool{len(s.Drain) > 0, len(s.Lose) > 0, len(s.Scale) > 0, len(s.Rollout) > 0, len(s.AddNodes) > 0, s.Replay} {
		if has {
			n++
		}
	}
	return n
}
