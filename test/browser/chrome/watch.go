// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// Load is a page's request and the response.
type Load struct {
	URL  string
	Type network.ResourceType
	// Status is the status of the response, or 0 before there is one.
	Status int
	// Bytes is the transferred size, compressed and with headers.
	Bytes int64

	// loader is the ID of the document that made the request.
	loader cdp.LoaderID
	// earlier is the number of bytes that earlier redirects transferred.
	earlier int64
	done    bool
}

// watch records a page's problems and loads.
type watch struct {
	mu       sync.Mutex
	problems []string
	loads    map[network.RequestID]*Load
	order    []network.RequestID
	// opened are URLs for other applications.
	opened []string
	// asked counts the browser's questions whether to leave the page; leave confirms them.
	asked int
	leave func()
}

func (w *watch) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems, w.order, w.opened, w.loads = nil, nil, nil, map[network.RequestID]*Load{}
}

// see handles a tab event. The browser's loop calls it.
func (w *watch) see(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		w.problems = append(w.problems, exception(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		w.console(e)
	case *log.EventEntryAdded:
		w.entry(e.Entry)
	case *page.EventJavascriptDialogOpening:
		w.asked++
		go w.leave() // the loop must be free for the answer
	default:
		w.traffic(event)
	}
}

func (w *watch) console(e *runtime.EventConsoleAPICalled) {
	switch e.Type {
	case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
	default:
		return
	}
	parts := []string{"console." + string(e.Type) + ":"}
	for _, argument := range e.Args {
		if argument.Description != "" {
			parts = append(parts, argument.Description)
		} else {
			parts = append(parts, string(argument.Value))
		}
	}
	w.problems = append(w.problems, strings.Join(parts, " "))
}

// entry records the browser's own messages, which include every violation of the page's policy.
func (w *watch) entry(e *log.Entry) {
	if e.Level == log.EntryLevelError || e.Level == log.EntryLevelWarning {
		w.problems = append(w.problems, fmt.Sprintf("%s %s: %s (%s)", e.Source, e.Level, e.Text, e.URL))
	}
}

func exception(details *runtime.ExceptionDetails) string {
	text := details.Text
	if details.Exception != nil && details.Exception.Description != "" {
		text = details.Exception.Description
	}
	return fmt.Sprintf("exception: %s (%s:%d)", text, details.URL, details.LineNumber+1)
}

func (w *watch) traffic(event any) {
	switch e := event.(type) {
	case *page.EventFrameNavigated:
		w.navigated(e)
	case *network.EventRequestWillBeSent:
		switch scheme, _, _ := strings.Cut(e.Request.URL, ":"); scheme {
		case "http", "https":
			w.begin(e)
		case "data", "blob", "about":
		default:
			w.opened = append(w.opened, e.Request.URL)
			if before := w.loads[e.RequestID]; before != nil {
				before.done = true
			}
		}
	case *network.EventResponseReceived:
		if load := w.loads[e.RequestID]; load != nil {
			load.Status, load.Type = int(e.Response.Status), e.Type
			load.Bytes += int64(e.Response.EncodedDataLength)
		}
	case *network.EventDataReceived:
		if load := w.loads[e.RequestID]; load != nil {
			load.Bytes += e.EncodedDataLength
		}
	case *network.EventLoadingFinished:
		if load := w.loads[e.RequestID]; load != nil {
			load.Bytes, load.done = load.earlier+int64(e.EncodedDataLength), true
		}
	case *network.EventLoadingFailed:
		if load := w.loads[e.RequestID]; load != nil {
			load.done = true
		}
	}
}

// navigated records a new document. It drops the pending loads of the previous one, which are aborted without an event.
func (w *watch) navigated(e *page.EventFrameNavigated) {
	if e.Frame.ParentID != "" {
		return
	}
	for _, load := range w.loads {
		if load.loader != e.Frame.LoaderID {
			load.done = true
		}
	}
}

// begin adds a request. A redirected request arrives again under the same ID, and the size of the redirect is added to
// its own.
func (w *watch) begin(e *network.EventRequestWillBeSent) {
	load := &Load{URL: e.Request.URL, Type: e.Type, loader: e.LoaderID}
	if before := w.loads[e.RequestID]; before == nil {
		w.order = append(w.order, e.RequestID)
	} else if e.RedirectResponse != nil {
		load.earlier = before.earlier + int64(e.RedirectResponse.EncodedDataLength)
		load.Bytes = load.earlier
	}
	w.loads[e.RequestID] = load
}

// open returns the addresses that are loading.
func (w *watch) open() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var open []string
	for _, load := range w.loads {
		if !load.done && load.Type != network.ResourceTypeEventSource {
			open = append(open, load.URL)
		}
	}
	return open
}

// Problems returns the page's problems since it was opened: exceptions, console errors and warnings, failed loads, and
// policy violations.
func (p *Page) Problems() []string {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	return withoutAborts(p.watched.problems)
}

// withoutAborts removes the two messages that htmx logs if a page is left during a request, such as a preview:
// htmx:afterRequest and htmx:sendAbort. A request that fails logs htmx:sendError instead.
func withoutAborts(problems []string) []string {
	const after, abort = `console.error: "htmx:afterRequest`, `console.error: "htmx:sendAbort`
	left := make([]string, 0, len(problems))
	for _, problem := range problems {
		last := len(left) - 1
		switch {
		case strings.HasPrefix(problem, abort) && last >= 0 && strings.HasPrefix(left[last], after):
			left = left[:last]
		case strings.HasPrefix(problem, abort):
		default:
			left = append(left, problem)
		}
	}
	return left
}

// Forget resets the recorded problems and returns them, for requests that are expected to fail.
func (p *Page) Forget() []string {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	problems := p.watched.problems
	p.watched.problems = nil
	return problems
}

// Opened returns the addresses of other applications, such as an editor, that the page opened.
func (p *Page) Opened() []string {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	return slices.Clone(p.watched.opened)
}

// UnloadDialogs returns the number of times that the browser has asked whether to leave a page since the tab was
// opened.
func (p *Page) UnloadDialogs() int {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	return p.watched.asked
}

// Loads returns the requests since the page was opened, in order.
func (p *Page) Loads() []Load {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	loads := make([]Load, 0, len(p.watched.order))
	for _, id := range p.watched.order {
		loads = append(loads, *p.watched.loads[id])
	}
	return loads
}

// Weight returns the bytes transferred from a site since the page was opened, in total and by address. An empty site means all sites.
func (p *Page) Weight(site string) (total int64, byURL string) {
	bytes := map[string]int64{}
	for _, load := range p.Loads() {
		if !strings.HasPrefix(load.URL, site) {
			continue
		}
		total += load.Bytes
		bytes[load.URL] += load.Bytes
	}
	urls := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int { return int(bytes[b] - bytes[a]) })
	var text strings.Builder
	for _, url := range urls {
		fmt.Fprintf(&text, "%8d  %s\n", bytes[url], url)
	}
	return total, text.String()
}
