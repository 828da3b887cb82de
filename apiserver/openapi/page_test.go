// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

const site = "https://herald.example.com"

// loadPage parses the page like a browser.
func loadPage(t *testing.T) (made *Page, root *html.Node) {
	t.Helper()
	made = PageForSite(site)
	root, err := html.Parse(bytes.NewReader(made.HTML))
	if err != nil {
		t.Fatal(err)
	}
	return made, root
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// TestPageIsWhole verifies that the page has the whole document.
func TestPageIsWhole(t *testing.T) {
	t.Parallel()
	_, root := loadPage(t)
	ids, all := map[string]int{}, text(root)
	for n := range root.Descendants() {
		if id := attribute(n, "id"); id != "" {
			ids[id]++
		}
	}
	raw, err := JSON(YAML())
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components struct {
			Responses map[string]any `json:"responses"`
			Schemas   map[string]struct {
				Properties map[string]any `json:"properties"`
				OneOf      []any          `json:"oneOf"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for path, methods := range d.Paths {
		for method, raw := range methods {
			if method == "parameters" {
				continue
			}
			calls++
			var o struct {
				ID      string `json:"operationId"`
				Summary string `json:"summary"`
			}
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatal(err)
			}
			if ids[o.ID] != 1 || !strings.Contains(all, o.Summary) || !strings.Contains(all, path) {
				t.Errorf("the page lacks %s %s", method, path)
			}
		}
	}
	if calls != 6 {
		t.Errorf("the document has %d operations, want the contract's six", calls)
	}
	for name := range d.Components.Responses {
		if ids[name] != 1 {
			t.Errorf("%d places describe the response %s, want one", ids[name], name)
		}
	}
	for name, schema := range d.Components.Schemas {
		if len(schema.OneOf) == 0 && ids[name] != 1 {
			t.Errorf("%d places describe the schema %s, want one", ids[name], name)
		}
		for property := range schema.Properties {
			if !strings.Contains(all, property) {
				t.Errorf("the page lacks the field %s of %s", property, name)
			}
		}
	}
}

// TestPageStandsAlone verifies that the page loads nothing from other sites, runs no script, and has no broken links of
// its own.
func TestPageStandsAlone(t *testing.T) {
	t.Parallel()
	made, root := loadPage(t)
	ids := map[string]bool{}
	for n := range root.Descendants() {
		id := attribute(n, "id")
		if id != "" && ids[id] {
			t.Errorf("two elements have the id %s", id)
		}
		ids[id] = true
	}
	var styles []string
	for n := range root.Descendants() {
		switch n.Data {
		case "script", "img", "iframe", "object", "embed", "form":
			t.Errorf("the page has the element %s", n.Data)
		case "link":
			// Alternates are not loaded with the page.
			if !strings.HasPrefix(attribute(n, "href"), "data:") && attribute(n, "rel") != "alternate" {
				t.Errorf("the page loads %s", attribute(n, "href"))
			}
		case "style":
			styles = append(styles, text(n))
		case "a":
			target, inside := strings.CutPrefix(attribute(n, "href"), "#")
			if inside && !ids[target] {
				t.Errorf("a link leads to %s, which there is not", target)
			}
		}
		if attribute(n, "style") != "" || strings.HasPrefix(attribute(n, "href"), "javascript:") {
			t.Errorf("%s has what the policy forbids", n.Data)
		}
	}
	if len(styles) != 1 || strings.Contains(styles[0], "@import") || strings.Contains(styles[0], "url(") {
		t.Fatalf("got %d styles, want one that loads nothing", len(styles))
	}
	hash := sha256.Sum256([]byte(styles[0]))
	if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"; !strings.Contains(made.Policy, want) {
		t.Errorf("the policy %s does not allow the page's own style; want %s", made.Policy, want)
	}
	if len(made.HTML) > 100<<10 {
		t.Errorf("the page has %d bytes; it is to stay below 100 KiB", len(made.HTML))
	}
}

// TestExamplesCanBeCopied verifies that each command has the site's address, and the document's example as its body.
func TestExamplesCanBeCopied(t *testing.T) {
	t.Parallel()
	_, root := loadPage(t)
	var commands []string
	for n := range root.Descendants() {
		if n.Data == "pre" && strings.HasPrefix(text(n), "curl ") {
			commands = append(commands, text(n))
		}
	}
	if len(commands) != 9 {
		t.Errorf("got %d commands, want one for each operation and one for each further body", len(commands))
	}
	for _, command := range commands {
		if !strings.Contains(command, "'"+site+"/api/v1/") || strings.Contains(command, placeholder) || strings.Contains(command, "{id}") {
			t.Errorf("this cannot be called:\n%s", command)
		}
		_, body, found := strings.Cut(command, "-d '")
		if body = strings.TrimSuffix(body, "'"); found && !json.Valid([]byte(body)) {
			t.Errorf("this body is no JSON:\n%s", body)
		}
	}
}

// TestMarkdownSaysTheSame verifies that the Markdown page has all the content of the HTML page: each operation, field,
// limit, error and command.
func TestMarkdownSaysTheSame(t *testing.T) {
	t.Parallel()
	made, root := loadPage(t)
	// Both are compared without markup.
	plain := func(text string) string {
		return strings.Join(strings.Fields(strings.NewReplacer("`", "", "\\", "", "**", "").Replace(text)), " ")
	}
	markdown := plain(string(made.Markdown))
	for n := range root.Descendants() {
		switch n.Data {
		case "nav", "footer", "small":
			continue
		case "pre", "p", "dt", "code":
			if within(n, "nav") || within(n, "footer") || attribute(n, "class") != "" {
				continue
			}
			if words := plain(text(n)); !strings.Contains(markdown, words) {
				t.Errorf("the page in Markdown lacks:\n%s", words)
			}
		}
	}
	if strings.Contains(string(made.Markdown), placeholder) || !strings.Contains(string(made.Markdown), "`"+site+"/api/v1`") {
		t.Error("the page in Markdown does not name the site")
	}
}

func within(n *html.Node, element string) bool {
	for parent := range n.Ancestors() {
		if parent.Data == element {
			return true
		}
	}
	return false
}

// TestLLMs verifies the format of llms.txt: a heading, a quotation with a summary, and lists of links under headings
// (https://llmstxt.org).
func TestLLMs(t *testing.T) {
	t.Parallel()
	text := string(PageForSite(site).LLMs)
	if strings.Contains(text, placeholder) {
		t.Error("it does not name the site")
	}
	head, lists, _ := strings.Cut(text, "\n## ")
	if !strings.HasPrefix(head, "# Herald\n\n> ") || strings.Count(text, "\n# ") != 0 {
		t.Errorf("it does not begin with one heading and a quotation:\n%s", head)
	}
	for section := range strings.SplitSeq(lists, "\n## ") {
		_, list, _ := strings.Cut(section, "\n\n")
		for line := range strings.Lines(strings.TrimSpace(list)) {
			if !link.MatchString(strings.TrimSuffix(line, "\n")) {
				t.Errorf("this is no link with words about it: %s", line)
			}
		}
	}
	raw, err := JSON(YAML())
	if err != nil {
		t.Fatal(err)
	}
	for _, operation := range operationID.FindAllStringSubmatch(string(raw), -1) {
		tool := strings.ToLower(capital.ReplaceAllString(operation[1], "_$0"))
		if !strings.Contains(text, "`"+tool+"`") {
			t.Errorf("it lacks the tool %s", tool)
		}
	}
}

var (
	link        = regexp.MustCompile(`^- \[[^\]]+\]\(https://[^)]+\): .+$`)
	operationID = regexp.MustCompile(`"operationId":"(\w+)"`)
	capital     = regexp.MustCompile(`[A-Z]`)
)
