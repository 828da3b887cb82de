// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package licences

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
)

// Store holds the folders of Go's modules and standard library.
type Store struct {
	// Modules is GOMODCACHE; Root is GOROOT.
	Modules, Root string
	known         map[debug.Module]Module
}

// Open returns the Store of the go command in PATH.
func Open() (*Store, error) {
	out, err := run("", "env", "GOMODCACHE", "GOROOT")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	const asked = 2
	if len(lines) != asked {
		return nil, fmt.Errorf("go env answered %q", out)
	}
	return &Store{Modules: lines[0], Root: lines[1], known: map[debug.Module]Module{}}, nil
}

// run runs a go command in a folder, in the same environment as an image build.
func run(folder string, arguments ...string) ([]byte, error) {
	command := exec.Command("go", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=", "GOWORK=off")
	out, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, failed.Stderr)
	}
	return out, err
}

// Program returns the modules of a program from its build info, starting with Go's standard library.
func (s *Store) Program(file string) ([]Module, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	modules := []debug.Module{library(info.GoVersion)}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		modules = append(modules, debug.Module{Path: dependency.Path, Version: dependency.Version})
	}
	return s.read(modules)
}

func library(version string) debug.Module {
	return debug.Module{Path: standard, Version: strings.TrimPrefix(version, "go")}
}

// listed is a module in the output of `go list -json`.
type listed struct {
	Path    string  `json:"Path"`
	Version string  `json:"Version"`
	Main    bool    `json:"Main"`
	Replace *listed `json:"Replace"`
}

// Packages returns the modules of the programs in these packages, without the main module. folder is the folder of a
// module.
func (s *Store) Packages(folder string, packages ...string) ([]Module, error) {
	out, err := run(folder, append([]string{"list", "-deps", "-json=Module"}, packages...)...)
	if err != nil {
		return nil, err
	}
	var modules []debug.Module
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Module *listed `json:"Module"`
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		m := debug.Module{Path: p.Module.Path, Version: p.Module.Version}
		if p.Module.Replace != nil {
			m = debug.Module{Path: p.Module.Replace.Path, Version: p.Module.Replace.Version}
		}
		if m.Version != "" { // a replacement by a folder of this repository has none
			modules = append(modules, m)
		}
	}
	slices.SortFunc(modules, func(a, b debug.Module) int { return cmp.Compare(a.Path, b.Path) })
	return s.read(slices.Compact(modules))
}

// read returns the licences of the modules, each once.
func (s *Store) read(modules []debug.Module) ([]Module, error) {
	var out []Module
	for _, m := range modules {
		found, ok := s.known[m]
		if !ok {
			var err error
			if found, err = Of(m, s.Modules, s.Root); err != nil {
				return nil, err
			}
			s.known[m] = found
		}
		out = append(out, found)
	}
	return out, nil
}
