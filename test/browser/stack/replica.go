// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/hack/local/processes"
)

// Replica is an additional apiserver of a test.
type Replica struct {
	// Site, Metrics and Health are its listen addresses, HOST:PORT.
	Site, Metrics, Health string

	command *exec.Cmd
	ended   chan struct{}
}

// PID returns its process id.
func (r *Replica) PID() int { return r.command.Process.Pid }

func (r *Replica) stop() error { return end(r.command, r.ended) }

// Replica starts an additional apiserver on the same control plane; edit changes a copy of the run's configuration. It
// returns the address of the site once it is ready. Stop stops it.
func (s *Stack) Replica(ctx context.Context, edit func(config map[string]any)) (site string, err error) {
	r, err := s.StartReplica(ctx, s.options.Out, edit)
	if err != nil {
		return "", err
	}
	return "http://" + r.Site, nil
}

// StartReplica starts an additional apiserver as Replica does, and returns it once it is ready. It writes the
// apiserver's output to out.
func (s *Stack) StartReplica(ctx context.Context, out io.Writer, edit func(config map[string]any)) (*Replica, error) {
	if s.command == nil {
		return nil, errors.New("a run that was only attached to takes no replica")
	}
	r := &Replica{ended: make(chan struct{})}
	for _, port := range []*string{&r.Site, &r.Metrics, &r.Health} {
		address, err := ports.Free()
		if err != nil {
			return nil, err
		}
		*port = address
	}
	file, err := s.replicaConfig(r, edit)
	if err != nil {
		return nil, err
	}
	r.command = exec.Command(filepath.Join(s.options.Checkout, "bin", "herald"), processes.APIServer,
		"--kubeconfig", filepath.Join(s.options.Dir, ".local", processes.APIServer+".kubeconfig"), "--config", file)
	r.command.Stdout, r.command.Stderr = out, out
	if err := r.command.Start(); err != nil {
		return nil, err
	}
	go awaitEnd(r.command, r.ended)
	s.replicas = append(s.replicas, r)
	err = r.waitReady(ctx, "http://"+r.Health+"/readyz")
	return r, err
}

// replicaConfig writes a replica's configuration and returns the file.
func (s *Stack) replicaConfig(r *Replica, edit func(config map[string]any)) (file string, err error) {
	data, err := os.ReadFile(filepath.Join(s.options.Dir, ".local", processes.APIServer+".yaml"))
	if err != nil {
		return "", err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", err
	}
	config["bindAddress"], config["siteURL"] = r.Site, "http://"+r.Site
	config["health"] = map[string]any{"bindAddress": r.Health}
	config["metrics"] = map[string]any{"bindAddress": r.Metrics, "plain": true}
	edit(config)
	if data, err = yaml.Marshal(config); err != nil {
		return "", err
	}
	file = filepath.Join(s.options.Dir, fmt.Sprintf("replica-%d.yaml", len(s.replicas)+1))
	return file, os.WriteFile(file, data, 0o600)
}

func (r *Replica) waitReady(ctx context.Context, url string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollEvery, startLimit, true, func(ctx context.Context) (bool, error) {
		select {
		case <-r.ended:
			return false, errors.New("the apiserver has ended by itself; see what it printed")
		default:
		}
		last = answers(ctx, url)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for one more apiserver: %w", errors.Join(err, last))
	}
	return nil
}

func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
