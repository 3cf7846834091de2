package report

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScreen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &Screen{w: &out, size: func() (int, int) { return 12, 5 }}
	said := func() string {
		text := out.String()
		out.Reset()
		return text
	}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"first", func() { s.Show([]string{"a", "a line too long"}) }, "a\na line too…\n"},
		{"anew", func() { s.Show([]string{"b"}) }, "\x1b[2A\r\x1b[Jb\n"},
		{"above", func() { s.Above(func() { out.WriteString("stays\n") }) }, "\x1b[1A\r\x1b[Jstays\nb\n"},
		{"too many", func() { s.Show([]string{"1", "2", "3", "4"}) }, "\x1b[1A\r\x1b[J1\n2\n… and 2 mo…\n"},
		{"no escape gets through", func() { s.Show([]string{"\x1b[2J"}) }, "\x1b[3A\r\x1b[J\uFFFD[2J\n"},
		{"nothing", func() { s.Show(nil) }, "\x1b[1A\r\x1b[J"},
		{"still nothing", func() { s.Show(nil) }, ""},
	} {
		step.do()
		if d := cmp.Diff(step.want, said()); d != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, d)
		}
	}
}

func TestNoScreen(t *testing.T) {
	t.Parallel()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unset := func(string) string { return "" }
	for name, w := range map[string]any{"a buffer": &bytes.Buffer{}, "a file": file} {
		if NewScreen(w, unset) != nil {
			t.Errorf("%s is written anew in place", name)
		}
	}
}
