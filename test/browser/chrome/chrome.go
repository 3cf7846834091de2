// Package chrome opens pages in a headless Chromium, and records what they do: what
// they ask the network for, what they print to the console, which scripts fail.
//
// The package must not know what a page is about.
package chrome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// names are what the browser is called.
var names = []string{"chromium", "chromium-browser", "chromium-headless-shell", "google-chrome-stable", "google-chrome"}

// Find returns the path of a browser: that of CHROME_BIN, or one on the PATH. The error
// says how to get one.
func Find() (string, error) {
	if path := os.Getenv("CHROME_BIN"); path != "" {
		return path, nil
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no Chromium: none of %s is on the PATH; install it (on Debian: apt-get install -y --no-install-recommends chromium), or name one in CHROME_BIN", strings.Join(names, ", "))
}

// limit is how long a page may take for whatever it is asked.
const limit = time.Minute

// Options are how a page is looked at.
type Options struct {
	// Width and Height are those of the window, in pixels.
	Width, Height int64
	// Dark has the page prefer dark colours.
	Dark bool
}

// Page is a page that is open, with what it did.
type Page struct {
	// Context is that of the page, for chromedp.Run.
	Context context.Context

	mutex    sync.Mutex
	problems []string
	requests []string
	dialogs  int
}

// Start starts a browser; stop ends it.
func Start(ctx context.Context) (browser context.Context, stop func(), err error) {
	path, err := Find()
	if err != nil {
		return nil, nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.Flag("force-color-profile", "srgb"))
	if os.Geteuid() == 0 { // as in a container, where Chromium's own sandbox does not work
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(ctx, options...)
	browser, cancel := chromedp.NewContext(allocator)
	stop = func() { cancel(); end() }
	if err := chromedp.Run(browser); err != nil {
		stop()
		return nil, nil, fmt.Errorf("start %s: %w", path, err)
	}
	return browser, stop, nil
}

// Open opens the file in a new tab of the browser; stop closes it.
func Open(browser context.Context, file string, o Options) (p *Page, stop func(), err error) {
	tab, cancel := chromedp.NewContext(browser)
	ctx, end := context.WithTimeout(tab, limit)
	stop = func() { end(); cancel() }
	p = &Page{Context: ctx}
	chromedp.ListenTarget(ctx, p.hear)
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	err = chromedp.Run(ctx,
		network.Enable(), log.Enable(), runtime.Enable(),
		emulation.SetDeviceMetricsOverride(o.Width, o.Height, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate("file://"+file),
		chromedp.WaitReady("footer"),
	)
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("open %s: %w", file, err)
	}
	return p, stop, nil
}

func (p *Page) hear(event any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		p.problems = append(p.problems, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		p.problems = append(p.problems, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	case *page.EventJavascriptDialogOpening:
		p.dialogs++
	}
}

// Quiet returns an error unless the page asked for nothing but itself, printed nothing,
// had no script fail and opened no dialog.
func (p *Page) Quiet() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var all error
	if len(p.requests) != 1 {
		all = errors.Join(all, fmt.Errorf("it asked for %v", p.requests))
	}
	for _, problem := range p.problems {
		all = errors.Join(all, errors.New(problem))
	}
	if p.dialogs > 0 {
		all = errors.Join(all, fmt.Errorf("it opened %d dialogs", p.dialogs))
	}
	return all
}

// Run has the page do something.
func (p *Page) Run(actions ...chromedp.Action) error { return chromedp.Run(p.Context, actions...) }

// Value returns what an expression of the page's is.
func Value[T any](p *Page, expression string) (T, error) {
	var out T
	if err := p.Run(chromedp.Evaluate(expression, &out)); err != nil {
		return out, fmt.Errorf("%s: %w", expression, err)
	}
	return out, nil
}
