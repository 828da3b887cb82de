// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// readQuery reads a query whole or not at all: what net/url cannot read it
// leaves out, which would drop a filter.
func readQuery(r *http.Request) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query cannot be read: %s", err)
	}
	return values, nil
}

// parameter returns a parameter of a query; false if it was left out.
func parameter(query url.Values, name string) (value string, given bool, err error) {
	values := query[name]
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	default:
		return "", true, invalid("%s: stands in the query more than once", name)
	}
}

// oneOf reads a parameter that is one of those known; "" if it was left out.
func oneOf[S ~string](query url.Values, name string, known ...S) (S, error) {
	value, given, err := parameter(query, name)
	if !given || err != nil {
		return "", err
	}
	words := make([]string, len(known))
	for i, word := range known {
		if S(value) == word {
			return word, nil
		}
		words[i] = string(word)
	}
	return "", invalid("%s: must be one of %s", name, strings.Join(words, ", "))
}

// whole reads a parameter that is a whole number, or returns the number for one
// that was left out. A number that no int can hold becomes the nearest that one
// can: it is as far beyond its bound.
func whole(query url.Values, name string, otherwise int) (int, error) {
	value, given, err := parameter(query, name)
	if !given || err != nil {
		return otherwise, err
	}
	digits := value
	if value != "" && (value[0] == '+' || value[0] == '-') {
		digits = value[1:]
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, invalid("%s: must be a whole number", name)
	}
	n, _ := strconv.Atoi(value) // it can only be out of range
	return n, nil
}
