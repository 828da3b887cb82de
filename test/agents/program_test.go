// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// programLimit is the timeout for a third-party program. It allows for a busy machine.
const programLimit = 3 * time.Minute

// modules is the directory with the packages from package-lock.json.
func modules() string { return filepath.Join(checkout, "test", "agents", "foreign", "node_modules") }

// node returns the Node.js that npm has installed or, failing that, the machine's. The clients need version 22.
func node() string {
	if brought, err := filepath.Glob(filepath.Join(modules(), "node-*", "bin", "node")); err == nil && len(brought) == 1 {
		return brought[0]
	}
	return "node"
}

// program is a running third-party program.
type program struct {
	// lines are the lines that it prints; the channel is closed when it exits.
	lines <-chan string
	input io.Writer
	wait  func() error

	mu              sync.Mutex
	out, complaints bytes.Buffer
}

// start starts a program. Its PATH contains npm's Node.js and the installed packages.
func start(ctx context.Context, dir, name string, arguments ...string) *program {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = dir
	path := filepath.Dir(node()) + ":" + filepath.Join(modules(), ".bin") + ":" + os.Getenv("PATH")
	command.Env = append(os.Environ(), "PATH="+path, "npm_config_offline=true", "MCP_STORAGE_DIR="+GinkgoT().TempDir(),
		// The inspector prints the address for the user of the test instead of opening a browser.
		"MCP_AUTO_OPEN_ENABLED=true", "BROWSER=true", "MCP_INSPECTOR_SECRET_STORE=memory",
		"HERALD_MCP_URL="+mcpURL, "HERALD_API_KEY="+key)
	out, err := command.StdoutPipe()
	must(err)
	complaints, err := command.StderrPipe()
	must(err)
	p := &program{}
	p.input, err = command.StdinPipe()
	must(err)
	must(command.Start())
	lines := make(chan string)
	p.lines = lines
	var reading sync.WaitGroup
	reading.Go(func() { p.read(ctx, out, &p.out, lines) })
	reading.Go(func() { p.read(ctx, complaints, &p.complaints, lines) })
	go func() {
		reading.Wait()
		close(lines)
	}()
	p.wait = sync.OnceValue(func() error {
		defer cancel()
		for range p.lines {
			continue // no goroutine is waiting for the line
		}
		return command.Wait()
	})
	DeferCleanup(func() {
		cancel()
		// The specs check the exit code where it matters.
		_ = p.wait()
		if CurrentSpecReport().Failed() {
			GinkgoWriter.Printf("%s printed:\n%s\n", name, p.printed())
		}
	})
	return p
}

// read stores the output and passes it on line by line.
func (p *program) read(ctx context.Context, from io.Reader, into *bytes.Buffer, lines chan<- string) {
	// A tool result is a single line.
	const longest = 4 << 20
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, longest)
	for scanner.Scan() {
		p.mu.Lock()
		into.WriteString(scanner.Text() + "\n")
		p.mu.Unlock()
		select {
		case lines <- scanner.Text():
		case <-ctx.Done():
		}
	}
}

// printed returns the output so far, followed by the error output.
func (p *program) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String() + p.complaints.String()
}

// end waits for the program to exit successfully and returns its output.
func (p *program) end() string {
	GinkgoHelper()
	err := p.wait()
	Expect(err).NotTo(HaveOccurred(), p.printed())
	return p.out.String()
}

// decodeNext waits for the next line of JSON that has the field, and decodes it.
func (p *program) decodeNext(field string, into any) {
	GinkgoHelper()
	for line := range p.lines {
		response := map[string]json.RawMessage{}
		if json.Unmarshal([]byte(line), &response) != nil || response[field] == nil {
			continue
		}
		must(json.Unmarshal([]byte(line), into))
		return
	}
	err := p.wait()
	Fail("the program ended without output of " + field + ": " + p.printed() + errorText(err))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var authorizeURL = regexp.MustCompile(`https?://\S+/oauth/authorize\?[^\s"]+`)

// consentURL waits until the program prints the consent URL, and returns it.
func (p *program) consentURL() string {
	GinkgoHelper()
	for line := range p.lines {
		if address := authorizeURL.FindString(line); address != "" {
			return address
		}
	}
	Fail("the program ended without a question: " + p.printed() + errorText(p.wait()))
	return ""
}

// goOn lets the program continue.
func (p *program) goOn() {
	GinkgoHelper()
	_, err := io.WriteString(p.input, "\n")
	must(err)
}

// script runs a script in foreign/.
func script(ctx context.Context, name string, arguments ...string) *program {
	GinkgoHelper()
	return start(ctx, filepath.Join(checkout, "test", "agents", "foreign"), node(), append([]string{name}, arguments...)...)
}

// run runs an npm program and returns its exit code, output and error output.
func run(ctx context.Context, name string, arguments ...string) (code int, printed, complaints string) {
	GinkgoHelper()
	p := start(ctx, GinkgoT().TempDir(), filepath.Join(modules(), ".bin", name), arguments...)
	err := p.wait()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), p.out.String(), p.complaints.String()
	}
	must(err)
	return 0, p.out.String(), p.complaints.String()
}
