// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the configuration files of Herald's two processes, in version v1alpha1 of config.herald.dev. A
// file is read strictly, with the defaults that DefaultManager and DefaultAPIServer return: only what is written in it
// differs from them. `herald config check FILE` reports each mistake in a file.
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The apiVersion and the kinds of the files.
const (
	APIVersion    = "config.herald.dev/v1alpha1"
	ManagerKind   = "ManagerConfiguration"
	APIServerKind = "APIServerConfiguration"
)

// ManagerConfiguration is the file of `herald manager`.
type ManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	Common          `json:",inline"`

	// ReleaseName is what the names of the installation's objects begin with: the lease, the role bindings in teams'
	// namespaces and the roles that they bind, the apiserver's account, and the webhook with its Service and Secret. The
	// default is "herald".
	ReleaseName string `json:"releaseName,omitempty"`
	// Kubernetes paces requests to the Kubernetes API.
	Kubernetes Kubernetes `json:"kubernetes,omitzero"`
	// LeaderElection holds the times of the lease.
	LeaderElection LeaderElection `json:"leaderElection,omitzero"`
	// Suspend is the brake of the whole installation (false): while it is true, posts are accepted and prepared, and nothing
	// is published. Deadlines move along by the time suspended. A running process takes it over when the file changes. A
	// Team has a brake of its own, spec.suspend.
	Suspend bool `json:"suspend,omitempty"`
	// Concurrency holds the sizes of the pools.
	Concurrency Concurrency `json:"concurrency,omitzero"`
	// Delivery holds the times of publishing.
	Delivery Delivery `json:"delivery,omitzero"`
	// Retention says how long things are kept.
	Retention Retention `json:"retention,omitzero"`
	// ShutdownTimeout is how long calls under way may take once the process is told to stop (130 s). It is longer than
	// the longest call of a platform (60 s) and delivery.recordFor together, and shorter than the pod's termination grace.
	ShutdownTimeout metav1.Duration `json:"shutdownTimeout"`
	// Webhook is the admission webhook.
	Webhook Webhook `json:"webhook,omitzero"`
	// Credentials says how the tokens of accounts are kept safe.
	Credentials Credentials `json:"credentials,omitzero"`
	// Thumbnails are the pictures that are taken out of videos.
	Thumbnails Thumbnails `json:"thumbnails,omitzero"`
	// Egress is the way to the platforms. A proxy comes from the environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
	Egress Egress `json:"egress,omitzero"`
}

// APIServerConfiguration is the file of `herald apiserver`.
type APIServerConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	Common          `json:",inline"`

	// BindAddress is where the API is served (":8080").
	BindAddress string `json:"bindAddress,omitempty"`
	// TLS serves the API by HTTPS; absent, by HTTP.
	TLS *TLS `json:"tls,omitempty"`
	// SiteURL is the address under which clients reach this server, such as https://herald.example.com. The default is
	// the address that it listens on.
	SiteURL string `json:"siteURL,omitempty"`
	// Shutdown is how the process stops.
	Shutdown Shutdown `json:"shutdown,omitzero"`
	// RequestsPerMinute is how many requests each team may make, all its keys, agents and people together (600); 0 for no
	// limit. A request that has a great deal read or judged counts as several. As many may come from an address of
	// strangers, who have no good key, token or session, to programs, to pages and to OAuth each.
	RequestsPerMinute int `json:"requestsPerMinute"`
	// MaxConnections is how many connections this server holds at once (2000); 0 for no limit. When there are as many, the one
	// that has been without a request for the longest time makes room for a new one.
	MaxConnections int `json:"maxConnections"`
	// MaxConnectionsPerAddress is how many of them one address may have (64); 0 for no limit. It does not hold for
	// TrustedProxies, which have those of many clients.
	MaxConnectionsPerAddress int `json:"maxConnectionsPerAddress"`
	// TrustedProxies are the networks of the proxies in front of this server, such as 10.0.0.0/8. Whom they name in
	// X-Forwarded-For is the client: by that address strangers are counted, and it stands in the log. The default is none:
	// then the client is who holds the connection.
	TrustedProxies []string `json:"trustedProxies,omitempty"`
	// Web is the web application.
	Web Web `json:"web,omitzero"`
	// MCP is the server for agents.
	MCP MCP `json:"mcp,omitzero"`
}

// MCP is the server for agents by the Model Context Protocol, which the apiserver serves beside the REST API, at SITEURL/mcp.
type MCP struct {
	// Enabled serves it (true).
	Enabled bool `json:"enabled"`
}

// Web is the web application, which the apiserver serves beside the REST API.
type Web struct {
	// Enabled serves it (true). Without it the apiserver reads no Secret, and no secret of a platform's app.
	Enabled bool `json:"enabled"`
	// SignInSecret is the Secret, in the namespace of the installation, that the replicas share: the keys of sessions, the
	// hashes of one-time links, and who has signed out everywhere ("herald-web").
	SignInSecret string `json:"signInSecret,omitempty"`
	// RolePrefix begins the names of the roles that are installed for people, RolePrefix-viewer, -editor and -admin
	// ("herald"). Pages name them to people who lack one.
	RolePrefix string `json:"rolePrefix,omitempty"`
	// OIDC lets people in by an OpenID Connect provider; absent, they sign in by a one-time link of `herald signin-link`.
	OIDC *OIDC `json:"oidc,omitempty"`
	// Agents says which agents may ask people to let them act for their teams.
	Agents Agents `json:"agents,omitzero"`
}

// Agents says which agents may ask people to let them act for their teams.
type Agents struct {
	// LoopbackClients takes agents whose metadata document stands on this machine, by plain HTTP too (false). It is for
	// trials: whoever is signed in can have this machine's own servers asked.
	LoopbackClients bool `json:"loopbackClients,omitempty"`
}

// OIDC is an OpenID Connect provider, and what of its claims names people.
type OIDC struct {
	// IssuerURL is the provider, as it calls itself in the claim iss, such as https://accounts.example.com.
	IssuerURL string `json:"issuerURL"`
	// ClientID is Herald at the provider. The address to send people back to is SITEURL/signin/oidc/callback.
	ClientID string `json:"clientID"`
	// ClientSecretFile holds the client's secret; empty for a public client. The file is read at each sign-in.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// UsernameClaim is the claim that names a person ("email", which counts only if email_verified is true).
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// UsernamePrefix stands before it in roles' bindings ("oidc:").
	UsernamePrefix string `json:"usernamePrefix"`
	// GroupsClaim is the claim with the person's groups ("groups"); empty for none.
	GroupsClaim string `json:"groupsClaim"`
	// GroupsPrefix stands before each group in roles' bindings ("oidc:").
	GroupsPrefix string `json:"groupsPrefix"`
	// Scopes are asked for beside openid (profile, email).
	Scopes []string `json:"scopes,omitempty"`
	// CAFile is a PEM file with authorities to trust beside those of the system, for the provider alone.
	CAFile string `json:"caFile,omitempty"`
}

// Common is what both processes have.
type Common struct {
	// Namespaces are those of the teams that this installation serves; empty for all. Posts, connections, media files and
	// keys elsewhere are left alone, and so are teams that want another namespace, for instance because a second
	// installation in the cluster serves them. The flag --namespace takes its place.
	Namespaces Namespaces `json:"namespaces,omitempty"`
	// Health serves /livez and /readyz.
	Health Endpoint `json:"health,omitzero"`
	// Metrics serves /metrics.
	Metrics Metrics `json:"metrics,omitzero"`
	// Profiling serves /debug/pprof, for measuring only: profiles show what is in memory. The default is none.
	Profiling Endpoint `json:"profiling,omitzero"`
	// Log says what is logged.
	Log Log `json:"log,omitzero"`
	// Tracing delivers traces to an OpenTelemetry collector. The default is none.
	Tracing Tracing `json:"tracing,omitzero"`
	// Media is the store of media files; absent in an installation for posts of text alone.
	Media *Media `json:"media,omitempty"`
	// Platforms are those that can be published to.
	Platforms Platforms `json:"platforms,omitzero"`
}

// Endpoint is where something is served.
type Endpoint struct {
	// BindAddress is HOST:PORT or :PORT; "0" for nowhere.
	BindAddress string `json:"bindAddress,omitempty"`
}

// Log says what is logged.
type Log struct {
	// Level is the least level that is logged: debug, info, warn or error. A running process takes it over when the file
	// changes. Empty leaves it to the flag --log-level.
	Level string `json:"level,omitempty"`
}

// LogLevels are the values of Log.Level.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// Tracing says where traces go, and which ones. A field that is left out is taken from OpenTelemetry's own variables of
// the environment, which also set what has no field here, such as headers.
type Tracing struct {
	// Endpoint is the address of a collector that takes OTLP over HTTP, such as http://collector:4318; /v1/traces is
	// added to its path. Empty takes OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT; without these
	// there are no traces.
	Endpoint string `json:"endpoint,omitempty"`
	// SamplingRatio is the share of the traces that begin here and are recorded, from 0 to 1 (1). Requests with a
	// traceparent bring the decision along. Left out, it is that of OTEL_TRACES_SAMPLER, if there is one.
	SamplingRatio *float64 `json:"samplingRatio,omitempty"`
}

// Metrics says where and how metrics are served.
type Metrics struct {
	Endpoint `json:",inline"`

	// Plain serves them by HTTP to everyone. By default HTTPS is spoken, and only clients whose token Kubernetes
	// recognises, and whom a role allows to get /metrics, are answered.
	Plain bool `json:"plain,omitempty"`
	// CertDir is a folder with tls.crt and tls.key; empty makes a certificate at each start. It is read again when it
	// changes.
	CertDir string `json:"certDir,omitempty"`
}

// TLS names a certificate. Both files are read again when they change.
type TLS struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

// Shutdown is how the apiserver stops.
type Shutdown struct {
	// Delay is how long it goes on serving, not ready any more, so that load balancers learn of it (3 s).
	Delay metav1.Duration `json:"delay"`
	// Timeout is how long requests under way may take then (20 s).
	Timeout metav1.Duration `json:"timeout"`
}

// Kubernetes paces requests to the Kubernetes API.
type Kubernetes struct {
	// QPS is the number of requests a second; -1, the default, leaves pacing to the API's priority and fairness.
	QPS float64 `json:"qps"`
	// Burst is how many requests may come at once when QPS is positive.
	Burst int `json:"burst"`
}

// LeaderElection holds the times of the lease. The claim of a post, and not the lease, keeps two managers from publishing
// twice; so these only balance a quick hand-over after a crash against restarts when the Kubernetes API is away.
type LeaderElection struct {
	// LeaseDuration is how long after its last renewal another process waits before it takes the lease (15 s).
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	// RenewDeadline is for how long renewing is tried before the process ends (10 s).
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	// RetryPeriod is the pause between tries (2 s).
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

// Concurrency holds the sizes of the pools: how many of each are worked on at once.
type Concurrency struct {
	// Posts is the number of posts (256).
	Posts int `json:"posts"`
	// Uploads is the number of files on their way to platforms (32).
	Uploads int `json:"uploads"`
	// Media is the number of media files that are examined (16).
	Media int `json:"media"`
	// Fetches is the number of media files that are fetched from their source (8); fewer than Media.
	Fetches int `json:"fetches"`
	// Connections is the number of accounts that are examined (32).
	Connections int `json:"connections"`
	// Teams is the number of teams (4).
	Teams int `json:"teams"`
	// APIKeys is the number of keys (1).
	APIKeys int `json:"apiKeys"`
}

// Delivery holds the times of publishing.
type Delivery struct {
	// StartingDeadline is how late a post may still go out, and how long temporary refusals are tried again (1 h).
	StartingDeadline metav1.Duration `json:"startingDeadline"`

	// LongestDelay is how late a post may still go out whose platform announced pauses (6 h): the starting deadline counts from the end of a pause, within this.
	LongestDelay metav1.Duration `json:"longestDelay"`
	// PrepareAhead is how long before its time the files of a scheduled post are uploaded, as far as they stay hidden
	// (30 min); big files begin earlier.
	PrepareAhead metav1.Duration `json:"prepareAhead"`
	// SendWindow is how long after its claim a call may be begun (5 s).
	SendWindow metav1.Duration `json:"sendWindow"`
	// ClockMargin is how far the clocks of two processes may differ (2 s).
	ClockMargin metav1.Duration `json:"clockMargin"`
	// RecordFor is how long the result of a call is tried to be written by the pass that made it (1 min).
	RecordFor metav1.Duration `json:"recordFor"`
}

// Retention says how long things are kept.
type Retention struct {
	// UnusedMedia is how long media files are kept that no post refers to (24 h).
	UnusedMedia metav1.Duration `json:"unusedMedia"`
	// InCluster is how long a finished post stays in the cluster, of a team that says nothing in spec.retention (168 h).
	InCluster metav1.Duration `json:"inCluster"`
	// Archived is how long what became of a post can be read, from when it was finished, of a team that says nothing (2160 h).
	Archived metav1.Duration `json:"archived"`
	// LeastInCluster is the shortest time in the cluster that a team can have (1 h): one that asks for less has this. 0s leaves
	// it to the teams.
	LeastInCluster metav1.Duration `json:"leastInCluster"`
	// PostsPerSecond is how many finished posts leave the cluster in a second at most (20). Each is two writes to the
	// Kubernetes API.
	PostsPerSecond int `json:"postsPerSecond"`
}

// Webhook is the admission webhook.
type Webhook struct {
	// BindAddress is where it is served (":9443"); "0" for nowhere.
	Endpoint `json:",inline"`

	// Hosts are the names and addresses under which the Kubernetes API calls it. The default is those of its Service.
	Hosts []string `json:"hosts,omitempty"`
	// CertDir is a folder with tls.crt and tls.key, and caBundle is yours to set (cert-manager does both). Empty makes a
	// certificate and sets caBundle.
	CertDir string `json:"certDir,omitempty"`
}

// Credentials says how the tokens of accounts are kept safe.
type Credentials struct {
	// Unsaved is where renewed tokens wait that the Kubernetes API has not taken yet; absent, in memory alone.
	Unsaved Unsaved `json:"unsaved,omitzero"`
}

// Unsaved is where renewed tokens wait that the Kubernetes API has not taken yet. Where a refresh token is replaced at each
// renewal, as on X and TikTok, an account whose new one is lost has to be connected again.
type Unsaved struct {
	// Directory is a folder of this process alone that outlives it, such as an emptyDir of the pod. What is written there is
	// sealed.
	Directory string `json:"directory,omitempty"`
	// KeyFile holds the text from which the key is derived, of 32 characters or more. It is read at each use.
	KeyFile string `json:"keyFile,omitempty"`
}

// Thumbnails are the pictures that are taken out of videos.
type Thumbnails struct {
	// FFmpeg is the program that does it, a name in PATH or a path ("ffmpeg"). Without it, or if empty, videos go out
	// without.
	FFmpeg string `json:"ffmpeg"`
}

// Egress is the way to the platforms.
type Egress struct {
	// CABundle is a PEM file with authorities to trust beside those of the system, such as that of a proxy.
	CABundle string `json:"caBundle,omitempty"`
}

// Media is the store of media files.
type Media struct {
	// Endpoint is the address of the S3-compatible store, such as https://s3.eu-central-1.amazonaws.com.
	Endpoint string `json:"endpoint"`
	// PublicEndpoint is the same store's address as clients reach it to upload files; empty if it is the same.
	PublicEndpoint string `json:"publicEndpoint,omitempty"`
	// Region is what requests are signed for ("us-east-1").
	Region string `json:"region,omitempty"`
	// Bucket is the bucket of this installation ("herald-media"). Files in it that belong to no Media are removed.
	Bucket string `json:"bucket,omitempty"`
	// PathStyle puts the bucket into the path instead of the host name, as stores on hosts of their own usually want it.
	PathStyle bool `json:"pathStyle,omitempty"`
	// CredentialsFile is a YAML or JSON file with accessKey and secretKey. Empty asks the environment (AWS_ACCESS_KEY_ID
	// and AWS_SECRET_ACCESS_KEY), the file ~/.aws/credentials, and the identity of the pod or machine, in this order.
	CredentialsFile string `json:"credentialsFile,omitempty"`
	// TakeOverFrom is the identity of the cluster whose bucket this was, and which is gone or uses it no longer: the
	// manager then removes what belongs to no Media here too. It refuses to while the bucket is marked as another
	// cluster's, and its log and the alert say whose. It does no harm afterwards.
	TakeOverFrom string `json:"takeOverFrom,omitempty"`
}

// Platforms has one section per platform, `{}` for one that needs nothing said. A platform that is left out is not
// available.
type Platforms struct {
	Facebook  *Platform `json:"facebook,omitempty"`
	Instagram *Platform `json:"instagram,omitempty"`
	Threads   *Platform `json:"threads,omitempty"`
	TikTok    *Platform `json:"tiktok,omitempty"`
	X         *Platform `json:"x,omitempty"`
	YouTube   *Platform `json:"youtube,omitempty"`
}

// Platform says how to reach one platform, and as which app. All sections have the same fields, and all but the app have
// a default; a platform ignores the fields that it does not use.
type Platform struct {
	// APIURL is the address of the platform's API, and WebURL that of its web site (Facebook, TikTok, X, YouTube). They
	// default to the platform's own addresses; others are for proxies and simulators.
	APIURL string `json:"apiURL,omitempty"`
	WebURL string `json:"webURL,omitempty"`
	// AuthorizeURL is the address of the site with the page on which people let Herald into an account, without that
	// page's own path. It defaults to the platform's own.
	AuthorizeURL string `json:"authorizeURL,omitempty"`
	// FacebookURL is the address of the API for accounts of Instagram that were connected through their Facebook Page,
	// and UploadURL that for their videos.
	FacebookURL string `json:"facebookURL,omitempty"`
	UploadURL   string `json:"uploadURL,omitempty"`
	// Login says how accounts of Instagram are connected, and were if their Secret names no scopes: "instagram" by
	// default, or "facebook".
	Login string `json:"login,omitempty"`
	// LoginConfigID names the configuration of the app's Facebook Login for Business, with which people are asked for the
	// permissions (Facebook, and Instagram with the login "facebook"); empty for an app with plain Facebook Login.
	LoginConfigID string `json:"loginConfigID,omitempty"`
	// TwoSteps lets posts to Facebook Pages be created unpublished first, and published by their ids: then a post tells of
	// itself whether it is online. It is false by default, since no account of a real Page has confirmed it.
	TwoSteps bool `json:"twoSteps,omitempty"`
	// Version is the version of a graph: v25.0 by default for Facebook and Instagram, v1.0 for Threads.
	Version string `json:"version,omitempty"`
	// ClientID identifies the app; TikTok calls it the client key. It is needed to connect accounts, and on TikTok, X and
	// YouTube to renew tokens.
	ClientID string `json:"clientID,omitempty"`
	// ClientSecretFile holds the app's secret; empty for a public client of X. The file is read again when it changes.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// ListingLag is how long a published post may be missing when the platform is asked for it.
	ListingLag metav1.Duration `json:"listingLag,omitzero"`
}
