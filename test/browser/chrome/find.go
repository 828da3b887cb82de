// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Element is a way to find one element: by its role (WAI-ARIA) and its accessible name, as the browser computes them. It
// is looked for whenever it is used, and waited for.
type Element struct {
	page       *Page
	within     *Element
	role, name string
	// part says that name is only a part of it.
	part bool
	// says is a text that stands in it.
	says string
	// nth is which of those that fit, counted from 1; 0 if there must be one alone.
	nth int
}

// Get finds an element of the page. An empty name is any; a second element that fits is an error.
func (p *Page) Get(role, name string) *Element { return &Element{page: p, role: role, name: name} }

// GetPart finds an element of the page by a part of its name.
func (p *Page) GetPart(role, part string) *Element {
	return &Element{page: p, role: role, name: part, part: true}
}

// GetSaying finds an element of the page by a text that stands in it, for what has no name of its own, such as an item of a
// list.
func (p *Page) GetSaying(role, text string) *Element {
	return &Element{page: p, role: role, says: text}
}

// Get finds an element within this one.
func (e *Element) Get(role, name string) *Element {
	return &Element{page: e.page, within: e, role: role, name: name}
}

// GetPart finds an element within this one by a part of its name.
func (e *Element) GetPart(role, part string) *Element {
	return &Element{page: e.page, within: e, role: role, name: part, part: true}
}

// Nth is one of several elements that fit, in the order of the page, counted from 0.
func (e *Element) Nth(i int) *Element {
	one := *e
	one.nth = i + 1
	return &one
}

// String is what a failure calls it.
func (e *Element) String() string {
	text := e.role
	if e.name != "" {
		text = fmt.Sprintf("%s %q", e.role, e.name)
	}
	if e.says != "" {
		text += fmt.Sprintf(" that says %q", e.says)
	}
	if e.within != nil {
		text += " in " + e.within.String()
	}
	return text
}

// notFound is the error when there is no such element now.
type notFound struct{ element, hint string }

func (n notFound) Error() string { return "there is no " + n.element + n.hint }

// nodes are the elements that fit now.
func (e *Element) nodes() ([]cdp.BackendNodeID, error) {
	root, err := e.root()
	if err != nil {
		return nil, err
	}
	answer, err := chromedp.Call(e.page.ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{BackendNodeID: root, Role: e.role})
	if err != nil {
		return nil, fmt.Errorf("look for %s: %w", e, err)
	}
	var found []cdp.BackendNodeID
	for _, node := range answer.Nodes {
		if node.Ignored || node.BackendDOMNodeID == root || !e.isCalled(text(node.Name)) {
			continue
		}
		if fits, err := e.fits(node.BackendDOMNodeID); err != nil {
			return nil, err
		} else if fits {
			found = append(found, node.BackendDOMNodeID)
		}
	}
	return found, nil
}

// isCalled compares names itself: the browser's own search adds the chosen file to the name of an input for files.
func (e *Element) isCalled(name string) bool {
	if e.part {
		return strings.Contains(name, e.name)
	}
	return e.name == "" || name == e.name
}

func (e *Element) fits(node cdp.BackendNodeID) (bool, error) {
	if e.says == "" {
		return true, nil
	}
	return apply[bool](e.page, node, "function(text) { return this.innerText.includes(text) }", e.says)
}

func (e *Element) root() (cdp.BackendNodeID, error) {
	if e.within != nil {
		return e.within.one()
	}
	document, err := chromedp.Call(e.page.ctx, dom.GetDocument, dom.GetDocumentParams{Depth: new(int64(0))})
	if err != nil {
		return 0, err
	}
	return document.Root.BackendNodeID, nil
}

// one is the element, if there is exactly one.
func (e *Element) one() (cdp.BackendNodeID, error) {
	found, err := e.nodes()
	switch {
	case err != nil:
		return 0, err
	case len(found) < max(e.nth, 1):
		return 0, notFound{e.String(), e.others()}
	case e.nth > 0:
		return found[e.nth-1], nil
	case len(found) > 1:
		return 0, fmt.Errorf("there are %d of %s", len(found), e)
	default:
		return found[0], nil
	}
}

// others lists the names of what has the same role, for the one who reads a failure.
func (e *Element) others() string {
	if e.name == "" {
		return ""
	}
	root, err := e.root()
	if err != nil {
		return ""
	}
	answer, err := chromedp.Call(e.page.ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{BackendNodeID: root, Role: e.role})
	if err != nil {
		return ""
	}
	names := []string{"; with this role there are"}
	for _, node := range answer.Nodes {
		if !node.Ignored {
			names = append(names, strconv.Quote(text(node.Name)))
		}
	}
	return strings.Join(names, " ")
}

// text is a name as people hear it: some versions of the browser leave white space at its end.
func text(value *accessibility.Value) string {
	var s string
	if value == nil || json.Unmarshal(value.Value, &s) != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

// Count is how many elements fit now.
func (e *Element) Count() (int, error) {
	found, err := e.nodes()
	return len(found), err
}

// Wait waits until there is exactly one.
func (e *Element) Wait() error {
	return e.do("wait for", func(cdp.BackendNodeID) error { return nil })
}

// WaitGone waits until there is none.
func (e *Element) WaitGone() error {
	err := e.page.until(func() error {
		count, err := e.Count()
		if err == nil && count > 0 {
			err = errors.New("it is still there")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait until %s is gone: %w", e, err)
	}
	return nil
}

// do finds the element and acts on it, both again until it works.
func (e *Element) do(what string, act func(cdp.BackendNodeID) error) error {
	err := e.page.until(func() error {
		node, err := e.one()
		if err != nil {
			return err
		}
		return act(node)
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, e, err)
	}
	return nil
}

// apply calls a JavaScript function with the element as this, and returns what it returns.
func apply[T any](p *Page, node cdp.BackendNodeID, function string, arguments ...any) (T, error) {
	var result T
	resolved, err := chromedp.Call(p.ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node})
	if err != nil {
		return result, err
	}
	// As one array, because an argument that is empty would be left out.
	if arguments == nil {
		arguments = []any{}
	}
	data, err := json.Marshal(arguments)
	if err != nil {
		return result, err
	}
	params := runtime.CallFunctionOnParams{
		ObjectID:            resolved.Object.ObjectID,
		FunctionDeclaration: "function(all) { return (" + function + ").apply(this, all) }",
		Arguments:           []*runtime.CallArgument{{Value: data}},
		ReturnByValue:       new(true), AwaitPromise: new(true), UserGesture: new(true),
	}
	answer, err := chromedp.Call(p.ctx, runtime.CallFunctionOn, params)
	switch {
	case err != nil:
		return result, err
	case answer.ExceptionDetails != nil:
		return result, errors.New(exception(answer.ExceptionDetails))
	case answer.Result == nil || len(answer.Result.Value) == 0:
		return result, nil
	default:
		err := json.Unmarshal(answer.Result.Value, &result)
		return result, err
	}
}

// Read evaluates a JavaScript function of the element: "function() { return this.value }".
func Read[T any](e *Element, function string, arguments ...any) (T, error) {
	var result T
	err := e.do("read", func(node cdp.BackendNodeID) (err error) {
		result, err = apply[T](e.page, node, function, arguments...)
		return err
	})
	return result, err
}

// Text is what a person can read in the element.
func (e *Element) Text() (string, error) {
	return Read[string](e, "function() { return this.innerText }")
}

// Value is that of an input.
func (e *Element) Value() (string, error) { return Read[string](e, "function() { return this.value }") }

// Attribute is that of an element; "" if it has none of this name.
func (e *Element) Attribute(name string) (string, error) {
	return Read[string](e, "function(name) { return this.getAttribute(name) ?? '' }", name)
}

// HasFocus reports whether keys go to the element.
func (e *Element) HasFocus() (bool, error) {
	return Read[bool](e, "function() { return document.activeElement === this }")
}
