package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/kubectl-sched/kubectl-sched/test/page"
)

// chart is a chart as charts are: it leaves the namespace to helm.
var chart = map[string]string{
	"shop/Chart.yaml":  "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
	"shop/values.yaml": "tag: 1.2.3\n",
	"shop/templates/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-web
  labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}
spec:
  replicas: 3
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web, tier: web}
    spec:
      containers:
      - name: web
        image: registry.example.com/shop/web:{{ .Values.tag }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-web
data:
  tag: {{ .Values.tag | quote }}
`,
	// Helm 4 gives hooks to a post-renderer too.
	"shop/templates/hook.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: "post-install,post-upgrade"}
`,
}

// TestHelm does with Helm 3 and 4 what docs/integrations.md says, with a release that helm
// installed before there was a policy. Helm and the policies are at peace then: what is
// upgraded again is as it was, what the policies give up goes, and nothing of others is
// lost.
func TestHelm(t *testing.T) {
	t.Parallel()
	var script page.Block
	uses := map[string][]page.Block{"helm3": nil, "helm4": nil}
	for _, b := range readPage(t, filepath.Join(root, "docs", "integrations.md")).Blocks {
		switch {
		case b.Under != "helm":
		case b.Title == "place.sh":
			script = b
		case strings.Contains(b.After, "Helm 3 "):
			uses["helm3"] = append(uses["helm3"], b)
		default:
			uses["helm4"] = append(uses["helm4"], b)
		}
	}
	if script.Text == "" || len(uses["helm3"]) != 1 || len(uses["helm4"]) != 2 {
		t.Fatal("the page has not a script, commands for Helm 3, and a plugin and commands for Helm 4")
	}
	kubeconfig := startCluster(t)
	for _, version := range []string{"helm3", "helm4"} {
		ok := t.Run(version, func(t *testing.T) {
			h := newHelm(t, version, kubeconfig)
			h.put(script)
			h.run("helm install shop ./shop -n shop")
			if d := h.deployment(); len(d.Spec.Template.Spec.TopologySpreadConstraints) > 0 {
				t.Fatal("something is placed before there is a post-renderer")
			}
			h.refused(`Helm release "shop"`)
			h.run("kubectl label -n shop deployment/shop-web owner=web-team")
			upgrade := ""
			for _, b := range uses[version] {
				if b.Title != "" {
					h.put(b)
					continue
				}
				list := commands(b)
				upgrade = list[len(list)-1]
				for _, c := range list {
					h.run(c)
				}
			}
			h.peace(upgrade)
		})
		if !ok {
			return // the release is still there
		}
	}
}

// helmCase is a folder with the house and the chart, in which a version of helm is called helm.
type helmCase struct {
	*testing.T
	dir, kubeconfig, path string
}

func newHelm(t *testing.T, version, kubeconfig string) *helmCase {
	t.Helper()
	h := &helmCase{T: t, dir: t.TempDir(), kubeconfig: kubeconfig, path: besides(t, "helm", version)}
	if err := os.CopyFS(h.dir, os.DirFS(house)); err != nil {
		t.Fatal(err)
	}
	for name, text := range chart {
		h.put(page.Block{Title: name, Text: text})
	}
	return h
}

func (h *helmCase) put(b page.Block) {
	h.Helper()
	if err := b.Put(h.dir); err != nil {
		h.Fatal(err)
	}
}

func (h *helmCase) run(command string) string {
	h.Helper()
	out, code := shell(h.T, h.dir, h.kubeconfig, "set -euo pipefail\n"+command, h.path)
	if code != 0 {
		h.Fatalf("%s: exit code %d:\n%s", command, code, out)
	}
	return out
}

// deployment returns what the chart's Deployment is in the cluster.
func (h *helmCase) deployment() (d appsv1.Deployment) {
	h.Helper()
	if err := json.Unmarshal([]byte(h.run("kubectl get -n shop deployment/shop-web -o json --show-managed-fields")), &d); err != nil {
		h.Fatal(err)
	}
	return d
}

// refused holds that the surface live, which would write what helm writes, is refused.
func (h *helmCase) refused(why string) {
	h.Helper()
	if out := h.run("! kubectl sched apply -p placement --surface live --set shop -n shop 2>&1"); !strings.Contains(out, why) {
		h.Errorf("it is not said that %s:\n%s", why, out)
	}
}

// peace holds, once the command has upgraded the release with the post-renderer, how helm
// and the policies live together from there on, and uninstalls the release.
func (h *helmCase) peace(upgrade string) {
	h.Helper()
	placed := h.deployment()
	var keys []string
	for _, c := range placed.Spec.Template.Spec.TopologySpreadConstraints {
		keys = append(keys, c.TopologyKey)
	}
	if want := []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}; !slices.Equal(keys, want) {
		h.Fatalf("after %s the pods are spread over %v", upgrade, keys)
	}
	for _, m := range placed.ManagedFields {
		if strings.Contains(m.Manager, "sched") {
			h.Errorf("%s has fields of the Deployment, which is helm's", m.Manager)
		}
	}
	h.refused("apply/rendered")
	for range 10 {
		h.run(upgrade)
	}
	if now := h.deployment(); now.Generation != placed.Generation || now.Labels["owner"] != "web-team" {
		h.Errorf("ten upgrades made generation %d of %d, and the labels %v", now.Generation, placed.Generation, now.Labels)
	}
	h.run(upgrade + " --set tag=1.2.4")
	now := h.deployment()
	if diff := cmp.Diff(placed.Spec.Template.Spec.TopologySpreadConstraints, now.Spec.Template.Spec.TopologySpreadConstraints); diff != "" || now.Spec.Template.Spec.Containers[0].Image != "registry.example.com/shop/web:1.2.4" {
		h.Errorf("an upgrade to another version: %s, and the spread (-before +after):\n%s", now.Spec.Template.Spec.Containers[0].Image, diff)
	}
	h.run("helm get manifest shop -n shop >kept.yaml && kubectl sched compile -p placement -n shop -f kept.yaml --in-place --check")
	// A policy that is withdrawn takes its fields along; the way back brings them again.
	h.run("printf 'package shop\\n' >placement/placement.cue && rm placement/tests.cue && " + upgrade)
	gone := h.deployment()
	if len(gone.Spec.Template.Spec.TopologySpreadConstraints) > 0 || gone.Labels["owner"] != "web-team" {
		h.Errorf("without a policy the pods are spread by %v, and the labels are %v", gone.Spec.Template.Spec.TopologySpreadConstraints, gone.Labels)
	}
	h.run("helm rollback shop -n shop")
	if diff := cmp.Diff(placed.Spec.Template.Spec.TopologySpreadConstraints, h.deployment().Spec.Template.Spec.TopologySpreadConstraints); diff != "" {
		h.Errorf("after the rollback (-before +after):\n%s", diff)
	}
	h.run("helm upgrade shop ./shop -n shop")
	if spread := h.deployment().Spec.Template.Spec.TopologySpreadConstraints; len(spread) > 0 {
		h.Errorf("after an upgrade without the post-renderer the pods are spread by %v", spread)
	}
	h.run("helm uninstall shop -n shop --wait")
}
