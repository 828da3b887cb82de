// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Platform names a social platform. The values are spelled the same in the
// resources and in the REST API.
// +kubebuilder:validation:Enum=youtube;tiktok;instagram;threads;x;facebook
type Platform string

// The platforms that Herald knows. Which of them a running manager can
// deliver to depends on the publishers registered with it.
const (
	PlatformYouTube   Platform = "youtube"
	PlatformTikTok    Platform = "tiktok"
	PlatformInstagram Platform = "instagram"
	PlatformThreads   Platform = "threads"
	PlatformX         Platform = "x"
	PlatformFacebook  Platform = "facebook"
)

// Title is the platform's name for people, as the platform spells it. A platform that
// Herald does not know is called by its value.
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

// Keys of the metadata that Herald reads or writes on its resources.
const (
	// DeliveryFinalizer keeps a Post until no call to a platform can still be
	// under way for it.
	DeliveryFinalizer = "social.herald.dev/delivery"

	// MediaFileFinalizer keeps a Media until its file has been removed from
	// the store.
	MediaFileFinalizer = "social.herald.dev/media-file"

	// RecordsFinalizer keeps a Team until what the archive holds of it has been
	// removed from the store. An installation without a store puts it on none.
	RecordsFinalizer = "social.herald.dev/records"

	// UploadUntilAnnotation carries, in RFC 3339, until when an address that
	// the apiserver handed out for a Media after its creation is valid, so
	// that the file is awaited as long.
	UploadUntilAnnotation = "social.herald.dev/upload-until"

	// FileAnnotation holds the key of the file of a Media in the bucket, as the manager
	// wrote it: namespace/UID of the Media that the file was stored for. A backup brings it
	// back with a Media of another UID, which then finds its file. It means nothing unless it
	// begins with the namespace of the Media.
	FileAnnotation = "social.herald.dev/file"

	// BornAnnotation carries the time at which the apiserver created a Post.
	// A creationTimestamp that is clearly newer shows a copy restored from a
	// backup, whose delivery history is lost.
	BornAnnotation = "social.herald.dev/born-at"
	// RequestAnnotation identifies the request that created a Post under an
	// Idempotency-Key, so that another request under the same key is told apart:
	// "<version>:<hash>"; without a version, the first one.
	RequestAnnotation = "social.herald.dev/request"

	// TraceparentAnnotation carries the trace of the request that created a Post, as the
	// header of that name does (W3C Trace Context). The apiserver writes it when it
	// traces. It is read only for traces, and only if it is exactly of that form.
	TraceparentAnnotation = "social.herald.dev/traceparent"

	// SettleAnnotation carries a person's resolution of a target whose outcome
	// is unknown: "<index>=posted:<id>", "<index>=posted:<https address>",
	// "<index>=posted" or "<index>=not-sent".
	SettleAnnotation = "social.herald.dev/settle"
	// ListCandidatesAnnotation asks the manager to list, once more, the posts of the accounts
	// that may be those in doubt; see TargetStatus.candidates. Its value does not matter. The
	// manager removes it when they are listed.
	ListCandidatesAnnotation = "social.herald.dev/list-candidates"

	// ArmedAnnotation says for which object a Post that was applied has been looked up among
	// the records of earlier posts: "<name>/<uid>". The manager writes it together with
	// DeliveryFinalizer. Under the same name another uid shows a copy from a backup.
	ArmedAnnotation = "social.herald.dev/armed"
	// PublishAgainAnnotation asks to publish a Post although an earlier one of its name went
	// out: it holds the uid of the earlier one's record, as the condition Adopted prints it.
	PublishAgainAnnotation = "social.herald.dev/publish-again"

	// ProbeAnnotation asks the manager to check a Connection now. Its value
	// is an opaque token that the manager echoes in status.lastHandledProbe.
	ProbeAnnotation = "social.herald.dev/probe-requested"

	// MadeSecretPrefix begins the annotations of a Connection that name the Secrets which
	// the apiserver made for it: "credentials.social.herald.dev/<Secret>", with the time
	// in RFC 3339. Each is written before its Secret, so that the manager, which may
	// not list Secrets, finds those that are not used and removes them.
	MadeSecretPrefix = "credentials.social.herald.dev/"

	// DisconnectedAnnotation stands on a Connection that a person has removed, and holds the
	// time of that, in RFC 3339. The removal follows within moments, or has failed.
	DisconnectedAnnotation = "social.herald.dev/disconnected-at"

	// TeamLabel stands on the namespace of a team and names the Team.
	TeamLabel = "social.herald.dev/team"

	// OriginLabel tells how a Post, a Media, an APIKey, a Connection or the Secret of one was made;
	// one that was applied has none.
	OriginLabel = "social.herald.dev/origin"
	// OriginAPI is the OriginLabel of what was made through the REST API, and of every
	// Media that the apiserver made.
	OriginAPI = "api"
	// OriginWeb is the OriginLabel of what a person made in the web application.
	OriginWeb = "web"

	// AuthorAnnotation names the person who made the object in the web application, or for
	// whom an agent made it, as Kubernetes' RBAC knows them: "herald:link", or the name that
	// OpenID Connect gave behind its prefix.
	AuthorAnnotation = "social.herald.dev/author"
	// LastAuthorAnnotation names the person who changed the object last in the web
	// application, in the same way.
	LastAuthorAnnotation = "social.herald.dev/last-author"

	// AgentAnnotation names the agent, or other MCP client, that made the Post, as it calls
	// itself. The name was not verified.
	AgentAnnotation = "social.herald.dev/agent"
	// WantedAtAnnotation stands on a draft that an agent wanted to publish, and that waits
	// for a person instead: it holds the time that was wanted, in the form of Time, or
	// WantedNow.
	WantedAtAnnotation = "social.herald.dev/wanted-at"
	// WantedNow is the WantedAtAnnotation of a post that was to go out at once.
	WantedNow = "now"

	// ShownTokensAnnotation holds the beginnings of those tokens of an APIKey that were
	// made in the web application, to recognise them by: "<name>=<beginning>", separated
	// by commas. The beginning opens nothing.
	ShownTokensAnnotation = "social.herald.dev/shown-tokens"
)

// TargetMark is what the phase of a target does not show. Lists keep it for each target of each
// post, so it takes a byte.
type TargetMark uint8

// The marks.
const (
	// MarkNone: the phase shows everything.
	MarkNone TargetMark = iota
	// MarkWaiting: the target is due and waits for its account, which a person has to
	// connect or enable, or which its platform restricts.
	MarkWaiting
	// MarkUndecided: only a person can tell whether the target is published.
	MarkUndecided
)
