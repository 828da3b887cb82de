// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/hack/local/processes"
)

// replica is an apiserver of a test's own.
type replica struct {
	command *exec.Cmd
	ended   chan struct{}
}

func (r *replica) stop() error { return end(r.command, r.ended) }

// Replica starts one more apiserver on the same control plane, with another configuration: edit gets that of the run's
// own. It returns the address of its site once it is ready. Stop ends it.
func (s *Stack) Replica(ctx context.Context, edit func(config map[string]any)) (site string, err error) {
	if s.command == nil {
		return "", errors.New("a run that was only attached to takes no replica")
	}
	local := filepath.Join(s.options.Dir, ".local")
	data, err := os.ReadFile(filepath.Join(local, processes.APIServer+".yaml"))
	if err != nil {
		return "", err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", err
	}
	address, err := ports.Free()
	if err != nil {
		return "", err
	}
	health, err := ports.Free()
	if err != nil {
		return "", err
	}
	site = "http://" + address
	config["bindAddress"], config["siteURL"] = address, site
	config["health"] = map[string]any{"bindAddress": health}
	config["metrics"] = map[string]any{"bindAddress": "0", "plain": true}
	edit(config)
	if data, err = yaml.Marshal(config); err != nil {
		return "", err
	}
	file := filepath.Join(s.options.Dir, fmt.Sprintf("replica-%d.yaml", len(s.replicas)+1))
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return "", err
	}
	r := &replica{ended: make(chan struct{})}
	r.command = exec.Command(filepath.Join(s.options.Checkout, "bin", "herald"), processes.APIServer,
		"--kubeconfig", filepath.Join(local, processes.APIServer+".kubeconfig"), "--config", file)
	r.command.Stdout, r.command.Stderr = s.options.Out, s.options.Out
	if err := r.command.Start(); err != nil {
		return "", err
	}
	go awaitEnd(r.command, r.ended)
	s.replicas = append(s.replicas, r)
	return site, r.waitReady(ctx, "http://"+health+"/readyz")
}

func (r *replica) waitReady(ctx context.Context, url string) error {
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
