// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command record runs Herald's processes on this machine, publishes for three teams while various things fail, and
// records the series that Prometheus scrapes. The dashboard's test uses the recording.
//
//	go run ./test/monitoring/record CHECKOUT FILE
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/hack/local/supervisor"
	"github.com/herald-social/herald/test/monitoring"
	"github.com/herald-social/herald/test/sandboxtest"
)

const (
	// step is Prometheus's scrape interval, and the step of the recorded series.
	step = 10 * time.Second
	// startLimit is the timeout of each preparation.
	startLimit = 2 * time.Minute
	grace      = 10 * time.Second
	// inCluster is the retention time of finished posts in the cluster.
	inCluster = 2 * time.Minute

	// leastSeries is the minimum number of series scraped in a run; a typical run has 460.
	leastSeries = 300

	prometheusName = "prometheus"
	namespace      = "herald-system"
)

// recorded selects the series that the dashboard and the alerts use.
const recorded = `{__name__=~"herald_.+|process_resident_memory_bytes|process_cpu_seconds_total|up",job="herald"}`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "Usage: record CHECKOUT FILE")
		os.Exit(2) //nolint:gocritic // nothing has started
	}
	if err := record(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// stage is the running installation.
type stage struct {
	checkout   string
	setup      *processes.Setup
	children   *supervisor.Supervisor
	manager    *supervisor.Child
	kubernetes client.Client
	sandbox    sandboxtest.Client
	prometheus monitoring.Server
}

func record(ctx context.Context, checkout, file string) (err error) {
	dir, err := os.MkdirTemp("", "herald-record-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			err = fmt.Errorf("%w\nlogs are in %s", err, dir)
		}
	}()
	s := &stage{checkout: checkout}
	if err := s.prepare(ctx, dir); err != nil {
		return err
	}
	defer s.children.Stop(nil)
	if err := s.start(ctx); err != nil {
		return err
	}
	from := time.Now().Truncate(step)
	if err := s.play(ctx); err != nil {
		return err
	}
	r, err := s.prometheus.Record(ctx, recorded, from, time.Now().Truncate(step), step)
	if err != nil {
		return err
	}
	if len(r.Series) < leastSeries {
		return fmt.Errorf("only %d series were scraped: look at %s/targets while it runs", len(r.Series), s.setup.URL(prometheusName))
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	fmt.Printf("%d series of %d steps\n", len(r.Series), r.Steps())
	return errors.Join(r.Write(out), out.Close())
}

// prepare writes all configurations.
func (s *stage) prepare(ctx context.Context, dir string) error {
	bin, err := filepath.Abs(filepath.Join(s.checkout, "bin"))
	if err != nil {
		return err
	}
	s.setup = &processes.Setup{
		Assets: os.Getenv("KUBEBUILDER_ASSETS"), Bin: bin, Dir: dir, Namespace: namespace, MorePorts: []string{prometheusName},
		Platforms: []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook},
		EditManager: func(c *configv1alpha1.ManagerConfiguration) {
			c.Metrics.Plain, c.Concurrency.Uploads = false, 2
			// Finished posts are removed from the cluster during the run.
			c.Retention.InCluster, c.Retention.LeastInCluster = metav1.Duration{Duration: inCluster}, metav1.Duration{}
		},
		// As in a cluster, metrics require authorization.
		EditAPIServer: func(c *configv1alpha1.APIServerConfiguration) { c.Metrics.Plain = false },
	}
	if s.setup.Assets == "" {
		s.setup.Assets = bin
	}
	if err := s.setup.Prepare(); err != nil {
		return err
	}
	group, err := supervisor.OpenGroup(ctx, filepath.Join(dir, "group"))
	if err != nil {
		return err
	}
	s.children, err = supervisor.New(supervisor.Options{
		PIDDir: filepath.Join(dir, "pids"), LogDir: dir, Group: group, Once: true,
		Report: func(name, message string) { fmt.Fprintln(os.Stderr, name, message) },
	})
	s.sandbox, s.prometheus = sandboxtest.Client{URL: s.setup.URL(processes.Sandbox)}, monitoring.Server{URL: s.setup.URL(prometheusName)}
	return err
}

// start starts all processes, Prometheus last.
func (s *stage) start(ctx context.Context) error {
	for _, spec := range []supervisor.Spec{s.setup.Etcd(), s.setup.KubeAPIServer(), s.setup.Store(), s.setup.Sandbox("--log-level", "warn")} {
		if err := s.children.Start(spec).WaitReady(ctx); err != nil {
			return err
		}
	}
	var err error
	if s.kubernetes, err = cluster.NewClient(s.setup.Kubeconfig(processes.Admin)); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := cluster.Install(limited, s.kubernetes, filepath.Join(s.checkout, "config"), s.setup.Address(processes.ManagerWebhook)); err != nil {
		return err
	}
	if err := s.startManager(limited); err != nil {
		return err
	}
	if err := s.children.Start(s.setup.APIServer()).WaitReady(limited); err != nil {
		return err
	}
	token, err := s.metricsReader(limited)
	if err != nil {
		return err
	}
	spec, err := s.prometheusSpec(token)
	if err != nil {
		return err
	}
	return s.children.Start(spec).WaitReady(limited)
}

func (s *stage) startManager(ctx context.Context) error {
	s.manager = s.children.Start(s.setup.Manager())
	return s.manager.WaitReady(ctx)
}

// metricsReader returns the token of a ServiceAccount that may read metrics, like the token Prometheus uses in a
// cluster. Other kinds of tokens are rejected without a request to the Kubernetes API.
func (s *stage) metricsReader(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: prometheusName}}
	if err := s.kubernetes.Create(ctx, account); err != nil {
		return "", fmt.Errorf("cannot create the account of Prometheus: %w", err)
	}
	if err := s.kubernetes.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: prometheusName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "herald-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: prometheusName}},
	}); err != nil {
		return "", fmt.Errorf("cannot let Prometheus read metrics: %w", err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := s.kubernetes.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("cannot make a token for Prometheus: %w", err)
	}
	return request.Status.Token, nil
}

// prometheusSpec returns a Prometheus process that scrapes both of Herald's processes, with the chart's ServiceMonitor
// configuration.
func (s *stage) prometheusSpec(token string) (supervisor.Spec, error) {
	program, err := monitoring.Program(s.checkout, prometheusName)
	if err != nil {
		return supervisor.Spec{}, err
	}
	target := func(port, pod string) map[string]any {
		return map[string]any{"targets": []string{s.setup.Address(port)}, "labels": map[string]string{"namespace": namespace, "pod": pod}}
	}
	config, err := yaml.Marshal(map[string]any{
		"global": map[string]any{"scrape_interval": step.String()},
		"scrape_configs": []any{map[string]any{
			"job_name": "herald", "scheme": "https", "honor_labels": true,
			"authorization": map[string]string{"credentials": token},
			"tls_config":    map[string]bool{"insecure_skip_verify": true},
			"static_configs": []any{
				target(processes.ManagerMetrics, "herald-manager-0"), target(processes.APIServerMetrics, "herald-apiserver-0"),
			},
		}},
	})
	if err != nil {
		return supervisor.Spec{}, err
	}
	file := filepath.Join(s.setup.Dir, "prometheus.yaml")
	return supervisor.Spec{
		Name: prometheusName, Path: program, Grace: grace, Ready: s.prometheus.Ready,
		Args: []string{
			"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(s.setup.Dir, "tsdb"), "--web.listen-address=" + s.setup.Address(prometheusName),
		},
	}, os.WriteFile(file, config, 0o600)
}
