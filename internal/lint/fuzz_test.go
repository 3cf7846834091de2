package lint_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// FuzzCheck holds that no manifest of a stranger's breaks a rule, and that every
// finding has a rule of the table, a word and a place.
func FuzzCheck(f *testing.F) {
	files, err := filepath.Glob(fixtures + "/*/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			if filepath.Ext(part.Name) == ".yaml" && !strings.HasSuffix(part.Name, "snapshot.yaml") {
				f.Add(part.Data)
			}
		}
	}
	nodes := []capability.Node{
		{Name: "a", Labels: map[string]string{"kubernetes.io/hostname": "a", "topology.kubernetes.io/zone": "z"}},
		{Name: "b", Labels: map[string]string{"kubernetes.io/hostname": "b.example"}},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, findings := workload.Read(t.Context(), workload.Input{Files: []string{"-"}, Stdin: bytes.NewReader(data)}, workload.Options{})
		if findings.HasErrors() {
			return
		}
		request := compiler.Request{Placement: &policy.Placement{}, Workloads: set.Workloads, Capabilities: capability.Capabilities{
			Nodes: nodes, NodesKnown: true, PriorityClasses: map[string]int32{"high": 5},
		}}
		plan, _ := compiler.Compile(request)
		for _, finding := range lint.Check(lint.Input{Request: request, Plan: plan, Others: set.Others}) {
			if finding.Rule == "" || finding.Message == "" || !finding.Range.Start.IsValid() {
				t.Errorf("a finding without a rule, a word or a place: %+v", finding)
			}
		}
	})
}
