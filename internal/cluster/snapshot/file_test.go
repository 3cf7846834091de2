package snapshot

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// file makes a file of records: pairs of a kind's number and the bytes.
func file(t testing.TB, line string, records ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(line)
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(records); i += 2 {
		data := records[i+1].([]byte)
		prefix := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(records[i].(int))), uint64(len(data)))
		if _, err := w.Write(append(prefix, data...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func written(t testing.TB) []byte {
	t.Helper()
	s, err := Read(strings.NewReader(handwritten), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, s, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	line, head, end := firstLine("v9.9.9"), []byte("{}"), []byte{1}
	huge := bytes.Repeat([]byte("a"), 1<<20)
	whole := written(t)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 0x40
	tests := map[string]struct {
		data []byte
		want string
	}{
		"newer format":     {file(t, "kubectl-sched snapshot 2 v9.9.9\n"), "it is of format 2, written by kubectl sched v9.9.9, and this program reads format 1; read it with kubectl sched v9.9.9 or a later one"},
		"no version":       {file(t, "kubectl-sched snapshot x v1\n"), `the version "x"`},
		"no line":          {[]byte(strings.Repeat(magic, 20)), "its first line is damaged"},
		"unknown kind":     {file(t, line, 1, head, 4711, []byte("x")), "it has records of kind 4711, which this program does not know; it was written by kubectl sched v9.9.9"},
		"unknown header":   {file(t, line, 1, []byte(`{"newField": 1}`), 0, end), `unknown field "newField"; it was written by kubectl sched v9.9.9`},
		"no header":        {file(t, line, 4, []byte{}), "its header is missing"},
		"two headers":      {file(t, line, 1, head, 1, head), "its header is missing or there twice"},
		"cut":              {whole[:len(whole)-20], "it ends too early"},
		"cut after a line": {whole[:len(line)], "it ends too early"},
		"no end":           {file(t, line, 1, head), "it ends too early"},
		"wrong count":      {file(t, line, 1, head, 0, []byte{9}), "it has 1 records, and says that they are 9"},
		"more after it":    {file(t, line, 1, head, 0, end, 1, head), "something follows its end"},
		"flipped":          {flipped, "it is damaged"},
		"no object":        {file(t, line, 1, head, 4, []byte("xyz"), 0, []byte{2}), "one of the nodes cannot be decoded"},
		"too much":         {file(t, line, 1, head, 4, huge, 4, huge, 4, huge), "it unpacks to more than 2 MiB"},
		"large record":     {file(t, line, 1, head, 4, append(huge, huge...)), "a record has 2097152 bytes, and may have 1048576"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(bytes.NewReader(test.data), ReadOptions{File: "x.snapshot", Limits: Limits{Bytes: 2 << 20, Record: 1 << 20}})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "read snapshot x.snapshot: ") {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// What may stand in JSON may stand in a snapshot that people read, and comes back.
func TestTextOfControls(t *testing.T) {
	t.Parallel()
	want := "a\u007fb\u0080c\u0085d\u009fe\ufefff\uffffg\u2028h\U0001f600i"
	s := &Snapshot{Pods: []*corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{"gates.kubectl-sched.github.io/x": want}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: want}}},
	}}}
	var b bytes.Buffer
	if err := WriteYAML(&b, s); err != nil {
		t.Fatal(err)
	}
	read, err := Read(&b, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Pods[0].Spec.Containers[0].Image; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTextHasALimit(t *testing.T) {
	t.Parallel()
	_, err := Read(strings.NewReader(strings.Repeat("# comment\n", 300_000)), ReadOptions{Limits: Limits{Text: 2 << 20}})
	if err == nil || !strings.Contains(err.Error(), "as text it may have 2 MiB") {
		t.Errorf("error %v", err)
	}
}

// FuzzRead holds that nothing that is read ends the program or fills the memory, and
// that what can be read can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add(written(f))
	f.Add([]byte(handwritten))
	f.Add(file(f, firstLine("v1"), 1, []byte("{}"), 32, []byte("\x0a\x03\x0a\x01a"), 0, []byte{2}))
	f.Add(file(f, firstLine("v1"), 1, []byte("{}"), 26, []byte(`{"apiVersion":"a/v1","kind":"b"}`), 0, []byte{2}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read(bytes.NewReader(data), ReadOptions{Limits: Limits{Bytes: 1 << 20, Record: 1 << 18, Text: 1 << 18}})
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, s, "v1"); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := Read(&b, ReadOptions{}); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

// FuzzRecords does the same for what is in a file, which a fuzzer that has to get
// through the compression would not reach.
func FuzzRecords(f *testing.F) {
	f.Add(4, []byte("\x0a\x03\x0a\x01a"))
	f.Add(32, []byte("\x0a\x03\x0a\x01a"))
	f.Add(26, []byte(`{"apiVersion":"a/v1","kind":"b","metadata":{"name":"c"}}`))
	f.Add(20, []byte("\n\x03\n\x01\x7f"))
	f.Add(26, []byte(`{"apiVersion":"a/v1","kind":"b","metadata":{"name":"c","labels":{"`+strings.Repeat("long", 300)+`":"x"}}}`))
	f.Add(1, []byte(`{"taken":"2026-08-01T10:00:00Z"}`))
	f.Fuzz(func(t *testing.T, number int, data []byte) {
		if number < 0 {
			return
		}
		content := file(t, firstLine("v1"), 1, []byte("{}"), number, data, 0, []byte{2})
		s, err := Read(bytes.NewReader(content), ReadOptions{})
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteYAML(&b, s); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if err := Write(&b, s, "v1"); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}
