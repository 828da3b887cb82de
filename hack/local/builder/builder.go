// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builder builds the programs of the local run from their Go modules, and builds nothing twice.
package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/herald-social/herald/hack/local/process"
	"github.com/herald-social/herald/hack/local/workspace"
)

// interruptGrace is how long a build may take to end after it was asked to.
const interruptGrace = 3 * time.Second

// Program is something to build.
type Program struct {
	// Name of the program in the output folder.
	Name string
	// Dir is the folder of the module to build in.
	Dir string
	// Package to build.
	Package string
	// LDFlags for the linker, beside those that leave out debugging information.
	LDFlags string
	// Inputs are the files that the program depends on besides the modules that go.mod and go.sum pin, as paths in Dir.
	// They decide whether it must be built again.
	Inputs []string
}

// Builder builds programs into one folder.
type Builder struct {
	out     string
	spawner *process.Spawner
	say     func(format string, args ...any)
}

// New returns a builder into the folder out, which tells people by say what they wait for.
func New(out string, spawner *process.Spawner, say func(format string, args ...any)) *Builder {
	return &Builder{out: out, spawner: spawner, say: say}
}

// Missing fails with a message for people when the tool is not on the PATH.
func Missing(tool, purpose, where string) error {
	if _, err := exec.LookPath(tool); err != nil {
		return fmt.Errorf("%s is not installed, or not on your PATH: it is needed %s\nget it from %s", tool, purpose, where)
	}
	return nil
}

// Lock waits until no other process builds into the folder and removes what a killed one left half done.
func (b *Builder) Lock(ctx context.Context) (*workspace.Lock, error) {
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	for told := false; ; {
		lock, err := workspace.Acquire(filepath.Join(b.out, ".build.lock"), "a build is under way")
		held, ok := errors.AsType[*workspace.HeldError](err)
		if !ok {
			if err == nil {
				err = b.sweep()
			}
			return lock, err
		}
		if !told {
			told = true
			b.say("%v; waiting for it to end", held)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-poll.C:
		}
	}
}

// sweep removes half-built programs.
func (b *Builder) sweep() error {
	halves, err := filepath.Glob(filepath.Join(b.out, ".*"+halfBuilt))
	if err != nil {
		return err
	}
	for _, path := range halves {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

const halfBuilt = ".half-built"

// Current reports whether the program is there, whole, and was built from just these inputs.
func (b *Builder) Current(ctx context.Context, p Program) (bool, error) {
	stamp, err := b.stampOf(ctx, p)
	if err != nil {
		return false, err
	}
	if info, err := os.Stat(b.path(p.Name)); err != nil || !info.Mode().IsRegular() {
		return false, nil //nolint:nilerr // it is not there: not current
	}
	data, err := os.ReadFile(b.stampPath(p.Name))
	return err == nil && string(data) == stamp, nil
}

// Build builds the program whatever was there before. The file appears whole or not at all, and a stamp is there only
// while the file is the one it speaks of.
func (b *Builder) Build(ctx context.Context, p Program) error {
	stamp, err := b.stampOf(ctx, p)
	if err != nil {
		return err
	}
	half := filepath.Join(b.out, "."+p.Name+halfBuilt)
	defer os.Remove(half) //nolint:errcheck // swept at the next start otherwise
	if err := b.compile(ctx, p, nil, "-trimpath", "-ldflags", strings.TrimSpace("-s -w "+p.LDFlags), "-o", half); err != nil {
		return err
	}
	if err := os.Remove(b.stampPath(p.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(half, b.path(p.Name)); err != nil {
		return err
	}
	return workspace.WriteFile(b.stampPath(p.Name), []byte(stamp), 0o644)
}

// BuildFresh lets go build itself decide what is to be done, which is quick for a program of the main module. A file that
// a kill cut off is not taken for whole, since go looks at its build id. There is no cgo in it, so that the same program
// runs in an image without a C library.
func (b *Builder) BuildFresh(ctx context.Context, p Program) error {
	return b.compile(ctx, p, []string{"CGO_ENABLED=0"}, "-trimpath", "-buildvcs=false", "-ldflags", p.LDFlags, "-o", b.path(p.Name))
}

func (b *Builder) compile(ctx context.Context, p Program, env []string, flags ...string) error {
	command := exec.Command("go", append(append([]string{"build"}, flags...), p.Package)...)
	command.Dir = p.Dir
	// A go.work around the checkout would take the place of the nested modules' own versions.
	command.Env = append(append(os.Environ(), "GOWORK=off"), env...)
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	if err := b.spawner.Start(command); err != nil {
		return err
	}
	var err error
	ended := make(chan struct{})
	go func() {
		err = command.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		if err != nil {
			return fmt.Errorf("build %s: %w\n%s", p.Name, err, explain(printed.String()))
		}
		return nil
	case <-ctx.Done():
	}
	return errors.Join(ctx.Err(), interrupt(command.Process.Pid, ended))
}

// interrupt ends a build and the compilers it started.
func interrupt(pid int, ended <-chan struct{}) error {
	if err := process.SignalGroup(pid, syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-time.After(interruptGrace):
	}
	err := process.SignalGroup(pid, syscall.SIGKILL)
	<-ended
	return err
}

func (b *Builder) path(name string) string      { return filepath.Join(b.out, name) }
func (b *Builder) stampPath(name string) string { return filepath.Join(b.out, ".stamps", name) }
