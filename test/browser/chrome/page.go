// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// patience is how long to wait for the browser. It allows for a busy machine.
	patience = 20 * time.Second
	// pollEvery is the polling interval of these waits.
	pollEvery = 25 * time.Millisecond
)

// Look is a window size and a color scheme.
type Look struct {
	// Name is used in the names of screenshots.
	Name          string
	Width, Height int64
	Dark, Phone   bool
}

// Looks are the three looks that every page is checked in.
var (
	Light = Look{Name: "light", Width: 1280, Height: 800}
	Dark  = Look{Name: "dark", Width: 1280, Height: 800, Dark: true}
	Phone = Look{Name: "phone", Width: 390, Height: 844, Phone: true}

	Looks = []Look{Light, Dark, Phone}
)

// Page is a tab with its own cookies and cache.
type Page struct {
	ctx     context.Context
	cancel  context.CancelFunc
	watched watch
	look    Look
}

// Options describe the user of the page.
type Options struct {
	// Zone and Locale default to "Europe/Berlin" and "en-GB".
	Zone, Locale string
	// NoScript disables JavaScript.
	NoScript bool
}

// NewPage opens an empty tab in the look Light.
func (b *Browser) NewPage(options Options) (*Page, error) {
	p := &Page{}
	p.watched.reset()
	p.watched.leave = p.confirmLeave
	p.ctx, p.cancel = chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.watched.see))
	err := chromedp.Do(p.ctx)
	if err == nil {
		err = p.emulate(options)
	}
	if err == nil {
		err = p.SetLook(Light)
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("open a tab: %w", err)
	}
	return p, nil
}

func (p *Page) emulate(options Options) error {
	if options.Zone == "" {
		options.Zone = "Europe/Berlin"
	}
	if options.Locale == "" {
		options.Locale = "en-GB"
	}
	return errors.Join(
		call(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: options.Zone}),
		call(p, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: options.Locale}),
		call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: options.NoScript}),
		call(p, network.Enable, network.EnableParams{}),
	)
}

// conditions are the parameters of Network.emulateNetworkConditions that Debian's Chromium versions support.
type conditions struct {
	Offline            bool    `json:"offline"`
	Latency            float64 `json:"latency"`
	DownloadThroughput float64 `json:"downloadThroughput"`
	UploadThroughput   float64 `json:"uploadThroughput"`
}

// Throttle limits the page's uploads to the given number of bytes per second. Zero ends the limit.
func (p *Page) Throttle(bytes float64) error {
	if bytes == 0 {
		bytes = -1
	}
	command := cdp.Command[conditions, struct{}]{Method: "Network.emulateNetworkConditions"}
	return call(p, command, conditions{DownloadThroughput: -1, UploadThroughput: bytes})
}

// Offline disconnects the page from the network, which aborts its requests, or reconnects it.
func (p *Page) Offline(on bool) error {
	command := cdp.Command[conditions, struct{}]{Method: "Network.emulateNetworkConditions"}
	return call(p, command, conditions{Offline: on, DownloadThroughput: -1, UploadThroughput: -1})
}

// confirmLeave confirms the browser's question whether to leave a page with unsaved text.
func (p *Page) confirmLeave() {
	_ = call(p, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true}) // the tab may have been closed
}

// Close closes the tab and drops its cookies.
func (p *Page) Close() { p.cancel() }

// FollowTab runs act, which opens another tab, and returns that tab when it is complete. The tab shares this one's
// cookies and closes with it.
func (p *Page) FollowTab(act func() error) (*Page, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	opened := chromedp.WaitNewTarget(ctx, func(info *target.Info) bool { return info.URL != "" })
	if err := act(); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, errors.New("no new tab opened")
	case id := <-opened:
		tab := &Page{}
		tab.watched.reset()
		tab.watched.leave = tab.confirmLeave
		tab.ctx, tab.cancel = chromedp.NewContext(p.ctx, chromedp.WithTargetID(id), chromedp.WithListener(tab.watched.see))
		err := chromedp.Do(tab.ctx)
		if err == nil {
			err = errors.Join(call(tab, network.Enable, network.EnableParams{}), tab.SetLook(p.look))
		}
		if err == nil {
			err = tab.WaitFor("the tab is complete", `location.href !== "about:blank" && document.readyState === "complete"`)
		}
		return tab, err
	}
}

// SetLook changes the page's look immediately.
func (p *Page) SetLook(look Look) error {
	scheme := "light"
	if look.Dark {
		scheme = "dark"
	}
	p.look = look
	return errors.Join(
		p.resize(look),
		call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			// Screenshots must not show running animations.
			{Name: "prefers-reduced-motion", Value: "reduce"},
		}}),
	)
}

func (p *Page) resize(look Look) error {
	return call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: look.Width, Height: look.Height, DeviceScaleFactor: 1, Mobile: look.Phone,
	})
}

// OpenCold opens a URL as Open does, with an empty cache.
func (p *Page) OpenCold(url string) error {
	return errors.Join(
		call(p, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}),
		p.Open(url),
		call(p, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: false}),
	)
}

// Open goes to a URL, resets the recorded problems and loads, and waits until nothing is loading. Any status other than
// 200 is an error.
func (p *Page) Open(url string) error {
	status, err := p.OpenAny(url)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s responds with status %d", url, status)
	}
	return err
}

// OpenAny opens a URL as Open does, but also accepts an error status, which it returns.
func (p *Page) OpenAny(url string) (status int, err error) {
	p.watched.reset()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	response, err := chromedp.Run(ctx, chromedp.NavigateResponse(url))
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", url, err)
	}
	return int(response.Status), p.Settle()
}

// Settle waits until nothing is loading. Server-sent events do not count.
func (p *Page) Settle() error {
	err := p.until(func() error {
		if open := p.watched.open(); len(open) > 0 {
			return fmt.Errorf("still loading %s", strings.Join(open, ", "))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wait for the page to settle: %w", err)
	}
	return nil
}

// Follow runs act, which leads to another page, and waits for that page.
func (p *Page) Follow(act func() error) error {
	// A different site gets a new process, which starts with an empty document.
	const document = "location.href !== 'about:blank' && document.readyState === 'complete' ? performance.timeOrigin : 0"
	var before float64
	err := p.until(func() (err error) {
		before, err = Eval[float64](p, document)
		if err == nil && before == 0 {
			err = errors.New("the page is not complete")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	err = p.until(func() error {
		switch now, err := Eval[float64](p, document); {
		case err != nil:
			return err
		case now == 0:
			return errors.New("the next page is not complete")
		case now == before:
			return errors.New("the tab still shows the same page")
		default:
			return nil
		}
	})
	return errors.Join(err, p.Settle())
}

// URL returns the page's current address.
func (p *Page) URL() (string, error) { return Eval[string](p, "location.href") }

// WaitURL waits until the address contains text.
func (p *Page) WaitURL(part string) error {
	err := p.until(func() error {
		url, err := p.URL()
		if err == nil && !strings.Contains(url, part) {
			err = fmt.Errorf("the address is %s", url)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for an address with %q: %w", part, err)
	}
	return nil
}

// WaitText waits until the page shows the text.
func (p *Page) WaitText(text string) error {
	err := p.until(func() error {
		shown, err := Eval[string](p, "document.body.innerText")
		if err == nil && !strings.Contains(shown, text) {
			err = fmt.Errorf("the text is:\n%s", shown)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the text %q on the page: %w", text, err)
	}
	return nil
}

// WaitFor waits until a JavaScript expression is true on the page. what describes the expression in the error.
func (p *Page) WaitFor(what, expression string) error {
	err := p.until(func() error {
		holds, err := Eval[bool](p, expression)
		if err == nil && !holds {
			err = errors.New("the condition is not met")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// Cookies returns the cookies sent to the page's address, by name.
func (p *Page) Cookies() (map[string]*network.Cookie, error) {
	answer, err := chromedp.Call(p.ctx, network.GetCookies, network.GetCookiesParams{})
	cookies := map[string]*network.Cookie{}
	for _, cookie := range answer.Cookies {
		cookies[cookie.Name] = cookie
	}
	return cookies, err
}

// CookieHeader returns these cookies as a Cookie header.
func (p *Page) CookieHeader() (string, error) {
	cookies, err := p.Cookies()
	var pairs []string
	for name, cookie := range cookies {
		pairs = append(pairs, name+"="+cookie.Value)
	}
	return strings.Join(pairs, "; "), err
}

// ClearCookies removes all of the tab's cookies, as when a session ends.
func (p *Page) ClearCookies() error {
	return call(p, network.ClearBrowserCookies, cdp.Empty{})
}

// AllowClipboard permits the page to read and write the clipboard.
func (p *Page) AllowClipboard() error {
	var err error
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		_, failed := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{
			BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
			Permission:       &browser.PermissionDescriptor{Name: name},
			Setting:          browser.PermissionSettingGranted,
		})
		err = errors.Join(err, failed)
	}
	return err
}

// Eval evaluates JavaScript in the page, bypassing its policy, and awaits a promise.
func Eval[T any](p *Page, script string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Screenshot returns a PNG of the whole page. The window is resized to the height of the page, so elements fixed to an
// edge of the window appear at the edge of the page.
func (p *Page) Screenshot() ([]byte, error) {
	look := p.look
	height, err := Eval[int64](p, "document.documentElement.scrollHeight")
	if err != nil {
		return nil, err
	}
	look.Height = max(look.Height, height)
	err = p.resize(look)
	if err != nil {
		return nil, err
	}
	answer, err := chromedp.Call(p.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true)})
	return answer.Data, errors.Join(err, p.resize(p.look))
}

// until calls ask until it succeeds, even if the page changes in the meantime.
func (p *Page) until(ask func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(p.ctx, pollEvery, patience, true, func(context.Context) (bool, error) {
		last = ask()
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(last, err)
	}
	return nil
}

// call runs a command without a result.
func call[P, R any](p *Page, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		return fmt.Errorf("%s: %w", command.Method, err)
	}
	return nil
}
