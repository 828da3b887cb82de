// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Platform is a social platform. The values are the same in the resources and in the REST
// API. An installation publishes only to the platforms in its configuration.
// +kubebuilder:validation:Enum=youtube;tiktok;instagram;threads;x;facebook;bluesky;mastodon
type Platform string

// The known platforms. A manager can deliver to the platforms with a registered publisher.
const (
	PlatformYouTube   Platform = "youtube"
	PlatformTikTok    Platform = "tiktok"
	PlatformInstagram Platform = "instagram"
	PlatformThreads   Platform = "threads"
	PlatformX         Platform = "x"
	PlatformFacebook  Platform = "facebook"
	PlatformBluesky   Platform = "bluesky"
	PlatformMastodon  Platform = "mastodon"
)

// Platforms returns the known platforms, in the order of menus and lists. Platforms missing from version 1 of the REST
// API come last.
func Platforms() []Platform {
	return []Platform{
		PlatformX, PlatformThreads, PlatformInstagram, PlatformFacebook, PlatformTikTok, PlatformYouTube,
		PlatformBluesky, PlatformMastodon,
	}
}

// InVersion1 reports whether version 1 of the REST API has the platform. Its contract lists six; later ones exist only in
// the resources, the web application and version 2.
func (p Platform) InVersion1() bool {
	switch p {
	case PlatformYouTube, PlatformTikTok, PlatformInstagram, PlatformThreads, PlatformX, PlatformFacebook:
		return true
	case PlatformBluesky, PlatformMastodon:
		return false
	default:
		return false
	}
}

// HasLanguage reports whether posts on the platform have a language.
func (p Platform) HasLanguage() bool {
	switch p {
	case PlatformBluesky, PlatformMastodon:
		return true
	case PlatformYouTube, PlatformTikTok, PlatformInstagram, PlatformThreads, PlatformX, PlatformFacebook:
		return false
	default:
		return false
	}
}

// Title returns the platform's display name, in its own spelling. It returns the value itself for an unknown platform.
func (p Platform) Title() string {
	switch p {
	case PlatformYouTube:
		return "YouTube"
	case PlatformTikTok:
		return "TikTok"
	case PlatformInstagram:
		return "Instagram"
	case PlatformThreads:
		return "Threads"
	case PlatformX:
		return "X"
	case PlatformFacebook:
		return "Facebook"
	case PlatformBluesky:
		return "Bluesky"
	case PlatformMastodon:
		return "Mastodon"
	default:
		return string(p)
	}
}

// LocalReference names an object of a known kind in the same namespace.
type LocalReference struct {
	// name of the object in the referring object's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// Metadata keys that Herald reads or writes on its resources.
const (
	// DeliveryFinalizer keeps a Post while a platform call for it may be in progress.
	DeliveryFinalizer = "social.herald.dev/delivery"

	// MediaFileFinalizer keeps a Media until its file has been removed from
	// the store.
	MediaFileFinalizer = "social.herald.dev/media-file"

	// RecordsFinalizer keeps a Team until its archived records have been removed from the store. An installation without a store does not
	// add it.
	RecordsFinalizer = "social.herald.dev/records"

	// UploadUntilAnnotation is the expiry, in RFC 3339, of an upload URL that the apiserver issued after a Media's creation. The
	// manager waits for the file until then.
	UploadUntilAnnotation = "social.herald.dev/upload-until"

	// FileAnnotation is a Media's file key in the bucket, written by the manager: namespace/UID of the Media that originally stored the
	// file. A Media restored from a backup has a different UID and finds its file by this key. Keys outside the Media's namespace are
	// ignored.
	FileAnnotation = "social.herald.dev/file"

	// BornAnnotation is when the apiserver created a Post. A clearly newer creationTimestamp identifies a copy restored from a backup
	// without its delivery history.
	BornAnnotation = "social.herald.dev/born-at"
	// RequestAnnotation identifies the request that created a Post under an Idempotency-Key, which allows detecting a different request
	// under the same key: "<version>:<hash>". A value without a version has version 1.
	RequestAnnotation = "social.herald.dev/request"

	// TraceparentAnnotation is the trace of the request that created a Post, in traceparent header format (W3C Trace Context). The
	// apiserver writes it if tracing is enabled. Invalid values are ignored.
	TraceparentAnnotation = "social.herald.dev/traceparent"

	// SettleAnnotation is a user's resolution of a target with an unknown outcome: "<index>=posted:<id>", "<index>=posted:<https URL>",
	// "<index>=posted" or "<index>=not-sent".
	SettleAnnotation = "social.herald.dev/settle"
	// DismissedAnnotation is when a user dismissed a failed Post, in RFC 3339: the web application no longer counts it among the posts that
	// need attention. Delivery does not depend on it.
	DismissedAnnotation = "social.herald.dev/dismissed"
	// ListCandidatesAnnotation requests a new candidate list for undecided targets; see TargetStatus.candidates. Its value is arbitrary.
	// The manager removes the annotation after the listing.
	ListCandidatesAnnotation = "social.herald.dev/list-candidates"

	// ArmedAnnotation identifies the applied Post whose earlier records were looked up: "<name>/<uid>". The manager writes it together with
	// DeliveryFinalizer. A different UID under the same name identifies a copy from a backup.
	ArmedAnnotation = "social.herald.dev/armed"
	// PublishAgainAnnotation publishes a Post although an earlier post of its name was published. Its value is the UID of the earlier
	// post's record, which the Adopted condition shows.
	PublishAgainAnnotation = "social.herald.dev/publish-again"

	// ProbeAnnotation requests an immediate probe of a Connection. Its value is an opaque
	// token that the manager echoes in status.lastHandledProbe.
	ProbeAnnotation = "social.herald.dev/probe-requested"

	// MadeSecretPrefix is the prefix of Connection annotations that name the Secrets created by the apiserver:
	// "credentials.social.herald.dev/<Secret>", with the time in RFC 3339. The annotation is written before the Secret. It allows the
	// manager, which has no permission to list Secrets, to find and remove unused ones.
	MadeSecretPrefix = "credentials.social.herald.dev/"

	// DisconnectedAnnotation is when a user removed a Connection, in RFC 3339. The deletion follows within moments, unless it failed.
	DisconnectedAnnotation = "social.herald.dev/disconnected-at"

	// TeamLabel is the Team's name, on its namespace.
	TeamLabel = "social.herald.dev/team"

	// ShardLabel is the shard of a Post's team, as in the Team's status.shard. Caches select posts by it. It has no effect if the
	// installation has one shard.
	ShardLabel = "social.herald.dev/shard"

	// OriginLabel is the origin of a Post, Media, APIKey, Connection or credentials Secret. Applied objects have none.
	OriginLabel = "social.herald.dev/origin"
	// OriginAPI is the OriginLabel of objects created through the REST API, and of every Media created by the apiserver.
	OriginAPI = "api"
	// OriginWeb is the OriginLabel of objects created in the web application.
	OriginWeb = "web"

	// AuthorAnnotation is the user who created the object in the web application or through an agent, as a Kubernetes RBAC username:
	// "herald:link", or the OpenID Connect name with its prefix.
	AuthorAnnotation = "social.herald.dev/author"
	// LastAuthorAnnotation is the user who last changed the object in the web application or through an agent, in the same form; or
	// "herald:key:" and the name of the API key that last changed a Post's content.
	LastAuthorAnnotation = "social.herald.dev/last-author"

	// AgentAnnotation is the self-reported, unverified name of the agent or other MCP client that created the Post.
	AgentAnnotation = "social.herald.dev/agent"
	// WantedAtAnnotation marks an agent's draft that awaits a user's approval for publishing. Its value is the requested time, in the form
	// of Time, or WantedNow.
	WantedAtAnnotation = "social.herald.dev/wanted-at"
	// WantedNow is the WantedAtAnnotation of a post to be published immediately.
	WantedNow = "now"

	// ShownTokensAnnotation lists the recognizable prefixes of an APIKey's tokens created in the web application: "<name>=<prefix>",
	// separated by commas. A prefix grants no access.
	ShownTokensAnnotation = "social.herald.dev/shown-tokens"
)

// TargetMark is a target state that its phase does not show. Lists hold it for each target of each post, so it is one byte.
type TargetMark uint8

// The marks.
const (
	// MarkNone: the phase describes the state completely.
	MarkNone TargetMark = iota
	// MarkWaiting: the target is due and waits for its account to be connected, enabled, or unrestricted by the platform.
	MarkWaiting
	// MarkUndecided: a user has to determine whether the target was published.
	MarkUndecided
)
