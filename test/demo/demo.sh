#!/usr/bin/env bash
# The main job, step by step, on a control plane of its own: real API server,
# controllers and scheduler, fake nodes. Every command is shown before its
# output, and is what a user would type. Ends by itself and leaves nothing.
#
# Needs bin/kubectl-sched and bin/sched-sandbox ("make demo" builds both).
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/kubectl-sched-demo.XXXXXX")

finish() {
	local code=$?
	trap - EXIT
	"$root/bin/sched-sandbox" --data-dir "$work/sandbox" down >"$work/down.log" 2>&1 || true
	if [[ $code != 0 ]]; then
		echo "the demo failed (exit code $code)" >&2
	fi
	rm -rf "$work"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

bold='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
	bold=$'\e[1m' plain=$'\e[0m'
fi

step() { # TITLE: the next part of the story
	number=$((${number:-0} + 1))
	printf '\n%s%d. %s%s\n' "$bold" "$number" "$1" "$plain"
}
say() { printf '%s\n' "$@"; }
run() { # [EXIT CODE] COMMAND: show it, run it, and hold that it ends as expected
	local want=0 got=0
	if [[ $1 =~ ^[0-9]+$ ]]; then want=$1 && shift; fi
	printf '\n%s$ %s%s\n' "$bold" "$1" "$plain"
	eval "$1" || got=$?
	if [[ $got != "$want" ]]; then
		echo "expected exit code $want, not $got" >&2
		exit 1
	fi
}

# What a user has installed: kubectl, and the plugin beside it. The sandbox's
# binary is kubectl too when it is called so.
mkdir -p "$work/bin" "$work/shop"
ln -s "$root/bin/sched-sandbox" "$work/bin/kubectl"
ln -s "$root/bin/kubectl-sched" "$work/bin/kubectl-sched"
export PATH="$work/bin:$PATH" KUBECONFIG="$work/sandbox/kubeconfig" HOME="$work"
cp -r "$root/examples/demo/placement" "$work/shop/placement"
mkdir "$work/shop/manifests"
cp "$root"/examples/web-spot-fallback/manifests/*.yaml "$root/examples/tenant-gpu-pool/manifests/inference.yaml" "$work/shop/manifests"
cd "$work/shop"

step 'A cluster'
say 'Starting etcd, API server, controllers, scheduler and fake nodes: about 10 s.'
"$root/bin/sched-sandbox" --name demo --data-dir "$work/sandbox" up --detach \
	--nodes "$root/examples/demo/nodes.yaml" >"$work/up.log" 2>&1 || {
	cat "$work/up.log" >&2
	exit 1
}
run 'kubectl get nodes \
    -o custom-columns=NODE:.metadata.name,TAINT:.spec.taints[*].key'

step 'Today: workloads as their teams write them'
# Two of three zones are closed while the pods are made.
kubectl cordon --selector 'topology.kubernetes.io/zone in (eu-1b, eu-1c)' >/dev/null
for namespace in shop ml-vision; do kubectl create namespace "$namespace" >/dev/null; done
for account in storefront checkout; do kubectl create serviceaccount --namespace shop "$account" >/dev/null; done
run 'kubectl create -f manifests'
for workload in shop/storefront shop/checkout ml-vision/labelling-ui; do
	kubectl rollout status --namespace "${workload%/*}" "deployment/${workload#*/}" --timeout=1m >/dev/null
done
kubectl wait pod --namespace ml-vision --selector ml.example.com/stage=serve --for=condition=PodScheduled=false --timeout=1m >/dev/null
kubectl uncordon --selector 'topology.kubernetes.io/zone in (eu-1b, eu-1c)' >/dev/null
say '' \
	'Last week two zones were closed for maintenance. The zones are back, and the' \
	'shop never noticed. The pods that need GPUs fit nowhere: the GPU nodes are' \
	'tainted, and nobody wrote the toleration.'
run "kubectl get pods -A --sort-by=.spec.nodeName \\
    -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName"
# What "delete" must come back to.
fields='{range .items[*]}{.metadata.name} {.metadata.uid} {.spec}{"\n"}{end}'
kubectl get deployments -A -o jsonpath="$fields" >before.txt

step 'One document for all of it, with a typo'
sed -i 's/spread: zone/sperad: zone/' placement/policies.cue
run 'cat placement/policies.cue'
run 1 'kubectl sched lint -f manifests'
run "sed -i 's/sperad/spread/' placement/policies.cue"
run 1 'kubectl sched lint -f manifests'
say '' 'The warning is about a manifest of the team'"'"'s, and right: an autoscaler sets' \
	'the number of pods.'
run "sed -i '/^  replicas: 3$/d' manifests/checkout.yaml"
run 'kubectl sched lint -f manifests'

step 'What it comes to in manifests'
say 'Written into the files with --in-place, it is what GitOps teams commit.'
run 1 'kubectl sched compile -f manifests --diff |
    grep -A 99 web.yaml.orig | cut -c 1-79'
say '' \
	'One line of intent. The annotation says which fields are ours, so that they' \
	'go when the policy goes; every other byte of the file is as it was. This' \
	'cluster has no GitOps: from here on, it goes into the workloads that run.'

step 'What it would change in the cluster'
run 1 'kubectl sched diff --set demo -o effects'

step 'Apply it, and see where the pods land'
run 'kubectl sched apply --set demo --wait'
say '' 'The shop is in all zones, the models have their GPUs. Nothing is left to do:'
run 'kubectl sched diff --set demo'

step 'One more policy: the storefront moves to spot nodes'
cp "$root/examples/demo/next/spot.cue" placement/spot.cue
run 'cat placement/spot.cue'
run 'kubectl sched apply --set demo --wait'

step 'Somebody edits a workload by hand'
run "kubectl patch deployment storefront --namespace shop --type=json \\
    -p '[{\"op\": \"remove\", \"path\": \"/spec/template/spec/tolerations\"}]'"
run 'kubectl sched status --set demo'

step 'Back to the first revision'
say 'The edit made its author the owner of the field; --force-conflicts says that' \
	'we mean to take it back.'
run 'kubectl sched history --set demo'
run 'kubectl sched undo --set demo --wait --force-conflicts'

step 'Take it all away'
run 'kubectl sched delete --set demo'
kubectl get deployments -A -o jsonpath="$fields" >after.txt
run "diff before.txt after.txt && echo 'the same UIDs, the same specs'"

say '' 'That was the main job. README.md says where to go on.'
