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

// refuse notes what is wrong with a parameter.
func (c *call) refuse(name, problem string) { c.wrong = append(c.wrong, name+": "+problem) }

// parameter returns a parameter of a query; false if it was left out or cannot be read.
func (c *call) parameter(name string) (value string, given bool) {
	values := c.query[name]
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	default:
		c.refuse(name, "stands in the query more than once")
		return "", false
	}
}

// oneOf reads a parameter that is one of those known; "" if it was left out.
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

// whole reads a parameter that is a whole number, or returns the number for one
// that was left out. A number that no int can hold becomes the nearest that one
// can: it is as far beyond its bound.
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
	n, _ := strconv.Atoi(value) // it can only be out of range
	return n
}
