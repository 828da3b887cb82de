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

// storeCredentials is the file that media.credentialsFile names.
type storeCredentials struct {
	AccessKey string `json:"accessKey"`
	SecretKey string `json:"secretKey"`
}

// openStore opens the store of media files, without a request; one that always fails if there is none.
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

// addBucket returns whose the bucket is, and adds what tells people if it is another cluster's to the manager. Without a store there is
// nothing to tell.
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
		return nil, fmt.Errorf("cannot look whose the bucket is: %w", err)
	}
	return bucket, nil
}

// addRollbackDetector returns what tells whether the cluster was put back to an earlier state, and adds what counts for that to the manager; nil
// without a store, where nothing could tell.
func addRollbackDetector(mgr ctrl.Manager, files *store.Store, release, namespace string, now clock.WithTicker) (func(context.Context) (rollback.Status, error), error) {
	if files.Absent() {
		return nil, nil //nolint:nilnil // without a store nothing is noticed, which is no error
	}
	counter := rollback.New(rollback.Options{
		Documents: files, Cluster: installation.Cluster(mgr.GetAPIReader()), Client: mgr.GetClient(), Reader: mgr.GetAPIReader(),
		Lease: types.NamespacedName{Namespace: namespace, Name: release + "-clock"}, Clock: now, Registerer: metrics.Registry,
	})
	if err := mgr.Add(counter); err != nil {
		return nil, fmt.Errorf("cannot count for whether the cluster is put back to an earlier state: %w", err)
	}
	return counter.Status, nil
}

// hostOf takes apart an address: the client of the store wants host and port, and whether to do without TLS.
func hostOf(address string) (host string, insecure bool, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", false, err
	}
	return u.Host, u.Scheme == "http", nil
}

// storeOrigins are those that browsers upload files to and show them from, for the policy of the pages, separated by a space:
// the store's own and that of the bucket, which some stores put into the name of the host. It is empty without a store.
func storeOrigins(c *configv1alpha1.Media) string {
	if c == nil {
		return ""
	}
	u, err := url.Parse(cmp.Or(c.PublicEndpoint, c.Endpoint))
	if err != nil || u.Host == "" {
		return "" // openStore has said so
	}
	own := u.Scheme + "://" + u.Host
	if c.PathStyle {
		return own
	}
	return own + " " + u.Scheme + "://" + c.Bucket + "." + u.Host
}

// verifier makes what examines uploaded files: the same in the manager and the apiserver.
func verifier(files *store.Store, now clock.PassiveClock) *probe.Verifier {
	return &probe.Verifier{Store: files, Clock: now, Unconvertible: rendition.Unconvertible}
}

// newMedia makes the reconciler of media files.
func newMedia(mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, files *store.Store, bucket *installation.Bucket, teams *quota.Teams, now *apiclock.Clock,
) (*media.Reconciler, error) {
	return media.New(media.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: now, Events: mgr.GetEventRecorder("herald-media"),
		Store: files, MayDelete: bucket.MayDelete, Owner: teams.Owner, Requests: archive.New(files),
		Verify: verifier(files, now).Verify, Source: fetch.New(fetch.Options{}), Owned: teams.Owned, Namespaces: c.Namespaces,
		UnusedAfter: c.Retention.UnusedMedia.Duration, Retention: retentionPolicy(c), Metrics: media.NewMetrics(metrics.Registry),
		MaxConcurrentReconciles: c.Concurrency.Media, MaxFetches: c.Concurrency.Fetches,
	})
}
