package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/kubectl-sched/kubectl-sched/test/browser/chrome"
)

// lowContrast returns the texts whose contrast with what is behind them is less than
// that of WCAG 2.2, level AA: 4.5 to 1. What is behind is the colour of the nearest
// element around that has one. It looks at each element with a text of its own.
const lowContrast = `(() => {
	const channels = (css) => css.match(/[\d.]+/g).map(Number);
	const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => {
		for (let x = e; x; x = x.parentElement) {
			const c = channels(getComputedStyle(x).backgroundColor);
			if (c.length < 4 || c[3] === 1) return c;
		}
		throw new Error("nothing is behind " + e.outerHTML);
	};
	const out = [];
	let looked = 0;
	for (const e of document.querySelectorAll("body *")) {
		if (!e.checkVisibility() || !Array.from(e.childNodes).some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
		if (e.closest("script")) continue;
		looked++;
		const style = getComputedStyle(e);
		const [a, b] = [luminance(channels(style.color)), luminance(behind(e))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5 || style.opacity !== "1") out.push(ratio.toFixed(2) + ": " + e.outerHTML.slice(0, 100));
	}
	if (looked < 5) out.push("only " + looked + " texts were looked at");
	return Array.from(new Set(out)).slice(0, 10);
})()`

// TestContrast holds that all text can be read, in the light and in the dark.
func TestContrast(t *testing.T) {
	seen := map[string]bool{}
	for _, dark := range []bool{false, true} {
		for _, name := range []string{usualPage, nothingPage, brokenPage} {
			p := open(t, name, chrome.Options{Dark: dark})
			if name == usualPage {
				do(t, p, chromedp.Evaluate(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil), chromedp.Click(".after .node.rise"))
			}
			for _, low := range value[[]string](t, p, lowContrast) {
				t.Errorf("%s, dark %v: %s", name, dark, low)
			}
			seen[value[string](t, p, `getComputedStyle(document.body).backgroundColor`)] = true
			// The placeholder is text too, and what is drawn must be told from what is around.
			if name == usualPage {
				for _, low := range value[[]string](t, p, drawn) {
					t.Errorf("dark %v: %s", dark, low)
				}
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("the page is as bright in the dark as in the light: %v", seen)
	}
}

// drawn returns what of the picture has less contrast than 3 to 1 with the page.
const drawn = `(() => {
	const style = getComputedStyle(document.documentElement);
	const luminance = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const page = luminance(style.getPropertyValue("--page").trim());
	return ["--bar", "--bar-new", "--mark", "--edge", "--link"].map((name) => {
		const l = luminance(style.getPropertyValue(name).trim());
		const ratio = (Math.max(l, page) + 0.05) / (Math.min(l, page) + 0.05);
		return ratio < 3 ? name + " has " + ratio.toFixed(2) : "";
	}).filter(Boolean);
})()`
