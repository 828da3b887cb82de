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

// Child is a bare program that this process has started.
type Child struct {
	name    string
	command *exec.Cmd
	kill    context.CancelFunc
	stdin   io.WriteCloser
	said    *json.Decoder
	stderr  bytes.Buffer
}

// Start starts a program as a process of its own and returns when it is warm. The program is killed when ctx ends. The
// command line of this process must lead to Main with the arguments "bare" and the program's name.
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

// next returns what the program says next. It ends the program if that is nothing, or if there is an error already.
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

// Go lets the program begin what is measured.
func (c *Child) Go() error {
	_, err := io.WriteString(c.stdin, "go\n")
	return err
}

// Wait returns what the program measured once it has ended.
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

// Kill ends the program, if it still runs, and returns when it is gone.
func (c *Child) Kill() {
	c.kill()
	_ = c.command.Wait() // it says that the program was killed, or has ended before
}
