package report

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
)

// table lays out rows in columns, the first row being the heading. Where they
// take more than the width, the widest columns are narrowed, and their cells go
// on below themselves.
type table struct {
	rows [][]string
	// names is applied to each cell; nil leaves it.
	names func(string) string
}

// add appends a row; all rows have as many cells as the first.
func (t *table) add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if t.names != nil {
			cell = t.names(cell)
		}
		row[i] = excerpt.Printable(cell)
	}
	t.rows = append(t.rows, row)
}

// tableGap is how many columns of the screen stand between two of the table;
// tightGap where that is too much.
const (
	tableGap = 3
	tightGap = 2
)

// narrowest is below what no column is narrowed: names broken into less than
// this cannot be read.
const narrowest = 12

// text returns the table in at most width columns, if its columns can be
// narrowed that far.
func (t *table) text(width int) string {
	if len(t.rows) == 0 {
		return ""
	}
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	gap := tableGap
	if total(widths, gap) > width {
		gap = tightGap
	}
	for total(widths, gap) > width {
		i := widest(widths)
		if widths[i] <= narrowest {
			break
		}
		widths[i]--
	}
	var b strings.Builder
	for _, row := range t.rows {
		writeRow(&b, row, widths, gap)
	}
	return b.String()
}

func total(widths []int, gap int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

func widest(widths []int) int { return slices.Index(widths, slices.Max(widths)) }

func writeRow(b *strings.Builder, row []string, widths []int, gap int) {
	cells := make([][]string, len(row))
	height := 0
	for i, cell := range row {
		cells[i] = fold(cell, widths[i])
		height = max(height, len(cells[i]))
	}
	for y := range height {
		var line strings.Builder
		for i := range row {
			text := ""
			if y < len(cells[i]) {
				text = cells[i][y]
			}
			line.WriteString(text)
			line.WriteString(strings.Repeat(" ", widths[i]+gap-utf8.RuneCountInString(text)))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// fold breaks text into lines of at most width columns: at spaces, and inside a
// word that is longer, after the punctuation that names are made with.
func fold(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(wrap(text, width, ""), "\n") {
		runes := []rune(line)
		for len(runes) > width {
			at := width
			for i := width; i > width/2; i-- {
				if strings.ContainsRune("/-._,", runes[i-1]) {
					at = i
					break
				}
			}
			lines = append(lines, string(runes[:at]))
			runes = runes[at:]
		}
		lines = append(lines, string(runes))
	}
	return lines
}
