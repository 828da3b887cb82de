// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chrome drives a real browser as a user does: it finds elements by the role and name that a screen reader
// announces, and waits only for visible effects. It does not depend on Herald.
package chrome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// programs are the executable names of Chromium and Chrome, in order of preference.
var programs = []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}

// Find returns the path of the first browser in PATH.
func Find() (string, error) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither Chromium nor Chrome is in PATH: `make chromium` installs Debian's, as root")
}

// Browser is a headless browser. Use Start.
type Browser struct {
	// Path is the browser's executable.
	Path string

	ctx    context.Context
	cancel context.CancelFunc
}

// Start starts the machine's browser. It exits on Close, or when this process does.
func Start(ctx context.Context) (*Browser, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// Load only what a test requests.
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true),
		// Render the same glyphs on every machine.
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

// Close closes the browser.
func (b *Browser) Close() { b.cancel() }
