// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Click clicks the element with the mouse as a user would. If it is covered or disabled, Click returns an error.
func (e *Element) Click() error {
	return e.do("click", func(node cdp.BackendNodeID) error {
		at, err := e.page.spot(node)
		if err != nil {
			return err
		}
		return chromedp.Do(e.page.ctx, chromedp.MouseClickXY(at.x, at.y))
	})
}

// Follow clicks an element that leads to another page, and waits for that page.
func (e *Element) Follow() error { return e.page.Follow(e.Click) }

type point struct{ x, y float64 }

// reachable returns the reason why a click at a point would not reach the element, or nothing if it would. A label
// counts as its control.
const reachable = `function(x, y) {
  if (this.matches(":disabled")) return "it is disabled";
  const top = document.elementFromPoint(x, y);
  if (top && (this.contains(top) || top.contains(this) || [...(this.labels ?? [])].some((label) => label.contains(top)))) return "";
  return "it is covered by " + (top ? top.outerHTML.slice(0, 200) : "nothing");
}`

// label returns the center of a hidden control's label.
const label = `function() {
  const box = this.labels?.[0]?.getBoundingClientRect();
  return box && box.width > 0 ? [box.x + box.width / 2, box.y + box.height / 2] : null;
}`

// spot scrolls to an element and returns a clickable point of it or its label.
func (p *Page) spot(node cdp.BackendNodeID) (point, error) {
	if err := call(p, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: node}); err != nil {
		return point{}, err
	}
	at, err := p.middle(node)
	if err == nil {
		err = p.reaches(node, at)
	}
	if err == nil {
		return at, nil
	}
	of, failed := apply[[]float64](p, node, label)
	if failed != nil || len(of) != 2 {
		return point{}, errors.Join(err, failed)
	}
	at = point{of[0], of[1]}
	return at, p.reaches(node, at)
}

func (p *Page) middle(node cdp.BackendNodeID) (point, error) {
	quads, err := chromedp.Call(p.ctx, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: node})
	if err != nil {
		return point{}, err
	}
	if len(quads.Quads) == 0 || len(quads.Quads[0]) != 8 {
		return point{}, errors.New("the element is not visible")
	}
	corners := quads.Quads[0]
	return point{(corners[0] + corners[4]) / 2, (corners[1] + corners[5]) / 2}, nil
}

func (p *Page) reaches(node cdp.BackendNodeID, at point) error {
	problem, err := apply[string](p, node, reachable, at.x, at.y)
	if err == nil && problem != "" {
		err = errors.New(problem)
	}
	return err
}

// Focus moves the focus to the element.
func (e *Element) Focus() error {
	return e.do("focus", func(node cdp.BackendNodeID) error {
		return call(e.page, dom.Focus, dom.FocusParams{BackendNodeID: node})
	})
}

// set sets a value that users type differently in each language, such as a date.
const set = `function(value) {
  if (this.disabled || this.readOnly) throw new Error("it cannot be changed");
  if (["text", "search", "url", "email", "password", "textarea", undefined].includes(this.type)) {
    this.focus();
    this.select();
    return true;
  }
  this.value = value;
  if (this.value !== value) throw new Error("it took " + this.value);
  for (const type of ["input", "change"]) this.dispatchEvent(new Event(type, { bubbles: true }));
  return false;
}`

// Fill replaces the value of an input or a text area. If a page update replaces the element in the meantime, Fill fills
// in the new one.
func (e *Element) Fill(value string) error {
	return e.do("fill in", func(node cdp.BackendNodeID) error {
		typed, err := apply[bool](e.page, node, set, value)
		switch {
		case err != nil:
			return err
		case typed && value == "":
			return e.page.Press(kb.Delete)
		case typed:
			if err := call(e.page, input.InsertText, input.InsertTextParams{Text: value}); err != nil {
				return err
			}
		}
		if connected, err := apply[bool](e.page, node, "function() { return this.isConnected }"); err != nil || connected {
			return err
		}
		return errors.New("an update of the page replaced the element")
	})
}

// Select chooses the option of a select element by its label.
func (e *Element) Select(label string) error {
	const choose = `function(label) {
  const option = [...this.options].find((option) => option.label === label);
  if (!option) throw new Error("its options are " + [...this.options].map((option) => option.label).join(", "));
  option.selected = true;
  for (const type of ["input", "change"]) this.dispatchEvent(new Event(type, { bubbles: true }));
}`
	return e.do("choose from", func(node cdp.BackendNodeID) error {
		_, err := apply[any](e.page, node, choose, label)
		return err
	})
}

// Check turns a checkbox or switch on or off.
func (e *Element) Check(on bool) error {
	checked, err := Read[bool](e, "function() { return this.checked ?? this.ariaChecked === 'true' }")
	if err != nil || checked == on {
		return err
	}
	return e.Click()
}

// Press sends keys to the focused element. Special keys are constants in package kb, such as kb.Tab and kb.Enter.
func (p *Page) Press(keys string) error {
	return chromedp.Do(p.ctx, chromedp.KeyEvent(keys))
}

// TabTo presses the Tab key until the element has the focus, like a user without a mouse.
func (p *Page) TabTo(e *Element) error {
	const most = 200
	if err := e.Wait(); err != nil {
		return err
	}
	for range most {
		if has, err := e.HasFocus(); has || err != nil {
			return err
		}
		if err := p.Press(kb.Tab); err != nil {
			return err
		}
	}
	return fmt.Errorf("pressing Tab %d times does not lead to %s", most, e)
}

// Choose sets the files of a file input, as the system's file dialog does.
func (e *Element) Choose(files ...string) error {
	return e.do("choose files for", func(node cdp.BackendNodeID) error {
		return call(e.page, dom.SetFileInputFiles, dom.SetFileInputFilesParams{BackendNodeID: node, Files: files})
	})
}

// Drop drops files from outside the browser onto the element, with the events of a real drag.
func (e *Element) Drop(files ...string) error {
	return e.offer("drop files onto", `
  const fire = (type) => this.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
  fire("dragenter");
  if (fire("dragover")) throw new Error("it takes no files");
  fire("drop");`, files)
}

// Paste pastes files from the clipboard while the element has the focus.
func (e *Element) Paste(files ...string) error {
	return e.offer("paste files into", `
  if (this.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: dataTransfer }))) throw new Error("it takes no files");`, files)
}

// offer runs a script with the files in the variable dataTransfer.
func (e *Element) offer(what, script string, files []string) error {
	type file struct{ Name, Type, Data string }
	var offered []file
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		offered = append(offered, file{filepath.Base(path), mime.TypeByExtension(filepath.Ext(path)), base64.StdEncoding.EncodeToString(content)})
	}
	function := `async function(files) {
  const dataTransfer = new DataTransfer();
  for (const { Name, Type, Data } of files) {
    const bytes = Uint8Array.from(atob(Data), (letter) => letter.charCodeAt(0));
    dataTransfer.items.add(new File([bytes], Name, { type: Type }));
  }` + script + `
}`
	return e.do(what, func(node cdp.BackendNodeID) error {
		_, err := apply[any](e.page, node, function, offered)
		return err
	})
}

// DragTo drags the element onto another one with the mouse. Both must fit into the window.
func (e *Element) DragTo(other *Element) error {
	return e.do("drag", func(node cdp.BackendNodeID) error {
		target, err := other.one()
		if err != nil {
			return err
		}
		to, err := e.page.spot(target)
		if err != nil {
			return err
		}
		from, err := e.page.spot(node)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(e.page.ctx, patience)
		defer cancel()
		return chromedp.Do(ctx, chromedp.DragAndDropXY(from.x, from.y, to.x, to.y))
	})
}
