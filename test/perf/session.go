// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/supervisor"
	"github.com/herald-social/herald/hack/local/workspace"
	"github.com/herald-social/herald/test/perf/internal/bare"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

const (
	// setupAtOnce is the number of concurrent requests during setup and cleanup.
	setupAtOnce = 32
	// pollEvery is the interval at which to check whether a round is over, and so the resolution of its duration.
	pollEvery = 50 * time.Millisecond
	// roundLimit is the timeout for a round.
	roundLimit = 15 * time.Minute
	// profileFor is the duration of a CPU profile.
	profileFor = 8 * time.Second
)

// session is one run, with the processes and state that all benchmarks share.
type session struct {
	settings

	// root is the folder of the checkout.
	root      string
	group     *supervisor.Group
	stack     *stack.Stack
	posts     metadata.Getter
	connected []stack.Team
	// pictured is the content that pictures has prepared.
	pictured *content
	out      io.Writer
}

func (s *session) logf(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// open starts all processes, with their state in dir, and connects the accounts. It stops Herald afterwards: each round
// starts new processes.
func (s *session) open(ctx context.Context, dir string) (err error) {
	s.logf("starting a control plane, the sandbox and Herald; connecting %d accounts in %d teams", s.connections, s.teams)
	built, bin := filepath.Join(s.root, "bin"), filepath.Join(dir, "bin")
	// Copies do not change if `make` rebuilds the programs in the meantime.
	for _, name := range []string{"herald", "herald-store", "herald-sandbox"} {
		program, err := os.ReadFile(filepath.Join(built, name))
		if err != nil {
			return fmt.Errorf("%w\nrun `make bench`, which builds it", err)
		}
		if err := workspace.WriteFile(filepath.Join(bin, name), program, 0o700); err != nil {
			return err
		}
	}
	if s.group, err = supervisor.OpenGroup(ctx, filepath.Join(dir, "group")); err != nil {
		return err
	}
	s.stack, err = stack.Start(ctx, stack.Options{
		Config: filepath.Join(s.root, "config"), Assets: s.assets, Bin: bin, Dir: dir,
		PostWorkers: s.inFlight, Group: s.group, Limited: s.wanted[hostileID],
	})
	if err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return errors.Join(err, s.stack.Stop())
	}
	return nil
}

// version returns the version that the measured Herald prints.
func (s *session) version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, filepath.Join(s.root, "bin", "herald"), "version").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "herald ")
}

func (s *session) connect(ctx context.Context) error {
	posts, err := metadata.NewForConfig(s.stack.Config)
	if err != nil {
		return err
	}
	s.posts = posts.Resource(v1alpha1.GroupVersion.WithResource("posts"))
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	if s.connected, err = s.stack.MakeTeams(ctx, "bench", s.teams); err != nil {
		return err
	}
	each := s.connections / s.teams
	for i := range s.connected {
		team := &s.connected[i]
		if team.Connections, err = s.stack.Connect(ctx, v1alpha1.PlatformX, team.Namespace, firstX+i*each, each); err != nil {
			return err
		}
	}
	return s.stack.StopHerald()
}

// prepare runs work while Herald is running. Afterwards Herald is stopped and there are no posts.
func (s *session) prepare(ctx context.Context, work func() error) error {
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	if err := errors.Join(work(), s.stack.StopHerald()); err != nil {
		return err
	}
	return s.clear(ctx)
}

// bare starts a bare program with the permissions of one of Herald's processes.
func (s *session) bare(ctx context.Context, program, identity string, config bare.Config) (*bare.Child, error) {
	if identity != "" {
		config.Kubeconfig = s.stack.Setup.Kubeconfig(identity)
	}
	return bare.Start(ctx, s.group, program, config)
}

// measureLatency sends requests and returns their latency.
func (s *session) measureLatency(ctx context.Context, config bare.Config) (bare.Latency, error) {
	child, err := s.bare(ctx, bare.Ask, "", config)
	if err != nil {
		return bare.Latency{}, err
	}
	result, err := child.Finish()
	if err != nil {
		return bare.Latency{}, err
	}
	return *result.Latency, nil
}

// medianLatency returns the medians of several rounds.
func medianLatency(rounds []bare.Latency) bare.Latency {
	var p50, p99, most []float64
	for _, latency := range rounds {
		p50, p99, most = append(p50, latency.P50), append(p99, latency.P99), append(most, latency.Max)
	}
	return bare.Latency{P50: measure.Median(p50), P99: measure.Median(p99), Max: measure.Median(most)}
}

// lists returns a request of each team for a page of its posts.
func (s *session) lists(teams []stack.Team, query url.Values) (requests []bare.Request) {
	for _, team := range teams {
		requests = append(requests, bare.Request{
			Method: http.MethodGet, URL: s.stack.APIURL("/posts") + "?" + query.Encode(), Key: team.Token, Status: http.StatusOK,
		})
	}
	return requests
}

// awaitNone waits until no post matches the field selector, and returns the time.
func (s *session) awaitNone(ctx context.Context, selector string) (time.Time, error) {
	err := until(ctx, pollEvery, "no post has "+selector, func(ctx context.Context) (bool, error) {
		left, err := s.first(ctx, selector)
		return left == "", err
	})
	return time.Now(), err
}

// until polls done, with pauses, until it returns true or an error, or until roundLimit has passed.
func until(ctx context.Context, pause time.Duration, what string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, pause, roundLimit, true, done); err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// first returns the name of a post that matches the field selector, or "".
func (s *session) first(ctx context.Context, selector string) (string, error) {
	list, err := s.posts.List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: 1})
	if err != nil || len(list.Items) == 0 {
		return "", err
	}
	return list.Items[0].Namespace + "/" + list.Items[0].Name, nil
}

// waitUntil waits until the given time.
func waitUntil(ctx context.Context, at time.Time) error {
	select {
	case <-time.After(time.Until(at)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// clear removes all posts from the cluster and the platforms while Herald is stopped.
func (s *session) clear(ctx context.Context) error {
	for _, team := range s.connected {
		if err := s.removePosts(ctx, team.Namespace); err != nil {
			return err
		}
	}
	if _, err := s.awaitNone(ctx, "metadata.namespace!=canary"); err != nil {
		return err
	}
	return s.forgetShown(ctx)
}

// removePosts removes all posts of a namespace.
func (s *session) removePosts(ctx context.Context, namespace string) error {
	release := []byte(`{"metadata":{"finalizers":null}}`)
	posts, err := s.posts.Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	err = inParallel(ctx, posts.Items, func(ctx context.Context, post metav1.PartialObjectMetadata) error {
		_, err := s.posts.Namespace(namespace).Patch(ctx, post.Name, types.MergePatchType, release, metav1.PatchOptions{})
		return client.IgnoreNotFound(err) // a post that was removed from etcd may still be listed
	})
	if err != nil {
		return err
	}
	return s.posts.Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// forgetShown removes all posts from the platforms.
func (s *session) forgetShown(ctx context.Context) error {
	return call(ctx, http.MethodPost, s.stack.Sandbox.URL+"/_control/reset", "", nil, nil)
}

// inParallel calls work for every item, setupAtOnce at a time.
func inParallel[T any](ctx context.Context, items []T, work func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(setupAtOnce)
	for _, item := range items {
		group.Go(func() error { return work(ctx, item) })
	}
	return group.Wait()
}

// cpuTimes returns the CPU time of each process so far, by name.
func (s *session) cpuTimes() map[string]time.Duration {
	used := map[string]time.Duration{}
	for _, p := range s.stack.Processes() {
		used[p.Name] = stack.CPU(p.PID())
	}
	return used
}

// perPost returns the CPU time of each process since before, in milliseconds per post, and adds the others' times.
func (s *session) perPost(before map[string]time.Duration, posts int, others map[string]time.Duration) map[string]float64 {
	out := map[string]float64{}
	add := func(name string, used time.Duration) {
		out[name] = measure.Rounded(used.Seconds()*1000/float64(posts), 3)
	}
	for name, used := range s.cpuTimes() {
		add(name, used-before[name])
	}
	for name, used := range others {
		add(name, used)
	}
	return out
}

// writes returns the writes that the API server has counted so far.
func (s *session) writes(ctx context.Context) (measure.Writes, error) {
	page, err := s.metrics(ctx)
	if err != nil {
		return nil, err
	}
	return measure.SumWrites(page)
}

// metrics returns the API server's metrics.
func (s *session) metrics(ctx context.Context) (io.Reader, error) {
	client, err := rest.HTTPClientFor(s.stack.Config)
	if err != nil {
		return nil, err
	}
	page, err := get(ctx, client, s.stack.Config.Host+"/metrics")
	return bytes.NewReader(page), err
}

// profile starts CPU profiles of Herald's processes and of kube-apiserver if BENCH_PPROF is set. wait waits for them.
func (s *session) profile(ctx context.Context, id string) (wait func() error) {
	if s.pprof == "" {
		return func() error { return nil }
	}
	var group errgroup.Group
	fetch := func(name string, client *http.Client, url string) {
		group.Go(func() error {
			profile, err := get(ctx, client, fmt.Sprintf("%s/profile?seconds=%d", url, int(profileFor.Seconds())))
			if err != nil {
				return err
			}
			return workspace.WriteFile(filepath.Join(s.pprof, id+"-"+name+".pprof"), profile, 0o600)
		})
	}
	for _, p := range s.stack.Herald() {
		fetch(p.Name, http.DefaultClient, s.stack.ProfileURL(p.Name))
	}
	client, err := rest.HTTPClientFor(s.stack.Config)
	if err != nil {
		return func() error { return errors.Join(err, group.Wait()) }
	}
	fetch("kube-apiserver", client, s.stack.Config.Host+"/debug/pprof")
	return group.Wait
}
