// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// entropy turns bytes into decisions. Once no bytes are left, every decision is 0.
type entropy struct{ bytes []byte }

// below returns a number from 0 up to, but not including, n.
func (e *entropy) below(n int) int {
	value := 0
	for size := 1; size < n; size *= 256 {
		if len(e.bytes) == 0 {
			return 0
		}
		value = value*256 + int(e.bytes[0])
		e.bytes = e.bytes[1:]
	}
	return value % n
}

func pick[T any](e *entropy, from ...T) T { return from[e.below(len(from))] }

// changer changes an object's values according to its schema: mostly to values that the schema may admit, sometimes to
// unexpected ones.
type changer struct {
	*entropy
	// only is the one path to change; if it is empty, any path may change.
	only string
	// changed lists the paths that changed; all items of a list share one.
	changed []string
}

// rarity is the average number of values for each one that changes.
const rarity = 40

// change returns the changed value; nil means absent.
func (c *changer) change(s *schema.Structural, value any, path string) any {
	if c.changes(path) {
		c.changed = append(c.changed, path)
		return c.generate(s, 0)
	}
	switch old := value.(type) {
	case map[string]any:
		changed := make(map[string]any, len(old))
		for _, name := range names(s.Properties) {
			if path == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
				changed[name] = old[name] // the API server has its own rules for these
				continue
			}
			property := s.Properties[name]
			if v := c.change(&property, old[name], path+"."+name); v != nil {
				changed[name] = v
			}
		}
		return changed
	case []any:
		changed := make([]any, 0, len(old))
		for _, item := range old {
			changed = append(changed, c.change(s.Items, item, path+"[]"))
		}
		return changed
	default:
		return value
	}
}

func (c *changer) changes(path string) bool {
	switch {
	case path == "":
		return false
	case c.only != "":
		return path == c.only
	default:
		return c.below(rarity) == 1
	}
}

func names(properties map[string]schema.Structural) []string {
	list := make([]string, 0, len(properties))
	for name := range properties {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// null is an explicit null, which is not the same as an absent value.
var null = json.RawMessage("null")

// generate generates a value for a schema.
func (c *changer) generate(s *schema.Structural, depth int) any {
	if c.below(8) == 1 {
		return pick[any](c.entropy, null, true, "x", []any{}, map[string]any{}, json.RawMessage("1.5"), json.RawMessage("0"))
	}
	switch s.Type {
	case "object":
		object := map[string]any{}
		for _, name := range names(s.Properties) {
			if property := s.Properties[name]; c.below(4) != 1 {
				object[name] = c.generate(&property, depth+1)
			}
		}
		if c.below(8) == 1 {
			object["unheardOf"] = c.text()
		}
		return object
	case "array":
		list := []any{}
		for range c.below(4) {
			list = append(list, c.generate(s.Items, depth+1))
		}
		return list
	case "integer":
		return json.RawMessage(c.number())
	case "boolean":
		return c.below(2) == 1
	default:
		return c.string(s)
	}
}

func (c *changer) string(s *schema.Structural) any {
	validation := s.ValueValidation
	switch {
	case validation != nil && len(validation.Enum) > 0:
		return validation.Enum[c.below(len(validation.Enum))].Object
	case validation != nil && validation.Format == "date-time":
		return c.time()
	case validation != nil && strings.Contains(validation.Pattern, "h)?"):
		return c.duration()
	case validation != nil && strings.HasSuffix(validation.Pattern, "h)$"):
		return pick(c.entropy, "2026-12", "1000-01", "1h", "999999h", "2026-13", "0026-12", "2026", "0h", "1000000h", "1d")
	case validation != nil && strings.Contains(validation.Pattern, "{64}"):
		return strings.Repeat(pick(c.entropy, "0", "a", "A", "g"), 63+c.below(3))
	case validation != nil && strings.HasPrefix(validation.Pattern, "^https"):
		return pick(c.entropy, "https://", "http://", "https://a.example") + pick(c.entropy, "b.example", "/c d", "[::1", "@", "/%zz", "?d#e")
	default:
		return c.text()
	}
}

// time generates text that looks like a time, with some parts at or beyond the limits of the calendar, of RFC 3339 or
// of the permitted years.
func (c *changer) time() string {
	return c.part("2026", "2027", "2028", "1000", "2999", "0999", "3000", "0001", "9999", "12026", "0000", "226") +
		c.part("-", "/", "") + c.part("06", "01", "02", "12", "00", "13", "1") +
		"-" + c.part("15", "01", "28", "29", "30", "31", "00", "32", "1") +
		c.part("T", "t", " ", "") +
		c.part("09", "00", "23", "24", "9", "-1") + ":" + c.part("30", "00", "59", "60", "0") + ":" + c.part("30", "00", "59", "60", "61", "0") +
		c.part("", ".1", ".123", ".123456789", ".0123456789", ".", ",5", "x5", ".999999999", ".0000000000000000000000001") +
		c.part("Z", "z", "", "+02:00", "-02:00", "+23:59", "-23:59", "-00:00", "+24:00", "+14:60", "+2:00", "+0200", "ZZ", "Z ")
}

// part returns its first argument, or occasionally one of the others.
func (c *changer) part(parts ...string) string {
	if c.below(6) != 1 {
		return parts[0]
	}
	return pick(c.entropy, parts...)
}

func (c *changer) duration() string {
	var d strings.Builder
	for _, unit := range []string{"h", "m", "s"} {
		if c.below(3) != 1 {
			d.WriteString(pick(c.entropy, "0", "1", "90", "2160", "999999", "1000000", "999999999999", "-1", "1.5", ""))
			d.WriteString(pick(c.entropy, unit, unit, unit, unit, "ms", "d", ""))
		}
	}
	return d.String()
}

// number generates an integer in one of JSON's notations, often near the limits of a Go type.
func (c *changer) number() string {
	return pick(
		c.entropy, "0", "1", "2", "99", "100", "-1", "1.0", "1e2", "1E+1", "10e-1", "-0", "-0.0",
		"2147483647", "2147483648", "-2147483648", "-2147483649", "2147483647.0", "2147483648.0", "3e9", "4294967296", "4294967297",
		"9007199254740991", "9007199254740992", "9007199254740993", "9007199254740991.0", "1e16", "1e18", "1e19",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1e30", "1e300",
		fmt.Sprint(c.below(1<<16)),
	)
}

// text generates a word, or an arbitrary string.
func (c *changer) text() string {
	if c.below(2) == 1 {
		return pick(c.entropy, "a", "hello", "b7", "07")
	}
	n := pick(c.entropy, 0, 1, 2, 7, 20)
	n = min(n, len(c.bytes))
	raw := string(c.bytes[:n])
	c.bytes = c.bytes[n:]
	return pick(c.entropy, "", "a", "hello", "1970-01-01T00:00:00Z", "\u0000", "\ufeff", "é", "👩\u200d🚀", "null") + strings.ToValidUTF8(raw, "\ufffd")
}
