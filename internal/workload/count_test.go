package workload

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// How many pods each template has at a time, by what the object says and by the
// API's defaults.
func TestCount(t *testing.T) {
	t.Parallel()
	pod := "{spec: {containers: [{name: c, image: x}]}}"
	for object, want := range map[string]string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}":                                                         "[1]",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 3, template: " + pod + "}":                         "[3]",
		"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x}\nspec: {template: " + pod + "}":                                     "[1]",
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x}\nspec: {template: " + pod + "}":                                       "[?]",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: " + pod + "}":                                            "[1]",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {parallelism: 8, completions: 6, template: " + pod + "}":            "[6]",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {parallelism: 8, completions: 80, template: " + pod + "}":           "[8]",
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec: {jobTemplate: {spec: {parallelism: 4, template: " + pod + "}}}": "[4]",
		"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: x}\nspec: {replicatedJobs: [{name: a, template: {spec: {template: " + pod + "}}}, {name: b, replicas: 2, template: {spec: {parallelism: 4, completions: 4, template: " + pod + "}}}]}": "[1 8]",
		"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\nspec: {pytorchReplicaSpecs: {Master: {template: " + pod + "}, Worker: {replicas: 3, template: " + pod + "}}}":                                                                           "[1 3]",
		"apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: x}\nspec: {mpiReplicaSpecs: {Launcher: {replicas: 1, template: " + pod + "}, Worker: {replicas: 2, template: " + pod + "}}}":                                                               "[1 2]",
		"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec: {tasks: [{name: a, replicas: 2, template: " + pod + "}, {name: b, template: " + pod + "}]}":                                                                                    "[2 ?]",
		"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: x}\nspec: {replicas: 2, leaderWorkerTemplate: {size: 4, leaderTemplate: " + pod + ", workerTemplate: " + pod + "}}":                                                        "[2 6]",
		"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: x}\nspec: {leaderWorkerTemplate: {size: 4, workerTemplate: " + pod + "}}":                                                                                                  "[4]",
		"apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: x}\nspec: {headGroupSpec: {template: " + pod + "}, workerGroupSpecs: [{groupName: w, replicas: 2, numOfHosts: 4, template: " + pod + "}]}":                                                        "[1 8]",
	} {
		set, findings := readText(t, object)
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		var got []string
		for _, template := range set.Workloads[0].Templates {
			n := "?"
			if template.Count != nil {
				n = fmt.Sprint(*template.Count)
			}
			got = append(got, n)
		}
		if diff := cmp.Diff(want, fmt.Sprint(got)); diff != "" {
			t.Errorf("%s\n%s", object, diff)
		}
	}
}

// A container that has moved is found by its name, and one that is gone takes what
// we wrote with it.
func TestContainersAreFoundByName(t *testing.T) {
	t.Parallel()
	const manifest = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n  containers:\n  - {name: a, image: x}\n  - {name: b, image: x}\n"
	set, _ := readText(t, manifest)
	w := set.Workloads[0]
	out, err := w.Write(map[int]PodFields{0: placeAll(w)[0]}, Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	object := out.Object
	containers, _ := Lookup(object, "spec", "containers")
	list := containers.([]any)
	for name, now := range map[string][]any{
		"the other way round": {list[1], list[0]},
		"another before them": {map[string]any{"name": "first"}, list[0], list[1]},
		"one is gone":         {list[1]},
	} {
		moved := map[string]any{}
		for k, v := range object {
			moved[k] = v
		}
		spec := map[string]any{}
		for k, v := range object["spec"].(map[string]any) {
			spec[k] = v
		}
		spec["containers"], moved["spec"] = now, spec
		again, findings, _ := FromObject(moved, Options{}, Source{})
		if len(findings) > 0 {
			t.Errorf("%s: %v", name, findings)
		}
		if env := again.Templates[0].Pods.Env; len(env) > 0 {
			t.Errorf("%s: without us the containers have %v", name, env)
		}
		if env := again.Templates[0].Current.Env; len(env) == 0 {
			t.Errorf("%s: with us the containers have nothing", name)
		}
	}
}
