package reviewed

import "fmt"

var namespaces = []string{"shop", "payments", "search", "media", "analytics", "platform"}

var words = []string{"cart", "checkout", "catalog", "pricing", "ledger", "invoices", "suggest", "ranker", "thumbs", "transcode", "events", "reports", "mailer", "sessions", "profiles", "stock"}

// tier is a sort of workload.
type tier struct {
	name, pool, cpu, memory string
	// often is how many of ten workloads are of the tier, and replicas how many pods
	// each has at least.
	often, replicas int
}

var tiers = []tier{
	{"web", "general", "500m", "1Gi", 5, 9},
	{"worker", "general", "1", "2Gi", 2, 20},
	{"batch", "spot", "1", "2Gi", 2, 30},
	{"cache", "memory", "1500m", "12Gi", 1, 24},
}

type workload struct {
	namespace, name string
	tier            tier
	replicas        int
}

// workloads returns those that have the case's number of pods, about.
func (c Case) workloads() []workload {
	var all []workload
	for pods, i := 0, 0; pods < c.Pods; i++ {
		t := tiers[0]
		for n, k := i*7%10, 0; k < len(tiers); k++ {
			if t = tiers[k]; n < t.often {
				break
			}
			n -= t.often
		}
		w := workload{namespaces[i%len(namespaces)], words[i%len(words)], t, min(t.replicas+i%5*3, c.Pods-pods)}
		if i >= len(words) {
			w.name = fmt.Sprintf("%s-%d", w.name, i/len(words))
		}
		pods += w.replicas
		all = append(all, w)
	}
	return all
}

func (w workload) manifest() string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: %[1]s
  name: %[2]s
spec:
  replicas: %[4]d
  selector:
    matchLabels: {app: %[2]s}
  template:
    metadata:
      labels: {app: %[2]s, tier: %[3]s}
    spec:
      containers:
        - name: app
          image: registry.example/%[2]s:1.4.0
          resources:
            requests: {cpu: %[5]q, memory: %[6]q}
`, w.namespace, w.name, w.tier.name, w.replicas, w.tier.cpu, w.tier.memory)
}

// wishlist is a workload that the change adds. Its author wrote a spread by hand that
// counts no pod at all.
const wishlist = `apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: shop
  name: wishlist
spec:
  replicas: 4
  selector:
    matchLabels: {app: wishlist}
  template:
    metadata:
      labels: {app: wishlist, tier: none}
    spec:
      topologySpreadConstraints:
        - topologyKey: kubernetes.io/hostname
          maxSkew: 1
          whenUnsatisfiable: DoNotSchedule
          labelSelector:
            matchLabels: {app: whishlist}
      containers:
        - name: app
          image: registry.example/wishlist:0.1.0
          resources:
            requests: {cpu: 250m, memory: 512Mi}
`

// quorum is a policy that the change adds, for more than the cluster has: every pod of
// the caches on a node of its own, and none on one that others have.
const quorum = `
	"cache-apart": {
		workloads: pods: labels: tier: "cache"
		apart: node: strength: "require"
	}
`

// policies returns the document with the maxSkew of the web, how strictly batch keeps
// to spot nodes, and more policies.
func policies(maxSkew int, batch, more string) string {
	return fmt.Sprintf(`package placement

import "github.com/kubectl-sched/kubectl-sched/policy"

pools: [string]:    policy.#Pool
policies: [string]: policy.#Policy

pools: {
	general: nodes: labels: "example.com/pool": "general"
	memory: nodes: labels: "example.com/pool": "memory"
	spot: {
		nodes: labels: "karpenter.sh/capacity-type": "spot"
		managedBy: "karpenter"
	}
}

policies: {
	"web-ha": {
		workloads: pods: labels: tier: "web"
		nodes: require: pools: ["general"]
		spread: zone: {strength: "require", maxSkew: %[1]d, minDomains: 3}
	}
	"workers": {
		workloads: pods: labels: tier: "worker"
		nodes: require: pools: ["general"]
	}
	"batch-on-spot": {
		workloads: pods: labels: tier: "batch"
		nodes: %[2]s: pools: ["spot"]
	}
	"cache-memory": {
		workloads: pods: labels: tier: "cache"
		nodes: require: pools: ["memory"]
	}
%[3]s}
`, maxSkew, batch, more)
}
