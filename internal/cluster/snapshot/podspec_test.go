package snapshot

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func specPod(name, node string, edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: node, SchedulerName: "default-scheduler", Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if edit != nil {
		edit(p)
	}
	return p
}

func encoded(t rapid.TB, p *corev1.Pod) []byte {
	t.Helper()
	data, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Pods are what they were, share what is equal, and keep what is their own.
func TestPodSpecsAreShared(t *testing.T) {
	t.Parallel()
	pods := []*corev1.Pod{
		specPod("a", "n1", nil), specPod("b", "n2", nil), specPod("waits", "", nil),
		specPod("other", "n1", func(p *corev1.Pod) { p.Spec.Hostname = "n1" }),
		specPod("bare", "n1", func(p *corev1.Pod) { *p = corev1.Pod{} }),
		specPod("b2", "n2", func(p *corev1.Pod) { p.Spec.Containers[0].Name = "d" }),
	}
	specs, got := podSpecs{}, make([]*corev1.Pod, len(pods))
	for i, p := range pods {
		got[i] = &corev1.Pod{}
		if err := specs.unmarshal(encoded(t, p), got[i]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(pods, got); diff != "" {
		t.Error(diff)
	}
	if a, b, waits := &got[0].Spec.Containers[0], &got[1].Spec.Containers[0], &got[2].Spec.Containers[0]; a != b || a != waits {
		t.Error("equal specs are not shared")
	}
}

// What is not as this program writes it is decoded as the API's own types do, or
// refused where they refuse.
func TestPodSpecsOfStrangeBytes(t *testing.T) {
	t.Parallel()
	whole := encoded(t, specPod("a", "n1", nil))
	again := encoded(t, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n2", Hostname: "h"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}})
	twoNodes := protowire.AppendString(protowire.AppendTag(encodedSpec(t, whole), specNode, protowire.BytesType), "n9")
	cases := map[string][]byte{
		"merged":        append(append([]byte{}, whole...), again...),
		"unknown field": protowire.AppendVarint(protowire.AppendTag(append([]byte{}, whole...), 99, protowire.VarintType), 7),
		"wrong type":    protowire.AppendVarint(protowire.AppendTag(append([]byte{}, whole...), podSpec, protowire.VarintType), 7),
		"two nodes":     protowire.AppendBytes(protowire.AppendTag(nil, podSpec, protowire.BytesType), twoNodes),
		"node no text":  protowire.AppendBytes(protowire.AppendTag(nil, podSpec, protowire.BytesType), protowire.AppendVarint(protowire.AppendTag(nil, specNode, protowire.VarintType), 1)),
		"empty":         {},
	}
	for end := range whole {
		cases[fmt.Sprintf("cut at %d", end)] = whole[:end]
	}
	for name, data := range cases {
		same(t, name, data)
	}
}

func encodedSpec(t *testing.T, pod []byte) (spec []byte) {
	t.Helper()
	if !eachField(pod, func(number protowire.Number, value, _ []byte) bool {
		if number == podSpec {
			spec = append(spec, value...)
		}
		return true
	}) {
		t.Fatal("the pod cannot be taken apart")
	}
	return spec
}

// same holds that the pod is decoded as upstream does.
func same(t rapid.TB, name string, data []byte) {
	t.Helper()
	want, got := &corev1.Pod{}, &corev1.Pod{}
	wantErr := unmarshal(func(b []byte, o Object) error { return o.(*corev1.Pod).Unmarshal(b) }, data, want)
	gotErr := unmarshal(podStore{}.decoder(), data, got)
	if (wantErr == nil) != (gotErr == nil) {
		t.Errorf("%s: the error is %v, want %v", name, gotErr, wantErr)
	}
	if diff := cmp.Diff(want, got); wantErr == nil && diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// The same of bytes that were changed anywhere.
func TestPodSpecsOfChangedBytes(t *testing.T) {
	t.Parallel()
	whole := encoded(t, specPod("a", "n1", nil))
	rapid.Check(t, func(t *rapid.T) {
		data := append([]byte{}, whole...)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		same(t, "changed", data)
	})
}
