package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// scenarioFlags say what happens to the simulated cluster.
type scenarioFlags struct {
	pending, replay bool
	drain, lose     []string
	scale, addNodes []string
	seed            uint64
	// asConfigured and callExtenders have the scheduler go by its configuration also
	// where that makes a result depend on more than the snapshot.
	asConfigured, callExtenders bool
}

func (f *scenarioFlags) addTo(flags *pflag.FlagSet) {
	flags.BoolVar(&f.pending, "pending", false, "Place the pods that wait, and nothing else; the policies change no workload")
	flags.BoolVar(&f.replay, "replay", false, "Place every pod anew")
	flags.StringSliceVar(&f.drain, "drain", nil, "Nodes to drain")
	flags.StringSliceVar(&f.lose, "lose", nil, "Nodes to lose, as KEY=VALUE of a label (zone, region, node and pool are short for theirs)")
	flags.StringSliceVar(&f.scale, "scale", nil, "Workloads to scale, as KIND/NAME=REPLICAS in --namespace")
	flags.StringSliceVar(&f.addNodes, "add-nodes", nil, "Nodes to add, as POOL=COUNT, like those that are there")
	flags.BoolVar(&f.asConfigured, "as-configured", false, "Sample nodes as percentageOfNodesToScore of the schedulers says, instead of scoring all: one outcome of many")
	flags.BoolVar(&f.callExtenders, "call-extenders", false, "Ask the extenders of the schedulers' configurations, over the network from here; they never bind")
	flags.Uint64Var(&f.seed, "seed", 1, "What decides between nodes that are equal in everything")
}

func (f *scenarioFlags) validate() error {
	if f.pending && (f.replay || len(f.drain)+len(f.lose)+len(f.scale)+len(f.addNodes) > 0) {
		return fmt.Errorf("--pending places what waits and nothing else; leave it out, or the other steps")
	}
	return nil
}

// steps returns the steps of the scenario.
func (f *scenarioFlags) steps(s *snapshot.Snapshot, pools *poolMap, namespace string) ([]simulate.Step, error) {
	var steps []simulate.Step
	for _, said := range f.scale {
		step, err := scaleStep(said, namespace)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	for _, said := range f.addNodes {
		pool, n, err := counted("add-nodes", said)
		if err != nil {
			return nil, err
		}
		template := pools.template(s, pool)
		if template == nil {
			hint := "no node is in any pool that is known"
			if names := pools.names(s); len(names) > 0 {
				hint = didYouMean(pool, names)
			}
			return nil, usageError{fmt.Errorf("--add-nodes %s: no node of the snapshot is in pool %q, so that it is not known what one is like; %s", said, pool, hint)}
		}
		steps = append(steps, simulate.AddNodes{Template: template, Count: n})
	}
	for _, said := range f.lose {
		nodes, err := pools.labelled(s, said)
		if err != nil {
			return nil, err
		}
		steps = append(steps, simulate.Lose{Nodes: nodes})
	}
	if len(f.drain) > 0 {
		steps = append(steps, simulate.Drain{Nodes: f.drain})
	}
	if f.replay {
		steps = append(steps, simulate.Replay{})
	}
	return steps, nil
}

// counted splits NAME=COUNT.
func counted(flag, said string) (string, int, error) {
	name, number, ok := strings.Cut(said, "=")
	n, err := strconv.ParseInt(number, 10, 32)
	if !ok || name == "" || err != nil || n < 0 {
		return "", 0, usageError{fmt.Errorf("--%s %q is not NAME=COUNT", flag, said)}
	}
	return name, int(n), nil
}

// kindNames are how kubectl users call the kinds that can be scaled.
var kindNames = map[string]string{
	"deployment": "Deployment", "deployments": "Deployment", "deploy": "Deployment",
	"statefulset": "StatefulSet", "statefulsets": "StatefulSet", "sts": "StatefulSet",
	"replicaset": "ReplicaSet", "replicasets": "ReplicaSet", "rs": "ReplicaSet",
	"replicationcontroller": "ReplicationController", "rc": "ReplicationController",
	"job": "Job", "jobs": "Job",
}

func scaleStep(said, namespace string) (simulate.Step, error) {
	target, n, err := counted("scale", said)
	if err != nil {
		return nil, err
	}
	kind, name, ok := strings.Cut(target, "/")
	if !ok || name == "" {
		return nil, usageError{fmt.Errorf("--scale %q is not KIND/NAME=REPLICAS", said)}
	}
	known, ok := kindNames[strings.ToLower(kind)]
	if !ok {
		return nil, usageError{fmt.Errorf("--scale %q: pods of a %q cannot be scaled here; %s", said, kind, didYouMean(kind, slices.Sorted(maps.Keys(kindNames))))}
	}
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	return simulate.Scale{Workload: simulate.Ref{Kind: known, Namespace: namespace, Name: name}, Replicas: int32(n)}, nil
}
