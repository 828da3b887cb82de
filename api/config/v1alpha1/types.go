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

	// ReleaseName is the name prefix of the installation's objects: the lease, the roles and role bindings in team namespaces, the
	// apiserver's account, and the webhook with its Service and Secret. The default is "herald".
	ReleaseName string `json:"releaseName,omitempty"`
	// Replicas is the number of managers of the installation. With delivery.shareUploads, the forecast of late uploads counts the slots of
	// all of them. If it is 0, the forecast counts only the leader's slots. With several delivery.shards, a manager's limits on posts and
	// uploads are divided by the number of shards that each replica holds on average, or by the number of shards if it is 0.
	Replicas int `json:"replicas,omitempty"`
	// Kubernetes limits the rate of requests to the Kubernetes API.
	Kubernetes Kubernetes `json:"kubernetes,omitzero"`
	// LeaderElection holds the durations of the leader lease.
	LeaderElection LeaderElection `json:"leaderElection,omitzero"`
	// Suspend stops publishing in the whole installation (false). While it is true, posts are accepted and prepared,
	// and nothing is published. Deadlines are extended by the time spent suspended. A change to the file takes effect without
	// a restart. To suspend one team, set spec.suspend of the Team.
	Suspend bool `json:"suspend,omitempty"`
	// Concurrency holds the worker pool sizes.
	Concurrency Concurrency `json:"concurrency,omitzero"`
	// Delivery holds the publishing deadlines and margins.
	Delivery Delivery `json:"delivery,omitzero"`
	// Retention holds the retention times of posts and media files.
	Retention Retention `json:"retention,omitzero"`
	// ShutdownTimeout is the time for running calls to finish after a termination signal (130 s). It exceeds the sum of the longest
	// platform call (60 s) and delivery.recordFor, and is shorter than the pod's termination grace period.
	ShutdownTimeout metav1.Duration `json:"shutdownTimeout"`
	// Webhook configures the admission webhook.
	Webhook Webhook `json:"webhook,omitzero"`
	// Credentials configures how account tokens are protected against loss.
	Credentials Credentials `json:"credentials,omitzero"`
	// Thumbnails configures the extraction of thumbnails from videos.
	Thumbnails Thumbnails `json:"thumbnails,omitzero"`
	// SiteURL is the public URL of the web application, such as https://herald.example.com, for links in notifications. Without it,
	// notifications contain no links.
	SiteURL string `json:"siteURL,omitempty"`
	// Notifications configures how Notifiers send.
	Notifications Notifications `json:"notifications,omitzero"`
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
	// SiteURL is the public URL of this server, such as https://herald.example.com. The default is the listen address.
	SiteURL string `json:"siteURL,omitempty"`
	// Shutdown holds the graceful shutdown durations.
	Shutdown Shutdown `json:"shutdown,omitzero"`
	// RequestsPerMinute limits the requests of each team (600), shared by its keys, agents and users; 0 disables the limit. An expensive
	// request counts as several. Unauthenticated clients, which have no valid key, token or session, have the same limit per client
	// address, separately for API requests, pages and OAuth.
	RequestsPerMinute int `json:"requestsPerMinute"`
	// MaxConnections limits the server's open connections (2000); 0 disables the limit. At the limit, a new connection replaces the longest
	// idle one.
	MaxConnections int `json:"maxConnections"`
	// MaxConnectionsPerAddress limits the open connections per client address (64); 0 disables the limit. TrustedProxies are exempt,
	// because a proxy multiplexes many clients.
	MaxConnectionsPerAddress int `json:"maxConnectionsPerAddress"`
	// TrustedProxies lists the networks of the proxies in front of this server, such as 10.0.0.0/8. Only these proxies may set the client
	// address in X-Forwarded-For. The server uses that address in its log and to limit unauthenticated clients. By default, the list is
	// empty and the client address is the connection's peer address.
	TrustedProxies []string `json:"trustedProxies,omitempty"`
	// Web configures the web application.
	Web Web `json:"web,omitzero"`
	// MCP configures the MCP server for agents.
	MCP MCP `json:"mcp,omitzero"`
}

// MCP configures the server for agents (Model Context Protocol), which the apiserver serves at SITEURL/mcp.
type MCP struct {
	// Enabled enables the MCP server (true).
	Enabled bool `json:"enabled"`
}

// Web configures the web application, which the apiserver serves.
type Web struct {
	// Enabled enables the web application (true). While it is disabled, the apiserver reads no Secrets and no platform app secrets.
	Enabled bool `json:"enabled"`
	// SignInSecret is the Secret shared by all replicas, in the installation's namespace ("herald-web"). It holds the session keys, the
	// hashes of one-time links, the users who have signed out everywhere, and Herald's apps on Mastodon servers.
	SignInSecret string `json:"signInSecret,omitempty"`
	// RolePrefix is the name prefix of the installed user roles: RolePrefix-viewer, -editor and -admin ("herald"). Pages show these names
	// to users who lack a role.
	RolePrefix string `json:"rolePrefix,omitempty"`
	// EmailNotifications is true if the manager has a mail server for notifications (false). While it is false, the form for notifications
	// explains that emails are not sent.
	EmailNotifications bool `json:"emailNotifications,omitempty"`
	// OIDC configures sign-in through an OpenID Connect provider. Without it, users sign in with a one-time link from `herald signin-link`.
	OIDC *OIDC `json:"oidc,omitempty"`
	// Agents configures which agents may request a user's consent to act for a team.
	Agents Agents `json:"agents,omitzero"`
}

// Agents configures which agents may request a user's consent to act for a team.
type Agents struct {
	// LoopbackClients accepts agents whose metadata document is on this machine, also over plain HTTP (false). Use it for trials only: it
	// allows any signed-in user to make the server send requests to other servers on this machine.
	LoopbackClients bool `json:"loopbackClients,omitempty"`
}

// OIDC configures an OpenID Connect provider and the claims that identify users.
type OIDC struct {
	// IssuerURL is the provider's issuer, exactly as in the iss claim, such as https://accounts.example.com.
	IssuerURL string `json:"issuerURL"`
	// ClientID is Herald's client ID at the provider. The redirect URI is SITEURL/signin/oidc/callback.
	ClientID string `json:"clientID"`
	// ClientSecretFile is the path of a file with the client secret; empty for a public client. The file is read at
	// each sign-in.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// UsernameClaim is the claim with the username ("email"). The email claim is accepted only if email_verified is true.
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// UsernamePrefix is prepended to usernames in role bindings ("oidc:").
	UsernamePrefix string `json:"usernamePrefix"`
	// GroupsClaim is the claim with the user's groups ("groups"); empty for none.
	GroupsClaim string `json:"groupsClaim"`
	// GroupsPrefix is prepended to group names in role bindings ("oidc:").
	GroupsPrefix string `json:"groupsPrefix"`
	// Scopes lists the scopes requested in addition to openid (profile, email).
	Scopes []string `json:"scopes,omitempty"`
	// CAFile is a PEM file with additional certificate authorities, trusted for the provider only.
	CAFile string `json:"caFile,omitempty"`
}

// Common holds the fields that both processes have.
type Common struct {
	// Namespaces lists the team namespaces that this installation serves; empty for all. Herald ignores resources in other namespaces, and
	// Teams whose namespace is not listed. A second installation in the cluster may serve them. The --namespace flag overrides this field.
	Namespaces Namespaces `json:"namespaces,omitempty"`
	// Health is the endpoint of /livez and /readyz.
	Health Endpoint `json:"health,omitzero"`
	// Metrics is the endpoint of /metrics.
	Metrics Metrics `json:"metrics,omitzero"`
	// Profiling is the endpoint of /debug/pprof. Enable it for measurements only, because profiles expose memory contents. It is disabled
	// by default.
	Profiling Endpoint `json:"profiling,omitzero"`
	// Log configures logging.
	Log Log `json:"log,omitzero"`
	// Tracing configures the export of traces to an OpenTelemetry collector. It is disabled by default.
	Tracing Tracing `json:"tracing,omitzero"`
	// Media configures the media store. Omit it in an installation for text posts only.
	Media *Media `json:"media,omitempty"`
	// Platforms configures the supported platforms.
	Platforms Platforms `json:"platforms,omitzero"`
}

// Endpoint is a listen address.
type Endpoint struct {
	// BindAddress is HOST:PORT or :PORT; "0" disables the endpoint.
	BindAddress string `json:"bindAddress,omitempty"`
}

// Log configures logging.
type Log struct {
	// Level is the minimum level of logged messages: debug, info, warn or error. A change to the file takes effect
	// without a restart. If it is empty, the flag --log-level applies.
	Level string `json:"level,omitempty"`
}

// LogLevels returns the valid values of Log.Level.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// Tracing configures the export of traces. OpenTelemetry's environment variables supply omitted fields and settings that have no field
// here, such as headers.
type Tracing struct {
	// Endpoint is the URL of a collector that accepts OTLP over HTTP, such as http://collector:4318; /v1/traces is
	// appended to its path. If it is empty, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT applies;
	// without these, no traces are exported.
	Endpoint string `json:"endpoint,omitempty"`
	// SamplingRatio is the fraction of root traces that are sampled, from 0 to 1 (1). A request with a traceparent header carries its own
	// sampling decision. If the field is omitted, OTEL_TRACES_SAMPLER applies if it is set.
	SamplingRatio *float64 `json:"samplingRatio,omitempty"`
}

// Metrics configures the metrics endpoint.
type Metrics struct {
	Endpoint `json:",inline"`

	// Plain serves metrics over HTTP without authentication. By default they are served over HTTPS, only to clients
	// with a valid Kubernetes token and a role that allows get on /metrics.
	Plain bool `json:"plain,omitempty"`
	// CertDir is a directory with tls.crt and tls.key, which are reloaded on change. If it is empty, a certificate is generated at each
	// startup.
	CertDir string `json:"certDir,omitempty"`
}

// TLS holds the paths of a certificate and its key. Both files are reloaded on change.
type TLS struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

// Shutdown holds the apiserver's graceful shutdown durations.
type Shutdown struct {
	// Delay is the time between becoming unready and rejecting new requests (3 s). It allows load balancers to remove the server.
	Delay metav1.Duration `json:"delay"`
	// Timeout is the time after Delay for running requests to finish (20 s).
	Timeout metav1.Duration `json:"timeout"`
}

// Kubernetes limits the rate of requests to the Kubernetes API.
type Kubernetes struct {
	// QPS is the maximum request rate, per second. The default, -1, disables the client-side limit and leaves rate limiting to API Priority
	// and Fairness.
	QPS float64 `json:"qps"`
	// Burst is the maximum request burst if QPS is positive.
	Burst int `json:"burst"`
}

// LeaderElection holds the leader lease durations. They balance a quick failover after a crash against restarts while the Kubernetes API is
// unavailable. Claims, not the lease, prevent two managers from publishing a post twice.
type LeaderElection struct {
	// LeaseDuration is how long other processes wait after the last renewal before they acquire the lease (15 s).
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	// RenewDeadline is how long the leader retries a renewal before its process exits (10 s).
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	// RetryPeriod is the interval between retries (2 s).
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

// Concurrency holds the worker pool sizes.
type Concurrency struct {
	// Posts limits concurrent Post reconciliations (256).
	Posts int `json:"posts"`
	// Uploads limits concurrent file uploads to platforms (32).
	Uploads int `json:"uploads"`
	// Media limits concurrent Media reconciliations (16).
	Media int `json:"media"`
	// Fetches limits concurrent media downloads from their sources (8). It must not exceed Media.
	Fetches int `json:"fetches"`
	// Connections limits concurrent Connection reconciliations (32).
	Connections int `json:"connections"`
	// Teams limits concurrent Team reconciliations (4).
	Teams int `json:"teams"`
	// APIKeys limits concurrent APIKey reconciliations (1).
	APIKeys int `json:"apiKeys"`
}

// Delivery holds the publishing deadlines and margins.
type Delivery struct {
	// StartingDeadline is the maximum delay of a post, and limits retries after temporary rejections (1 h).
	StartingDeadline metav1.Duration `json:"startingDeadline"`

	// LongestDelay is the maximum delay of a post whose platform requested a wait (6 h). Within it, the starting deadline counts from the
	// end of the wait.
	LongestDelay metav1.Duration `json:"longestDelay"`
	// ArmCrowds claims posts 15 to 50 s before they are due if at least 50 posts are due at the same time (false). It is experimental:
	// docs/adr/0026 lists its limitations.
	ArmCrowds bool `json:"armCrowds"`
	// ShareUploads lets every manager upload post files, not only the leader (false). Each upload then takes at least one more write:
	// docs/adr/0033.
	ShareUploads bool `json:"shareUploads"`
	// Shards is the number of shards that divide the teams among the managers, 1 to 16 (1). With 1, the leader delivers all posts.
	Shards int `json:"shards"`
	// PrepareAhead is how long before its scheduled time a post's files are uploaded, if they stay hidden until the post is published (30
	// min). Large files are uploaded earlier.
	PrepareAhead metav1.Duration `json:"prepareAhead"`
	// SendWindow is the maximum time between a claim and the start of its call (5 s).
	SendWindow metav1.Duration `json:"sendWindow"`
	// ClockMargin is the maximum clock difference between two processes (2 s).
	ClockMargin metav1.Duration `json:"clockMargin"`
	// RecordFor is how long a reconciliation retries recording its call's result (1 min).
	RecordFor metav1.Duration `json:"recordFor"`
}

// Retention holds the retention times of posts and media files.
type Retention struct {
	// UnusedMedia is the retention time of unreferenced media files (24 h).
	UnusedMedia metav1.Duration `json:"unusedMedia"`
	// InCluster is the retention time of finished posts in the cluster (168 h), for teams without
	// spec.retention.inCluster.
	InCluster metav1.Duration `json:"inCluster"`
	// Archived is how long a finished post's outcome remains readable (2160 h), counted from status.finishedAt, for teams without
	// spec.retention.archived.
	Archived metav1.Duration `json:"archived"`
	// LeastInCluster is the minimum of spec.retention.inCluster (1 h). Shorter values are raised to it. 0s sets no minimum.
	LeastInCluster metav1.Duration `json:"leastInCluster"`
	// PostsPerSecond limits the removal rate of finished posts from the cluster (20). Each removal takes two writes to the Kubernetes API.
	PostsPerSecond int `json:"postsPerSecond"`
}

// Webhook configures the admission webhook.
type Webhook struct {
	// BindAddress is the listen address (":9443"); "0" disables the webhook.
	Endpoint `json:",inline"`

	// Hosts lists the DNS names and addresses that the Kubernetes API uses to reach the webhook. The default is the DNS names of its
	// Service.
	Hosts []string `json:"hosts,omitempty"`
	// CertDir is a directory with tls.crt and tls.key; caBundle must then be set separately (cert-manager does both). If it is empty, the
	// manager generates a certificate and sets caBundle.
	CertDir string `json:"certDir,omitempty"`
}

// Credentials configures how account tokens are protected against loss.
type Credentials struct {
	// Unsaved configures temporary storage for renewed tokens until the Kubernetes API has stored them. Without it, they are in memory
	// only.
	Unsaved Unsaved `json:"unsaved,omitzero"`
}

// Unsaved configures temporary storage for renewed tokens until the Kubernetes API has stored them. Platforms such as X and TikTok replace
// the refresh token on every renewal, so a lost token requires connecting the account again.
type Unsaved struct {
	// Directory is a directory for this process only that survives process restarts, such as an emptyDir volume. Its files are encrypted.
	Directory string `json:"directory,omitempty"`
	// KeyFile is the path of a file with the key derivation input, at least 32 characters. The file is read on every use.
	KeyFile string `json:"keyFile,omitempty"`
}

// Thumbnails configures the extraction of thumbnails from videos.
type Thumbnails struct {
	// FFmpeg is the thumbnail extraction program, as a path or a name in PATH ("ffmpeg"). If it is empty or not installed, videos are
	// published without a thumbnail.
	FFmpeg string `json:"ffmpeg"`
}

// Egress configures the connections to the platforms.
type Egress struct {
	// CABundle is a PEM file with additional trusted certificate authorities, such as a proxy's.
	CABundle string `json:"caBundle,omitempty"`
}

// Media configures the store of media files.
type Media struct {
	// Endpoint is the URL of the S3-compatible store, such as https://s3.eu-central-1.amazonaws.com.
	Endpoint string `json:"endpoint"`
	// PublicEndpoint is the URL of the same store for uploading clients; defaults to Endpoint.
	PublicEndpoint string `json:"publicEndpoint,omitempty"`
	// Region is the region in request signatures ("us-east-1").
	Region string `json:"region,omitempty"`
	// Bucket is this installation's bucket ("herald-media"). Files in it that belong to no Media are removed.
	Bucket string `json:"bucket,omitempty"`
	// PathStyle puts the bucket name in the path instead of the host name, as most self-hosted stores require.
	PathStyle bool `json:"pathStyle,omitempty"`
	// CredentialsFile is a YAML or JSON file with accessKey and secretKey. If it is empty, the credentials come from
	// the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), the file ~/.aws/credentials, or the identity of
	// the pod or machine, in this order.
	CredentialsFile string `json:"credentialsFile,omitempty"`
	// TakeOverFrom is the identity of the cluster that previously used the bucket and no longer does. The manager removes files without a
	// Media only from its own cluster's bucket. While another cluster owns the bucket, the manager removes no files, and its log and alert
	// name that cluster. This field transfers the ownership and has no effect afterwards.
	TakeOverFrom string `json:"takeOverFrom,omitempty"`
}
