package docs

// gpuPool is a pool of the policies, and nodes of it that are dedicated by hand.
const gpuPool = `cat >placement/pools.cue <<'EOF'
package shop

pools: gpu: {
	nodes: labels: "node-restriction.kubernetes.io/class": "gpu"
	dedicated: grants: namespaces: ["ml"]
	managedBy: "karpenter"
}
EOF
`

// karpenter is as much of Karpenter as there is to read: a NodePool, of a kind that takes
// any.
const karpenter = `cat >karpenter.yaml <<'EOF'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodepools.karpenter.sh}
spec:
  group: karpenter.sh
  names: {kind: NodePool, plural: nodepools, singular: nodepool, listKind: NodePoolList}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
EOF
kubectl apply -f karpenter.yaml
kubectl wait crd/nodepools.karpenter.sh --for=condition=Established --timeout 1m
cat >nodepool.yaml <<'EOF'
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: big}}}}
EOF
kubectl apply -f nodepool.yaml
`

// lookSettings are the commands that read a cluster, or what is like one, and leave it as
// it is.
func lookSettings() []setting {
	return []setting{
		{
			command: "kubectl sched compile",
			before: shopRuns + `mkdir manifests/api && sed 's/name: web/name: api/; s/app: web/app: api/' manifests/web.yaml >manifests/api/api.yaml
cp -r manifests unplaced
mkdir -p chart/templates && sed '/namespace:/d' manifests/web.yaml >chart/templates/web.yaml && printf 'apiVersion: v2\nname: shop\nversion: 0.1.0\n' >chart/Chart.yaml`,
			helm: true,
			examples: []example{
				{
					run: "kubectl sched compile -f manifests/ -R --in-place", says: []string{"manifests/web.yaml updated", "manifests/api/api.yaml updated"},
					then: "grep topologySpreadConstraints manifests/web.yaml && grep topologySpreadConstraints manifests/api/api.yaml && kubectl apply --dry-run=server -R -f manifests && kubectl sched compile -f manifests/ -R --in-place --check --diff",
				},
				{
					before: "cp -r unplaced/. manifests",
					run:    "kubectl sched compile -f manifests/ -R --in-place --check --diff", code: 1, says: []string{"+++ ", "+      topologySpreadConstraints:"},
					then: "diff -r unplaced manifests",
				},
				{
					run: "helm template shop ./chart -n shop | kubectl sched compile -f - -n shop", says: []string{"# Source: shop/templates/web.yaml", "topologySpreadConstraints:"},
				},
				{
					run: "kubectl sched compile --surface admission -f manifests/", says: []string{"kind: MutatingAdmissionPolicy\n"},
					then: "kubectl sched compile --surface admission -f manifests/ | kubectl apply --dry-run=server -f -",
				},
				{
					before: gpuPool + karpenter,
					run:    "kubectl sched compile --with-cluster -o nodes", says: []string{"node-restriction.kubernetes.io/class", "name: big", "effect: NoSchedule"},
				},
				{
					before: "cp batch/batch.cue placement && cp batch/batch.yaml manifests",
					run:    "kubectl sched compile -f manifests/ -o profiles > scheduler-config.yaml",
					then:   "grep 'kind: KubeSchedulerConfiguration' scheduler-config.yaml && grep 'schedulerName: placement-pack' scheduler-config.yaml",
				},
				{
					before: "rm placement/batch.cue placement/pools.cue && printf 'package shop\\n\\nclusters: {eu: {}, us: {surface: \"admission\"}}\\n' >placement/clusters.cue",
					run:    "kubectl sched compile -f manifests/ --cluster all --output-dir rendered/", says: []string{"rendered/eu/web.yaml created"},
					then: "grep topologySpreadConstraints rendered/eu/web.yaml && test -d rendered/us && kubectl delete -f karpenter.yaml",
				},
			},
		},
		{
			command: "kubectl sched explain",
			before:  shopRuns,
			examples: []example{
				{run: "kubectl sched explain policies.spread.maxSkew", says: []string{"TYPE: a whole number", "DEFAULT: 1", "COMPILES TO:", "topologySpreadConstraints"}},
				{run: "kubectl sched explain deployment/web -n shop -f manifests/", says: []string{"Deployment shop/web  manifests/web.yaml:1:1", "from: policy \"web-ha\" at placement/placement.cue:5:10"}},
				{run: "kubectl sched explain deployment/web -n shop --live", says: []string{"Deployment shop/web\n", "from: policy \"web-ha\" at placement/placement.cue:5:10", "minDomains: 3"}},
			},
		},
		{
			command: "kubectl sched import",
			before: shopRuns + handmade + `kubectl label node eu-1c-worker-5 example.com/pool=batch && kubectl taint node eu-1c-worker-5 example.com/batch=:NoSchedule
kubectl apply -f manifests/api.yaml && kubectl rollout status -n shop deployment/api --timeout 1m`,
			examples: []example{
				{run: "kubectl sched import -f manifests/ -R", says: []string{"2 workloads, 1 of them with placement"}},
				{before: "rm -r placement", run: "kubectl sched import -f manifests/ -R -o placement", then: "test -f placement/imported.cue"},
				{run: "kubectl sched compile -p placement -f manifests/ -R --check"},
				{run: "kubectl sched import -A -o -", says: []string{"package placement\n", "pools: ", "example.com/batch", "policies: "}},
				{run: "kubectl sched import --snapshot prod.snapshot -o json", says: []string{`"kind": "Import"`, `"workloads": 1`}, then: "test ! -e json\nkubectl delete deployment api -n shop; kubectl taint node eu-1c-worker-5 example.com/batch-"},
			},
		},
		{
			command: "kubectl sched lint",
			before:  shopRuns + handmade,
			examples: []example{
				{run: "kubectl sched lint", says: []string{"no findings: 1 policy"}},
				{run: "kubectl sched lint -p placement -f manifests/ -R -o json", code: 1, says: []string{`"workload/spread-rollout"`, `"manifests/api.yaml"`}},
				{
					before: "sed 's/topology.kubernetes.io.zone/example.com~rack/' prod.snapshot | sed 's/~/\\//' >no-zones.snapshot && cp no-zones.snapshot prod.snapshot",
					run:    "kubectl sched lint -p placement -f manifests/ -R --snapshot prod.snapshot", code: 1, says: []string{"topology-missing"},
				},
				{run: "kubectl sched lint --live", says: []string{"no findings: 1 policy, 1 pod template matched"}},
				{
					run: "kubectl sched lint -f manifests/ -R -o github --findings sarif=lint.sarif", code: 1, says: []string{"::warning file=manifests/api.yaml,line="},
					then: "grep '\"version\": \"2.1.0\"' lint.sarif && grep workload/spread-rollout lint.sarif",
				},
				{
					before: "cp manifests/api.yaml wrong.yaml",
					run:    "kubectl sched lint -f manifests/ -R --fix", says: []string{"manifests/api.yaml"},
					then: "grep matchLabelKeys manifests/api.yaml && kubectl sched lint -f manifests/ -R",
				},
				{before: "cp wrong.yaml manifests/api.yaml", run: "kubectl sched lint -f manifests/ -R --write-baseline known.json", then: "grep workload/spread-rollout known.json"},
				{run: "kubectl sched lint -f manifests/ -R --baseline known.json", says: []string{"no findings: ", "2 in the baseline"}},
			},
		},
		{
			command: "kubectl sched simulate",
			before:  shopRuns,
			examples: []example{
				{run: "kubectl sched simulate --snapshot prod.snapshot -p placement", says: []string{"6 pods are added.", "eu-1a 2, eu-1b 2, eu-1c 2"}},
				{run: "kubectl sched simulate --lose zone=eu-1b", says: []string{"2 → 0", "stay Pending", "policy web-ha, placement/placement.cue:5:10"}},
				{run: "kubectl sched simulate --scale deployment/web=30 -n shop", says: []string{"24 pods are added", "eu-1a 10, eu-1b 10"}},
			},
		},
		{
			command: "kubectl sched snapshot",
			before:  shopRuns + "cp prod.snapshot monday.snapshot && kubectl sched snapshot -o friday.snapshot",
			examples: []example{
				{run: "kubectl sched snapshot -o prod-eu.snapshot", says: []string{"prod-eu.snapshot: 6 nodes"}, then: "kubectl sched snapshot show prod-eu.snapshot | grep deployments"},
				{
					before: "kubectl config rename-context \"$(kubectl config current-context)\" prod-eu && kubectl config unset current-context && rm prod-eu.snapshot",
					run:    "kubectl sched snapshot -o prod-eu.snapshot --anonymize --context prod-eu", says: []string{"prod-eu.snapshot: 6 nodes"},
					then: "grep shop prod-eu.snapshot.names && ! kubectl sched simulate --snapshot prod-eu.snapshot | grep shop",
				},
				{run: "kubectl sched snapshot diff monday.snapshot friday.snapshot", code: 1, says: []string{"shop/web"}},
			},
		},
		{
			command: "kubectl sched why",
			before: shopRuns + `kubectl run web-7d9c5-abcde -n shop --image=web -l app=alone --overrides '{"spec": {"nodeSelector": {"disk": "fast"}}}'
kubectl wait -n shop pod/web-7d9c5-abcde --for=condition=PodScheduled=false --timeout 1m
cat >>prod.snapshot <<'EOF'
---
apiVersion: v1
kind: Pod
metadata: {name: web-7d9c5-abcde, namespace: shop, labels: {app: web, tier: web}, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: a, controller: true}]}
spec:
  nodeSelector: {disk: fast}
  containers: [{name: web, image: web, resources: {requests: {cpu: 100m}}}]
EOF`,
			examples: []example{
				{run: "kubectl sched why pod/web-7d9c5-abcde -n shop", says: []string{"6 nodes", "disk"}, then: "kubectl delete pod web-7d9c5-abcde -n shop --wait=false"},
				{run: "kubectl sched why deployment/web -n shop --snapshot prod.snapshot -p placement", says: []string{"web-7d9c5-abcde", "6 nodes", "disk"}},
			},
		},
	}
}
