// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultManager returns the default configuration of a manager.
func DefaultManager() *ManagerConfiguration {
	return &ManagerConfiguration{
		TypeMeta:    metav1.TypeMeta{APIVersion: APIVersion, Kind: ManagerKind},
		Common:      defaultCommon(),
		ReleaseName: "herald",
		Kubernetes:  Kubernetes{QPS: -1},
		LeaderElection: LeaderElection{
			LeaseDuration: duration(15 * time.Second), RenewDeadline: duration(10 * time.Second), RetryPeriod: duration(2 * time.Second),
		},
		Concurrency: Concurrency{Posts: 256, Uploads: 32, Media: 16, Fetches: 8, Connections: 32, Teams: 4, APIKeys: 1},
		Delivery: Delivery{
			StartingDeadline: duration(time.Hour), LongestDelay: duration(6 * time.Hour), PrepareAhead: duration(30 * time.Minute),
			SendWindow: duration(5 * time.Second), ClockMargin: duration(2 * time.Second), RecordFor: duration(time.Minute), Shards: 1,
		},
		Retention: Retention{
			UnusedMedia: duration(24 * time.Hour), InCluster: duration(7 * 24 * time.Hour), Archived: duration(90 * 24 * time.Hour),
			LeastInCluster: duration(time.Hour), PostsPerSecond: 20,
		},
		ShutdownTimeout: duration(130 * time.Second),
		Webhook:         Webhook{Endpoint: Endpoint{BindAddress: ":9443"}},
		Thumbnails:      Thumbnails{FFmpeg: DefaultFFmpeg},
	}
}

// DefaultFFmpeg is the program that extracts thumbnails. If it is not installed, there are no thumbnails.
const DefaultFFmpeg = "ffmpeg"

// DefaultAPIServer returns the default configuration of an apiserver.
func DefaultAPIServer() *APIServerConfiguration {
	return &APIServerConfiguration{
		TypeMeta:          metav1.TypeMeta{APIVersion: APIVersion, Kind: APIServerKind},
		Common:            defaultCommon(),
		BindAddress:       ":8080",
		Shutdown:          Shutdown{Delay: duration(3 * time.Second), Timeout: duration(20 * time.Second)},
		RequestsPerMinute: 600,
		MaxConnections:    2000, MaxConnectionsPerAddress: 64,
		Web: Web{Enabled: true, SignInSecret: DefaultSignInSecret, RolePrefix: "herald"},
		MCP: MCP{Enabled: true},
	}
}

func defaultCommon() Common {
	return Common{
		Health:  Endpoint{BindAddress: ":8081"},
		Metrics: Metrics{Endpoint: Endpoint{BindAddress: ":8443"}},
	}
}

// SetDefaults sets the defaults of the section, if the file has one: an absent store has no defaults.
func (m *Media) SetDefaults() {
	m.Region, m.Bucket = "us-east-1", "herald-media"
}

// DefaultSignInSecret is the Secret of the web application in the release herald.
const DefaultSignInSecret = "herald-web"

// SetDefaults sets the defaults of the section, if the file has one: an absent provider has no defaults.
func (o *OIDC) SetDefaults() {
	const prefix = "oidc:"
	o.UsernameClaim, o.UsernamePrefix = "email", prefix
	o.GroupsClaim, o.GroupsPrefix = "groups", prefix
	o.Scopes = []string{"profile", "email"}
}

// Shared returns the fields that both kinds of configuration have.
func (c *Common) Shared() *Common { return c }

// Namespaces lists the namespaces that an installation serves. An empty list means all namespaces.
type Namespaces []string

// Include reports whether a namespace is served.
func (n Namespaces) Include(namespace string) bool {
	return len(n) == 0 || slices.Contains(n, namespace)
}

// Scopes returns the namespaces to list and watch separately. An installation for selected namespaces has permissions
// only in these; one for all namespaces has a single watch of the whole cluster.
func (n Namespaces) Scopes() []string {
	if len(n) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return slices.Compact(slices.Sorted(slices.Values(n)))
}

// Off reports whether the endpoint is disabled.
func (e Endpoint) Off() bool { return e.BindAddress == "" || e.BindAddress == "0" }

// Off reports whether renewed tokens are kept in memory only.
func (u Unsaved) Off() bool { return u.Directory == "" }

// MaxShards is the maximum of delivery.shards. The manager's role names the Lease of each shard.
const MaxShards = 16

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
