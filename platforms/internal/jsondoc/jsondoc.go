// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsondoc decodes platforms' JSON responses into structs. A field that is missing or has an unexpected type is
// decoded as its zero value, so one malformed field does not make the rest unreadable.
package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"
)

// Decode decodes a body that consists of one JSON object. For any other body it returns the zero value and false. A
// field of an unexpected type is left empty.
func Decode[T any](body []byte) (T, bool) {
	var v, none T
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return none, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&v); err != nil {
		if _, odd := errors.AsType[*json.UnmarshalTypeError](err); !odd {
			return none, false
		}
	}
	if decoder.More() {
		return none, false
	}
	return v, true
}

// DecodeList decodes a body that consists of one JSON array of objects. For any other body it returns false. A field of
// an unexpected type is left empty.
func DecodeList[T any](body []byte) ([]T, bool) {
	var items []Optional[T]
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&items); err != nil || decoder.More() || items == nil {
		return nil, false
	}
	list := make([]T, len(items))
	for i, item := range items {
		if !item.Present {
			return nil, false
		}
		list[i] = item.Value
	}
	return list, true
}

// Text is a string, or a number's literal: as numbers, ids may exceed the precision of a float. Any other value is
// decoded as "".
type Text string

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (t *Text) UnmarshalJSON(value []byte) error {
	*t = ""
	switch c := value[0]; {
	case c == '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return err
		}
		*t = Text(s)
	case c == '-' || c >= '0' && c <= '9':
		*t = Text(value)
	}
	return nil
}

func (t Text) String() string { return string(t) }

// Int parses a whole number. It returns 0 for any other text.
func (t Text) Int() int {
	n, err := strconv.Atoi(string(t))
	if err != nil {
		return 0
	}
	return n
}

// longestLife is the longest lifetime that Herald accepts from a platform.
const longestLife = 10 * 365 * 24 * time.Hour

// Seconds parses a number of seconds. It returns zero if the number is missing or not positive, or if it amounts to ten
// years or more.
func (t Text) Seconds() time.Duration {
	seconds, err := strconv.ParseFloat(string(t), 64)
	if err != nil || seconds <= 0 || seconds >= longestLife.Seconds() {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// Time parses an RFC 3339 time and returns it in UTC, or zero for any other text.
func (t Text) Time() time.Time {
	at, err := time.Parse(time.RFC3339, string(t))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// Web returns the text if it is an http or https URL, and "" otherwise, for example for a URL that a browser would
// execute.
func (t Text) Web() string {
	u, err := url.Parse(string(t))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return string(t)
}

// Flag is a boolean, or a string that contains one. Any other value is decoded as false.
type Flag bool

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (f *Flag) UnmarshalJSON(value []byte) error {
	*f = string(value) == "true" || string(value) == `"true"`
	return nil
}

// Optional is an object that may be missing; Present reports whether it was decoded.
type Optional[T any] struct {
	Value   T
	Present bool
}

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (o *Optional[T]) UnmarshalJSON(value []byte) error {
	o.Value, o.Present = Decode[T](value)
	return nil
}
