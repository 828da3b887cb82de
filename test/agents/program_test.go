// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// programLimit is how long one foreign program may take; generous, for a busy machine.
const programLimit = 3 * time.Minute

// modules is where npm has put what package-lock.json names.
func modules() string { return filepath.Join(checkout, "test", "agents", "foreign", "node_modules") }

// node is the one that npm brought, or that of the machine: the clients need 22.
func node() string {
	if brought, err := filepath.Glob(filepath.Join(modules(), "node-*", "bin", "node")); err == nil && len(brought) == 1 {
		return brought[0]
	}
	return "node"
}

// program is a foreign program that runs.
type program struct {
	// lines are what it prints, one by one; closed at its end.
	lines <-chan string
	input io.Writer
	wait  func() error

	mu       sync.Mutex
	all      bytes.Buffer
	complain bytes.Buffer
}

// start starts a program. It finds the node of npm, and what npm has installed, in its PATH.
func start(ctx context.Context, dir, name string, arguments ...string) *program {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = dir
	path := filepath.Dir(node()) + ":" + filepath.Join(modules(), ".bin") + ":" + os.Getenv("PATH")
	command.Env = append(os.Environ(), "PATH="+path, "npm_config_offline=true", "MCP_STORAGE_DIR="+GinkgoT().TempDir(),
		"HERALD_MCP_URL="+mcpURL, "HERALD_API_KEY="+key)
	out, err := command.StdoutPipe()
	must(err)
	p := &program{}
	p.input, err = command.StdinPipe()
	must(err)
	command.Stderr = &p.complain
	must(command.Start())
	lines := make(chan string)
	p.lines = lines
	go func() {
		defer close(lines)
		// Answers of tools stand on one line.
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 4<<20)
		for scanner.Scan() {
			p.mu.Lock()
			p.all.WriteString(scanner.Text() + "\n")
			p.mu.Unlock()
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
			}
		}
	}()
	p.wait = sync.OnceValue(func() error {
		defer cancel()
		for range p.lines { //nolint:revive // what nothing waited for
		}
		return command.Wait()
	})
	DeferCleanup(func() {
		cancel()
		// Its end was looked at where it matters.
		_ = p.wait()
		if CurrentSpecReport().Failed() {
			GinkgoWriter.Printf("%s printed:\n%s\n%s\n", name, p.printed(), p.complain.String())
		}
	})
	return p
}

func (p *program) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// end waits for the end of the program, which must be a good one, and returns what it has printed.
func (p *program) end() string {
	GinkgoHelper()
	err := p.wait()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", p.printed(), p.complain.String())
	return p.printed()
}

// tells waits for the next line of JSON that has the field, and reads it.
func (p *program) tells(field string, into any) {
	GinkgoHelper()
	for line := range p.lines {
		said := map[string]json.RawMessage{}
		if json.Unmarshal([]byte(line), &said) != nil || said[field] == nil {
			continue
		}
		must(json.Unmarshal([]byte(line), into))
		return
	}
	err := p.wait()
	Fail("the program ended without telling of " + field + ": " + p.printed() + p.complain.String() + errorText(err))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var authorizeURL = regexp.MustCompile(`https?://\S+/oauth/authorize\?[^\s"]+`)

// asks waits until the program prints where a person has to go, and returns that.
func (p *program) asks() string {
	GinkgoHelper()
	for line := range p.lines {
		if address := authorizeURL.FindString(line); address != "" {
			return address
		}
	}
	Fail("the program ended without asking a person: " + p.printed() + p.complain.String() + errorText(p.wait()))
	return ""
}

// goOn tells the program that it may.
func (p *program) goOn() {
	GinkgoHelper()
	_, err := io.WriteString(p.input, "\n")
	must(err)
}

// script runs one of the scripts of foreign/.
func script(ctx context.Context, name string, arguments ...string) *program {
	GinkgoHelper()
	return start(ctx, filepath.Join(checkout, "test", "agents", "foreign"), node(), append([]string{name}, arguments...)...)
}

// run runs a program of npm to its end and returns its exit code and all that it printed.
func run(ctx context.Context, name string, arguments ...string) (code int, printed, complaints string) {
	GinkgoHelper()
	p := start(ctx, GinkgoT().TempDir(), filepath.Join(modules(), ".bin", name), arguments...)
	err := p.wait()
	if ended, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Wait returns it as it is
		return ended.ExitCode(), p.printed(), p.complain.String()
	}
	must(err)
	return 0, p.printed(), strings.TrimSpace(p.complain.String())
}
