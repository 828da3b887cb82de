// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logtest records the log of the code under test, and decodes its lines.
package logtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// Log is a buffer for a log with concurrent writers. The zero Log is empty.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns the raw log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Line is one line of a log in JSON.
type Line map[string]any

// Message returns the message of a line.
func (l Line) Message() string { return l.Text(slog.MessageKey) }

// Text returns a field of a line as text, or "" if it is absent.
func (l Line) Text(field string) string {
	value, ok := l[field]
	if !ok {
		return ""
	}
	return fmt.Sprint(value)
}

// Lines decodes the log. It is an error if a line is not a JSON object or has a field twice.
func (l *Log) Lines() (lines []Line, err error) {
	for text := range strings.Lines(l.String()) {
		line, wrong := decode(text)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%w: %s", wrong, text))
		}
		lines = append(lines, line)
	}
	return lines, err
}

// With returns the lines that have the given message.
func (l *Log) With(message string) (found []Line) {
	lines, _ := l.Lines()
	for _, line := range lines {
		if line.Message() == message {
			found = append(found, line)
		}
	}
	return found
}

// In returns the lines that have the given message and concern an object in the namespace. A log may also contain lines
// about objects that other tests have left.
func (l *Log) In(namespace, message string) (found []Line) {
	for _, line := range l.With(message) {
		if line.Text("namespace") == namespace {
			found = append(found, line)
		}
	}
	return found
}

// decode decodes a line token by token, because a map would hide duplicate fields.
func decode(text string) (Line, error) {
	line := Line{}
	decoder := json.NewDecoder(strings.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return line, errors.New("no JSON object")
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return line, fmt.Errorf("no field: %w", err)
		}
		field := fmt.Sprint(token)
		var value any
		if err := decoder.Decode(&value); err != nil {
			return line, fmt.Errorf("no value of %s: %w", field, err)
		}
		if _, twice := line[field]; twice {
			return line, fmt.Errorf("the field %s stands twice", field)
		}
		line[field] = value
	}
	return line, nil
}
