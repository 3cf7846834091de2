package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/kubectl-sched/kubectl-sched/test/browser/chrome"
)

func do(t *testing.T, p *chrome.Page, actions ...chromedp.Action) {
	t.Helper()
	if err := p.Run(actions...); err != nil {
		t.Fatal(err)
	}
}

// TestPictureOfTheCluster holds that each node is there twice, before and after, in the
// same order, and that what is drawn is what the page says in words.
func TestPictureOfTheCluster(t *testing.T) {
	p := open(t, usualPage, chrome.Options{})
	before, after := value[int](t, p, `document.querySelectorAll(".before .node").length`), value[int](t, p, `document.querySelectorAll(".after .node").length`)
	if before != after || after < 70 {
		t.Errorf("%d nodes before, %d after", before, after)
	}
	if n := value[int](t, p, `document.querySelectorAll(".after .node.other").length`); n == 0 || n == after {
		t.Errorf("%d of %d nodes are marked as other than before", n, after)
	}
	// The height of the fill and the words come from the same number.
	wrong := value[[]string](t, p, `Array.from(document.querySelectorAll(".after .node")).filter((n) => {
		const said = Number(n.getAttribute("aria-label").match(/CPU requested (?:\d+% → )?(\d+)%/)[1]);
		const level = Number(Array.from(n.classList).find((c) => /^f\d+$/.test(c)).slice(1));
		return Math.abs(level * 10 - Math.min(said, 100)) > 10;
	}).map((n) => n.getAttribute("aria-label"))`)
	if len(wrong) > 0 {
		t.Errorf("drawn otherwise than said: %v", wrong)
	}
	// The class is a height: "f4" is 40%.
	if unlike := value[[]string](t, p, `Array.from(document.querySelectorAll(".after .node")).map((n) => [Number(n.className.match(/\bf(\d+)/)[1]), getComputedStyle(n).backgroundImage]).filter(([level, drawn]) => !drawn.includes(level * 10 + "%")).map(String)`); len(unlike) > 0 {
		t.Errorf("drawn with another height: %v", unlike)
	}
	// A click says which pods come and go.
	do(t, p, chromedp.Click(`.after .node.rise`))
	said := value[string](t, p, `document.querySelector(".about").textContent`)
	if !strings.Contains(said, "CPU requested") || !strings.Contains(said, "comes from") {
		t.Errorf("of a chosen node it says %q", said)
	}
	if n := value[int](t, p, `document.querySelectorAll(".before .twin").length`); n != 1 {
		t.Errorf("%d nodes of the picture before are marked as the chosen one", n)
	}
}

// TestFilterAndSearch holds that what is searched for stays, and the rest goes.
func TestFilterAndSearch(t *testing.T) {
	p := open(t, usualPage, chrome.Options{})
	const rows, lit = `document.querySelectorAll("[data-row]:not([hidden])").length`, `document.querySelectorAll("button.node:not([hidden]):not(.dim)").length`
	all, nodes := value[int](t, p, rows), value[int](t, p, lit)
	do(t, p, chromedp.Click("#only"))
	fewer, changed := value[int](t, p, rows), value[int](t, p, lit)
	if changed == 0 || changed >= nodes || fewer > all {
		t.Errorf("only what changes: %d of %d entries, %d of %d nodes", fewer, all, changed, nodes)
	}
	if n := value[int](t, p, `document.querySelectorAll(".before .node:not([hidden])").length`); n != changed {
		t.Errorf("%d nodes before and %d after", n, changed)
	}
	do(t, p, chromedp.Click("#only"), chromedp.SendKeys("#search", "wishlist"))
	if left := value[int](t, p, rows); left == 0 || left >= all {
		t.Errorf("a search leaves %d of %d", left, all)
	}
	if other := value[int](t, p, `Array.from(document.querySelectorAll("[data-row]:not([hidden])")).filter((r) => !r.textContent.toLowerCase().includes("wishlist")).length`); other > 0 {
		t.Errorf("%d entries are left that do not match", other)
	}
	if heading := value[bool](t, p, `document.getElementById("policies").offsetParent !== null`); heading {
		t.Error("the heading of a part without a match is left")
	}
	if said := value[string](t, p, `document.getElementById("found").textContent`); !strings.Contains(said, "entries") {
		t.Errorf("it says of the search %q", said)
	}
	// A pod is found inside of what is folded.
	pod := value[string](t, p, `document.querySelector("[data-pod]").dataset.pod`)
	do(t, p, chromedp.KeyEvent(kb.Escape), chromedp.SendKeys("#search", pod))
	if !value[bool](t, p, `document.querySelector('[data-pod="`+pod+`"]').closest("details").open`) {
		t.Error("what is folded stays so, with the pod that is searched for in it")
	}
	do(t, p, chromedp.KeyEvent(kb.Escape), chromedp.SendKeys("#search", "no such thing"))
	if value[int](t, p, rows)+value[int](t, p, lit) != 0 || !value[bool](t, p, `document.getElementById("empty").offsetParent !== null`) {
		t.Error("nothing matches, and the page does not say so")
	}
	do(t, p, chromedp.KeyEvent(kb.Escape))
	if left := value[int](t, p, rows); left != all || value[int](t, p, lit) != nodes {
		t.Errorf("Escape leaves %d of %d", left, all)
	}
}

// TestKeyboardAlone holds that Tab reaches everything that can be used, in the order in
// which it is seen, with a focus that is seen too, and that keys use it.
func TestKeyboardAlone(t *testing.T) {
	p := open(t, usualPage, chrome.Options{})
	want := value[int](t, p, `Array.from(document.querySelectorAll("a[href], input, summary, [tabindex='0'], .after .nodes")).filter((e) => !e.hidden).length - document.querySelectorAll("button.node[tabindex='0']").length`)
	reached, top := map[string]bool{}, -1.0
	for range want + 5 {
		do(t, p, chromedp.KeyEvent(kb.Tab))
		at := value[struct {
			Path, Outline string
			Top           float64
			Sticky        bool
		}](t, p, `(() => {
			const e = document.activeElement, path = [];
			for (let x = e; x && x !== document.documentElement; x = x.parentElement) path.push(x.tagName + Array.from(x.parentElement.children).indexOf(x));
			const style = getComputedStyle(e);
			return {path: e === document.body ? "" : path.join(" "), outline: style.outlineStyle + " " + style.outlineWidth, top: e.getBoundingClientRect().top + scrollY, sticky: !!e.closest(".bar, .skip")};
		})()`)
		if at.Path == "" {
			break
		}
		if reached[at.Path] {
			t.Fatalf("Tab comes back to %s after %d of %d", at.Path, len(reached), want)
		}
		reached[at.Path] = true
		if strings.HasPrefix(at.Outline, "none") || strings.HasSuffix(at.Outline, " 0px") {
			t.Errorf("the focus of %s is not seen: %s", at.Path, at.Outline)
		}
		if !at.Sticky {
			if at.Top < top-400 { // cells of one row are not of one height
				t.Errorf("%s is reached out of order", at.Path)
			}
			top = at.Top
		}
	}
	if want < 30 {
		t.Fatalf("there are %d things to reach", want)
	}
	if len(reached) != want {
		t.Errorf("Tab reaches %d of %d", len(reached), want)
	}

	// Enter and Space open and close what is folded.
	for _, key := range []string{kb.Enter, " "} {
		do(t, p, chromedp.Focus("#moves-0 ~ .scroll summary"))
		was := value[bool](t, p, `document.activeElement.parentElement.open`)
		do(t, p, chromedp.KeyEvent(key))
		if value[bool](t, p, `document.activeElement.parentElement.open`) == was {
			t.Errorf("%q does nothing with what is folded", key)
		}
	}
	// The arrow keys go from node to node, and say what each is; slash goes to the search.
	do(t, p, chromedp.Focus(".after button.node"), chromedp.KeyEvent(kb.ArrowRight))
	second := value[string](t, p, `document.activeElement.getAttribute("aria-label")`)
	if said := value[string](t, p, `document.querySelector(".about").textContent`); second == "" || !strings.HasPrefix(said, second) {
		t.Errorf("the second node is %q, and it says %q", second, said)
	}
	do(t, p, chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowDown))
	if !value[bool](t, p, `document.activeElement.matches("button.node")`) {
		t.Error("the arrow keys leave the nodes")
	}
	do(t, p, chromedp.KeyEvent("/"))
	if value[string](t, p, `document.activeElement.id`) != "search" {
		t.Error("a slash does not go to the search")
	}
	do(t, p, chromedp.Focus("#only"), chromedp.KeyEvent(" "))
	if !value[bool](t, p, `document.getElementById("only").checked`) {
		t.Error("Space does not tick the filter")
	}
}

// TestNoWindowIsTooNarrow holds that nothing is wider than the window, and on a telephone
// no table has to be pushed aside to be read.
func TestNoWindowIsTooNarrow(t *testing.T) {
	for _, name := range []string{usualPage, nothingPage, hostilePage, brokenPage} {
		for _, width := range []int64{320, 400, 800, 1600} {
			p := open(t, name, chrome.Options{Width: width, Height: 800})
			if is := value[int64](t, p, `document.documentElement.scrollWidth`); is > width {
				t.Errorf("%s: %d pixels in a window of %d: %v", name, is, width, value[[]string](t, p,
					fmt.Sprintf(`Array.from(document.querySelectorAll("body *")).filter((e) => e.getBoundingClientRect().right > %d && !e.closest(".scroll *")).slice(0, 5).map((e) => e.outerHTML.slice(0, 120))`, width)))
			}
			if cut := value[[]string](t, p, `Array.from(document.querySelectorAll(".scroll")).filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.getAttribute("aria-label"))`); width <= 400 && len(cut) > 0 {
				t.Errorf("%s: in a window of %d pixels a part of %v is not to be seen", name, width, cut)
			}
		}
	}
}

// TestHostileNamesRunNothing holds that names are text, whatever they are.
func TestHostileNamesRunNothing(t *testing.T) {
	for _, name := range []string{hostilePage, brokenPage} {
		p := open(t, name, chrome.Options{})
		if value[bool](t, p, `"ran" in window`) {
			t.Errorf("%s: a name ran", name)
		}
		if n := value[int](t, p, `document.querySelectorAll("img, iframe, object, embed, link, base, form, svg").length`); n > 0 {
			t.Errorf("%s: %d elements that nobody made", name, n)
		}
		if n := value[int](t, p, `document.scripts.length`); n != 1 {
			t.Errorf("%s: %d scripts", name, n)
		}
		if !value[bool](t, p, `document.body.textContent.includes("<img src=x onerror=window.ran=1>")`) {
			t.Errorf("%s: the name is not there as text", name)
		}
		// What the script writes is text, too.
		if value[bool](t, p, `!!document.querySelector(".node.rise")`) {
			do(t, p, chromedp.Click(".after .node.rise"), chromedp.SendKeys("#search", "onerror"))
			if value[bool](t, p, `"ran" in window || document.querySelector(".about img") !== null`) {
				t.Errorf("%s: a name ran when its node was chosen", name)
			}
		} else if name == hostilePage {
			t.Error("there is no node to choose")
		}
	}
}

// TestNothingChanges holds that a change of comments has a page that says so, and no
// search over nothing.
func TestNothingChanges(t *testing.T) {
	p := open(t, nothingPage, chrome.Options{})
	if text := value[string](t, p, `document.body.innerText`); !strings.Contains(text, "0 pods move, 0 new findings") {
		t.Errorf("it says %q", text)
	}
	if value[bool](t, p, `document.getElementById("search") !== null`) {
		t.Error("there is a search over nothing")
	}
}

// What the page of 1,000 nodes and 10,000 pods may take.
const (
	mostBytes = 4 << 20
	mostTime  = 3 * time.Second
)

// TestLargePage holds that a large cluster is looked at without waiting.
func TestLargePage(t *testing.T) {
	info, err := os.Stat(filepath.Join(pages, largePage))
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, largePage, chrome.Options{})
	opened := time.Duration(value[float64](t, p, `(() => { document.body.offsetHeight; return performance.getEntriesByType("navigation")[0].loadEventEnd || performance.now(); })()`)) * time.Millisecond
	if opened > mostTime {
		t.Errorf("it opens in %s", opened)
	}
	if n := value[int](t, p, `document.querySelectorAll("button.node").length`); n < 990 {
		t.Errorf("it has %d nodes", n)
	}
	took := value[float64](t, p, `(() => { const search = document.getElementById("search"); const start = performance.now(); search.value = "web"; search.dispatchEvent(new Event("input")); document.body.offsetHeight; return performance.now() - start; })()`)
	if took > 1000 {
		t.Errorf("a search takes %.0f ms", took)
	}
	t.Logf("%d KB, open in %s, searched in %.0f ms", info.Size()>>10, opened, took)
	if info.Size() > mostBytes {
		t.Errorf("it has %d MB", info.Size()>>20)
	}
}
