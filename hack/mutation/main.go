// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutation changes the code in small ways, one after the other, and runs the tests against each: a change that they do
// not notice is a rule that nothing holds. It is run by `make test-mutation`; README.md says why it is our own.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// limits of a run of tests: what a change sets going for ever, or lets grow, is stopped, and counts as noticed.
const (
	testTimeout   = "90s"
	testMemoryKiB = 8 << 20
)

// alsoTested are packages whose tests hold another package too. They run when its own tests notice nothing.
var alsoTested = map[string][]string{
	"posting":          {"posting/rules", "posting/attempt", "posting/delivery"},
	"posting/delivery": {"posting/explore"},
}

// result is what became of a mutant.
type result int

const (
	noticed result = iota
	survived
	// notBuilt is a change that is no program, which says nothing of the tests.
	notBuilt
)

type run struct {
	root, scratch string
	reasons       explanations
	// used are the explanations that a survivor needed.
	used map[string]bool
	// viable are the mutants that build, explained those that change nothing, and unnoticed the others that survived.
	viable, explained, unnoticed int
}

func main() {
	least := flag.Float64("least", 90, "percent of the mutants that must be noticed")
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
		return errors.New("name the folders of the packages to change, such as posting/rules")
	}
	r := &run{used: map[string]bool{}}
	if r.root, err = filepath.Abs(root); err != nil {
		return err
	}
	if r.reasons, err = readExplanations(filepath.Join(r.root, "hack", "mutation", "survivors.txt")); err != nil {
		return err
	}
	if r.scratch, err = os.MkdirTemp("", "herald-mutation-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.scratch)) }()
	for _, dir := range packages {
		if err := r.mutatePackage(ctx, filepath.ToSlash(filepath.Clean(dir))); err != nil {
			return err
		}
	}
	return r.judge(packages, least)
}

// mutatePackage runs the tests against every mutant of a package.
func (r *run) mutatePackage(ctx context.Context, dir string) error {
	mutants, err := mutantsOf(r.root, dir)
	if err != nil {
		return err
	}
	tests := append([]string{dir}, alsoTested[dir]...)
	if out, err := r.goTest(ctx, tests, nil); err != nil {
		return fmt.Errorf("the tests of %s fail as it is: %w\n%s", dir, err, out)
	}
	viable, unnoticed := r.viable, r.unnoticed
	for i := range mutants {
		m := &mutants[i]
		became, err := r.try(ctx, tests, m)
		if err != nil {
			return err
		}
		if became == notBuilt {
			continue
		}
		r.viable++
		if became == noticed {
			continue
		}
		if r.reasons[m.key()] != "" {
			r.used[m.key()] = true
			r.explained++
			continue
		}
		r.unnoticed++
		fmt.Printf("not noticed, line %d of\n%s\n", m.line, m.key())
	}
	fmt.Printf("%s: %d of %d not noticed and not explained\n", dir, r.unnoticed-unnoticed, r.viable-viable)
	return nil
}

// try runs the tests, package after package, until one notices the mutant.
func (r *run) try(ctx context.Context, tests []string, m *mutant) (result, error) {
	changed, overlay := filepath.Join(r.scratch, "changed.go"), filepath.Join(r.scratch, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(r.root, filepath.FromSlash(m.file)): changed}})
	if err != nil {
		return 0, err
	}
	if err := errors.Join(os.WriteFile(changed, m.source, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return 0, err
	}
	for _, test := range tests {
		out, err := r.goTest(ctx, []string{test}, []string{"-overlay", overlay})
		switch {
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case err != nil && bytes.Contains(out, []byte("[build failed]")):
			return notBuilt, nil //nolint:nilerr // a mutant that does not compile is none
		case err != nil:
			return noticed, nil //nolint:nilerr // that the tests fail is what was to be found out
		}
	}
	return survived, nil
}

func (r *run) goTest(ctx context.Context, packages, flags []string) ([]byte, error) {
	limited := fmt.Sprintf("ulimit -v %d && exec go test -vet=off -failfast -timeout %s \"$@\"", testMemoryKiB, testTimeout)
	args := append([]string{"-c", limited, "go test"}, flags...)
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	command := exec.CommandContext(ctx, "sh", args...)
	command.Dir = r.root
	return command.CombinedOutput()
}

// judge prints the share that was noticed, and fails if it is too small or an explanation explains nothing any more.
func (r *run) judge(packages []string, least float64) error {
	if r.viable == r.explained {
		return errors.New("there is nothing to change in these packages")
	}
	share := 100 * float64(r.viable-r.explained-r.unnoticed) / float64(r.viable-r.explained)
	fmt.Printf("%.1f %% of %d changes noticed; %d more change nothing, for the reasons in hack/mutation/survivors.txt\n", share, r.viable-r.explained, r.explained)
	var err error
	for key := range r.reasons {
		file, _, _ := strings.Cut(key, " ")
		for _, dir := range packages {
			if filepath.ToSlash(filepath.Clean(dir)) == filepath.ToSlash(filepath.Dir(file)) && !r.used[key] {
				err = errors.Join(err, fmt.Errorf("survivors.txt explains what does not survive, or is not there; remove it: %s", key))
			}
		}
	}
	if share < least {
		err = errors.Join(err, fmt.Errorf("want at least %.0f %%: write tests that notice the changes above, or say in survivors.txt why one changes nothing", least))
	}
	return err
}
