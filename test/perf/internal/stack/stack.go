// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stack starts the environment of the benchmarks: a separate control plane, the sandbox, and Herald's manager
// and apiserver, each in its own process, which ends with the benchmark.
package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/hack/local/supervisor"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/sandboxtest"
)

// Ports besides those of the processes.
const (
	// Plain is the port of the bare HTTP server.
	Plain = "plain"
	// ManagerPprof and APIServerPprof are the ports for profiles.
	ManagerPprof   = "manager-pprof"
	APIServerPprof = "apiserver-pprof"
)

// maxReplicas is the largest number of managers that StartReplicas and StartReplica start.
const maxReplicas = 4

// startLimit is the timeout for any preparation. It is generous, for busy machines.
const startLimit = 2 * time.Minute

// Options configure a Stack. All fields except the last are required.
type Options struct {
	// Config is the folder with the CRDs and roles.
	Config string
	// Assets, Bin and Dir have the same meaning as in processes.Setup. Dir also contains the logs.
	Assets, Bin, Dir string
	// PostWorkers is the number of posts that the manager reconciles concurrently.
	PostWorkers int
	// Group starts the processes.
	Group *supervisor.Group
	// Limited sets the request limits of an installation; otherwise there are none.
	Limited bool
}

// Stack is a control plane, the sandbox and, between its start and its stop, Herald.
type Stack struct {
	// Setup contains the address of each process.
	Setup *processes.Setup
	// Kubernetes is a client with an administrator's permissions and without a cache.
	Kubernetes client.WithWatch
	// Config is the client configuration of an administrator.
	Config *rest.Config
	// Sandbox is a client for the simulated platforms.
	Sandbox sandboxtest.Client

	options  Options
	children *supervisor.Supervisor
	// armCrowds is the manager's delivery.armCrowds.
	armCrowds bool
	// mu guards the lists while a process is restarted.
	mu      sync.Mutex
	servers []*supervisor.Child
	herald  []*supervisor.Child
}

// Start starts the control plane, the store and the sandbox. After an error no process is left running.
func Start(ctx context.Context, options Options) (*Stack, error) {
	s := &Stack{options: options, Setup: &processes.Setup{
		Assets: options.Assets, Bin: options.Bin, Dir: options.Dir, Namespace: "herald-system",
		MorePorts: slices.Concat([]string{Plain, ManagerPprof, APIServerPprof}, replicaPorts()),
		Platforms: []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformYouTube},
	}}
	s.Setup.EditManager = func(c *configv1alpha1.ManagerConfiguration) {
		c.Delivery.ArmCrowds = s.armCrowds
		c.Concurrency.Posts, c.Profiling.BindAddress = options.PostWorkers, s.Setup.Address(ManagerPprof)
	}
	s.Setup.EditAPIServer = func(c *configv1alpha1.APIServerConfiguration) {
		c.Profiling.BindAddress = s.Setup.Address(APIServerPprof)
		if options.Limited {
			c.RequestsPerMinute = configv1alpha1.DefaultAPIServer().RequestsPerMinute
		}
	}
	err := s.Setup.Prepare()
	if err != nil {
		return nil, err
	}
	s.children, err = supervisor.New(supervisor.Options{
		PIDDir: filepath.Join(options.Dir, "pids"), LogDir: options.Dir, Group: options.Group, Once: true,
		Report: func(name, message string) { fmt.Fprintln(os.Stderr, name, message) },
	})
	if err != nil {
		return nil, err
	}
	if err := s.startServers(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// startServers starts all processes except the manager and the apiserver. More garbage collection workers speed up the
// removal of posts between two rounds. Profiling is enabled because requesting a heap profile runs a garbage collection
// before the heap is measured.
func (s *Stack) startServers(ctx context.Context) error {
	for _, spec := range []supervisor.Spec{
		s.Setup.Etcd(), s.Setup.KubeAPIServer("--delete-collection-workers=16", "--profiling=true"), s.Setup.Store(), s.Setup.Sandbox("--log-level", "warn"),
	} {
		s.servers = append(s.servers, s.children.Start(spec))
	}
	for _, server := range s.servers {
		if err := server.WaitReady(ctx); err != nil {
			return err
		}
	}
	var err error
	if s.Config, err = clientcmd.BuildConfigFromFlags("", s.Setup.Kubeconfig(processes.Admin)); err != nil {
		return err
	}
	s.Config.QPS = -1
	if s.Kubernetes, err = cluster.NewClient(s.Setup.Kubeconfig(processes.Admin)); err != nil {
		return err
	}
	s.Sandbox = sandboxtest.Client{URL: s.Setup.URL(processes.Sandbox)}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := cluster.Install(ctx, s.Kubernetes, s.options.Config, s.Setup.Address(processes.ManagerWebhook)); err != nil {
		return err
	}
	// Quotas are not enforced without the controller manager.
	controllers := s.children.Start(s.Setup.KubeControllerManager())
	s.servers = append(s.servers, controllers)
	return controllers.WaitReady(ctx)
}

// ArmCrowds sets the manager's delivery.armCrowds, which takes effect at its next start.
func (s *Stack) ArmCrowds(arm bool) error {
	s.armCrowds = arm
	return s.Setup.Configure()
}

// StartHerald starts the manager and the apiserver with their defaults and waits until both work.
func (s *Stack) StartHerald(ctx context.Context) error {
	s.herald = append(s.herald, s.children.Start(s.Setup.Manager()), s.children.Start(s.apiserver()))
	for _, child := range s.herald {
		if err := child.WaitReady(ctx); err != nil {
			return err
		}
	}
	return s.waitForWork(ctx)
}

// StartSharing starts managers that share uploads, without an apiserver, and waits until all of them work.
func (s *Stack) StartSharing(ctx context.Context, managers int) error {
	return s.StartReplicas(ctx, managers, func(c *configv1alpha1.ManagerConfiguration) { c.Delivery.ShareUploads = true })
}

// StartReplicas starts managers with a changed configuration, without an apiserver, and waits until all of them work.
// The first one leads and serves the webhook.
func (s *Stack) StartReplicas(ctx context.Context, managers int, edit func(*configv1alpha1.ManagerConfiguration)) error {
	for n := range managers {
		if err := s.StartReplica(ctx, n, managers, edit); err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if err := s.waitForWork(ctx); err != nil {
			return err
		}
	}
	return nil
}

// StartReplica starts the n-th of several managers, counting from zero, and waits until it is ready.
func (s *Stack) StartReplica(ctx context.Context, n, managers int, edit func(*configv1alpha1.ManagerConfiguration)) error {
	spec, err := s.Setup.ManagerAs(ReplicaName(n), func(c *configv1alpha1.ManagerConfiguration) {
		edit(c)
		c.Replicas = managers
		c.Profiling.BindAddress = ""
		if n > 0 {
			c.Metrics.BindAddress, c.Webhook.BindAddress = "0", "0"
		}
	})
	if err != nil {
		return err
	}
	child := s.children.Start(spec)
	s.herald = append(s.herald, child)
	return child.WaitReady(ctx)
}

// StopReplica stops the n-th manager of StartReplicas with SIGTERM, and waits for it to exit.
func (s *Stack) StopReplica(n int) { s.detach(ReplicaName(n)).Stop(nil) }

// detach removes a process from those that StopHerald stops, and returns it.
func (s *Stack) detach(name string) *supervisor.Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.herald, func(c *supervisor.Child) bool { return c.Name == name })
	child := s.herald[at]
	s.herald = slices.Delete(s.herald, at, at+1)
	return child
}

// ReplicaName returns the name of the n-th manager of StartReplicas, which is also its identity in Leases.
func ReplicaName(n int) string { return fmt.Sprintf("%s-%d", processes.Manager, n+1) }

func replicaPorts() (names []string) {
	for n := range maxReplicas {
		names = append(names, processes.HealthPort(ReplicaName(n)))
	}
	return names
}

// StartManager starts only the manager, without waiting for it.
func (s *Stack) StartManager() {
	s.herald = append(s.herald, s.children.Start(s.Setup.Manager()))
}

// KillManager kills the manager as kill -9 does, and waits for it to exit.
func (s *Stack) KillManager() error {
	manager := s.detach(processes.Manager)
	process, err := os.FindProcess(manager.PID())
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		return fmt.Errorf("kill the manager: %w", err)
	}
	manager.Stop(nil)
	return nil
}

// Restart stops or kills a process, starts it again and waits until it is ready.
func (s *Stack) Restart(ctx context.Context, name string, kill bool) error {
	group := s.servers
	at := slices.IndexFunc(group, func(c *supervisor.Child) bool { return c.Name == name })
	if at < 0 {
		group = s.herald
		at = slices.IndexFunc(group, func(c *supervisor.Child) bool { return c.Name == name })
	}
	if at < 0 {
		return fmt.Errorf("restart %s: there is no such process", name)
	}
	var force chan struct{}
	if kill {
		force = make(chan struct{})
		close(force)
	}
	group[at].Stop(force)
	child := s.children.Start(group[at].Spec)
	s.mu.Lock()
	group[at] = child
	s.mu.Unlock()
	return child.WaitReady(ctx)
}

// StartAPIServer starts the apiserver without the manager, on a dedicated CPU, and waits until it serves requests.
func (s *Stack) StartAPIServer(ctx context.Context) (*supervisor.Child, error) {
	spec := s.apiserver()
	spec.Path, spec.Args = measure.OnProcessor(measure.ServerProcessor, spec.Path, spec.Args)
	child := s.children.Start(spec)
	s.herald = append(s.herald, child)
	err := child.WaitReady(ctx)
	return child, err
}

func (s *Stack) apiserver() supervisor.Spec {
	return s.Setup.APIServer()
}

// waitForWork waits until the manager is the leader and its caches are synced: it must have reconciled a draft.
func (s *Stack) waitForWork(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "canary"}}
	if err := client.IgnoreAlreadyExists(s.Kubernetes.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("create the canary's namespace: %w", err)
	}
	draft := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, GenerateName: "canary-"},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, Draft: true,
			Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "none"}, Caption: "canary"}},
		},
	}
	if err := s.Kubernetes.Create(ctx, draft); err != nil {
		return fmt.Errorf("create a canary: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err := cluster.Until(limited, "the manager to process a new post", func() (bool, error) {
		err := s.Kubernetes.Get(limited, client.ObjectKeyFromObject(draft), draft)
		return err == nil && draft.Status.Phase != "", err
	})
	return errors.Join(err, s.Kubernetes.Delete(ctx, draft))
}

// StopHerald stops the manager and the apiserver. It fails if one of them has already exited, because that invalidates
// the measurement.
func (s *Stack) StopHerald() error {
	var err error
	for _, child := range slices.Backward(s.herald) {
		child.Stop(nil)
		if child.Exits() > 0 {
			err = errors.Join(err, fmt.Errorf("%s ended unexpectedly; see %s, which BENCH_LOGS keeps", child.Name, child.LogPath()))
		}
	}
	s.herald = nil
	return err
}

// Stop stops all processes in the reverse of the start order.
func (s *Stack) Stop() error {
	err := s.StopHerald()
	s.children.Stop(nil)
	return err
}

// Processes returns the running processes.
func (s *Stack) Processes() []*supervisor.Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.servers, s.herald)
}

// Herald returns the manager and the apiserver, if they have been started.
func (s *Stack) Herald() []*supervisor.Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.herald)
}

// Store returns the store for media files.
func (s *Stack) Store() (*store.Store, error) {
	key, err := s.Setup.StoreKey()
	if err != nil {
		return nil, err
	}
	return store.New(store.Config{
		Endpoint: s.Setup.Address(processes.Store), Insecure: true, Bucket: processes.Bucket,
		AccessKey: key.AccessKey, SecretKey: key.SecretKey, PathStyle: true,
	})
}

// APIURL returns a URL of Herald's REST API for a path such as "/posts".
func (s *Stack) APIURL(path string) string { return s.Setup.URL(processes.Site) + "/api/v1" + path }

// ProfileURL returns the base URL of the manager's or the apiserver's profiles.
func (s *Stack) ProfileURL(process string) string {
	return s.Setup.URL(process+"-pprof") + "/debug/pprof"
}
