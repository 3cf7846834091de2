#!/usr/bin/env bash
# Five steps with a scheduler plugin, on a control plane of its own (real API server
# and scheduler, fake nodes): a plugin built in, a Filter that excludes nodes, a Score
# that prefers them, its weight against the defaults', and a slow Filter. Says what
# moved, fails if it did not, ends by itself and leaves nothing. About 1 minute.
#
# Needs Go and bin/sched-sandbox ("make run-it-yourself" builds it).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/run-it-yourself.XXXXXX")
scheduler=

finish() {
	local code=$?
	trap - EXIT
	if [[ -n $scheduler ]]; then kill "$scheduler" 2>/dev/null || true; wait "$scheduler" 2>/dev/null || true; fi
	"$root/bin/sched-sandbox" --data-dir "$work/sandbox" down >/dev/null 2>&1 || true
	if [[ $code != 0 ]]; then
		echo "it did not come out as it should (exit code $code)" >&2
		tail -20 "$work/scheduler.log" >&2 || true
	fi
	rm -rf "$work"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

step() { number=$((${number:-0} + 1)); printf '\n%d. %s\n' "$number" "$1"; }
kubectl() { "$root/bin/sched-sandbox" --data-dir "$work/sandbox" kubectl "$@"; }

# pods NAME SCHEDULER COUNT DATASET [CPU]: creates them and waits until all have a node.
pods() {
	local i
	for ((i = 0; i < $3; i++)); do
		cat <<-POD
			apiVersion: v1
			kind: Pod
			metadata: {name: $1-$i, labels: {run: $1, dataset: "$4"}}
			spec:
			  schedulerName: $2
			  containers: [{name: c, image: none, resources: {requests: {cpu: ${5:-100m}, memory: 64Mi}}}]
			---
		POD
	done >"$work/pods.yaml"
	kubectl create -f "$work/pods.yaml" >/dev/null
	kubectl wait pod --selector "run=$1" --for=condition=PodScheduled --timeout=120s >/dev/null
}
# on NAME NODE...: how many of the pods are on one of the nodes.
on() {
	local name=$1 && shift
	kubectl get pods --selector "run=$name" -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' >"$work/nodes.txt"
	local node count=0
	for node in "$@"; do count=$((count + $(grep -cx "$node" "$work/nodes.txt" || true))); done
	echo "$count"
}
clear_pods() { kubectl delete pods --all --grace-period=0 --force >/dev/null 2>&1; kubectl wait pod --all --for=delete --timeout=60s >/dev/null 2>&1 || true; }
holds() { if ! (($1)); then echo "expected $1: $2" >&2; exit 1; fi; }

step 'A plugin of your own, built into a full scheduler, beside the default one'
go build -o "$work/own-scheduler" "$root/examples/own-plugin"
"$root/bin/sched-sandbox" --name run-it --data-dir "$work/sandbox" up --detach --nodes "$here/nodes.yaml" >"$work/up.log" 2>&1 || {
	cat "$work/up.log" >&2
	exit 1
}
sed "s#KUBECONFIG#$work/sandbox/kubeconfig#" "$here/config.yaml" >"$work/config.yaml"
"$work/own-scheduler" --config="$work/config.yaml" --secure-port=0 >"$work/scheduler.log" 2>&1 &
scheduler=$!
kubectl wait lease placement-scheduler --namespace kube-system --for=create --timeout=60s >/dev/null
names=$(kubectl get nodes -o jsonpath='{.items[*].metadata.name}')
read -r -a nodes <<<"$names"
echo "It runs with a lease of its own, on ${#nodes[@]} nodes, with the plugins CacheLocality"
echo "(bundled) and Inventory (examples/own-plugin)."

step 'Filter: nodes that drain their cache take no pod with a dataset'
kubectl label nodes "${nodes[0]}" "${nodes[1]}" cache/drained=true >/dev/null
pods drained cache-aware 24 imagenet
pods plain default-scheduler 24 imagenet
echo "Of 24 pods on the two draining nodes: $(on drained "${nodes[0]}" "${nodes[1]}") by profile cache-aware, $(on plain "${nodes[0]}" "${nodes[1]}") by the default scheduler."
holds "$(on drained "${nodes[0]}" "${nodes[1]}") == 0" 'pods of cache-aware on draining nodes'
holds "$(on plain "${nodes[0]}" "${nodes[1]}") > 0" 'pods of the default scheduler on draining nodes'
clear_pods

step 'Score: the node that has the dataset warm is preferred'
warm=${nodes[5]}
kubectl label nodes "$warm" cache/warm-for=imagenet >/dev/null
pods warm cache-aware 8 imagenet
pods other cache-aware 8 vocabulary
echo "Of 8 pods that read imagenet, $(on warm "$warm") are on $warm, which has it warm; of 8 that read another dataset, $(on other "$warm")."
holds "$(on warm "$warm") > $(on other "$warm")" 'the warm node draws the pods that read its dataset'
clear_pods

step 'Weight: how much that counts beside what the default plugins want'
pods little cache-little 18 imagenet 400m
little=$(on little "$warm")
clear_pods
pods most cache-most 18 imagenet 400m
most=$(on most "$warm")
clear_pods
echo "Of 18 pods, on the warm node: $little with weight 1, $most with weight 50; free room has 5."
holds "$most > $little" 'more weight moves pods to the warm node'

step 'A slow Filter: 50 ms for each node, and then once a pod in PreFilter'
"$root/bin/sched-sandbox" --data-dir "$work/sandbox" nodes -f "$here/nodes-many.yaml" >/dev/null 2>&1
# milliseconds NAME SCHEDULER: how long 40 pods take that one controller makes at once.
milliseconds() {
	cat >"$work/job.yaml" <<-JOB
		apiVersion: batch/v1
		kind: Job
		metadata: {name: $1}
		spec:
		  parallelism: 40
		  completions: 40
		  template:
		    metadata: {labels: {run: $1}}
		    spec:
		      schedulerName: $2
		      restartPolicy: Never
		      containers: [{name: c, image: none}]
	JOB
	local before after
	before=$(date +%s%N)
	kubectl create -f "$work/job.yaml" >/dev/null
	until [[ $(kubectl get pods --selector "run=$1" --no-headers -o custom-columns=NODE:.spec.nodeName | grep -c worker) == 40 ]]; do :; done
	after=$(date +%s%N)
	echo $(((after - before) / 1000000))
}
fast=$(milliseconds once slow-prefilter)
slow=$(milliseconds each slow-filter)
rate() { awk -v ms="$1" 'BEGIN { printf "%.1f", 40000 / ms }'; }
echo "On 64 nodes, 16 of which the scheduler filters at a time:"
echo "$(rate "$slow") pods a second with the question in Filter, $(rate "$fast") with it in PreFilter."
holds "$slow > $fast * 3 / 2" 'the slow Filter costs throughput'

printf '\nThat is all. Ending the control plane.\n'
