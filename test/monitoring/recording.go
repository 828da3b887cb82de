// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Recording contains the series that Prometheus scraped during a run. Each series has one value per Step, starting at
// From, and is identified by its name and labels in Prometheus notation.
type Recording struct {
	From   time.Time
	Step   time.Duration
	Series map[string][]float64
	// Absent are the steps without a value.
	Absent map[string]map[int]bool
}

// Steps returns the number of values that a series has, including absent ones.
func (r *Recording) Steps() (n int) {
	for _, values := range r.Series {
		n = max(n, len(values))
	}
	return n
}

// To returns the end of the recording.
func (r *Recording) To() time.Time { return r.From.Add(time.Duration(r.Steps()-1) * r.Step) }

const (
	head   = "# What Prometheus scraped of a run of the real processes, which `make record-monitoring` makes anew: from %s on, every %s.\n"
	absent = "_"
)

// Write writes the recording. Consecutive equal values are written once, with their number: 3*12.
func (r *Recording) Write(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, head, r.From.UTC().Format(time.RFC3339), r.Step)
	for _, series := range slices.Sorted(maps.Keys(r.Series)) {
		text.WriteString(series)
		words := r.words(series)
		for len(words) > 0 {
			n := 1
			for n < len(words) && words[n] == words[0] {
				n++
			}
			text.WriteString(" " + words[0])
			if n > 1 {
				fmt.Fprintf(&text, "*%d", n)
			}
			words = words[n:]
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// words returns the values of a series as text.
func (r *Recording) words(series string) (words []string) {
	for i, value := range r.Series[series] {
		if r.Absent[series][i] {
			words = append(words, absent)
		} else {
			words = append(words, number(value))
		}
	}
	return words
}

// number formats a value with three decimals.
func number(value float64) string {
	return strconv.FormatFloat(math.Round(value*1000)/1000, 'g', -1, 64)
}

// Read reads the output of Write.
func Read(in io.Reader) (*Recording, error) {
	r := &Recording{Series: map[string][]float64{}, Absent: map[string]map[int]bool{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return nil, cmp.Or(lines.Err(), errors.New("the recording is empty"))
	}
	from, every, found := strings.Cut(strings.TrimSuffix(lines.Text(), "."), " on, every ")
	var err error
	if r.From, err = time.Parse(time.RFC3339, from[strings.LastIndexByte(from, ' ')+1:]); err != nil || !found {
		return nil, fmt.Errorf("the first line does not say from when on, and how often: %w", err)
	}
	if r.Step, err = time.ParseDuration(every); err != nil {
		return nil, err
	}
	for lines.Scan() {
		end := strings.LastIndexByte(lines.Text(), '}') + 1
		if err := r.add(lines.Text()[:end], strings.Fields(lines.Text()[end:])); err != nil {
			return nil, fmt.Errorf("%s: %w", lines.Text()[:end], err)
		}
	}
	return r, lines.Err()
}

func (r *Recording) add(series string, words []string) error {
	r.Absent[series] = map[int]bool{}
	for _, word := range words {
		value, times, many := strings.Cut(word, "*")
		n, v := 1, 0.0
		var err error
		if many {
			n, err = strconv.Atoi(times)
		}
		if err == nil && value != absent {
			v, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return err
		}
		for range n {
			r.Absent[series][len(r.Series[series])] = value == absent
			r.Series[series] = append(r.Series[series], v)
		}
	}
	return nil
}

// OpenMetrics writes the recording in promtool's input format.
func (r *Recording) OpenMetrics(out io.Writer) error {
	var text strings.Builder
	for _, series := range slices.Sorted(maps.Keys(r.Series)) {
		for i, value := range r.Series[series] {
			if !r.Absent[series][i] {
				fmt.Fprintf(&text, "%s %s %d\n", series, number(value), r.From.Add(time.Duration(i)*r.Step).Unix())
			}
		}
	}
	text.WriteString("# EOF\n")
	_, err := io.WriteString(out, text.String())
	return err
}
