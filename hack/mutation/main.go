// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutation makes small changes to the code, one at a time, and runs the tests on each. A change that they do
// not detect means that a rule has no test. `make test-mutation` runs it; README.md explains why Herald has its own
// tool.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits of a test run. A mutant that causes an endless loop or unbounded growth is stopped and counts as detected.
const (
	// leastTimeout is the timeout for fast tests. It grows by slowdown times the duration without a mutant.
	leastTimeout  = 20 * time.Second
	slowdown      = 10
	testMemoryKiB = 8 << 20
)

// alsoTested lists, for some packages, others whose tests cover them as well. These run if the package's own tests do
// not detect a mutant.
var alsoTested = map[string][]string{
	"posting":          {"posting/rules", "posting/attempt", "posting/delivery"},
	"posting/record":   {"posting/delivery"},
	"apiserver/bridge": {"apiserver/rest", "apiserver/web", "apiserver/mcp"},
}

// notRun are tests that read the source, which does not change, so they detect nothing.
const notRun = "^TestDerivedFieldsAreShownOnly$"

// result is the outcome of a mutant.
type result int

const (
	detected result = iota
	survived
)

// suite is a package's test binary.
type suite struct {
	binary, dir string
	// timeout is how long a run may take before it is assumed to hang.
	timeout time.Duration
}

type run struct {
	root    string
	reasons explanations
	// used contains the explanations that survivors needed.
	used map[string]bool
	// viable counts the mutants that compile, explained the equivalent survivors, and unexplained the others.
	viable, explained, unexplained int
}

func main() {
	least := flag.Float64("least", 99, "percentage of the mutants that must be detected")
	root := flag.String("root", ".", "folder of the module")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := mutateAll(ctx, *root, flag.Args(), *least)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func mutateAll(ctx context.Context, root string, packages []string, least float64) (err error) {
	if len(packages) == 0 {
		return errors.New("name the folders of the packages to mutate, such as posting/rules")
	}
	r := &run{used: map[string]bool{}}
	if r.root, err = filepath.Abs(root); err != nil {
		return err
	}
	if r.reasons, err = readExplanations(filepath.Join(r.root, "hack", "mutation", "survivors.txt")); err != nil {
		return err
	}
	for i, dir := range packages {
		packages[i] = filepath.ToSlash(filepath.Clean(dir))
		if err := r.mutatePackage(ctx, packages[i]); err != nil {
			return err
		}
	}
	return r.report(packages, least)
}

// mutatePackage runs the tests on every mutant of a package.
func (r *run) mutatePackage(ctx context.Context, dir string) (err error) {
	scratch, err := os.MkdirTemp("", "herald-mutation-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	p, err := newProgram(r.root, dir, scratch)
	if err != nil {
		return err
	}
	var suites []*suite
	for _, tests := range append([]string{dir}, alsoTested[dir]...) {
		s, err := r.newSuite(ctx, p, tests)
		if err != nil {
			return err
		}
		suites = append(suites, s)
	}
	became := p.tryAll(ctx, suites)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	viable, explained, unexplained := r.viable, r.explained, r.unexplained
	for number, m := range p.mutants {
		if number == 0 || p.notBuilt[number] {
			continue
		}
		r.record(m, became[number])
	}
	fmt.Printf("%s: %d mutants, %d survivors with an explanation, %d without\n",
		dir, r.viable-viable, r.explained-explained, r.unexplained-unexplained)
	return nil
}

// newSuite builds a package's tests and checks that they pass without a mutant.
func (r *run) newSuite(ctx context.Context, p *program, tests string) (*suite, error) {
	binary, err := p.build(ctx, tests)
	if err != nil {
		return nil, err
	}
	s := &suite{binary: binary, dir: filepath.Join(r.root, filepath.FromSlash(tests)), timeout: time.Hour}
	started := time.Now()
	if out, err := s.run(ctx, 0, false); err != nil {
		return nil, fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", tests, err, out)
	}
	s.timeout = leastTimeout + slowdown*time.Since(started)
	return s, nil
}

// run runs the tests with the given mutant, or with none if number is 0.
func (s *suite) run(ctx context.Context, number int, short bool) ([]byte, error) {
	limited := fmt.Sprintf("ulimit -v %d && exec %q -test.failfast -test.short=%t -test.skip %q -test.timeout %s", testMemoryKiB, s.binary, short, notRun, s.timeout)
	command := exec.CommandContext(ctx, "sh", "-c", limited)
	command.Dir = s.dir
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	// Tests that crash leave the programs they started running. These would keep the output open, and run until the
	// next boot.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = time.Second
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	out, err := command.CombinedOutput()
	if command.Process != nil {
		// This fails if the group has already ended.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the tests passed
	}
	return out, err
}

// tryAll runs the tests on every mutant, one process per CPU.
func (p *program) tryAll(ctx context.Context, suites []*suite) []result {
	became := make([]result, len(p.mutants))
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for number := range numbers {
				became[number] = try(ctx, suites, number)
			}
		})
	}
	for number := 1; number < len(p.mutants) && ctx.Err() == nil; number++ {
		if !p.notBuilt[number] {
			numbers <- number
		}
	}
	close(numbers)
	workers.Wait()
	return became
}

// try runs the suites until one detects the mutant. Tests that -short skips, because they are slow, come last.
func try(ctx context.Context, suites []*suite, number int) result {
	for _, short := range []bool{true, false} {
		for _, s := range suites {
			if _, err := s.run(ctx, number, short); err != nil {
				return detected
			}
		}
	}
	return survived
}

// record counts a mutant. It prints the mutant if it survived without an explanation.
func (r *run) record(m *mutant, became result) {
	r.viable++
	switch {
	case became == detected:
	case r.reasons[m.key()] != "":
		r.used[m.key()] = true
		r.explained++
	default:
		r.unexplained++
		fmt.Printf("survived, line %d of\n%s\n", m.line, m.key())
	}
}

// report prints the share of mutants that were detected. It fails if the share is too small, if a survivor has no
// explanation, or if an explanation is not used.
func (r *run) report(packages []string, least float64) error {
	share := 100 * float64(r.viable-r.explained-r.unexplained) / float64(r.viable)
	fmt.Printf("%.1f %% of %d mutants detected; hack/mutation/survivors.txt explains %d\n", share, r.viable, r.explained)
	var errs []error
	for key := range r.reasons {
		file, _, _ := strings.Cut(key, " ")
		for _, dir := range packages {
			if dir == filepath.ToSlash(filepath.Dir(file)) && !r.used[key] {
				errs = append(errs, fmt.Errorf("survivors.txt explains a mutant that does not exist or does not survive; remove it: %s", key))
			}
		}
	}
	if r.unexplained > 0 {
		errs = append(errs, fmt.Errorf("%d mutants survived: write tests that detect them, or explain in survivors.txt why they are equivalent", r.unexplained))
	}
	if share < least {
		errs = append(errs, fmt.Errorf("want at least %.0f %% detected", least))
	}
	return errors.Join(errs...)
}
