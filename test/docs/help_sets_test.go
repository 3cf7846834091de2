package docs

// The shop runs, and all its pods came up in one zone, since the others were closed.
const shopRuns = `if ! kubectl get deployment web -n shop >/dev/null 2>&1; then
	kubectl cordon -l 'topology.kubernetes.io/zone!=eu-1a'
	kubectl apply -f manifests
	kubectl rollout status -n shop deployment/web --timeout 1m
	kubectl uncordon -l 'topology.kubernetes.io/zone!=eu-1a'
fi
`

// spread holds that the Deployment has what the policy asks for, and unspread that it has
// not.
const (
	spread   = "kubectl get deployment web -n shop -o jsonpath='{.spec.template.spec.topologySpreadConstraints[*].topologyKey}' | grep topology.kubernetes.io/zone"
	unspread = "test -z \"$(kubectl get deployment web -n shop -o jsonpath='{.spec.template.spec.topologySpreadConstraints}')\""
	noSet    = "test -z \"$(kubectl get configmap -A -l kubectl-sched.github.io/set=shop -o name)\""
)

// shopOwner makes the kubeconfig one of somebody who may write in the namespace shop and
// nowhere else, as docs/surfaces.md says.
const shopOwner = `kubectl create serviceaccount owner -n shop
kubectl create rolebinding owner -n shop --clusterrole=admin --serviceaccount=shop:owner
kubectl create clusterrole look --verb=get,list --resource=nodes,namespaces,persistentvolumes,priorityclasses.scheduling.k8s.io,storageclasses.storage.k8s.io
kubectl create clusterrolebinding look --clusterrole=look --serviceaccount=shop:owner
cp "$KUBECONFIG" admin.kubeconfig
kubectl config set-credentials owner --token="$(kubectl create token owner -n shop)"
kubectl config set-context --current --user=owner
`

// probe makes a pod as a dry run, and prints its spread.
func probe(namespace string) string {
	return "kubectl run probe -n " + namespace + " -l tier=web --image=probe --dry-run=server -o jsonpath='{.spec.topologySpreadConstraints}'"
}

// setSettings are the commands about sets, in the order of a set's life.
func setSettings() []setting {
	return []setting{
		{
			command: "kubectl sched diff",
			before:  shopRuns,
			examples: []example{
				{run: "kubectl sched diff --set shop", code: 1, says: []string{"restarts 1 workload (6 pods): Deployment shop/web", "+      topologySpreadConstraints:"}, then: unspread},
				{run: "kubectl sched diff --set shop --placement", code: 1, says: []string{"eu-1a 6", "eu-1a 2, eu-1b 2, eu-1c 2"}},
				{run: "kubectl sched diff --set shop -o effects", code: 1, says: []string{"Deployment shop/web (restarts 6 pods)", "from: policy \"web-ha\" at placement/placement.cue:5:10"}},
				{
					run:  `KUBECTL_EXTERNAL_DIFF="colordiff -N -u" kubectl sched diff --set shop`,
					code: 1, says: []string{"restarts 1 workload", "+      topologySpreadConstraints:"}, instead: "colordiff is diff without colours",
				},
			},
		},
		{
			command: "kubectl sched apply",
			before: shopRuns + `for name in api pay cart; do sed "s/name: web/name: $name/; s/app: web/app: $name/" manifests/web.yaml; echo ---; done | sed 's/replicas: 6/replicas: 2/' | kubectl apply -f -
for name in api pay cart; do kubectl rollout status -n shop deployment/$name --timeout 1m; done`,
			examples: []example{
				{
					run: "kubectl sched apply --set shop --wait", says: []string{"set shop is at revision 1: 4 workloads updated", "Deployment shop/web    eu-1b   2       2      2"},
					then: spread + "\n" + "test 6 = $(kubectl get pods -n shop -l app=web -o name --field-selector status.phase=Running | wc -l)",
				},
				{
					before: "kubectl sched delete --set shop --wait",
					run:    "kubectl sched apply --set shop --max-unavailable-workloads 2", says: []string{"set shop is at revision 1: 4 workloads updated", "has rolled out (2 of 4)"},
					then: spread,
				},
				{
					before: "kubectl sched delete --set shop --wait && kubectl delete deployments -n shop api pay cart\n" + shopOwner + "! kubectl get configmaps -n ml && ! kubectl get configmaps -n kube-system",
					run:    "kubectl sched apply --set shop -n shop --set-namespace shop", says: []string{"set shop is at revision 1: 1 workload updated"},
					then: spread + "\nkubectl get configmap -n shop -o name | grep shop\nkubectl sched delete --set shop --set-namespace shop --wait",
				},
				{
					before: "mv admin.kubeconfig $KUBECONFIG\nprintf 'package shop\\n\\npolicies: ml: {workloads: namespaces: [\"ml\"], spread: zone: strength: \"prefer\"}\\n' >placement/ml.cue",
					run:    "kubectl sched apply --set shop --surface admission --observe", says: []string{"observes in all namespaces: changes no pod"},
					then: unspread + "\ntest -z \"$(" + probe("shop") + ")\"\nkubectl sched status --set shop | grep observ",
				},
				{
					run: "kubectl sched apply --set shop --surface admission -n shop --wait", says: []string{"places new pods in namespace shop;", "set shop is at revision 2"},
					then: unspread + "\n" + probe("shop") + " | grep topology.kubernetes.io/zone\ntest -z \"$(" + probe("ml") + ")\"",
				},
				{
					run: "kubectl sched apply --set shop --surface admission -A --wait", says: []string{"places new pods in all namespaces;", "set shop is at revision 3"},
					then: probe("shop") + " | grep topology.kubernetes.io/zone\n" + probe("ml") + " | grep topology.kubernetes.io/zone\nkubectl sched delete --set shop --wait",
				},
			},
		},
		{
			command: "kubectl sched history",
			before:  shopRuns + "kubectl sched apply --set shop --wait && sed -i 's/maxSkew: 1/maxSkew: 2/' placement/placement.cue && kubectl sched apply --set shop --wait",
			examples: []example{
				{run: "kubectl sched history --set shop", says: []string{"1          20", "2          20", "complete", "apply by sandbox-admin"}},
			},
		},
		{
			command: "kubectl sched undo",
			before:  shopRuns,
			examples: []example{
				{run: "kubectl sched undo --set shop", says: []string{"set shop is at revision 3"}, then: "kubectl get deployment web -n shop -o yaml | grep 'maxSkew: 1' && ! kubectl get deployment web -n shop -o yaml | grep 'maxSkew: 2'"},
				{
					before: "sed -i 's/maxSkew: 1/maxSkew: 3/' placement/placement.cue && kubectl sched apply --set shop --wait",
					run:    "kubectl sched undo --set shop --to-revision 3 --wait", says: []string{"set shop is at revision 5: 1 workload updated", "Deployment shop/web   eu-1a   2       2      2"},
					then: "! kubectl get deployment web -n shop -o yaml | grep 'maxSkew: 3'",
				},
			},
		},
		{
			command: "kubectl sched status",
			before:  shopRuns + "kubectl patch deployment web -n shop --type json -p '[{\"op\": \"replace\", \"path\": \"/spec/template/spec/topologySpreadConstraints/0/maxSkew\", \"value\": 4}]'",
			examples: []example{
				{run: "kubectl sched status --set shop", says: []string{"revision 5, complete", "Deployment shop/web", "1 drift"}},
				{run: "kubectl sched status --set shop -o json", says: []string{`"kubectl-patch"`, `"field": ".spec.template.spec.topologySpreadConstraints"`}},
			},
		},
		{
			command: "kubectl sched delete",
			before:  "kubectl delete deployment web -n shop --cascade=foreground && kubectl sched delete --set shop\n" + shopRuns + "kubectl sched apply --set shop --wait",
			examples: []example{
				{run: "kubectl sched delete --set shop --dry-run=server", says: []string{"Deployment shop/web put back as it was (server dry run)"}, then: spread},
				{run: "kubectl sched delete --set shop", says: []string{"set shop deleted: 1 workload put back as it was"}, then: unspread + "\n" + noSet + "\nkubectl get deployment web -n shop"},
			},
		},
	}
}
