// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Back returns to the previous page, like the browser's button, and waits for it.
func (p *Page) Back() error {
	return p.Follow(func() error {
		history, err := chromedp.Call(p.ctx, page.GetNavigationHistory, cdp.Empty{})
		if err != nil {
			return fmt.Errorf("read the history of the tab: %w", err)
		}
		if history.CurrentIndex < 1 {
			return errors.New("the tab has no earlier page")
		}
		return call(p, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: history.Entries[history.CurrentIndex-1].ID})
	})
}

// Reload reloads the page, like the browser's button.
func (p *Page) Reload() error {
	return p.Follow(func() error { return call(p, page.Reload, page.ReloadParams{}) })
}

// NewTab opens an address in another tab, which shares this tab's cookies and storage and closes with it.
func (p *Page) NewTab(url string) (*Page, error) {
	tab := &Page{}
	tab.watched.reset()
	tab.watched.leave = tab.confirmLeave
	tab.ctx, tab.cancel = chromedp.NewContext(p.ctx, chromedp.WithListener(tab.watched.see))
	err := chromedp.Do(tab.ctx)
	if err == nil {
		err = errors.Join(call(tab, network.Enable, network.EnableParams{}), tab.SetLook(p.look))
	}
	if err == nil {
		err = tab.Open(url)
	}
	return tab, err
}
