// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kinds generates docs/kinds.md, the reference of Herald's kinds, from the definitions in config/crd/bases. `go
// generate ./config/crd` runs it.
package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/config/crd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kinds markdown-file")
		os.Exit(2)
	}
	page, err := render()
	if err == nil {
		err = os.WriteFile(os.Args[1], page, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kinds:", err)
		os.Exit(1)
	}
}

const introduction = "<!-- Written by `make generate` from config/crd/bases, by hack/kinds. -->\n" + `# Kinds

Every kind of the API group ` + "`social.herald.dev/v1alpha1`" + `, with its fields. ` + "`kubectl explain post.spec`" + ` prints the same descriptions in a
terminal, and ` + "`kubectl get herald`" + ` lists objects of all kinds. [API versions](api-versions.md) defines what may change between releases.

In the tables, ` + "`[]`" + ` marks the elements of a list. A ` + "`time`" + ` is an RFC 3339 timestamp such as ` + "`2026-12-01T09:00:00Z`" + `. Lengths are in characters.
Fields of ` + "`status`" + ` are written by Herald and are read-only for users.
`

// firstKinds are the kinds that users write, in the order of the page. The others follow, sorted by name.
var firstKinds = []string{"Post", "Connection", "Media", "Team", "APIKey"}

// render renders the page from all definitions.
func render() ([]byte, error) {
	files, err := crd.Definitions.ReadDir("bases")
	if err != nil {
		return nil, err
	}
	var all []apiextensions.CustomResourceDefinition
	for _, file := range files {
		var d apiextensions.CustomResourceDefinition
		text, err := crd.Definitions.ReadFile("bases/" + file.Name())
		if err == nil {
			err = yaml.UnmarshalStrict(text, &d)
		}
		if err != nil {
			return nil, fmt.Errorf("read the definition %s: %w", file.Name(), err)
		}
		if len(d.Spec.Versions) != 1 {
			return nil, fmt.Errorf("%s has %d versions; the page describes one", file.Name(), len(d.Spec.Versions))
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b apiextensions.CustomResourceDefinition) int {
		return rank(a.Spec.Names.Kind) - rank(b.Spec.Names.Kind)
	})
	var out bytes.Buffer
	out.WriteString(introduction + "\n| kind | scope | short name | purpose |\n| --- | --- | --- | --- |\n")
	for i := range all {
		spec := &all[i].Spec
		purpose, _, _ := strings.Cut(line(schemaOf(spec).Description), ". ")
		fmt.Fprintf(&out, "| [%s](#%s) | %s | `%s` | %s. |\n", spec.Names.Kind, strings.ToLower(spec.Names.Kind),
			strings.ToLower(string(spec.Scope)), strings.Join(spec.Names.ShortNames, "`, `"), strings.TrimSuffix(purpose, "."))
	}
	for i := range all {
		kind(&out, &all[i].Spec)
	}
	return out.Bytes(), nil
}

// patterns contains the names that Kubernetes has for some patterns.
var patterns = map[string]string{
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:                                                                                 "an RFC 1123 label",
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`:                                               "an RFC 1123 subdomain",
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`: "a qualified name",
}

// rank returns a kind's position on the page.
func rank(kind string) int {
	if i := slices.Index(firstKinds, kind); i >= 0 {
		return i
	}
	return len(firstKinds)
}

func schemaOf(spec *apiextensions.CustomResourceDefinitionSpec) *apiextensions.JSONSchemaProps {
	return spec.Versions[0].Schema.OpenAPIV3Schema
}

// kind renders the section about one kind.
func kind(out *bytes.Buffer, spec *apiextensions.CustomResourceDefinitionSpec) {
	version, schema := &spec.Versions[0], schemaOf(spec)
	fmt.Fprintf(out, "\n## %s\n\n%s\n", spec.Names.Kind, strings.Join(paragraphs(schema.Description), "\n\n"))
	var columns, wide, selectable []string
	for _, column := range version.AdditionalPrinterColumns {
		if column.Priority == 0 {
			columns = append(columns, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
	}
	for _, field := range version.SelectableFields {
		selectable = append(selectable, "`"+strings.TrimPrefix(field.JSONPath, ".")+"`")
	}
	item := fmt.Sprintf("- `kubectl get %s` prints the columns %s", spec.Names.Plural, strings.Join(columns, ", "))
	if len(wide) > 0 {
		item += "; with `-o wide` also " + strings.Join(wide, ", ")
	}
	out.WriteString("\n" + wrap(item, "  ") + ".\n")
	if len(selectable) > 0 {
		fmt.Fprintf(out, "- `--field-selector` accepts %s.\n", strings.Join(selectable, ", "))
	}
	var rules []string
	for _, part := range []string{"spec", "status"} {
		if s, ok := schema.Properties[part]; ok {
			fmt.Fprintf(out, "\n### %s %s\n\n| field | type | constraints | description |\n| --- | --- | --- | --- |\n", spec.Names.Kind, part)
			rules = append(rules, fields(out, part, &s)...)
		}
	}
	rules = append(messages("", schema), rules...)
	if len(rules) > 0 {
		fmt.Fprintf(out, "\n### %s rules\n\nThe API server rejects an object or a change that breaks one of these rules, with this message:\n\n%s\n",
			spec.Names.Kind, strings.Join(rules, "\n"))
	}
}

// fields renders the rows for an object's fields, and returns the rules of the objects and lists among them.
func fields(out *bytes.Buffer, path string, schema *apiextensions.JSONSchemaProps) []string {
	rules := messages(path, schema)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		at := path + "." + name
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", at, typeOf(&field),
			strings.Join(constraints(&field, slices.Contains(schema.Required, name)), "; "), line(field.Description))
		inner := &field
		for inner.Items != nil {
			rules = append(rules, messages(at, inner)...)
			inner, at = inner.Items.Schema, at+"[]"
		}
		if !isCondition(inner) && len(inner.Properties) > 0 {
			rules = append(rules, fields(out, at, inner)...)
		}
	}
	return rules
}

// isCondition reports whether a schema describes a metav1.Condition, whose fields are always the same.
func isCondition(schema *apiextensions.JSONSchemaProps) bool {
	_, transition := schema.Properties["lastTransitionTime"]
	_, reason := schema.Properties["reason"]
	return transition && reason
}

// typeOf describes a field's type in a few words.
func typeOf(schema *apiextensions.JSONSchemaProps) string {
	switch {
	case schema.Items != nil && isCondition(schema.Items.Schema):
		return "list of [conditions](https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/condition/)"
	case schema.Items != nil:
		return "list of " + typeOf(schema.Items.Schema) + "s"
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(schema.AdditionalProperties.Schema) + "s"
	case schema.XIntOrString:
		return "quantity"
	case schema.Format == "date-time":
		return "time"
	}
	return schema.Type
}

// constraints returns the constraints on a field's value, including the rules of scalars.
func constraints(schema *apiextensions.JSONSchemaProps, required bool) []string {
	var out []string
	if required {
		out = append(out, "**required**")
	}
	if schema.Default != nil {
		out = append(out, "default `"+string(schema.Default.Raw)+"`")
	}
	value := schema
	if schema.Items != nil {
		out = append(out, between(schema.MinItems, schema.MaxItems, "elements")...)
		if len(schema.XListMapKeys) > 0 {
			out = append(out, "unique `"+strings.Join(schema.XListMapKeys, "`, `")+"`")
		}
		value = schema.Items.Schema
	}
	var values []string
	for _, v := range value.Enum {
		values = append(values, "`"+strings.Trim(string(v.Raw), `"`)+"`")
	}
	if len(values) > 0 {
		out = append(out, "one of "+strings.Join(values, ", "))
	}
	if value.Format == "date-time" || value.Type == "object" && !value.XIntOrString {
		return out
	}
	out = append(out, between(value.MinLength, value.MaxLength, "characters")...)
	out = append(out, between(value.Minimum, value.Maximum, "")...)
	switch name := patterns[value.Pattern]; {
	case value.Pattern == "" || value.XIntOrString:
	case name != "":
		out = append(out, name)
	default:
		out = append(out, "matches `"+strings.ReplaceAll(value.Pattern, "|", `\|`)+"`")
	}
	for _, rule := range value.XValidations {
		out = append(out, line(rule.Message))
	}
	return out
}

// between describes two bounds; either may be missing.
func between[N int64 | float64](low, high *N, unit string) []string {
	var text string
	switch {
	case low != nil && high != nil:
		text = fmt.Sprintf("%.0f to %.0f %s", float64(*low), float64(*high), unit)
	case high != nil:
		text = fmt.Sprintf("at most %.0f %s", float64(*high), unit)
	case low != nil:
		text = fmt.Sprintf("at least %.0f %s", float64(*low), unit)
	default:
		return nil
	}
	return []string{strings.TrimSpace(text)}
}

// messages returns the rules of an object or list as list items. A rule may have several messages to choose from.
func messages(path string, schema *apiextensions.JSONSchemaProps) []string {
	var out []string
	for _, rule := range schema.XValidations {
		at := strings.TrimPrefix(path+rule.FieldPath, ".")
		texts := []string{rule.Message}
		if rule.MessageExpression != "" {
			texts = literals(rule.MessageExpression)
		}
		for _, text := range texts {
			item := line(text)
			if at != "" {
				item = "`" + at + "`: " + item
			}
			out = append(out, wrap("- "+item, "  "))
		}
	}
	return out
}

// literals returns the string literals in a CEL expression that are prose.
func literals(expression string) []string {
	var out []string
	for i, part := range strings.Split(expression, "'") {
		if i%2 == 1 && strings.Contains(part, " ") {
			out = append(out, part)
		}
	}
	return out
}

// paragraphs returns a description's paragraphs, wrapped and escaped for Markdown.
func paragraphs(text string) []string {
	var out []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		out = append(out, wrap(line(paragraph), ""))
	}
	return out
}

// line joins the lines of text and escapes it for a table.
func line(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(strings.Join(strings.Fields(text), " "))
}

// maxLine is the line length at which text is wrapped. A code span may exceed it.
const maxLine = 140

// wrap breaks text into lines, outside code spans, and indents all but the first.
func wrap(text, indent string) string {
	var out strings.Builder
	length, inCode := 0, false
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case length+1+n > maxLine && !inCode:
			out.WriteString("\n" + indent)
			length = len(indent)
		default:
			out.WriteByte(' ')
			length++
		}
		out.WriteString(word)
		length += n
		if strings.Count(word, "`")%2 == 1 {
			inCode = !inCode
		}
	}
	return out.String()
}
