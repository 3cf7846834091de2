package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// generate writes n policies, each a folder's worth of intent for one
// namespace, and m manifests spread over their namespaces, with so many
// environment variables each beside the two that all have.
func generate(dir string, policies, manifests, variables int) error {
	for _, sub := range []string{"placement/cue.mod", "manifests"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	var cue strings.Builder
	cue.WriteString(header)
	for i := range policies {
		fmt.Fprintf(&cue, policyText, i, i%500, i%7, i%3+1)
	}
	files := map[string]string{
		"placement/cue.mod/module.cue": "module: \"bench.example/placement@v0\"\nlanguage: version: \"v0.15.0\"\n",
		"placement/policies.cue":       cue.String(),
	}
	for i := range manifests {
		name := fmt.Sprintf("manifests/%03d/app-%05d.yaml", i%100, i)
		files[name] = fmt.Sprintf(manifestText, i, i%500, i%7, i%9+1, variablesText(i, variables))
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	if manifests > 50 {
		return nil
	}
	return flatten(dir)
}

// variablesText are n environment variables whose values no other manifest has.
func variablesText(manifest, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "            - name: VARIABLE_%d\n              value: value-%d-%d\n", i, manifest, i)
	}
	return b.String()
}

// flatten moves the manifests into one folder, for commands without -R.
func flatten(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "manifests/*/*.yaml"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Rename(f, filepath.Join(dir, "manifests", filepath.Base(f))); err != nil {
			return err
		}
		_ = os.Remove(filepath.Dir(f)) // fails until it is empty, which is meant
	}
	return nil
}

const header = `package bench

import "github.com/kubectl-sched/kubectl-sched/policy"

pools: [string]:    policy.#Pool
policies: [string]: policy.#Policy

pools: {
	spot: nodes: labels: "karpenter.sh/capacity-type": "spot"
	gpu: {
		nodes: labels: "node-restriction.kubernetes.io/class": "gpu"
		dedicated: {}
	}
}
`

const policyText = `
policies: "team-%d": {
	workloads: {
		namespaces: ["team-%d"]
		kinds: ["apps/Deployment"]
		pods: labels: tier: "t%d"
	}
	nodes: {
		require: arch: ["amd64", "arm64"]
		disfavor: pools: ["spot"]
	}
	spread: zone: {strength: "require", maxSkew: %d}
	spread: node: strength: "prefer"
}
`

const manifestText = `# Source: app/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-%[1]d
  namespace: team-%[2]d
  labels:
    app.kubernetes.io/name: app-%[1]d
    app.kubernetes.io/part-of: "bench"
spec:
  replicas: %[4]d
  revisionHistoryLimit: 5
  selector:
    matchLabels:
      app.kubernetes.io/name: app-%[1]d
  template:
    metadata:
      labels:
        app.kubernetes.io/name: app-%[1]d
        tier: t%[3]d
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "8080"
    spec:
      serviceAccountName: app
      tolerations:
        - key: example.com/maintenance
          operator: Exists # set by hand
      containers:
        - name: app
          image: registry.example/app:1.2.%[1]d
          args: ["--listen", ":8080", "--log-level=info"]
          ports:
            - name: http
              containerPort: 8080
          env:
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: GOMEMLIMIT
              value: 400MiB
%[5]s          resources:
            requests: {cpu: 250m, memory: 256Mi}
            limits: {memory: 512Mi}
          readinessProbe:
            httpGet: {path: /ready, port: http}
            periodSeconds: 5
          volumeMounts:
            - name: config
              mountPath: /etc/app
      volumes:
        - name: config
          configMap:
            name: app-%[1]d
`
