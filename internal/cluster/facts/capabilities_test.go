package facts_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/facts"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// What a cluster serves is known without an object of it.
func TestServedWithoutObjects(t *testing.T) {
	t.Parallel()
	const api, crd = "podgroups.scheduling.k8s.io", "podgroups.scheduling.x-k8s.io"
	group := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "g", "namespace": "a"}, "spec": map[string]any{"minMember": int64(3)}}}
	for name, test := range map[string]struct {
		snapshot snapshot.Snapshot
		form     capability.PodGroupForm
		known    bool
	}{
		"both":            {snapshot.Snapshot{Served: []string{api, crd}}, capability.PodGroupAPI, true},
		"the CRD":         {snapshot.Snapshot{Served: []string{crd}}, capability.PodGroupCRD, true},
		"neither":         {snapshot.Snapshot{Served: []string{"nodepools.karpenter.sh"}}, capability.PodGroupLabels, true},
		"nobody knows":    {snapshot.Snapshot{}, "", false},
		"one is there":    {snapshot.Snapshot{CRDPodGroups: []*unstructured.Unstructured{group}}, capability.PodGroupCRD, true},
		"served, and one": {snapshot.Snapshot{Served: []string{crd}, CRDPodGroups: []*unstructured.Unstructured{group}}, capability.PodGroupCRD, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caps := facts.Capabilities(&test.snapshot)
			if caps.PodGroups != test.form || (caps.Gangs != nil) != test.known {
				t.Errorf("the form is %q and gangs are %v, want %q and known %v", caps.PodGroups, caps.Gangs, test.form, test.known)
			}
			if want := test.snapshot.Serves("nodepools.karpenter.sh"); caps.NodePoolsKnown != want {
				t.Errorf("node pools are known: %v, want %v", caps.NodePoolsKnown, want)
			}
		})
	}
}
