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

// described is a version of the API and its page, parsed as a browser does.
type described struct {
	document []byte
	page     *Page
	root     *html.Node
	base     string
	// calls and commands are the numbers of operations and examples on the page, if these are fixed, and size is the
	// page's maximum size in bytes.
	calls, commands, size int
}

// eachVersion runs a test on the page of each version.
func eachVersion(t *testing.T, test func(t *testing.T, v *described)) {
	t.Helper()
	for name, v := range map[string]described{
		"V1": {document: YAML(), page: PageForSite(site), base: site + "/api/v1", calls: 6, commands: 9, size: 100 << 10},
		"V2": {document: YAMLV2(), page: PageV2ForSite(site), base: site + "/api/v2", size: 200 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var err error
			if v.root, err = html.Parse(bytes.NewReader(v.page.HTML)); err != nil {
				t.Fatal(err)
			}
			test(t, &v)
		})
	}
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

// TestPageIsComplete verifies that the page contains the whole document.
func TestPageIsComplete(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, v *described) {
		ids, all := map[string]int{}, text(v.root)
		for n := range v.root.Descendants() {
			if id := attribute(n, "id"); id != "" {
				ids[id]++
			}
		}
		raw, err := JSON(v.document)
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
		if v.calls > 0 && calls != v.calls {
			t.Errorf("the document has %d operations, want %d", calls, v.calls)
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
	})
}

// TestPageIsSelfContained verifies that the page loads nothing from other sites, runs no script, and has no broken links of
// its own.
func TestPageIsSelfContained(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, v *described) {
		ids := map[string]bool{}
		for n := range v.root.Descendants() {
			id := attribute(n, "id")
			if id != "" && ids[id] {
				t.Errorf("two elements have the id %s", id)
			}
			ids[id] = true
		}
		var styles []string
		for n := range v.root.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
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
					t.Errorf("a broken link to %s", target)
				}
			}
			if attribute(n, "style") != "" || strings.HasPrefix(attribute(n, "href"), "javascript:") {
				t.Errorf("the policy forbids %s", n.Data)
			}
		}
		if len(styles) != 1 || strings.Contains(styles[0], "@import") || strings.Contains(styles[0], "url(") {
			t.Fatalf("got %d style elements, want one without imports", len(styles))
		}
		hash := sha256.Sum256([]byte(styles[0]))
		if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"; !strings.Contains(v.page.Policy, want) {
			t.Errorf("the policy %s does not allow the page's own style; want %s", v.page.Policy, want)
		}
		if len(v.page.HTML) > v.size {
			t.Errorf("the page has %d bytes, want at most %d", len(v.page.HTML), v.size)
		}
	})
}

// TestExamplesCanBeCopied verifies that each command has the site's address, and the document's example as its body.
func TestExamplesCanBeCopied(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, v *described) {
		var commands []string
		for n := range v.root.Descendants() {
			if n.Data == "pre" && strings.HasPrefix(text(n), "curl ") {
				commands = append(commands, text(n))
			}
		}
		if len(commands) == 0 || v.commands > 0 && len(commands) != v.commands {
			t.Errorf("got %d commands, want one for each operation and one for each further body", len(commands))
		}
		for _, command := range commands {
			if !strings.Contains(command, "'"+v.base+"/") || strings.Contains(command, placeholder) || strings.Contains(command, "{id}") {
				t.Errorf("the example cannot be called:\n%s", command)
			}
			_, body, found := strings.Cut(command, "-d '")
			if body = strings.TrimSuffix(body, "'"); found && !json.Valid([]byte(body)) {
				t.Errorf("the example's body is not JSON:\n%s", body)
			}
		}
	})
}

// TestMarkdownMatchesPage verifies that the Markdown page has all the content of the HTML page: each operation, field,
// limit, error and command.
func TestMarkdownMatchesPage(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, v *described) {
		// Both are compared without markup.
		plain := func(text string) string {
			return strings.Join(strings.Fields(strings.NewReplacer("`", "", "\\", "", "**", "").Replace(text)), " ")
		}
		markdown := plain(string(v.page.Markdown))
		for n := range v.root.Descendants() {
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
		if strings.Contains(string(v.page.Markdown), placeholder) || !strings.Contains(string(v.page.Markdown), "`"+v.base+"`") {
			t.Error("the page in Markdown does not name the site")
		}
	})
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
	text := string(LLMs(site))
	if strings.Contains(text, placeholder) {
		t.Error("the page does not name the site")
	}
	head, lists, _ := strings.Cut(text, "\n## ")
	if !strings.HasPrefix(head, "# Herald\n\n> ") || strings.Count(text, "\n# ") != 0 {
		t.Errorf("the page does not start with a heading and a quotation:\n%s", head)
	}
	for section := range strings.SplitSeq(lists, "\n## ") {
		_, list, _ := strings.Cut(section, "\n\n")
		for line := range strings.Lines(strings.TrimSpace(list)) {
			if !link.MatchString(strings.TrimSuffix(line, "\n")) {
				t.Errorf("not a link with a description: %s", line)
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
			t.Errorf("the page lacks the tool %s", tool)
		}
	}
}

var (
	link        = regexp.MustCompile(`^- \[[^\]]+\]\(https://[^)]+\): .+$`)
	operationID = regexp.MustCompile(`"operationId":"(\w+)"`)
	capital     = regexp.MustCompile(`[A-Z]`)
)
