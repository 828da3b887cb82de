// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsondoc decodes the JSON that platforms answer into structs. What is
// missing, or of another kind than documented, reads as nothing, so that one odd
// field does not make the rest unreadable.
package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"
)

// Decode reads a body that is one JSON object into a struct. It returns the
// zero value and false for any other body. A field whose value is of another
// kind than promised stays empty, so that one odd field does not make the rest
// unreadable.
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

// Text is a string, or a number as it is written: ids are longer than a float
// can hold. Any other value reads as "".
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

// String returns the text.
func (t Text) String() string { return string(t) }

// Int returns a whole number; 0 if the text is none.
func (t Text) Int() int {
	n, err := strconv.Atoi(string(t))
	if err != nil {
		return 0
	}
	return n
}

// longestLife bounds what is believed about how long something lasts.
const longestLife = 10 * 365 * 24 * time.Hour

// Seconds returns a number of seconds; zero if it is missing, not positive, or
// longer than ten years.
func (t Text) Seconds() time.Duration {
	seconds, err := strconv.ParseFloat(string(t), 64)
	if err != nil || seconds <= 0 || seconds >= longestLife.Seconds() {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// Time returns a time in the form of RFC 3339, in UTC; zero if the text is none.
func (t Text) Time() time.Time {
	at, err := time.Parse(time.RFC3339, string(t))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// Web returns an address of the web, as people follow it; "" for any other text, such as
// one that a browser would run.
func (t Text) Web() string {
	u, err := url.Parse(string(t))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return string(t)
}

// Flag is a truth value, also one that is written as a string. Any other value
// reads as false.
type Flag bool

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (f *Flag) UnmarshalJSON(value []byte) error {
	*f = string(value) == "true" || string(value) == `"true"`
	return nil
}

// Optional is an object that may be missing: There reports whether it was read.
type Optional[T any] struct {
	Value   T
	Present bool
}

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (o *Optional[T]) UnmarshalJSON(value []byte) error {
	o.Value, o.Present = Decode[T](value)
	return nil
}
