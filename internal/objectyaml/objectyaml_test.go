package objectyaml_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
)

// TestAnyText holds that every text can be a value and a key, and is read again.
func TestAnyText(t *testing.T) {
	t.Parallel()
	texts := []string{strings.Repeat("long", 300), "~", "null", "1e3", "0x10", "yes", "a: b", "# a", "- a", " a ", "a\n\nb\n", "\ttab", "%"}
	for r := rune(0); r < 0x200; r++ {
		texts = append(texts, string(r), "a"+string(r)+"b")
	}
	for _, r := range []rune{0x2028, 0x2029, 0xd7ff, 0xe000, 0xfdd0, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x10000, 0x1ffff, 0x10ffff} {
		texts = append(texts, string(r), "a"+string(r)+"b")
	}
	for _, text := range texts {
		for _, typed := range []bool{false, true} {
			want := map[string]any{"metadata": map[string]any{"annotations": map[string]any{text: text}, "list": []any{text}}}
			var written any = want
			if typed {
				written = map[string]any{"metadata": struct {
					Annotations map[string]string `json:"annotations"`
					List        []string          `json:"list"`
				}{map[string]string{text: text}, []string{text}}}
			}
			data, err := objectyaml.Marshal(written)
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			var got map[string]any
			if err := yaml.Unmarshal(data, &got); err != nil {
				t.Errorf("%q is not read again: %v\n%s", text, err, data)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s%s", text, diff, data)
			}
		}
	}
}

// TestLikeOthers holds that what others can write is written as they do.
func TestLikeOthers(t *testing.T) {
	t.Parallel()
	for i, v := range []any{
		nil, true, "x", 7, uint64(18446744073709551615), -1.5, 3.0, 1e6, 1e21, map[string]any(nil), []any(nil),
		[]string{"b", "a"},
		map[string]any{"b": int64(1), "a10": "x", "a9": nil, "c": []any{}, "d": map[string]any{}},
		[]map[string]any{{"op": "add", "value": json.RawMessage(`{"a":1.0}`)}},
		corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"text": "a\nb", "<&>": "ä", "n": "1", "long": strings.Repeat("word ", 40)}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Resources:     corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}},
			}}},
		},
	} {
		want, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := objectyaml.Marshal(v)
		if err != nil || string(got) != string(want) {
			t.Errorf("%d: got\n%s\nnot\n%s(%v)", i, got, want, err)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err = objectyaml.FromJSON(data); err != nil || string(got) != string(want) {
			t.Errorf("%d: got from JSON\n%s\nnot\n%s(%v)", i, got, want, err)
		}
	}
}

func TestNoJSON(t *testing.T) {
	t.Parallel()
	if _, err := objectyaml.Marshal(map[string]any{"a": func() {}}); err == nil {
		t.Error("a function is written")
	}
	for _, text := range []string{"", "{", "{} x", "{} {}", fmt.Sprintf("[1e%d]", 9999)} {
		if _, err := objectyaml.FromJSON([]byte(text)); err == nil {
			t.Errorf("%q is written", text)
		}
	}
}
