package docs

// handmade is a manifest with placement that somebody wrote, and a mistake in it: the
// spread counts pods of the revision before, too.
const handmade = `cat >manifests/api.yaml <<'EOF'
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  replicas: 3
  selector:
    matchLabels: {app: api}
  template:
    metadata:
      labels: {app: api, tier: api}
    spec:
      tolerations:
      - {key: example.com/batch, operator: Exists, effect: NoSchedule}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector:
          matchLabels: {app: api}
      containers:
      - {name: api, image: registry.example.com/shop/api:1.2.3, resources: {requests: {cpu: 100m, memory: 64Mi}}}
EOF
`

// inGit makes the folder a repository, the first commit of which is what is there.
const inGit = "git init -q -b main && git add . && git commit -qm 'The first revision'\n"

// manifestSettings are the commands about policies and files.
func manifestSettings() []setting {
	return []setting{
		{
			command: "kubectl sched fn",
			before: `mkdir -p overlays/prod && cp manifests/web.yaml overlays/prod
cat >overlays/prod/kustomization.yaml <<'EOF'
resources: [web.yaml]
nameSuffix: -prod
transformers: [placement.yaml]
EOF
cat >overlays/prod/placement.yaml <<'EOF'
apiVersion: kubectl-sched.github.io/v1alpha1
kind: Placement
metadata:
  name: placement
  annotations:
    config.kubernetes.io/function: |
      exec: {path: kubectl-sched, args: [fn]}
spec:
  policies: [../../placement]
EOF`,
			examples: []example{{
				run:     "kustomize build --enable-alpha-plugins --enable-exec overlays/prod",
				says:    []string{"name: web-prod\n", "topologySpreadConstraints:\n"},
				instead: "kustomize is its library, with these flags",
			}},
		},
		{
			command: "kubectl sched review",
			before: "cp prod.snapshot eu.snapshot && sed 's/eu-1/us-1/g; s/cluster: prod/cluster: prod-us/' prod.snapshot >us.snapshot\n" + inGit + `git init -q --bare origin.git && git remote add origin "$PWD/origin.git" && git push -q origin main
sed -i 's/replicas: 6/replicas: 8/' manifests/web.yaml`,
			examples: []example{
				{run: "kubectl sched review --snapshot prod.snapshot -p placement -f manifests/ -R", says: []string{"Deployment shop/web"}},
				{
					before: "sed -i 's/cpu: 100m/cpu: 7/; s/replicas: 8/replicas: 9/' manifests/web.yaml && git commit -qam 'More for the web'",
					run:    "kubectl sched review --base origin/main --head HEAD --snapshot prod.snapshot -p placement -f manifests/ -R -o markdown=comment.md -o sarif=new.sarif -o html=review.html --fail-on 'pending,moved>10%,skew>1,findings=error'",
					code:   1,
					says:   []string{"pending"},
					then:   "grep -q 'shop/web' comment.md && grep -q '\"version\": \"2.1.0\"' new.sarif && grep -qi '<html' review.html",
				},
				{
					before: "git reset -q --hard origin/main && printf 'package shop\\n\\nclusters: {\"prod-eu\": {}, \"prod-us\": {}}\\n' >placement/clusters.cue && git add . && git commit -qm 'A fleet' && git push -q origin main && sed -i 's/maxSkew: 1/maxSkew: 2/' placement/placement.cue",
					run:    "kubectl sched review --snapshot prod-eu=eu.snapshot --snapshot prod-us=us.snapshot",
					says:   []string{"prod-eu", "prod-us"},
				},
			},
		},
		{
			command: "kubectl sched snapshot diff",
			before:  "cp prod.snapshot monday.snapshot && sed 's/replicas: 6/replicas: 8/; s/cpu: 8,/cpu: 16,/' prod.snapshot >friday.snapshot",
			examples: []example{
				{run: "kubectl sched snapshot diff monday.snapshot friday.snapshot", code: 1, says: []string{"eu-1a-worker-0", "shop/web"}},
				{run: "kubectl sched snapshot diff monday.snapshot friday.snapshot -o json", code: 1, says: []string{`"eu-1a-worker-0"`}, then: "kubectl sched snapshot diff monday.snapshot monday.snapshot"},
			},
		},
		{
			command: "kubectl sched snapshot show",
			before:  "cp prod.snapshot prod-eu.snapshot",
			examples: []example{
				{run: "kubectl sched snapshot show prod-eu.snapshot", says: []string{"A snapshot of prod", "6       nodes", "eu-1c"}},
				{run: "kubectl sched snapshot show prod-eu.snapshot -o json", says: []string{`"kind": "SnapshotSummary"`, `"cluster": "prod"`}},
			},
		},
	}
}
