// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// readQuery parses the query string. It rejects malformed pairs, which URL.Query silently discards: a request with a
// malformed filter would otherwise return unfiltered results.
func readQuery(r *http.Request) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query cannot be read: %s", err)
	}
	return values, nil
}

func (c *call) refuse(name, problem string) { c.wrong = append(c.wrong, name+": "+problem) }

// parameter returns a query parameter, or false if it is missing or given more than once.
func (c *call) parameter(name string) (value string, given bool) {
	values := c.query[name]
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	default:
		c.refuse(name, "appears more than once in the query")
		return "", false
	}
}

// oneOf returns a parameter that has one of the known values, or "" if it is missing.
func oneOf[S ~string](c *call, name string, known ...S) S {
	value, given := c.parameter(name)
	if !given {
		return ""
	}
	words := make([]string, len(known))
	for i, word := range known {
		if S(value) == word {
			return word
		}
		words[i] = string(word)
	}
	c.refuse(name, "must be one of "+strings.Join(words, ", "))
	return ""
}

// whole returns an integer parameter, or otherwise if it is missing. A value outside the range of int becomes the
// nearest int, which is also outside the bounds.
func (c *call) whole(name string, otherwise int) int {
	value, given := c.parameter(name)
	if !given {
		return otherwise
	}
	digits := value
	if value != "" && (value[0] == '+' || value[0] == '-') {
		digits = value[1:]
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		c.refuse(name, "must be a whole number")
		return otherwise
	}
	n, _ := strconv.Atoi(value) // the only possible error is a range error
	return n
}
