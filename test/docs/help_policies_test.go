package docs

// policySettings are the commands about policies alone.
func policySettings() []setting {
	return []setting{
		{
			command: "kubectl sched catalog",
			examples: []example{
				{run: "kubectl sched catalog list", says: []string{"web-service", "spot-fallback"}},
				{run: "kubectl sched catalog show web-service", says: []string{"ENTRY: web-service", "PARAMETERS:", "workloads", "WHAT THE EXAMPLE COMPILES TO:"}},
				{
					run:  "kubectl sched catalog use web-service --name shop-web --set workloads.namespaces=shop",
					says: []string{"+policies: \"shop-web\"", "wrote lines"},
					then: "kubectl sched explain deployment/web -n shop -f manifests | grep 'policies: .*shop-web'",
				},
			},
		},
		{
			command:  "kubectl sched catalog list",
			registry: true,
			before: `mkdir -p cue.mod/pkg/company.example && cp -r registry/*_v0.1.0 cue.mod/pkg/company.example/placement
echo 'module: "shop.example@v0", language: version: "v0.15.0"' >cue.mod/module.cue`,
			examples: []example{
				{run: "kubectl sched catalog list", says: []string{"web-service"}},
				{
					run:  "kubectl sched catalog list --from cue.mod/pkg/company.example/placement",
					says: []string{"standard", "spreads every service of the company"},
					then: "test -z \"$(ls \"$CUE_CACHE_DIR\")\"",
				},
				{
					before:  "rm -r cue.mod",
					run:     "kubectl sched catalog list --from company.example/placement --allow-registry",
					says:    []string{"standard", "spreads every service of the company"},
					then:    "find \"$CUE_CACHE_DIR\" -name standard.cue | grep v0.1.0",
					instead: "the registry is one on loopback",
				},
			},
		},
		{
			command: "kubectl sched catalog show",
			examples: []example{
				{run: "kubectl sched catalog show spot-fallback", says: []string{"ENTRY: spot-fallback", "USED AS: catalog.#SpotFallback", "EXAMPLE:", "WHAT THE EXAMPLE COMPILES TO:"}},
			},
		},
		{
			command: "kubectl sched catalog use",
			examples: []example{
				{
					run:  "kubectl sched catalog use web-service --name shop-web --set workloads.namespaces=shop --set workloads.pods.labels.tier=web --set zones=3",
					says: []string{"+policies: \"shop-web\"", "Next: kubectl sched lint"},
					then: "kubectl sched lint && grep -q 'tier: \"web\"' placement/*.cue && grep -q 'zones: 3' placement/placement.cue",
				},
				{
					run:  "kubectl sched catalog use tenant-pool --name speech placement/tenants.cue --dry-run",
					says: []string{"+pools: speech:", "would write lines", "To fill in"},
					then: "test ! -e placement/tenants.cue",
				},
			},
		},
		{
			command: "kubectl sched completion",
			examples: []example{
				{
					run:  "kubectl sched completion install",
					says: []string{"kubectl_complete-sched"},
					then: "kubectl_complete-sched lin | grep ^lint",
				},
				{run: "source <(kubectl sched completion bash)", then: "complete -p kubectl-sched"},
			},
		},
		{
			command: "kubectl sched completion install",
			before:  "mkdir -p .local/bin",
			examples: []example{
				{run: "kubectl sched completion install", says: []string{"kubectl_complete-sched"}, then: "kubectl_complete-sched lin | grep ^lint"},
				{run: "kubectl sched completion install --dir ~/.local/bin", says: []string{".local/bin/kubectl_complete-sched"}, then: "PATH=~/.local/bin:$PATH; test $(command -v kubectl_complete-sched) = ~/.local/bin/kubectl_complete-sched; kubectl_complete-sched lin | grep ^lint"},
			},
		},
		{
			command: "kubectl sched fmt",
			before:  "mkdir right && cp placement/*.cue right && sed -i 's/^\t/    /' placement/placement.cue",
			examples: []example{
				{run: "kubectl sched fmt", then: "diff -r placement right"},
				{
					before: "sed -i 's/^\t/    /' placement/placement.cue && cp placement/placement.cue wrong.cue",
					run:    "kubectl sched fmt --check", code: 1, says: []string{"placement/placement.cue"},
					then: "cmp placement/placement.cue wrong.cue && kubectl sched fmt && kubectl sched fmt --check",
				},
			},
		},
		{
			command: "kubectl sched init",
			before:  "rm -r placement",
			examples: []example{
				{run: "kubectl sched init", says: []string{"placement"}, then: "kubectl sched lint && kubectl sched fmt --check"},
				{
					before: "find placement -path '*cue.mod/pkg/*' -name '*.cue' -exec sed -i '$d' {} +",
					run:    "kubectl sched init --vendor placement",
					then:   "rm -r placement/placement.cue; mkdir new && cd new && kubectl sched init && cd .. && diff -r placement/cue.mod new/placement/cue.mod",
				},
			},
		},
		{
			command: "kubectl sched test",
			examples: []example{
				{run: "kubectl sched test", says: []string{"1 passed"}},
				{
					before: "printf 'package shop\\n\\ntests: batch: {nodes: web: {count: 1, zones: [\"eu-1a\"]}, workloads: web: {namespace: \"shop\", labels: tier: \"web\"}, expect: workloads: web: placed: \"all\"}\\n' >placement/more.cue",
					run:    "kubectl sched test --run '^web' -v",
					says:   []string{"web survives the loss of a zone", "1 passed"},
				},
				{
					before: "cp batch/batch.cue placement",
					run:    "kubectl sched test -p placement -o junit --coverage > results.xml",
					then:   "grep 'value=.batch.' results.xml && grep 'web survives the loss of a zone' results.xml",
				},
			},
		},
		{
			command: "kubectl sched version",
			examples: []example{
				{run: "kubectl sched version", says: []string{"Client Version: " + release.Version, "Kubernetes Version: ", "CUE Version: ", "Schema Version: v"}},
				{run: "kubectl sched version -o json", says: []string{`"gitVersion": "` + release.Version + `"`}},
			},
		},
	}
}
