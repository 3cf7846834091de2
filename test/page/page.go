// Package page reads pages of the documentation, so that tests can run what they say:
// their headings and links, their blocks of code, and the commands of a console.
//
// It must not know what a page is about, and nothing but tests may import it.
package page

import (
	"fmt"
	"os"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Page is a page of the documentation.
type Page struct {
	Source []byte
	// Headings are the headings as a link names them, in their order.
	Headings []string
	Links    []string
	Blocks   []Block
	// Inline is the code between words.
	Inline []string
}

// Block is a block of code.
type Block struct {
	Line     int
	Language string
	// Title is the file that it is, or is a change of.
	Title string
	Text  string
	// Under is the heading that it is under, and After the paragraph right before it.
	Under, After string
	// Remarks are what stands behind "example:" in comments right above it, which the
	// reader of the page does not see.
	Remarks []string
	// Start and Stop are where it is in the page.
	Start, Stop int
}

// Read reads a page.
func Read(path string) (*Page, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &Page{Source: source}
	after := ""
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	err = ast.Walk(markdown.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			p.add(n, after)
			if n.Kind() != ast.KindHTMLBlock && n.Type() == ast.TypeBlock && n.Parent() != nil && n.Parent().Kind() == ast.KindDocument {
				after = ""
				if n.Kind() == ast.KindParagraph {
					after = plain(n, source)
				}
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func (p *Page) add(n ast.Node, after string) {
	switch n := n.(type) {
	case *ast.Heading:
		p.Headings = append(p.Headings, anchor(plain(n, p.Source)))
	case *ast.Link:
		p.Links = append(p.Links, string(n.Destination))
	case *ast.Image:
		p.Links = append(p.Links, string(n.Destination))
	case *ast.CodeSpan:
		p.Inline = append(p.Inline, plain(n, p.Source))
	case *ast.FencedCodeBlock:
		b := p.block(n, after)
		if n.Info != nil {
			words := strings.Fields(string(n.Info.Value(p.Source)))
			b.Language = words[0]
			for _, w := range words[1:] {
				b.Title = strings.TrimPrefix(w, "title=")
			}
		}
		p.Blocks = append(p.Blocks, b)
	case *ast.CodeBlock:
		p.Blocks = append(p.Blocks, p.block(n, after))
	}
}

func (p *Page) block(n ast.Node, after string) Block {
	b := Block{After: after}
	if len(p.Headings) > 0 {
		b.Under = p.Headings[len(p.Headings)-1]
	}
	for above := n.PreviousSibling(); above != nil && above.Kind() == ast.KindHTMLBlock; above = above.PreviousSibling() {
		if remark, ok := strings.CutPrefix(strings.TrimSpace(p.html(above)), "<!-- example:"); ok {
			b.Remarks = append([]string{strings.TrimSpace(strings.TrimSuffix(remark, "-->"))}, b.Remarks...)
		}
	}
	lines := n.Lines()
	if lines.Len() == 0 {
		return b
	}
	b.Start, b.Stop = lines.At(0).Start, lines.At(lines.Len()-1).Stop
	b.Line = 1 + strings.Count(string(p.Source[:b.Start]), "\n")
	for i := range lines.Len() {
		line := lines.At(i)
		b.Text += string(line.Value(p.Source))
	}
	return b
}

// html is the text of an HTML block.
func (p *Page) html(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(p.Source))
	}
	if block, ok := n.(*ast.HTMLBlock); ok && block.HasClosure() {
		b.Write(block.ClosureLine.Value(p.Source))
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
