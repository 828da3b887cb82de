// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/herald-social/herald/hack/local/supervisor"
	"github.com/herald-social/herald/test/perf/internal/measure"
)

// Child is a bare program in a child process.
type Child struct {
	name    string
	command *exec.Cmd
	kill    context.CancelFunc
	stdin   io.WriteCloser
	said    *json.Decoder
	stderr  bytes.Buffer
}

// Start starts a program in its own process and waits until it is warm. The program is killed when ctx is done. This
// process's command line must call Main for the arguments "bare" and the program's name.
func Start(ctx context.Context, group *supervisor.Group, name string, config Config) (*Child, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	path, args := measure.OnProcessor(config.Processor, executable, []string{"bare", name})
	ctx, kill := context.WithCancel(ctx)
	c := &Child{name: name, command: exec.CommandContext(ctx, path, args...), kill: kill}
	c.command.Stderr = &c.stderr
	c.stdin, err = c.command.StdinPipe()
	stdout, stdoutErr := c.command.StdoutPipe()
	if err = errors.Join(err, stdoutErr); err == nil {
		err = group.Start(c.command)
	}
	if err != nil {
		kill()
		return nil, fmt.Errorf("start the bare program %s: %w", name, err)
	}
	c.said = json.NewDecoder(stdout)
	err = json.NewEncoder(c.stdin).Encode(config)
	if _, err := c.next(err); err != nil {
		return nil, err
	}
	return c, nil
}

// next returns the program's next message. It kills the program if there is none, or if err is set.
func (c *Child) next(err error) (m message, _ error) {
	if err == nil {
		err = c.said.Decode(&m)
	}
	if err != nil {
		c.Kill()
		err = fmt.Errorf("the bare program %s ended (%s): %w\n%s", c.name, c.command.ProcessState, err, c.stderr.String())
	}
	return m, err
}

// Go starts the measurement.
func (c *Child) Go() error {
	_, err := io.WriteString(c.stdin, "go\n")
	return err
}

// Wait waits for the program to exit and returns its result.
func (c *Child) Wait() (Result, error) {
	m, err := c.next(nil)
	if err == nil && m.Result == nil {
		err = fmt.Errorf("the bare program %s gave no result", c.name)
	}
	if err != nil {
		c.Kill()
		return Result{}, err
	}
	return *m.Result, c.command.Wait()
}

// Finish is Go and Wait.
func (c *Child) Finish() (Result, error) {
	if err := c.Go(); err != nil {
		c.Kill()
		return Result{}, err
	}
	return c.Wait()
}

// Kill kills the program if it is still running, and waits for it to exit.
func (c *Child) Kill() {
	c.kill()
	_ = c.command.Wait() // reports the kill or an earlier exit
}
