// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Platform is a social platform. The values are the same in the resources and in the REST
// API.
// +kubebuilder:validation:Enum=youtube;tiktok;instagram;threads;x;facebook
type Platform string

// The known platforms. The publishers that are registered with a manager determine the
// platforms that it can deliver to.
const (
	PlatformYouTube   Platform = "youtube"
	PlatformTikTok    Platform = "tiktok"
	PlatformInstagram Platform = "instagram"
	PlatformThreads   Platform = "threads"
	PlatformX         Platform = "x"
	PlatformFacebook  Platform = "facebook"
)

// Title returns the platform's name for people, in the platform's spelling. For an unknown
// platform it returns the value.
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
	default:
		return string(p)
	}
}

// LocalReference names an object of a known kind in the same namespace.
type LocalReference struct {
	// name of the object, in the namespace of the object that refers to it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// Metadata keys that Herald reads or writes on its resources.
const (
	// DeliveryFinalizer keeps a Post until no call to a platform can be in progress for it.
	DeliveryFinalizer = "social.herald.dev/delivery"

	// MediaFileFinalizer keeps a Media until its file has been removed from
	// the store.
	MediaFileFinalizer = "social.herald.dev/media-file"

	// RecordsFinalizer keeps a Team until its records in the archive have been removed from
	// the store. An installation without a store does not add it.
	RecordsFinalizer = "social.herald.dev/records"

	// UploadUntilAnnotation is the expiry, in RFC 3339, of an upload address that the
	// apiserver issued after the creation of a Media. The manager waits for the file until
	// then.
	UploadUntilAnnotation = "social.herald.dev/upload-until"

	// FileAnnotation is the key of a Media's file in the bucket, which the manager writes:
	// namespace/UID of the Media that the file was stored for. A Media that is restored
	// from a backup has another UID, and finds its file by this key. The key is ignored
	// unless it starts with the namespace of the Media.
	FileAnnotation = "social.herald.dev/file"

	// BornAnnotation is when the apiserver created a Post. A creationTimestamp that is
	// clearly newer identifies a copy that was restored from a backup without its delivery
	// history.
	BornAnnotation = "social.herald.dev/born-at"
	// RequestAnnotation identifies the request that created a Post under an
	// Idempotency-Key, so that a different request under the same key is detected:
	// "<version>:<hash>"; without a version, version 1.
	RequestAnnotation = "social.herald.dev/request"

	// TraceparentAnnotation is the trace of the request that created a Post, in the format
	// of the traceparent header (W3C Trace Context). The apiserver writes it if tracing is
	// enabled. It is used for tracing only, and ignored if its format is invalid.
	TraceparentAnnotation = "social.herald.dev/traceparent"

	// SettleAnnotation is a person's resolution of a target whose outcome is unknown:
	// "<index>=posted:<id>", "<index>=posted:<https address>", "<index>=posted" or
	// "<index>=not-sent".
	SettleAnnotation = "social.herald.dev/settle"
	// ListCandidatesAnnotation requests a new list of the candidates of undecided targets;
	// see TargetStatus.candidates. Its value does not matter. The manager removes it after
	// it has listed them.
	ListCandidatesAnnotation = "social.herald.dev/list-candidates"

	// ArmedAnnotation is the object of an applied Post that was looked up among the records
	// of earlier posts: "<name>/<uid>". The manager writes it together with
	// DeliveryFinalizer. If the uid differs under the same name, the Post is a copy from a
	// backup.
	ArmedAnnotation = "social.herald.dev/armed"
	// PublishAgainAnnotation publishes a Post although an earlier one of its name was
	// published. Its value is the uid of the earlier post's record, which the condition
	// Adopted shows.
	PublishAgainAnnotation = "social.herald.dev/publish-again"

	// ProbeAnnotation requests an immediate probe of a Connection. Its value is an opaque
	// token that the manager echoes in status.lastHandledProbe.
	ProbeAnnotation = "social.herald.dev/probe-requested"

	// MadeSecretPrefix is the prefix of the annotations of a Connection that name the
	// Secrets which the apiserver created for it: "credentials.social.herald.dev/<Secret>",
	// with the time in RFC 3339. Each is written before its Secret, so that the manager,
	// which may not list Secrets, can find and remove unused ones.
	MadeSecretPrefix = "credentials.social.herald.dev/"

	// DisconnectedAnnotation is the time, in RFC 3339, when a person removed a Connection.
	// The deletion follows within moments, or has failed.
	DisconnectedAnnotation = "social.herald.dev/disconnected-at"

	// TeamLabel is the name of the Team, on the namespace of the team.
	TeamLabel = "social.herald.dev/team"

	// OriginLabel is the origin of a Post, a Media, an APIKey, a Connection or its Secret;
	// applied objects have none.
	OriginLabel = "social.herald.dev/origin"
	// OriginAPI is the OriginLabel of objects that were created through the REST API, and
	// of every Media that the apiserver created.
	OriginAPI = "api"
	// OriginWeb is the OriginLabel of objects that a person created in the web application.
	OriginWeb = "web"

	// AuthorAnnotation is the person who created the object in the web application, or for
	// whom an agent created it, as a username of Kubernetes RBAC: "herald:link", or the
	// OpenID Connect name with its prefix.
	AuthorAnnotation = "social.herald.dev/author"
	// LastAuthorAnnotation is the person who last changed the object in the web
	// application, in the same form.
	LastAuthorAnnotation = "social.herald.dev/last-author"

	// AgentAnnotation is the self-reported name of the agent, or other MCP client, that
	// created the Post. The name is not verified.
	AgentAnnotation = "social.herald.dev/agent"
	// WantedAtAnnotation marks a draft that an agent wanted to publish and that a person
	// has to approve. Its value is the requested time, in the form of Time, or WantedNow.
	WantedAtAnnotation = "social.herald.dev/wanted-at"
	// WantedNow is the WantedAtAnnotation of a post that the agent wanted to publish at
	// once.
	WantedNow = "now"

	// ShownTokensAnnotation lists the prefixes of the tokens of an APIKey that were created
	// in the web application, so that people recognise them: "<name>=<prefix>", separated
	// by commas. A prefix grants no access.
	ShownTokensAnnotation = "social.herald.dev/shown-tokens"
)

// TargetMark is a state of a target that its phase does not show. Lists hold it for each
// target of each post, so it is one byte.
type TargetMark uint8

// The marks.
const (
	// MarkNone: the phase is complete.
	MarkNone TargetMark = iota
	// MarkWaiting: the target is due and waits for its account: a person has to connect or
	// enable it, or its platform restricts it.
	MarkWaiting
	// MarkUndecided: a person has to determine whether the target was published.
	MarkUndecided
)
