package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// rungs says what each step of docs/adoption.md must come to, by its heading.
var rungs = map[string]rung{
	"1-import": {after: []func(*ladder, []string){func(l *ladder, says []string) {
		if !strings.Contains(says[0], "Nothing is written") || !strings.Contains(says[1], "change none of 2 pod templates") {
			l.Errorf("import says:\n%s%s", says[0], says[1])
		}
		l.sameWebs()
	}}},
	"2-lint": {after: []func(*ladder, []string){func(l *ladder, says []string) {
		if _, err := os.Stat(filepath.Join(l.dir, "known.json")); err != nil || !strings.HasPrefix(says[0], "no findings") {
			l.Errorf("%v, and lint says:\n%s", err, says[0])
		}
		l.sameWebs()
	}}},
	"3-render-and-see-no-difference": {harmless: true, after: []func(*ladder, []string){func(l *ladder, says []string) {
		if says[0] != "" {
			l.Errorf("compile --diff says:\n%s", says[0])
		}
		l.sameWebs()
	}}},
	"4-take-placement-out-of-the-manifests": {
		after: []func(*ladder, []string){func(l *ladder, _ []string) {
			web := l.web()
			spread, _, err := unstructured.NestedSlice(web.Object, "spec", "template", "spec", "topologySpreadConstraints")
			if err != nil || len(spread) != 1 || !annotated(web) || web.GetAnnotations()["deployment.kubernetes.io/revision"] != "1" {
				l.Errorf("the Deployment has the constraints %v and the annotations %v (%v)", spread, web.GetAnnotations(), err)
			}
			l.sameWebs()
		}},
		gone: func(l *ladder) {
			if annotated(l.web()) {
				l.Error("the Deployment still says that the policies place it")
			}
			l.sameWebs()
		},
	},
	"5-say-what-is-meant": {
		after: []func(*ladder, []string){func(l *ladder, _ []string) {
			text, err := l.web().MarshalJSON()
			if err != nil || !strings.Contains(string(text), "matchLabelKeys") {
				l.Errorf("the Deployment does not count the pods of one rollout alone: %s (%v)", text, err)
			}
			now := l.uids("shop/deploy/web")
			if slices.ContainsFunc(now, func(uid types.UID) bool { return slices.Contains(l.webs, uid) }) {
				l.Errorf("pods have stayed: %v, %v", l.webs, now)
			}
			counts, err := l.where(l.Context(), "shop/deploy/web", "zone")
			if err != nil || len(counts) != 3 || skew(counts) != 0 {
				l.Errorf("the pods are in %v (%v)", counts, err)
			}
			l.webs = now
		}},
		gone: func(l *ladder) { l.webs = l.uids("shop/deploy/web") },
	},
	"6-observe": {
		after: []func(*ladder, []string){func(l *ladder, says []string) {
			row := fmt.Sprintf(`(?m)^reports +%d +0 +%[1]d +<none>$`, l.made) // all pods that the test has made so far
			if !regexp.MustCompile(row).MatchString(says[1]) {
				l.Errorf("status says:\n%s", says[1])
			}
			l.unplaced("reports")
			l.unplaced("exports")
			l.sameWebs()
		}},
		gone: func(l *ladder) { l.unplaced("reports") },
	},
	"7-guard-a-pool": {
		after: []func(*ladder, []string){
			func(l *ladder, _ []string) {
				l.place(l.stranger())
				l.sameWebs()
			},
			func(l *ladder, _ []string) {
				before := l.strangers()
				if err := l.refused(l.Context(), l.asObject(l.stranger()), `pool "gpu" is dedicated`); err != nil {
					l.Error(err)
				}
				if after := l.strangers(); len(before) == 0 || !slices.Equal(before, after) {
					l.Errorf("those that run on the pool without a grant were %v and are %v", before, after)
				}
				l.warnsOfGuard()
				// Whoever has the grant gets new pods as ever.
				serve := l.uids("ml/deploy/serve")
				if err := l.kube.CoreV1().Pods("ml").DeleteCollection(l.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
					l.Fatal(err)
				}
				if err := until(l.Context(), "the pods with a grant are made again", func(context.Context) (string, error) {
					now := l.uids("ml/deploy/serve")
					if len(now) != 2 || slices.ContainsFunc(now, func(uid types.UID) bool { return slices.Contains(serve, uid) }) {
						return "they are not", nil
					}
					return "", nil
				}); err != nil {
					l.Fatal(err)
				}
				if err := l.rolledOut(l.Context(), "ml/deploy/serve"); err != nil {
					l.Error(err)
				}
				l.sameWebs()
			},
		},
		gone: func(l *ladder) {
			pod := l.asObject(l.stranger())
			if err := until(l.Context(), "a pod without a grant is let in", func(ctx context.Context) (string, error) {
				return "", l.client.create(ctx, pod)
			}); err != nil {
				l.Error(err)
			}
		},
	},
	"8-admission": {
		after: []func(*ladder, []string){
			func(l *ladder, _ []string) {
				l.placed("reports")
				l.unplaced("exports")
				l.sameWebs()
			},
			func(l *ladder, _ []string) {
				l.placed("reports")
				l.placed("exports")
				l.sameWebs()
			},
		},
		gone: func(l *ladder) {
			l.unplaced("reports")
			l.unplaced("exports")
		},
	},
	"9-the-scheduler": {
		after: []func(*ladder, []string){func(l *ladder, _ []string) {
			stop := l.scheduler()
			defer stop()
			first, second := l.placed("reports"), l.placed("reports")
			if first.Spec.SchedulerName != "placement-pack" || first.Spec.NodeName != second.Spec.NodeName {
				l.Errorf("%s has placed new pods on %s and %s", first.Spec.SchedulerName, first.Spec.NodeName, second.Spec.NodeName)
			}
			l.sameWebs()
		}},
		gone: func(l *ladder) {
			if pod := l.placed("reports"); pod.Spec.SchedulerName != "default-scheduler" {
				l.Errorf("a new pod waits for %s", pod.Spec.SchedulerName)
			}
		},
	},
}

func (l *ladder) web() *unstructured.Unstructured {
	l.Helper()
	web, err := l.get(l.Context(), "shop/deploy/web")
	if err != nil {
		l.Fatal(err)
	}
	return web
}

// warnsOfGuard holds that whoever would install the scheduler hears of a guard that does
// not let it bind: where its account is not the one that is exempt.
func (l *ladder) warnsOfGuard() {
	l.Helper()
	file := filepath.Join(l.bin, "profiles.yaml")
	l.write(file, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: own}]\n")
	for namespace, warns := range map[string]bool{"placement-system": false, "elsewhere": true} {
		says := l.shell("kubectl sched scheduler install --config " + file + " --image registry.example.com/s:v1 --dry-run=server -n " + namespace + " 2>&1")
		if strings.Contains(says, "scheduler/guarded") != warns {
			l.Errorf("installed in %s it says:\n%s", namespace, says)
		}
	}
}

// asObject is the pod as a manifest has it.
func (l *ladder) asObject(pod *corev1.Pod) *unstructured.Unstructured {
	l.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		l.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return u
}

// sameWebs holds that the pods of the web have not been made anew.
func (l *ladder) sameWebs() {
	l.Helper()
	if now := l.uids("shop/deploy/web"); !slices.Equal(now, l.webs) {
		l.Errorf("the pods of the web were %v and are %v", l.webs, now)
	}
}

// strangers are the pods that run on the pool without a grant, with their nodes.
func (l *ladder) strangers() (all []string) {
	l.Helper()
	pods, err := l.kube.CoreV1().Pods("shop").List(l.Context(), metav1.ListOptions{})
	if err != nil {
		l.Fatal(err)
	}
	for _, p := range pods.Items {
		if strings.HasPrefix(p.Spec.NodeName, "gpu-") {
			all = append(all, p.Name+" on "+p.Spec.NodeName)
		}
	}
	slices.Sort(all)
	return all
}
