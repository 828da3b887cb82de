// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/media"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/rollback"
)

type storeCredentials struct {
	AccessKey string `json:"accessKey"`
	SecretKey string `json:"secretKey"`
}

// openStore returns the store of media files without connecting to it. Without a configuration, it returns a store that
// always fails.
func openStore(c *configv1alpha1.Media) (*store.Store, error) {
	if c == nil {
		return store.None(), nil
	}
	config := store.Config{Region: c.Region, Bucket: c.Bucket, PathStyle: c.PathStyle}
	var err error
	if config.Endpoint, config.Insecure, err = hostOf(c.Endpoint); err != nil {
		return nil, fmt.Errorf("media.endpoint: %w", err)
	}
	if c.PublicEndpoint != "" {
		if config.PublicEndpoint, config.PublicInsecure, err = hostOf(c.PublicEndpoint); err != nil {
			return nil, fmt.Errorf("media.publicEndpoint: %w", err)
		}
	}
	if c.CredentialsFile == "" {
		return store.New(config)
	}
	data, err := os.ReadFile(c.CredentialsFile)
	if err != nil {
		return nil, fmt.Errorf("media.credentialsFile: %w", err)
	}
	var key storeCredentials
	if err := yaml.UnmarshalStrict(data, &key); err != nil {
		return nil, fmt.Errorf("media.credentialsFile: %s: want accessKey and secretKey", c.CredentialsFile)
	}
	if config.AccessKey, config.SecretKey = key.AccessKey, key.SecretKey; key.AccessKey == "" || key.SecretKey == "" {
		return nil, fmt.Errorf("media.credentialsFile: %s: accessKey and secretKey must not be empty", c.CredentialsFile)
	}
	return store.New(config)
}

// addBucket returns the bucket's ownership check. If there is a store, it adds a runnable to the manager that reports
// whether the bucket belongs to another cluster.
func addBucket(mgr ctrl.Manager, files *store.Store, c *configv1alpha1.Media) (*installation.Bucket, error) {
	from := ""
	if c != nil {
		from = c.TakeOverFrom
	}
	bucket := installation.New(files, installation.Cluster(mgr.GetAPIReader()), from, clock.RealClock{})
	if files.Absent() {
		return bucket, nil
	}
	if err := mgr.Add(installation.NewWatch(bucket, clock.RealClock{}, metrics.Registry)); err != nil {
		return nil, fmt.Errorf("cannot check which cluster the bucket belongs to: %w", err)
	}
	return bucket, nil
}

// addRollbackDetector returns a function that reports whether the cluster was rolled back, and adds its counter to the
// manager. Without a store, a rollback cannot be detected and it returns nil.
func addRollbackDetector(mgr ctrl.Manager, files *store.Store, c *configv1alpha1.ManagerConfiguration, namespace string, now clock.WithTicker) (func(context.Context) (rollback.Status, error), error) {
	if files.Absent() {
		return nil, nil //nolint:nilnil // without a store nothing is detected, which is not an error
	}
	counter := rollback.New(rollback.Options{
		Documents: files, Cluster: installation.Cluster(mgr.GetAPIReader()), Client: mgr.GetClient(), Reader: mgr.GetAPIReader(),
		Lease: types.NamespacedName{Namespace: namespace, Name: c.ReleaseName + "-clock"}, Clock: now, Registerer: metrics.Registry,
	})
	if err := mgr.Add(whereDelivered(c, counter)); err != nil {
		return nil, fmt.Errorf("cannot set up the detection of cluster rollbacks: %w", err)
	}
	return counter.Status, nil
}

// hostOf splits a URL into the host and port, and whether to use plain HTTP, as the store's client expects.
func hostOf(address string) (host string, insecure bool, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", false, err
	}
	return u.Host, u.Scheme == "http", nil
}

// storeOrigins returns the origins that browsers upload files to and load them from, separated by spaces for the
// Content-Security-Policy: those of the store and of the bucket, which some stores put into the host name. It is empty
// without a store.
func storeOrigins(c *configv1alpha1.Media) string {
	if c == nil {
		return ""
	}
	u, err := url.Parse(cmp.Or(c.PublicEndpoint, c.Endpoint))
	if err != nil || u.Host == "" {
		return "" // openStore has reported the error
	}
	own := u.Scheme + "://" + u.Host
	if c.PathStyle {
		return own
	}
	return own + " " + u.Scheme + "://" + c.Bucket + "." + u.Host
}

// verifier returns the verifier of uploaded files, which the manager and the apiserver share.
func verifier(files *store.Store, now clock.PassiveClock) *probe.Verifier {
	return &probe.Verifier{Store: files, Clock: now, Unconvertible: rendition.Unconvertible}
}

func newMedia(mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, files *store.Store, bucket *installation.Bucket, teams *quota.Teams, images *rendition.Renderer, now *apiclock.Clock,
) (*media.Reconciler, error) {
	return media.New(media.Options{
		MakeSmall: func(ctx context.Context, m *v1alpha1.Media) error {
			source, isPicture := rendition.SourceOf(m)
			if !isPicture {
				return nil
			}
			_, err := images.Make(ctx, source, rendition.Small())
			return err
		},
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: now, Events: mgr.GetEventRecorder("herald-media"),
		Store: files, MayDelete: bucket.MayDelete, Owner: teams.Owner, Requests: archive.New(files),
		Verify: verifier(files, now).Verify, Source: fetch.New(fetch.Options{}), Owned: teams.Owned, Namespaces: c.Namespaces,
		UnusedAfter: c.Retention.UnusedMedia.Duration, Retention: retentionPolicy(c), Metrics: media.NewMetrics(metrics.Registry),
		MaxConcurrentReconciles: c.Concurrency.Media, MaxFetches: c.Concurrency.Fetches,
	})
}

// smallPictures returns a function that finds the small pictures for lists, which the manager makes.
func smallPictures(files *store.Store) func(ctx context.Context, m *v1alpha1.Media) (string, error) {
	found := rendition.NewCache(files, rendition.NewSlots(1))
	return func(ctx context.Context, m *v1alpha1.Media) (string, error) {
		source, isPicture := rendition.SourceOf(m)
		if !isPicture {
			return "", store.ErrNotFound
		}
		small, err := found.Find(ctx, rendition.Key(source, rendition.Small()))
		return small.Key, err
	}
}
