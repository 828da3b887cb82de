// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// B9's goals: the memory that the apiserver allocates for one hostile body, and the growth of its memory with many
// concurrent ones, in MiB, and the CPU time that one body takes, in milliseconds.
const (
	goalOne  = 8.0
	goalMany = 128.0
	goalCPU  = 50.0
)

const (
	// hostileBytes is the size of the bodies: the request limit.
	hostileBytes = 1 << 20
	// oneByOne is the number of requests sent one after another to measure one body, and atOnce the number sent
	// concurrently.
	oneByOne, atOnce = 16, 64
)

// b9 sends bodies that are expensive to process.
type b9 struct {
	*session
	pid int
}

// hostile is the cost of one kind of hostile body.
type hostile struct {
	// One is the memory that the apiserver allocates for one body, and Many is the growth of its resident memory for
	// many concurrent ones, in MiB.
	One  float64 `json:"mib_one"`
	Many float64 `json:"mib_64"`
	// CPU is the CPU time that one body takes, in milliseconds, and Ratio is CPU divided by the CPU time of an honest
	// body of the same size.
	CPU   float64 `json:"cpu_ms"`
	Ratio float64 `json:"cpu_ratio"`
	// Refused is the number of concurrent requests that were rejected with status 429.
	Refused int `json:"refused"`
}

// runB9 measures the cost of bodies of 1 MiB, both one after another and 64 at a time.
func runB9(ctx context.Context, s *session, r *report, id string) error {
	b := &b9{session: s}
	return s.prepare(ctx, func() error {
		for _, p := range s.stack.Herald() {
			if p.Name == processes.APIServer {
				b.pid = p.PID()
			}
		}
		before, err := (&b5{session: s}).rest(ctx)
		if err != nil {
			return err
		}
		_, honest, err := b.one(ctx, honestBody())
		if err != nil {
			return err
		}
		kinds, worst := map[string]hostile{}, hostile{}
		bodies := hostileBodies()
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			found, err := b.measure(ctx, bodies[name], before[processes.APIServer], honest)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			kinds[name] = found
			worst = hostile{max(worst.One, found.One), max(worst.Many, found.Many), max(worst.CPU, found.CPU), max(worst.Ratio, found.Ratio), max(worst.Refused, found.Refused)}
			s.logf("  B9: %-22s %.1f MiB and %.1f ms for one, %.1f MiB more for %d at once, of which %d were rejected", name, found.One, found.CPU, found.Many, atOnce, found.Refused)
		}
		r.limit(id, "1 MiB of hostile JSON: what the apiserver allocates", fmt.Sprintf("%.1f MiB", worst.One), fmt.Sprintf("≤ %.0f MiB", goalOne), worst.One <= goalOne)
		r.limit("", "1 MiB of hostile JSON: the apiserver's CPU time", fmt.Sprintf("%.1f ms", worst.CPU), fmt.Sprintf("≤ %.0f ms", goalCPU), worst.CPU <= goalCPU)
		r.limit("", fmt.Sprintf("%d of them at once: the apiserver's memory", atOnce), fmt.Sprintf("%.1f MiB more", worst.Many), fmt.Sprintf("≤ %.0f MiB", goalMany), worst.Many <= goalMany)
		r.add(id, map[string]any{
			"mib_one": worst.One, "one_goal": goalOne, "one_met": worst.One <= goalOne, "mib_64": worst.Many, "many_goal": goalMany, "many_met": worst.Many <= goalMany,
			"cpu_ms": worst.CPU, "cpu_goal": goalCPU, "cpu_met": worst.CPU <= goalCPU, "cpu_ratio": worst.Ratio, "honest_cpu_ms": honest, "bodies": kinds,
		})
		return nil
	})
}

func (b *b9) measure(ctx context.Context, body []byte, before, honest float64) (found hostile, err error) {
	if found.One, found.CPU, err = b.one(ctx, body); err != nil {
		return found, err
	}
	found.Ratio = measure.Rounded(found.CPU/max(honest, 0.001), 1)
	if err := stack.ForgetPeak(b.pid); err != nil {
		return found, err
	}
	group, ctx := errgroup.WithContext(ctx)
	refused := make(chan struct{}, atOnce)
	for i := range atOnce {
		group.Go(func() error {
			status, err := b.send(ctx, body, i)
			if status == http.StatusTooManyRequests {
				refused <- struct{}{}
			}
			return err
		})
	}
	err = group.Wait()
	_, peak := stack.Memory(b.pid)
	found.Many, found.Refused = measure.Rounded(inMiB(peak)-before, 1), len(refused)
	return found, err
}

// one returns the cost of a single body: MiB allocated, and milliseconds of CPU time.
func (b *b9) one(ctx context.Context, body []byte) (mib, cpu float64, err error) {
	first, err := b.allocated(ctx)
	if err != nil {
		return 0, 0, err
	}
	used := stack.CPU(b.pid)
	for i := range oneByOne {
		if _, err := b.send(ctx, body, i); err != nil {
			return 0, 0, err
		}
	}
	cpu = (stack.CPU(b.pid) - used).Seconds() * 1000 / oneByOne
	last, err := b.allocated(ctx)
	return measure.Rounded(float64(last-first)/oneByOne/(1<<20), 1), measure.Rounded(cpu, 1), err
}

// send sends a body with the key of one of the teams. The API must reject it.
func (b *b9) send(ctx context.Context, body []byte, turn int) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.stack.APIURL("/posts"), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+b.connected[turn%len(b.connected)].Token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(answer.Body)
	err = errors.Join(err, answer.Body.Close())
	if err == nil && answer.StatusCode != http.StatusBadRequest && answer.StatusCode != http.StatusTooManyRequests {
		err = fmt.Errorf("response %d %.200s", answer.StatusCode, text)
	}
	return answer.StatusCode, err
}

// allocated returns the number of bytes that the apiserver has allocated since it started.
func (b *b9) allocated(ctx context.Context) (int64, error) {
	text, err := get(ctx, http.DefaultClient, b.stack.ProfileURL(processes.APIServer)+"/heap?debug=1")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "# TotalAlloc = "); ok {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, errors.New("the profile does not contain the allocated bytes (TotalAlloc)")
}

// honestBody returns a realistic post of the largest size. It is rejected for its size.
func honestBody() []byte {
	const words = "The quick brown fox jumps over the lazy dog. "
	return []byte(`{"category":"text","draft":true,"targets":[` + filled(`{"connection_id":"page","caption":"`+strings.Repeat(words, 200)+`"}`, 200) + `]}`)
}

// filled returns a body of the right size that repeats an item, separated by commas.
func filled(item string, around int) string {
	n := (hostileBytes - around - len(item)) / (len(item) + 1)
	return strings.Repeat(item+",", n) + item
}

// hostileBodies returns bodies that are expensive to decode, to validate or to reject.
func hostileBodies() map[string][]byte {
	names := func() string {
		var b strings.Builder
		for i := range 250 {
			fmt.Fprintf(&b, `"%060d":0,`, i)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	const tree, around = `{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":[`, 200
	return map[string][]byte{
		"empty cards":   []byte(tree + filled(`{}`, around) + `]}`),
		"wrong cards":   []byte(tree + filled(`1`, around) + `]}`),
		"targets":       []byte(`{"category":"text","targets":[` + filled(`{"connection_id":"a"}`, around) + `]}`),
		"media ids":     []byte(`{"category":"image","targets":[{"connection_id":"a"}],"media_ids":[` + filled(`"a"`, around) + `]}`),
		"names":         []byte(`{"x":[` + filled(names(), around) + `]}`),
		"escapes":       []byte(`{"x":["` + strings.Repeat(`\u00e4`, (hostileBytes-around)/6) + `"]}`),
		"marks":         []byte(`{"category":"text","targets":[` + filled(`{"connection_id":"a","caption":"`+strings.Repeat("\u0301", 30_000)+`"}`, around) + `]}`),
		"a number":      []byte(`{"category":"video","media_id":"m","targets":[{"connection_id":"a","caption":"a"}],"thumbnail_time":` + strings.Repeat("1", hostileBytes-around) + `}`),
		"ends too soon": []byte(`{"x":"` + strings.Repeat("a", hostileBytes-around)),
	}
}
