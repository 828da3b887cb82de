// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/cluster"
	"github.com/herald-social/herald/cmd/herald/internal/lease"
	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/cmd/herald/internal/release"
	"github.com/herald-social/herald/cmd/herald/internal/shards"
)

// releaseRate is the default limit of `herald release`, in requests per second: ten thousand objects take a minute.
const releaseRate = 200

type releaseFlags struct {
	kubeconfig           string
	install, releaseName string
	scaleDown            names
	wait                 time.Duration
	force, dryRun        bool
	withoutRecords       bool
	rate                 int
	teams                configv1alpha1.Namespaces
}

// names is a flag with a comma-separated list of names.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(text string) error {
	*n = strings.Split(text, ",")
	for _, name := range *n {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("%q is not the name of an object; write lower-case letters, digits and dashes, and commas between names", name)
		}
	}
	return nil
}

func parseReleaseFlags(args []string) (*releaseFlags, error) {
	f := &releaseFlags{}
	flags := process.NewFlagSet("release")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; empty inside a cluster")
	flags.Var((*names)(&f.teams), "namespace", "namespaces of the teams to release, separated by commas; empty for all")
	flags.StringVar(&f.install, "install-namespace", "", "namespace in which Herald is or was installed, where its leases and Deployments are; empty searches all namespaces for the leader's lease")
	flags.StringVar(&f.releaseName, "release-name", configv1alpha1.DefaultManager().ReleaseName, "name of the installation, the prefix of its objects' names")
	flags.Var(&f.scaleDown, "scale-down", "Deployments in --install-namespace to scale to 0 first, separated by commas, such as herald-manager,herald-apiserver")
	flags.DurationVar(&f.wait, "wait", 0, "how long to wait for their pods to end, and then for the manager's leases to be free")
	flags.BoolVar(&f.force, "force", false, "continue although a manager holds a lease, even one that starts in the meantime; it adds finalizers again")
	flags.BoolVar(&f.withoutRecords, "without-records", false, "also release posts that are being deleted and may have no record in the bucket; if created again, they are published again. For an installation without a bucket")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the changes without making them")
	flags.IntVar(&f.rate, "rate", releaseRate, "maximum requests per second; 0 leaves the limit to the Kubernetes API")
	if err := process.Parse(flags, args); err != nil {
		return nil, err
	}
	if err := f.validate(); err != nil {
		return nil, err
	}
	return f, nil
}

// validate returns a process.UsageError for contradictory or invalid flags.
func (f *releaseFlags) validate() error {
	switch {
	case f.wait < 0:
		return process.UsageError{Err: fmt.Errorf("--wait=%s: want a time such as 3m", f.wait)}
	case f.rate < 0:
		return process.UsageError{Err: fmt.Errorf("--rate=%d: want a number of requests a second, or 0", f.rate)}
	case len(f.scaleDown) > 0 && f.install == "":
		return process.UsageError{Err: errors.New("--scale-down needs --install-namespace: name the namespace of the Deployments")}
	}
	return nil
}

// runRelease removes Herald's finalizers, so that its objects can be deleted without it.
func runRelease(ctx context.Context, args []string) error {
	f, err := parseReleaseFlags(args)
	if err != nil {
		return err
	}
	api, err := cluster.Connect(f.kubeconfig, "herald-release/"+version)
	if err != nil {
		return err
	}
	clients, err := f.clients(api.Config)
	if err != nil {
		return fmt.Errorf("cannot create a client for the Kubernetes API: %w", err)
	}
	options := release.Options{
		Config: api.Config, Namespaces: f.teams, DryRun: f.dryRun, WithoutRecords: f.withoutRecords, Rate: f.rate, Clock: clock.RealClock{}, Out: os.Stdout,
	}
	if !f.dryRun {
		if options.ActiveManager, err = f.stopManager(ctx, clients, os.Stdout); err != nil {
			return err
		}
	}
	return release.Run(ctx, options)
}

// releaseClients are typed clients for the kinds needed to stop a manager. A clientset with all kinds of Kubernetes
// would occupy memory in every Herald process, because they share one binary.
type releaseClients struct {
	apps         typedappsv1.DeploymentsGetter
	core         typedcorev1.PodsGetter
	coordination typedcoordinationv1.LeasesGetter
}

// clients returns the clients that check for active managers. --rate limits their requests, too: they do not run at the
// same time as the release's own.
func (f *releaseFlags) clients(config *rest.Config) (c releaseClients, err error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = float32(f.rate), f.rate
	if f.rate == 0 {
		config.QPS = -1
	}
	if c.apps, err = typedappsv1.NewForConfig(config); err != nil {
		return c, err
	}
	if c.core, err = typedcorev1.NewForConfig(config); err != nil {
		return c, err
	}
	c.coordination, err = typedcoordinationv1.NewForConfig(config)
	return c, err
}

// stopManager scales down the Deployments of --scale-down and waits until no manager runs. The returned function
// returns the identity of a manager that has started again, or "".
func (f *releaseFlags) stopManager(ctx context.Context, clients releaseClients, out io.Writer) (working func(context.Context) (string, error), err error) {
	scaler := release.Scaler{Deployments: clients.apps, Pods: clients.core, Namespace: f.install, Clock: clock.RealClock{}, Out: out}
	if err := scaler.Down(ctx, f.scaleDown, f.wait); err != nil || f.force {
		return nil, err
	}
	leases, err := f.leases(ctx, clients)
	if err != nil {
		return nil, err
	}
	observer := lease.Observer{Leases: clients.coordination, Clock: clock.RealClock{}}
	watch := &lease.Watch{Observer: observer, Find: func(ctx context.Context) ([]types.NamespacedName, error) { return f.leases(ctx, clients) }}
	name, holder, err := observer.WaitAllFree(ctx, leases, f.wait)
	switch {
	case err != nil:
		return nil, err
	case holder != "":
		return nil, fmt.Errorf("a manager is running: %s holds the lease %s; scale its Deployment to 0 and run this again, with --wait=3m to wait until it has stopped", holder, name)
	}
	if _, err := fmt.Fprintf(out, "no manager is running: none of %d leases has a holder\n", len(leases)); err != nil {
		return nil, err
	}
	return watch.NewHolder, watch.Snapshot(ctx)
}

// leases returns the leases that a manager of this installation may hold: the leader's, and those of the replicas that
// share the shards, which deliver posts without leading.
func (f *releaseFlags) leases(ctx context.Context, clients releaseClients) (names []types.NamespacedName, err error) {
	namespaces := []string{f.install}
	if f.install == "" {
		if namespaces, err = f.searchLeases(ctx, clients); err != nil {
			return nil, err
		}
	}
	for _, namespace := range namespaces {
		names = append(names, types.NamespacedName{Namespace: namespace, Name: leaseOf(f.releaseName)})
		for _, name := range shards.MemberLeases(f.releaseName) {
			names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return names, nil
}

// searchLeases returns the namespaces that contain the leader's lease.
func (f *releaseFlags) searchLeases(ctx context.Context, clients releaseClients) (namespaces []string, err error) {
	name := leaseOf(f.releaseName)
	found, err := clients.coordination.Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot search all namespaces for the manager's lease %s; set Herald's namespace with --install-namespace: %w", name, err)
	}
	for i := range found.Items {
		namespaces = append(namespaces, found.Items[i].Namespace)
	}
	return namespaces, nil
}
