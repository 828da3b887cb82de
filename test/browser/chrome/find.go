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

// Element locates an element by its role (WAI-ARIA) and accessible name, as the browser computes them. Each use looks
// it up again and waits for it.
type Element struct {
	page       *Page
	within     *Element
	role, name string
	// part means that name only has to match part of the accessible name.
	part bool
	// says is text that the element contains.
	says string
	// nth selects one of several matches, counted from 1; 0 requires a single match.
	nth int
}

// Get locates an element of the page. An empty name matches any name. It is an error if there are several matches.
func (p *Page) Get(role, name string) *Element { return &Element{page: p, role: role, name: name} }

// GetByPartialName locates an element of the page by part of its name.
func (p *Page) GetByPartialName(role, part string) *Element {
	return &Element{page: p, role: role, name: part, part: true}
}

// GetSaying locates an element of the page by its text, for elements without a name, such as list items.
func (p *Page) GetSaying(role, text string) *Element {
	return &Element{page: p, role: role, says: text}
}

// Get locates an element within this one.
func (e *Element) Get(role, name string) *Element {
	return &Element{page: e.page, within: e, role: role, name: name}
}

// GetByPartialName locates an element within this one by part of its name.
func (e *Element) GetByPartialName(role, part string) *Element {
	return &Element{page: e.page, within: e, role: role, name: part, part: true}
}

// Nth selects one of several matches, in page order, counted from 0.
func (e *Element) Nth(i int) *Element {
	one := *e
	one.nth = i + 1
	return &one
}

// String describes the element for failure messages.
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

// notFound is the error if nothing matches an element.
type notFound struct{ element, hint string }

func (n notFound) Error() string { return "found no " + n.element + n.hint }

// nodes returns the current matches.
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

// isCalled compares names itself, because the browser's own search appends the chosen file to the name of a file input.
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

// one returns the single match.
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

// others lists the names of elements with the same role, for a failure message.
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
	names := []string{"; elements with this role:"}
	for _, node := range answer.Nodes {
		if !node.Ignored {
			names = append(names, strconv.Quote(text(node.Name)))
		}
	}
	return strings.Join(names, " ")
}

// text returns an accessible name without the trailing white space that some browser versions leave.
func text(value *accessibility.Value) string {
	var s string
	if value == nil || json.Unmarshal(value.Value, &s) != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

// Count returns the number of current matches.
func (e *Element) Count() (int, error) {
	found, err := e.nodes()
	return len(found), err
}

// Wait waits for exactly one match.
func (e *Element) Wait() error {
	return e.do("wait for", func(cdp.BackendNodeID) error { return nil })
}

// WaitGone waits until there is no match.
func (e *Element) WaitGone() error {
	err := e.page.until(func() error {
		count, err := e.Count()
		if err == nil && count > 0 {
			err = errors.New("the element still exists")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the removal of %s: %w", e, err)
	}
	return nil
}

// do finds the element and acts on it, and retries both until they succeed.
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

// apply calls a JavaScript function with the element as this, and returns its result.
func apply[T any](p *Page, node cdp.BackendNodeID, function string, arguments ...any) (T, error) {
	var result T
	resolved, err := chromedp.Call(p.ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node})
	if err != nil {
		return result, err
	}
	// Pass them as one array, because an empty argument would be omitted.
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

// Read evaluates a JavaScript function on the element, such as "function() { return this.value }".
func Read[T any](e *Element, function string, arguments ...any) (T, error) {
	var result T
	err := e.do("read", func(node cdp.BackendNodeID) (err error) {
		result, err = apply[T](e.page, node, function, arguments...)
		return err
	})
	return result, err
}

// Text returns the element's visible text.
func (e *Element) Text() (string, error) {
	return Read[string](e, "function() { return this.innerText }")
}

// Value returns the value of an input.
func (e *Element) Value() (string, error) { return Read[string](e, "function() { return this.value }") }

// Attribute returns an attribute of the element, or "" if it is absent.
func (e *Element) Attribute(name string) (string, error) {
	return Read[string](e, "function(name) { return this.getAttribute(name) ?? '' }", name)
}

// HasFocus reports whether the element receives key events.
func (e *Element) HasFocus() (bool, error) {
	return Read[bool](e, "function() { return document.activeElement === this }")
}
