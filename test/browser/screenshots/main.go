// Command screenshots takes pictures of a page: screenshots PAGE PNG [dark] [SELECTOR].
// With a selector the element is clicked first, and the picture is of where it is.
//
// It must not know what is in the page.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"

	"github.com/kubectl-sched/kubectl-sched/test/browser/chrome"
)

func main() {
	o := chrome.Options{}
	flag.Int64Var(&o.Width, "width", 1280, "the window's width, in pixels")
	flag.Int64Var(&o.Height, "height", 900, "the window's height, in pixels")
	flag.BoolVar(&o.Dark, "dark", false, "whether the page is to be dark")
	click := flag.String("click", "", "selector of what is clicked first")
	top := flag.String("top", "", "selector of what the picture begins with")
	flag.Parse()
	if err := take(flag.Args(), o, *click, *top); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func take(args []string, o chrome.Options, click, top string) error {
	if len(args) != 2 {
		return errors.New("give the page and the picture")
	}
	page, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	browser, stop, err := chrome.Start(context.Background())
	if err != nil {
		return err
	}
	defer stop()
	p, end, err := chrome.Open(browser, page, o)
	if err != nil {
		return err
	}
	defer end()
	if click != "" {
		if err := p.Run(chromedp.Click(click)); err != nil {
			return err
		}
	}
	if top != "" {
		if err := p.Run(chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q).scrollIntoView()", top), nil)); err != nil {
			return err
		}
	}
	var picture []byte
	if err := p.Run(chromedp.CaptureScreenshot(&picture)); err != nil {
		return err
	}
	return os.WriteFile(args[1], picture, 0o644)
}
