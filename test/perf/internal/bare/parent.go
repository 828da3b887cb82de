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
	stdin   io.WriteCloser
	stderr  bytes.Buffer
	// said takes the program's messages, and is closed when it has ended.
	said chan message
	// ended is how it ended; read after said is closed.
	ended error
}

// Start starts a program as a process of its own and returns when it is warm. The command line of this process must
// lead to Main with the arguments "bare" and the program's name.
func Start(ctx context.Context, group *supervisor.Group, name string, config Config) (*Child, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	path, args := measure.OnProcessor(config.Processor, executable, []string{"bare", name})
	c := &Child{name: name, command: exec.Command(path, args...), said: make(chan message, 2)}
	c.command.Stderr = &c.stderr
	if c.stdin, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := group.Start(c.command); err != nil {
		return nil, fmt.Errorf("start the bare program %s: %w", name, err)
	}
	go c.listen(stdout)
	if err := json.NewEncoder(c.stdin).Encode(config); err != nil {
		return nil, errors.Join(err, c.Kill())
	}
	if _, err := c.next(ctx); err != nil {
		return nil, errors.Join(err, c.Kill())
	}
	return c, nil
}

func (c *Child) listen(stdout io.Reader) {
	defer close(c.said)
	decoder := json.NewDecoder(stdout)
	for {
		var m message
		if decoder.Decode(&m) != nil {
			break
		}
		c.said <- m
	}
	c.ended = c.command.Wait()
}

func (c *Child) next(ctx context.Context) (message, error) {
	select {
	case m, ok := <-c.said:
		if !ok {
			return m, fmt.Errorf("the bare program %s ended: %w\n%s", c.name, errors.Join(c.ended, errors.New("it said nothing more")), c.stderr.String())
		}
		return m, nil
	case <-ctx.Done():
		return message{}, context.Cause(ctx)
	}
}

// Go lets the program begin what is measured.
func (c *Child) Go() error {
	_, err := io.WriteString(c.stdin, "go\n")
	return err
}

// Wait returns what the program measured once it has ended.
func (c *Child) Wait(ctx context.Context) (Result, error) {
	m, err := c.next(ctx)
	if err == nil && m.Result == nil {
		err = fmt.Errorf("the bare program %s gave no result", c.name)
	}
	if err != nil {
		return Result{}, errors.Join(err, c.Kill())
	}
	for range c.said {
	}
	return *m.Result, c.ended
}

// Finish is Go and Wait.
func (c *Child) Finish(ctx context.Context) (Result, error) {
	if err := c.Go(); err != nil {
		return Result{}, errors.Join(err, c.Kill())
	}
	return c.Wait(ctx)
}

// Kill ends the program, if it still runs, and returns when it is gone.
func (c *Child) Kill() error {
	err := c.command.Process.Kill()
	for range c.said {
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
