package emit

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

const trainers = `apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml}
spec: {parallelism: 4, completions: 4, template: {spec: {containers: [{name: c, image: c}]}}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, namespace: ml}
spec:
  replicatedJobs:
  - {name: driver, template: {spec: {template: {spec: {containers: [{name: c, image: c}]}}}}}
  - {name: worker, replicas: 2, template: {spec: {parallelism: 4, template: {spec: {containers: [{name: c, image: c}]}}}}}
`

// TestComponentKeepsGangs holds that a gang is whole under a kustomization that gives
// names a prefix and another namespace: its pods name the PodGroup by its new name.
func TestComponentKeepsGangs(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]capability.PodGroupForm{"PodGroups of the API": capability.PodGroupAPI, "PodGroups of the CRD": capability.PodGroupCRD} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := read(t, []byte(trainers))
			p, findings := compiler.Compile(compiler.Request{
				Placement: &policy.Placement{Policies: []policy.Policy{{
					Name: "gangs", Level: policy.Mandatory, Workloads: policy.Workloads{Namespaces: []string{"ml"}}, Gang: &policy.Gang{},
				}}},
				Workloads: base.Workloads, Surface: policy.SurfaceRender, Installing: true, Now: time.Unix(0, 0),
				Capabilities: capability.Capabilities{PodGroups: form},
			})
			if findings.HasErrors() {
				t.Fatal(findings)
			}
			files := map[string]string{"kustomization.yaml": overlay + "namePrefix: team-\nnamespace: prod\n", "base.yaml": trainers}
			component(t, p, base, files)
			built := build(t, files)
			made := map[string]bool{}
			for _, o := range built.Others {
				if o.Kind == "PodGroup" {
					made[o.Namespace+"/"+o.Name] = true
				}
			}
			named := map[string]bool{}
			for _, w := range built.Workloads {
				for _, template := range w.Templates {
					group := template.Current.Labels[gangkey.Label]
					if g := template.Current.SchedulingGroup; g != nil && g.PodGroupName != nil {
						group = *g.PodGroupName
					}
					named[w.Namespace+"/"+group] = true
				}
			}
			if d := cmp.Diff(slices.Sorted(maps.Keys(made)), slices.Sorted(maps.Keys(named))); d != "" || len(made) != 2 {
				t.Errorf("PodGroups that are made, and those that pods name (-made +named):\n%s\n%s", d, files["placement/"+ReferencesFile])
			}
		})
	}
}
