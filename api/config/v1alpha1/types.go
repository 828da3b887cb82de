// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the configuration files of Herald's two processes, in version v1alpha1 of config.herald.dev. A
// file is parsed strictly, and its fields override the defaults that DefaultManager and DefaultAPIServer return.
// `herald config check FILE` reports every mistake in a file.
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The apiVersion and the kinds of the files.
const (
	APIVersion    = "config.herald.dev/v1alpha1"
	ManagerKind   = "ManagerConfiguration"
	APIServerKind = "APIServerConfiguration"
)

// ManagerConfiguration is the configuration file of `herald manager`.
type ManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	Common          `json:",inline"`

	// ReleaseName is the prefix of the names of the installation's objects: the lease, the role bindings in teams'
	// namespaces and their roles, the apiserver's account, and the webhook with its Service and Secret. The default is
	// "herald".
	ReleaseName string `json:"releaseName,omitempty"`
	// Kubernetes limits the rate of requests to the Kubernetes API.
	Kubernetes Kubernetes `json:"kubernetes,omitzero"`
	// LeaderElection holds the durations of the leader lease.
	LeaderElection LeaderElection `json:"leaderElection,omitzero"`
	// Suspend stops publishing in the whole installation (false). While it is true, posts are accepted and prepared,
	// and nothing is published. Deadlines are extended by the suspended time. A change of the file takes effect without
	// a restart. To suspend one team, set spec.suspend of the Team.
	Suspend bool `json:"suspend,omitempty"`
	// Concurrency holds the sizes of the worker pools.
	Concurrency Concurrency `json:"concurrency,omitzero"`
	// Delivery holds the deadlines and margins of publishing.
	Delivery Delivery `json:"delivery,omitzero"`
	// Retention holds the retention times of posts and media files.
	Retention Retention `json:"retention,omitzero"`
	// ShutdownTimeout is how long running calls may take to finish after the process receives the signal to stop
	// (130 s). It is longer than the longest call to a platform (60 s) and delivery.recordFor together, and shorter than
	// the pod's termination grace period.
	ShutdownTimeout metav1.Duration `json:"shutdownTimeout"`
	// Webhook configures the admission webhook.
	Webhook Webhook `json:"webhook,omitzero"`
	// Credentials configures how the tokens of accounts are protected against loss.
	Credentials Credentials `json:"credentials,omitzero"`
	// Thumbnails configures the extraction of thumbnails from videos.
	Thumbnails Thumbnails `json:"thumbnails,omitzero"`
	// Egress configures the connections to the platforms. The environment variables HTTPS_PROXY, HTTP_PROXY and
	// NO_PROXY set a proxy.
	Egress Egress `json:"egress,omitzero"`
}

// APIServerConfiguration is the configuration file of `herald apiserver`.
type APIServerConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	Common          `json:",inline"`

	// BindAddress is the listen address of the API (":8080").
	BindAddress string `json:"bindAddress,omitempty"`
	// TLS holds the certificate of the API. Without it, the API is served over plain HTTP.
	TLS *TLS `json:"tls,omitempty"`
	// SiteURL is the address of this server for its clients, such as https://herald.example.com. The default is the
	// listen address.
	SiteURL string `json:"siteURL,omitempty"`
	// Shutdown holds the durations of a graceful shutdown.
	Shutdown Shutdown `json:"shutdown,omitzero"`
	// RequestsPerMinute limits the requests of each team: all its keys, agents and people together (600); 0 for no
	// limit. An expensive request counts as several. The same limit applies to each address of unauthenticated clients,
	// which have no valid key, token or session, separately for programs, for pages and for OAuth.
	RequestsPerMinute int `json:"requestsPerMinute"`
	// MaxConnections limits the open connections of this server (2000); 0 for no limit. At the limit, a new connection
	// replaces the one that has been idle the longest.
	MaxConnections int `json:"maxConnections"`
	// MaxConnectionsPerAddress limits the open connections of one client address (64); 0 for no limit. TrustedProxies
	// are exempt, because a proxy carries the connections of many clients.
	MaxConnectionsPerAddress int `json:"maxConnectionsPerAddress"`
	// TrustedProxies are the networks of the proxies in front of this server, such as 10.0.0.0/8. Only these may set
	// the client address in X-Forwarded-For; the server uses it for the limits of unauthenticated clients and in its
	// log. The default is none: the client address is the peer of the connection.
	TrustedProxies []string `json:"trustedProxies,omitempty"`
	// Web configures the web application.
	Web Web `json:"web,omitzero"`
	// MCP configures the server for agents.
	MCP MCP `json:"mcp,omitzero"`
}

// MCP configures the server for agents (Model Context Protocol), which the apiserver serves at SITEURL/mcp.
type MCP struct {
	// Enabled enables the MCP server (true).
	Enabled bool `json:"enabled"`
}

// Web configures the web application, which the apiserver serves.
type Web struct {
	// Enabled enables the web application (true). If it is disabled, the apiserver reads no Secret and no secret of a
	// platform's app.
	Enabled bool `json:"enabled"`
	// SignInSecret is the Secret that the replicas share, in the namespace of the installation ("herald-web"). It holds
	// the session keys, the hashes of one-time links, and the people who have signed out everywhere.
	SignInSecret string `json:"signInSecret,omitempty"`
	// RolePrefix is the prefix of the installed roles for people: RolePrefix-viewer, -editor and -admin ("herald").
	// Pages show these names to people who lack a role.
	RolePrefix string `json:"rolePrefix,omitempty"`
	// OIDC configures sign-in through an OpenID Connect provider. Without it, people sign in with a one-time link from
	// `herald signin-link`.
	OIDC *OIDC `json:"oidc,omitempty"`
	// Agents configures which agents may request a person's consent to act for a team.
	Agents Agents `json:"agents,omitzero"`
}

// Agents configures which agents may request a person's consent to act for a team.
type Agents struct {
	// LoopbackClients accepts agents whose metadata document is on this machine, also over plain HTTP (false). It is
	// for trials only: every person who is signed in can make the server send requests to other servers on this
	// machine.
	LoopbackClients bool `json:"loopbackClients,omitempty"`
}

// OIDC configures an OpenID Connect provider and the claims that identify people.
type OIDC struct {
	// IssuerURL is the provider's issuer, exactly as in the claim iss, such as https://accounts.example.com.
	IssuerURL string `json:"issuerURL"`
	// ClientID is Herald's client id at the provider. The redirect URI to register there is
	// SITEURL/signin/oidc/callback.
	ClientID string `json:"clientID"`
	// ClientSecretFile is the path of a file with the client secret; empty for a public client. The file is read at
	// each sign-in.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// UsernameClaim is the claim with the person's name ("email", which is accepted only if email_verified is true).
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// UsernamePrefix is added in front of the name in role bindings ("oidc:").
	UsernamePrefix string `json:"usernamePrefix"`
	// GroupsClaim is the claim with the person's groups ("groups"); empty for none.
	GroupsClaim string `json:"groupsClaim"`
	// GroupsPrefix is added in front of each group in role bindings ("oidc:").
	GroupsPrefix string `json:"groupsPrefix"`
	// Scopes are the requested scopes in addition to openid (profile, email).
	Scopes []string `json:"scopes,omitempty"`
	// CAFile is a PEM file with certificate authorities to trust for the provider only, in addition to the system's.
	CAFile string `json:"caFile,omitempty"`
}

// Common holds the fields that both processes have.
type Common struct {
	// Namespaces are the teams' namespaces that this installation serves; empty for all. Herald ignores posts,
	// connections, media files and keys in other namespaces, and Teams with another namespace, which a second
	// installation in the cluster may serve. The flag --namespace overrides this field.
	Namespaces Namespaces `json:"namespaces,omitempty"`
	// Health is the endpoint of /livez and /readyz.
	Health Endpoint `json:"health,omitzero"`
	// Metrics is the endpoint of /metrics.
	Metrics Metrics `json:"metrics,omitzero"`
	// Profiling is the endpoint of /debug/pprof. Use it for measurements only, because profiles reveal the contents of
	// memory. The default is none.
	Profiling Endpoint `json:"profiling,omitzero"`
	// Log configures logging.
	Log Log `json:"log,omitzero"`
	// Tracing configures the export of traces to an OpenTelemetry collector. The default is none.
	Tracing Tracing `json:"tracing,omitzero"`
	// Media configures the store of media files. Leave it out in an installation for text posts only.
	Media *Media `json:"media,omitempty"`
	// Platforms configures the platforms that posts can be published to.
	Platforms Platforms `json:"platforms,omitzero"`
}

// Endpoint is a listen address.
type Endpoint struct {
	// BindAddress is HOST:PORT or :PORT; "0" disables the endpoint.
	BindAddress string `json:"bindAddress,omitempty"`
}

// Log configures logging.
type Log struct {
	// Level is the minimum level of logged messages: debug, info, warn or error. A change of the file takes effect
	// without a restart. If it is empty, the flag --log-level applies.
	Level string `json:"level,omitempty"`
}

// LogLevels returns the valid values of Log.Level.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// Tracing configures the export of traces. Omitted fields are read from OpenTelemetry's environment variables, which
// also cover settings that have no field here, such as headers.
type Tracing struct {
	// Endpoint is the address of a collector that accepts OTLP over HTTP, such as http://collector:4318; /v1/traces is
	// appended to its path. If it is empty, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT applies;
	// without these, no traces are exported.
	Endpoint string `json:"endpoint,omitempty"`
	// SamplingRatio is the share of root traces that are recorded, from 0 to 1 (1). A request with a traceparent header
	// carries its own sampling decision. If omitted, OTEL_TRACES_SAMPLER applies if it is set.
	SamplingRatio *float64 `json:"samplingRatio,omitempty"`
}

// Metrics configures the endpoint of the metrics.
type Metrics struct {
	Endpoint `json:",inline"`

	// Plain serves metrics over HTTP without authentication. By default they are served over HTTPS, only to clients
	// with a valid Kubernetes token and a role that allows get on /metrics.
	Plain bool `json:"plain,omitempty"`
	// CertDir is a folder with tls.crt and tls.key, which are reloaded when they change. If it is empty, a certificate
	// is generated at each start.
	CertDir string `json:"certDir,omitempty"`
}

// TLS holds the paths of a certificate and its key. Both files are reloaded when they change.
type TLS struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

// Shutdown holds the durations of the apiserver's graceful shutdown.
type Shutdown struct {
	// Delay is how long the server continues to accept requests after it stops being ready, so that load balancers can
	// remove it (3 s).
	Delay metav1.Duration `json:"delay"`
	// Timeout is how long running requests may then take to finish (20 s).
	Timeout metav1.Duration `json:"timeout"`
}

// Kubernetes limits the rate of requests to the Kubernetes API.
type Kubernetes struct {
	// QPS is the maximum number of requests per second; -1, the default, disables the client-side limit, so that only
	// API Priority and Fairness applies.
	QPS float64 `json:"qps"`
	// Burst is the maximum burst of requests if QPS is positive.
	Burst int `json:"burst"`
}

// LeaderElection holds the durations of the leader lease. The claim of a post prevents two managers from publishing it
// twice, not the lease. The durations are a compromise between a quick failover after a crash and few restarts while
// the Kubernetes API is unavailable.
type LeaderElection struct {
	// LeaseDuration is how long other processes wait after the last renewal before they acquire the lease (15 s).
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	// RenewDeadline is how long the leader retries a renewal before its process exits (10 s).
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	// RetryPeriod is the pause between retries (2 s).
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

// Concurrency holds the sizes of the worker pools.
type Concurrency struct {
	// Posts is the maximum number of posts that are processed concurrently (256).
	Posts int `json:"posts"`
	// Uploads is the maximum number of concurrent uploads of files to platforms (32).
	Uploads int `json:"uploads"`
	// Media is the maximum number of media files that are processed concurrently (16).
	Media int `json:"media"`
	// Fetches is the maximum number of media files that are fetched from their sources concurrently (8). It must not
	// exceed Media.
	Fetches int `json:"fetches"`
	// Connections is the maximum number of connections that are processed concurrently (32).
	Connections int `json:"connections"`
	// Teams is the maximum number of teams that are processed concurrently (4).
	Teams int `json:"teams"`
	// APIKeys is the maximum number of keys that are processed concurrently (1).
	APIKeys int `json:"apiKeys"`
}

// Delivery holds the deadlines and margins of publishing.
type Delivery struct {
	// StartingDeadline is the maximum lateness of a post, and how long temporary refusals are retried (1 h).
	StartingDeadline metav1.Duration `json:"startingDeadline"`

	// LongestDelay is the maximum lateness of a post whose platform announced pauses (6 h). Within it, the starting
	// deadline counts from the end of the pause.
	LongestDelay metav1.Duration `json:"longestDelay"`
	// PrepareAhead is how long before its scheduled time the files of a post are uploaded, if they stay hidden until it
	// is published (30 min). Big files are uploaded earlier.
	PrepareAhead metav1.Duration `json:"prepareAhead"`
	// SendWindow is how long after a claim its call may start (5 s).
	SendWindow metav1.Duration `json:"sendWindow"`
	// ClockMargin is the maximum difference between the clocks of two processes (2 s).
	ClockMargin metav1.Duration `json:"clockMargin"`
	// RecordFor is how long a reconciliation retries to record the result of its call (1 min).
	RecordFor metav1.Duration `json:"recordFor"`
}

// Retention holds the retention times of posts and media files.
type Retention struct {
	// UnusedMedia is the retention time of media files that no post refers to (24 h).
	UnusedMedia metav1.Duration `json:"unusedMedia"`
	// InCluster is the retention time of finished posts in the cluster (168 h), for teams without
	// spec.retention.inCluster.
	InCluster metav1.Duration `json:"inCluster"`
	// Archived is how long the outcome of a finished post can be read (2160 h), counted from status.finishedAt, for teams
	// without spec.retention.archived.
	Archived metav1.Duration `json:"archived"`
	// LeastInCluster is the minimum of spec.retention.inCluster (1 h): shorter values are raised to it. 0s sets no
	// minimum.
	LeastInCluster metav1.Duration `json:"leastInCluster"`
	// PostsPerSecond limits the finished posts that are removed from the cluster per second (20). Each takes two writes
	// to the Kubernetes API.
	PostsPerSecond int `json:"postsPerSecond"`
}

// Webhook configures the admission webhook.
type Webhook struct {
	// BindAddress is the listen address (":9443"); "0" disables the webhook.
	Endpoint `json:",inline"`

	// Hosts are the names and addresses of the webhook for the Kubernetes API. The default is the names of its Service.
	Hosts []string `json:"hosts,omitempty"`
	// CertDir is a folder with tls.crt and tls.key; caBundle must then be set separately (cert-manager does both). If
	// it is empty, the manager generates a certificate and sets caBundle.
	CertDir string `json:"certDir,omitempty"`
}

// Credentials configures how the tokens of accounts are protected against loss.
type Credentials struct {
	// Unsaved configures where renewed tokens are stored until the Kubernetes API has stored them. Without it, they are
	// in memory only.
	Unsaved Unsaved `json:"unsaved,omitzero"`
}

// Unsaved configures where renewed tokens are stored until the Kubernetes API has stored them. On platforms that
// replace the refresh token at each renewal, such as X and TikTok, an account must be connected again if the new token
// is lost.
type Unsaved struct {
	// Directory is a folder for this process only that survives a restart of the process, such as an emptyDir of the
	// pod. Its files are sealed.
	Directory string `json:"directory,omitempty"`
	// KeyFile is the path of a file with the text that the key is derived from, at least 32 characters. The file is
	// read at each use.
	KeyFile string `json:"keyFile,omitempty"`
}

// Thumbnails configures the extraction of thumbnails from videos.
type Thumbnails struct {
	// FFmpeg is the program that extracts thumbnails, a name in PATH or a path ("ffmpeg"). If it is empty or not
	// installed, videos are published without a thumbnail.
	FFmpeg string `json:"ffmpeg"`
}

// Egress configures the connections to the platforms.
type Egress struct {
	// CABundle is a PEM file with certificate authorities to trust in addition to the system's, such as a proxy's.
	CABundle string `json:"caBundle,omitempty"`
}

// Media configures the store of media files.
type Media struct {
	// Endpoint is the address of the S3-compatible store, such as https://s3.eu-central-1.amazonaws.com.
	Endpoint string `json:"endpoint"`
	// PublicEndpoint is the address of the same store for clients that upload files; empty if it is the same.
	PublicEndpoint string `json:"publicEndpoint,omitempty"`
	// Region is the region in the signatures of requests ("us-east-1").
	Region string `json:"region,omitempty"`
	// Bucket is the bucket of this installation ("herald-media"). Files in it that belong to no Media are removed.
	Bucket string `json:"bucket,omitempty"`
	// PathStyle puts the bucket into the path instead of the host name, as self-hosted stores usually require.
	PathStyle bool `json:"pathStyle,omitempty"`
	// CredentialsFile is a YAML or JSON file with accessKey and secretKey. If it is empty, the credentials come from
	// the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), the file ~/.aws/credentials, or the identity of
	// the pod or machine, in this order.
	CredentialsFile string `json:"credentialsFile,omitempty"`
	// TakeOverFrom is the identity of the cluster that used the bucket before and is gone or no longer uses it. The
	// manager removes files that belong to no Media only in its own cluster's bucket: while the bucket is marked as
	// another cluster's, it removes none, and its log and the alert name that cluster. With this field it takes the
	// bucket over. The field has no effect afterwards.
	TakeOverFrom string `json:"takeOverFrom,omitempty"`
}
