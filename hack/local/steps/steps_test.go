// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// screen collects what is printed, from many goroutines.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestStepsOnePerLine(t *testing.T) {
	out := &screen{}
	p := New(out, false)
	if err := p.Do("etcd", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	if err := p.Do("store", func() error { return boom }); !errors.Is(err, boom) {
		t.Errorf("the step's error came back as %v", err)
	}
	if err := p.Do("manager", func() error { return context.Canceled }); !errors.Is(err, context.Canceled) {
		t.Errorf("a step that was called off returned %v", err)
	}
	p.Sayf("%d left", 1)
	p.Close()
	want := regexp.MustCompile(`^  ✓ etcd +\d+\.\d s\n  ✗ store +\d+\.\d s\n1 left\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("printed:\n%s", out)
	}
}

func TestLiveLineIsGoneAtTheEnd(t *testing.T) {
	out := &screen{}
	p := New(out, true)
	err := p.Do("kube-apiserver", func() error {
		p.Sayf("a word in between")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Close()
	text := out.String()
	if !strings.Contains(text, "… kube-apiserver 0 s") {
		t.Errorf("nothing counted while the step ran: %q", text)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if shown := line[strings.LastIndex(line, "\x1b[K")+1:]; strings.Contains(shown, "…") {
			t.Errorf("a live line was left on the screen: %q", line)
		}
	}
}
