package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

const root = "../.."

// page is a page of the documentation.
type page struct {
	path     string // from the root of the repository
	source   []byte
	headings map[string]bool // as a link names them
	links    []string
	blocks   []block
	inline   []string // code between words
}

// block is a block of code.
type block struct {
	line     int
	language string
	title    string // the file that it is, or is a change of
	text     string
	// start and stop are where it is in the page.
	start, stop int
	// remarks are the comments right above it, which the reader of the page does not
	// see: what stands behind "example:".
	remarks []string
}

// pages reads the README and all pages below docs and examples.
func pages(t *testing.T) []page {
	t.Helper()
	var paths []string
	for _, from := range []string{"README.md", "CHANGELOG.md", "docs", "examples", "catalog"} {
		err := filepath.WalkDir(filepath.Join(root, from), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !d.IsDir() && strings.HasSuffix(path, ".md") {
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if len(paths) < 15 {
		t.Fatalf("there are %d pages only", len(paths))
	}
	var list []page
	for _, path := range paths {
		list = append(list, readPage(t, path))
	}
	return list
}

func readPage(t *testing.T, path string) page {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	p := page{path: filepath.ToSlash(rel), source: source, headings: map[string]bool{}}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	err = ast.Walk(markdown.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			p.add(n)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *page) add(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		p.headings[anchor(plain(n, p.source))] = true
	case *ast.Link:
		p.links = append(p.links, string(n.Destination))
	case *ast.Image:
		p.links = append(p.links, string(n.Destination))
	case *ast.CodeSpan:
		p.inline = append(p.inline, plain(n, p.source))
	case *ast.FencedCodeBlock:
		b := p.block(n)
		if n.Info != nil {
			words := strings.Fields(string(n.Info.Value(p.source)))
			b.language = words[0]
			for _, w := range words[1:] {
				b.title = strings.TrimPrefix(w, "title=")
			}
		}
		p.blocks = append(p.blocks, b)
	case *ast.CodeBlock:
		p.blocks = append(p.blocks, p.block(n))
	}
}

func (p *page) block(n ast.Node) block {
	var b block
	for above := n.PreviousSibling(); above != nil && above.Kind() == ast.KindHTMLBlock; above = above.PreviousSibling() {
		if remark, ok := strings.CutPrefix(strings.TrimSpace(p.html(above)), "<!-- example:"); ok {
			b.remarks = append([]string{strings.TrimSpace(strings.TrimSuffix(remark, "-->"))}, b.remarks...)
		}
	}
	lines := n.Lines()
	if lines.Len() == 0 {
		return b
	}
	b.start, b.stop = lines.At(0).Start, lines.At(lines.Len()-1).Stop
	b.line = 1 + strings.Count(string(p.source[:b.start]), "\n")
	for i := range lines.Len() {
		line := lines.At(i)
		b.text += string(line.Value(p.source))
	}
	return b
}

// html is the text of an HTML block.
func (p *page) html(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(p.source))
	}
	if block, ok := n.(*ast.HTMLBlock); ok && block.HasClosure() {
		b.Write(block.ClosureLine.Value(p.source))
	}
	return b.String()
}

// plain is the text below the node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := c.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// anchor is what a link to the heading ends in, as GitHub makes it.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
			b.WriteRune(r)
		}
	}
	return b.String()
}
