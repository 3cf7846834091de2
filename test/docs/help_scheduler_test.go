package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

// trains are pods that policies hold back until somebody approves them. They are deleted
// first, so that they wait again.
const trains = `cp batch/batch.cue placement
cat >placement/train.cue <<'EOF'
package shop

policies: train: {
	workloads: {namespaces: ["ml"], pods: labels: app: "train"}
	gates: approval: true
}
EOF
cat >train.yaml <<'EOF'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: train, namespace: ml}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec: {containers: [{name: main, image: registry.example.com/ml/train:1.2.3}]}
EOF
kubectl delete -f train.yaml --ignore-not-found --cascade=foreground
kubectl sched compile -f train.yaml --with-cluster | kubectl apply -f -
kubectl wait -n ml --for=create pod/train-0 pod/train-1 --timeout 1m
`

// batchRuns is policies that need a profile, and a workload for which they do.
const batchRuns = "cp batch/batch.cue placement && kubectl apply -f batch/batch.yaml\n"

// nightWaits is a ReplicaSet whose pod names a profile and has no node, and whose template
// does so no more.
const nightWaits = `kubectl create -f - <<'EOF'
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: night, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: night}}
  template:
    metadata: {labels: {app: night}}
    spec: {schedulerName: placement-pack, nodeSelector: {none: such}, containers: [{name: main, image: night}]}
EOF
until kubectl get pods -n shop -l app=night -o name | grep night; do sleep 0.2; done
kubectl patch replicaset night -n shop --type json -p '[{"op": "replace", "path": "/spec/template/spec/schedulerName", "value": "default-scheduler"}]'
`

// schedulerSettings are the commands about the bundled scheduler, and about gates, which
// it opens.
func schedulerSettings() []setting {
	approved := func(pod, verb string) string {
		return "kubectl get pod " + pod + " -n ml -o jsonpath='{.metadata.annotations}' | grep " + verb
	}
	return []setting{
		{
			command: "kubectl sched scheduler install",
			before:  batchRuns + "mkdir scheduler && printf 'apiVersion: kubescheduler.config.k8s.io/v1\\nkind: KubeSchedulerConfiguration\\nprofiles: [{schedulerName: own}]\\n' >scheduler.yaml",
			examples: []example{
				{
					run: "kubectl sched scheduler install -p placement", says: []string{"Deployment placement-system/placement-scheduler created", "serves profile\n    placement-pack"},
					then: "kubectl get deployment -n placement-system placement-scheduler -o yaml | grep 'image: ghcr.io/kubectl-sched/placement-scheduler:" + release.Version + "$'",
				},
				{
					before: "kubectl sched scheduler uninstall",
					run:    "kubectl sched scheduler install -p placement --image registry.example.com/mirror/placement-scheduler:v1.0.0",
					says:   []string{"Deployment placement-system/placement-scheduler created"},
					then:   "kubectl get deployment -n placement-system placement-scheduler -o yaml | grep 'image: registry.example.com/mirror/placement-scheduler:v1.0.0$'",
				},
				{
					run:  "kubectl sched scheduler install --config scheduler.yaml --dry-run=client -o yaml > scheduler/all.yaml",
					then: "grep 'kind: Deployment' scheduler/all.yaml && grep 'schedulerName: own' scheduler/all.yaml && kubectl apply --dry-run=server -f scheduler/all.yaml && kubectl sched scheduler uninstall",
				},
			},
		},
		{
			command: "kubectl sched scheduler",
			before:  batchRuns,
			examples: []example{
				{run: "kubectl sched scheduler install -p placement", says: []string{"serves profile\n    placement-pack"}},
				{scheduler: true, run: "kubectl sched scheduler status", says: []string{"replicas:  2 of 2 ready", "placement-pack"}},
			},
		},
		{
			command: "kubectl sched scheduler status",
			examples: []example{
				{run: "kubectl sched scheduler status", says: []string{"image:     ", "replicas:  2 of 2 ready", "placement-pack"}},
				{run: "kubectl sched scheduler status -o json", says: []string{`"leader": "`, `"placement-pack"`}},
			},
		},
		{
			command: "kubectl sched gates",
			before:  trains,
			examples: []example{
				{run: "kubectl sched gates list -A", says: []string{"NAMESPACE", "ml ", "train-0", "train-1", "train.approval"}},
				{run: "kubectl sched gates approve train.approval -l app=train -n ml", says: []string{"pod/train-0: gate train.approval approved by sandbox-admin", "pod/train-1: gate train.approval approved"}, then: "kubectl wait -n ml pod/train-0 pod/train-1 --for=condition=Ready --timeout 1m"},
			},
		},
		{
			command: "kubectl sched gates list",
			before:  trains,
			examples: []example{
				{run: "kubectl sched gates list -n ml", says: []string{"train-0", "train-1", "train.approval"}},
				{run: "kubectl sched gates list -A -o json", says: []string{`"kind": "GateList"`, `"namespace": "ml"`, `"pod": "train-0"`}},
			},
		},
		{
			command: "kubectl sched gates approve",
			before:  trains,
			examples: []example{
				{run: "kubectl sched gates approve train.approval train-0 train-1 -n ml", says: []string{"pod/train-0: gate train.approval approved"}, then: "kubectl wait -n ml pod/train-0 pod/train-1 --for=condition=Ready --timeout 1m"},
				{before: trains, run: "kubectl sched gates approve train.approval -l app=train -n ml --dry-run=server", says: []string{"pod/train-1: gate train.approval approved by sandbox-admin (server dry run)"}, then: "! " + approved("train-0", "approved")},
			},
		},
		{
			command: "kubectl sched gates deny",
			before:  trains,
			examples: []example{
				{run: "kubectl sched gates deny train.approval train-0 train-1 -n ml", says: []string{"pod/train-0: gate train.approval denied by sandbox-admin"}, then: approved("train-0", "denied") + "\n" + approved("train-1", "denied") + "\nkubectl sched gates list -n ml | grep denied"},
				{before: trains, run: "kubectl sched gates deny train.approval -l app=train -n ml --dry-run=server", says: []string{"pod/train-1: gate train.approval denied by sandbox-admin (server dry run)"}, then: "! " + approved("train-0", "denied")},
			},
		},
		{
			command: "kubectl sched scheduler upgrade",
			before:  batchRuns + "printf 'package shop\\n\\npolicies: \"web-ha\": spread: node: mustWin: true\\n' >placement/must.cue && kubectl apply -f manifests",
			examples: []example{
				{run: "kubectl sched scheduler upgrade -p placement", says: []string{"ConfigMap placement-system/placement-scheduler-config-", "serves 2 profiles:\n    placement-pack, placement-spread-wins"}, then: "kubectl sched scheduler status | grep placement-pack"},
			},
		},
		{
			command: "kubectl sched scheduler uninstall",
			before:  "kubectl delete -n ml statefulset train --cascade=foreground",
			examples: []example{
				{run: "kubectl sched scheduler uninstall --dry-run=server", says: []string{"Deployment placement-system/placement-scheduler deleted (server dry run)"}, then: "kubectl get deployment -n placement-system placement-scheduler"},
				{
					before: nightWaits + "kubectl sched scheduler uninstall && exit 1; true",
					run:    "kubectl sched scheduler uninstall --recreate-pods", says: []string{"pod shop/night-", "for ReplicaSet night to make it again"},
					then: "kubectl get deployments -A | grep placement-scheduler && exit 1\nuntil kubectl get pods -n shop -l app=night -o jsonpath='{.items[*].spec.schedulerName}' | grep '^default-scheduler$'; do sleep 0.2; done",
				},
			},
		},
	}
}

// mounted is the configuration that the scheduler's pods mount, and a kubeconfig of their
// account.
const mounted = `config=$(kubectl get deployment placement-scheduler -n placement-system -o jsonpath='{.spec.template.spec.volumes[*].configMap.name}')
kubectl get configmap "$config" -n placement-system -o jsonpath='{.data.*}' >mounted.yaml
cp "$KUBECONFIG" scheduler.kubeconfig
export KUBECONFIG=$PWD/scheduler.kubeconfig
token=$(kubectl create token placement-scheduler -n placement-system)
kubectl config set-credentials scheduler --token="$token"
kubectl config set-context --current --user=scheduler
printf '\nclientConnection: {kubeconfig: "%s"}\n' "$KUBECONFIG" >>mounted.yaml
`

// runScheduler runs the scheduler that is installed as a kubelet would, to the end of the
// story.
func (s *stage) runScheduler() {
	s.Helper()
	binary, err := sandboxtest.SchedulerBinary()
	if err != nil {
		s.Fatal(err)
	}
	outlives := *s
	outlives.dir = s.story.TempDir()
	outlives.prepare(mounted)
	var log bytes.Buffer
	command := exec.Command(binary, "--config="+filepath.Join(outlives.dir, "mounted.yaml"), "--secure-port=0")
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		s.Fatal(err)
	}
	finished := make(chan error, 1)
	go func() { finished <- command.Wait() }()
	s.story.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		select {
		case <-finished:
		case <-time.After(time.Minute):
			_ = command.Process.Kill()
			s.story.Error("the scheduler does not end when it is told to")
		}
		if s.story.Failed() {
			s.story.Logf("the scheduler says:\n%s", log.String())
		}
	})
	s.prepare("until kubectl get lease placement-scheduler -n placement-system -o jsonpath={.spec.holderIdentity} | grep .; do sleep 0.2; done")
}
