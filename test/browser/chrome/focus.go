// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Focus describes how the focused element looks.
type Focus struct {
	// Name is its label or its text.
	Name string `json:"name"`
	// Place is its index among the page's elements, in document order.
	Place int `json:"place"`
	// Ring reports whether a line of at least 2 pixels around the element or its label marks the focus.
	Ring bool `json:"ring"`
	// Covered describes what hides its center, or is "it is outside of the window". It is empty if the element is
	// visible.
	Covered string `json:"covered"`
}

// focused describes the focused element, or is null if there is none.
const focused = `(() => {
  const at = document.activeElement;
  if (!at || at === document.body || at === document.documentElement) return null;
  // What is invisible itself shows its focus on its label.
  const label = at.labels?.[0];
  const shown = label && getComputedStyle(at).opacity === "0" ? label : at;
  const style = getComputedStyle(shown), box = shown.getBoundingClientRect();
  const left = Math.max(box.left, 0), right = Math.min(box.right, innerWidth), top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
  let covered = "";
  if (right - left < 1 || bottom - top < 1) covered = "it is outside of the window";
  else {
    const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    if (!over || !(shown.contains(over) || over.contains(shown) || at.contains(over) || at === over || label?.contains(over))) {
      covered = over?.outerHTML.slice(0, 200) ?? "nothing";
    }
  }
  return {
    name: (at.getAttribute("aria-label") ?? label?.innerText ?? at.innerText ?? "").trim().slice(0, 80),
    place: [...document.querySelectorAll("*")].indexOf(at),
    ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    covered,
  };
})()`

// Focused returns the focused element, or nil if there is none.
func (p *Page) Focused() (*Focus, error) { return Eval[*Focus](p, focused) }

// stops lists the tab stops: links, buttons, fields, elements with a tabindex, and checked radio buttons.
const stops = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter((at) =>
  at.tabIndex >= 0 && !at.matches(":disabled, [type=hidden]") && at.checkVisibility({ visibilityProperty: true }) &&
  (at.type !== "radio" || at.checked)).map((at) => [...document.querySelectorAll("*")].indexOf(at))`

// Stops returns the places of all elements that can be reached with the Tab key. The checked button stands in for a
// group of radio buttons.
func (p *Page) Stops() ([]int, error) { return Eval[[]int](p, stops) }

// Walk presses the Tab key until the focus returns to its first stop, and returns each focused element once.
func (p *Page) Walk() ([]Focus, error) {
	const most = 400
	var walked []Focus
	for range most {
		if err := p.Press(kb.Tab); err != nil {
			return nil, err
		}
		at, err := p.Focused()
		switch {
		case err != nil:
			return nil, err
		case at == nil:
			continue // the browser's toolbar has the focus
		case len(walked) > 0 && at.Place == walked[len(walked)-1].Place:
			continue // a field with several stops, such as a date
		case len(walked) > 0 && at.Place == walked[0].Place:
			return walked, nil
		}
		walked = append(walked, *at)
	}
	return walked, errors.New("the Tab key does not lead back to the first element")
}

// ChooseBy runs act, which opens the browser's file dialog, for example with Enter on a button, and chooses the files.
func (p *Page) ChooseBy(act func() error, files ...string) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	asked := make(chan *page.EventFileChooserOpened, 1)
	err := chromedp.Listen(ctx, func(event any) {
		if opened, ok := event.(*page.EventFileChooserOpened); ok {
			select {
			case asked <- opened:
			default:
			}
		}
	})
	if err != nil {
		return err
	}
	if err := call(p, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true}); err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return errors.New("the browser does not ask for a file")
	case opened := <-asked:
		return errors.Join(
			call(p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{BackendNodeID: opened.BackendNodeID, Files: files}),
			call(p, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{}),
		)
	}
}
