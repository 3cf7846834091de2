package docs

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A link within the repository leads to a file that is there, and to a heading of it.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := map[string]at{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	checked := 0
	for _, p := range all {
		for _, link := range p.Links {
			u, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", p.path, err)
				continue
			}
			if u.Scheme != "" {
				continue // the network is not asked
			}
			checked++
			target := p.path
			if u.Path != "" {
				target = path.Join(path.Dir(p.path), u.Path)
			}
			if strings.HasPrefix(target, "..") {
				t.Errorf("%s: %s leads out of the repository", p.path, link)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %s leads nowhere", p.path, link)
				continue
			}
			if to, isPage := all[target]; u.Fragment != "" && isPage && !slices.Contains(to.Headings, u.Fragment) {
				t.Errorf("%s: %s has no heading #%s", p.path, target, u.Fragment)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d links only", checked)
	}
}
