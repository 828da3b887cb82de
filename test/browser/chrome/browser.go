// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chrome lets tests use pages in a real browser as people do: they find what they press by the role and the name
// that a screen reader tells, and every wait is for something that the browser shows. It knows nothing of Herald.
package chrome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// programs are the names under which systems install Chromium and Chrome, in the order in which they are looked for.
var programs = []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}

// Find returns the path of a browser in PATH.
func Find() (string, error) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium or Chrome in PATH: `make chromium` installs Debian's, as root")
}

// Browser is a browser that runs without a window. Use Start.
type Browser struct {
	// Path is the program.
	Path string

	ctx    context.Context
	cancel context.CancelFunc
}

// Start starts the browser of this machine. It ends with Close, and with this process.
func Start(ctx context.Context) (*Browser, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// Nothing is loaded but what a test asks for.
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true),
		// The same letters on every machine.
		chromedp.Flag("lang", "en-GB"),
		chromedp.Flag("font-render-hinting", "none"),
	)
	if os.Geteuid() == 0 {
		// Chromium's own sandbox does not work for root.
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(ctx, options...)
	inner, cancel := chromedp.NewContext(allocator)
	b := &Browser{Path: path, ctx: inner, cancel: func() {
		cancel()
		end()
	}}
	if err := chromedp.Do(inner); err != nil {
		b.Close()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return b, nil
}

// Close ends the browser.
func (b *Browser) Close() { b.cancel() }
