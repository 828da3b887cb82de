// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// rule checks one value of a JSON body and adds what is wrong with it to bad.
type rule func(path string, value any, bad *[]string)

func complainf(bad *[]string, path, format string, args ...any) {
	*bad = append(*bad, path+": "+fmt.Sprintf(format, args...))
}

// object allows the named fields and no others.
func object(fields map[string]rule) rule {
	return func(path string, value any, bad *[]string) {
		members, ok := value.(map[string]any)
		if !ok {
			complainf(bad, path, "%s found, object expected", jsonType(value))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			check, known := fields[name]
			if !known {
				complainf(bad, path+"."+name, "is not defined in the schema and the schema does not allow additional properties")
				continue
			}
			check(path+"."+name, members[name], bad)
		}
	}
}

// stringOf allows strings of that many characters; a pattern, when given, must match.
func stringOf(minimum, maximum int, pattern *regexp.Regexp) rule {
	return func(path string, value any, bad *[]string) {
		s, ok := value.(string)
		if !ok {
			complainf(bad, path, "%s found, string expected", jsonType(value))
			return
		}
		n := utf8.RuneCountInString(s)
		switch {
		case n < minimum:
			complainf(bad, path, "must be at least %d characters long", minimum)
		case n > maximum:
			complainf(bad, path, "must be at most %d characters long", maximum)
		case pattern != nil && !pattern.MatchString(s):
			complainf(bad, path, "does not match the regex pattern %s", pattern)
		}
	}
}

func oneOf(values ...string) rule {
	return func(path string, value any, bad *[]string) {
		if s, ok := value.(string); !ok || !slices.Contains(values, s) {
			complainf(bad, path, "does not have a value in the enumeration [%s]", strings.Join(values, ", "))
		}
	}
}

func boolean(path string, value any, bad *[]string) {
	if _, ok := value.(bool); !ok {
		complainf(bad, path, "%s found, boolean expected", jsonType(value))
	}
}

func integer(minimum, maximum int64) rule {
	return func(path string, value any, bad *[]string) {
		number, _ := value.(json.Number)
		n, err := number.Int64()
		switch {
		case err != nil:
			complainf(bad, path, "%s found, integer expected", jsonType(value))
		case n < minimum || n > maximum:
			complainf(bad, path, "must have a value between %d and %d", minimum, maximum)
		}
	}
}

func list(minimum, maximum int, item rule) rule {
	return func(path string, value any, bad *[]string) {
		items, ok := value.([]any)
		switch {
		case !ok:
			complainf(bad, path, "%s found, array expected", jsonType(value))
			return
		case len(items) < minimum:
			complainf(bad, path, "there must be a minimum of %d items in the array", minimum)
		case len(items) > maximum:
			complainf(bad, path, "there must be a maximum of %d items in the array", maximum)
		}
		for i, v := range items {
			item(fmt.Sprintf("%s[%d]", path, i), v, bad)
		}
	}
}

func jsonType(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// errTrailing says that something follows the JSON value.
var errTrailing = errors.New("the body holds more than one JSON value")

// decodeBody reads exactly one JSON value.
func decodeBody(content []byte) (any, error) {
	if !utf8.Valid(content) {
		return nil, errors.New("the body is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return value, nil
}

// member follows names into nested objects. What is not there, or not of type T, is T's zero value.
func member[T any](value any, names ...string) T {
	for _, name := range names {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	out, _ := value.(T)
	return out
}

func has(value any, name string) bool {
	members, _ := value.(map[string]any)
	_, found := members[name]
	return found
}
