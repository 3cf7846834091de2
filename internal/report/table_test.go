package report

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	t.Parallel()
	narrow := &table{}
	narrow.add("NAME", "PODS")
	narrow.add("web", "3")
	long := &table{}
	long.add("WORKLOAD", "ZONE", "PODS")
	long.add("Deployment team-checkout-production/storefront-frontend-eu", "zone-a", "12")
	long.add("Deployment shop/web", "a zone of many words", "1")
	for _, test := range []struct {
		name  string
		table *table
		width int
		want  string
	}{
		{"as wide as it is", narrow, 80, "NAME   PODS\nweb    3\n"},
		{"narrowed", long, 60, `
WORKLOAD                          ZONE                  PODS
Deployment                        zone-a                12
team-checkout-production/
storefront-frontend-eu
Deployment shop/web               a zone of many words  1
`[1:]},
		{"nothing", &table{}, 80, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(test.want, test.table.text(test.width)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Whatever is in the cells, no line is wider than asked for and no letter is
// lost.
func TestTableKeepsAllOfItsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		made := &table{}
		var all strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			row := make([]string, columns)
			for i := range row {
				row[i] = rapid.StringMatching(`[a-zé/. -]{0,40}`).Draw(t, "cell")
				all.WriteString(row[i])
			}
			made.add(row...)
		}
		text := made.text(80)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Fatalf("%d columns: %q", n, line)
			}
		}
		letters := func(s string) map[rune]int {
			counts := map[rune]int{}
			for _, r := range s {
				if r != ' ' && r != '\n' {
					counts[r]++
				}
			}
			return counts
		}
		if d := cmp.Diff(letters(all.String()), letters(text)); d != "" {
			t.Fatalf("letters (-want +got):\n%s", d)
		}
	})
}
