// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steps shows people how far a command has come: one line per finished step with the time it took and, on a
// terminal, one more that counts the seconds of what is under way.
package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// refresh is how often the live line is drawn anew.
const refresh = 100 * time.Millisecond

// Printer prints steps. Its methods may be called at the same time.
type Printer struct {
	out  io.Writer
	live bool

	mu      sync.Mutex
	running []*step
	drawn   bool
	stop    chan struct{}
}

type step struct {
	name  string
	begun time.Time
}

// New returns a printer to out, with a live line when live is true. Close ends it.
func New(out io.Writer, live bool) *Printer {
	p := &Printer{out: out, live: live, stop: make(chan struct{})}
	if live {
		go p.redraw()
	}
	return p
}

// IsTerminal reports whether the file is a terminal that understands being drawn over.
func IsTerminal(file *os.File, term string) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && term != "" && term != "dumb"
}

// Close removes the live line and ends its drawing.
func (p *Printer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stop:
		return
	default:
	}
	close(p.stop)
	p.erase()
}

// Do runs one step and prints how long it took, or that it failed. One that was called off, because another failed or
// somebody wants to stop, is not worth a line.
func (p *Printer) Do(name string, work func() error) error {
	s := &step{name: name, begun: time.Now()}
	p.mu.Lock()
	p.running = append(p.running, s)
	p.draw()
	p.mu.Unlock()

	err := work()

	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = slices.DeleteFunc(p.running, func(other *step) bool { return other == s })
	if errors.Is(err, context.Canceled) {
		p.erase()
		p.draw()
		return err
	}
	mark := "✓"
	if err != nil {
		mark = "✗"
	}
	p.line(fmt.Sprintf("  %s %-28s %6.1f s", mark, name, time.Since(s.begun).Seconds()))
	return err
}

// Sayf prints a line between the steps.
func (p *Printer) Sayf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(fmt.Sprintf(format, args...))
}

// line prints text in place of the live line and draws that again below.
func (p *Printer) line(text string) {
	p.erase()
	fmt.Fprintln(p.out, text)
	p.draw()
}

func (p *Printer) redraw() {
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

func (p *Printer) draw() {
	select {
	case <-p.stop:
		return
	default:
	}
	if !p.live || len(p.running) == 0 {
		return
	}
	p.erase()
	parts := make([]string, len(p.running))
	for i, s := range p.running {
		parts[i] = fmt.Sprintf("%s %.0f s", s.name, time.Since(s.begun).Seconds())
	}
	fmt.Fprint(p.out, "  … "+strings.Join(parts, ", "))
	p.drawn = true
}

// erase removes the live line: to the line's start, then clear to its end.
func (p *Printer) erase() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}
