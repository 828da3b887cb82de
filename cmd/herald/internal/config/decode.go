// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// decoder copies a YAML document into a Go value according to its JSON tags. It records each value that cannot be
// copied as a mistake and continues. sigs.k8s.io/yaml stops at the first mistake and has no line numbers.
type decoder struct {
	mistakes []Mistake
	// lines holds the lines of the fields in the document, by path. wrong holds the paths whose value could not be
	// copied; they are not validated again.
	lines map[string]int
	wrong map[string]bool
}

// defaulter is a section that has defaults once it is present.
type defaulter interface{ SetDefaults() }

func (d *decoder) mistake(line int, path, problem, remedy string) {
	d.wrong[path] = true
	d.mistakes = append(d.mistakes, Mistake{Line: line, Path: path, Problem: problem, Remedy: remedy})
}

// value copies a node. Null keeps the default, like an absent field.
func (d *decoder) value(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind == yaml.AliasNode {
		d.mistake(node.Line, path, "aliases are not supported", "write the value itself")
		return
	}
	d.lines[path] = node.Line
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return
	}
	if into.Type() == reflect.TypeFor[metav1.Duration]() {
		d.duration(node, into, path)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		section := reflect.New(into.Type().Elem())
		if s, ok := reflect.TypeAssert[defaulter](section); ok {
			s.SetDefaults()
		}
		into.Set(section)
		d.value(node, section.Elem(), path)
	case reflect.Struct:
		d.section(node, into, path)
	case reflect.Slice:
		d.list(node, into, path)
	default:
		d.scalar(node, into, path)
	}
}

func (d *decoder) section(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.MappingNode {
		d.mistake(node.Line, path, "it is "+kindOf(node), "write a section: its fields on the following lines, further to the right, or {} for none")
		return
	}
	fields := fieldsOf(into)
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, child := node.Content[i], node.Content[i+1]
		at := join(path, key.Value)
		if line, twice := seen[key.Value]; twice {
			problem := fmt.Sprintf("it is already set in line %d", line)
			d.mistakes = append(d.mistakes, Mistake{Line: key.Line, Path: at, Problem: problem, Remedy: "remove one of the two"})
			continue
		}
		seen[key.Value] = key.Line
		field, known := fields[key.Value]
		if !known {
			d.unknown(key, at, fields)
			continue
		}
		d.value(child, field, at)
		d.lines[at] = key.Line
	}
}

// sandboxURL is the field that replaces the addresses of individual platforms.
const sandboxURL = "platforms.sandbox.url"

// removedAddress matches the addresses of individual platforms, which earlier versions read.
var removedAddress = regexp.MustCompile(`^platforms\.[a-z]+\.(apiURL|webURL|authorizeURL|facebookURL|uploadURL)$`)

// unknown adds a mistake for a field that the section does not have.
func (d *decoder) unknown(key *yaml.Node, path string, fields map[string]reflect.Value) {
	if removedAddress.MatchString(path) {
		d.mistake(key.Line, path, "this field was removed", "remove it, or for simulated platforms write the address of the sandbox once, as "+sandboxURL)
		return
	}
	d.mistake(key.Line, path, "there is no such field", remedyFor(key.Value, fields))
}

func (d *decoder) list(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.SequenceNode {
		d.mistake(node.Line, path, "it is "+kindOf(node), "write a list, such as [a, b]")
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content)))
	for i, child := range node.Content {
		d.value(child, into.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (d *decoder) duration(node *yaml.Node, into reflect.Value, path string) {
	parsed, err := time.ParseDuration(node.Value)
	if node.Kind != yaml.ScalarNode || err != nil {
		d.mistake(node.Line, path, "it is "+kindOf(node)+", not a duration", "write a number with its unit, such as 90s, 30m or 1h30m")
		return
	}
	into.Set(reflect.ValueOf(metav1.Duration{Duration: parsed}))
}

func (d *decoder) scalar(node *yaml.Node, into reflect.Value, path string) {
	tags, remedy := []string{"!!str"}, "write text; put it into quotes if it looks like something else"
	switch into.Kind() {
	case reflect.Bool:
		tags, remedy = []string{"!!bool"}, "write true or false"
	case reflect.Int:
		tags, remedy = []string{"!!int"}, "write a whole number, without quotes"
	case reflect.Float64:
		tags, remedy = []string{"!!int", "!!float"}, "write a number, without quotes"
	}
	if node.Kind != yaml.ScalarNode || !slices.Contains(tags, node.ShortTag()) || node.Decode(into.Addr().Interface()) != nil {
		d.mistake(node.Line, path, "it is "+kindOf(node), remedy)
	}
}

// fieldsOf returns the fields of a struct, including embedded structs, by name.
func fieldsOf(section reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for field, value := range section.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			maps.Copy(fields, fieldsOf(value))
			continue
		}
		fields[name] = value
	}
	return fields
}

// remedyFor suggests the field that differs only in case, or else lists all fields.
func remedyFor(name string, fields map[string]reflect.Value) string {
	names := make([]string, 0, len(fields))
	for known := range fields {
		if strings.EqualFold(known, name) {
			return "write " + known
		}
		names = append(names, known)
	}
	slices.Sort(names)
	return "remove it, or write one of " + strings.Join(names, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// kindOf describes a node. It never includes text, which may be a misplaced secret.
func kindOf(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a section"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.ShortTag() == "!!str":
		return "text"
	case node.ShortTag() == "!!bool":
		return "true or false"
	case node.ShortTag() == "!!int", node.ShortTag() == "!!float":
		return "a number"
	default:
		return "something else"
	}
}
