// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys of a Connection's credentials Secret.
const (
	// CredentialsAccessToken is the access token for API calls.
	CredentialsAccessToken = "accessToken"
	// CredentialsRefreshToken is the token that renews the access token; absent if the
	// platform has none.
	CredentialsRefreshToken = "refreshToken"
	// CredentialsExpiresAt is the access token's expiry time in RFC 3339; absent if the token does not expire.
	CredentialsExpiresAt = "expiresAt"
	// CredentialsRefreshExpiresAt is the refresh token's expiry time in RFC 3339; absent if the platform does not specify one.
	CredentialsRefreshExpiresAt = "refreshExpiresAt"
	// CredentialsScopes is the space-separated list of granted scopes.
	CredentialsScopes = "scopes"
	// CredentialsClientID and CredentialsClientSecret are those of the app that Herald registered on the account's server;
	// absent if Herald did not obtain the token from such an app. Herald revokes the token with them.
	CredentialsClientID     = "clientID"
	CredentialsClientSecret = "clientSecret"
	// CredentialsGrantedAt is when a user granted the tokens in the web application, in RFC 3339; absent if the Secret was
	// created manually. A platform may issue a previously replaced token again. The time distinguishes such a token from an
	// older Secret that a tool applies again.
	CredentialsGrantedAt = "grantedAt"
)

// ConnectionSpec identifies the connected account.
//
// +kubebuilder:validation:XValidation:rule="has(self.server) == (self.platform == 'mastodon')",message="server is required for Mastodon, and not allowed for other platforms",messageExpression="has(self.server) ? 'server is only allowed for Mastodon; remove it' : 'a Mastodon connection requires a server, such as https://mastodon.example'",fieldPath=".server"
// +kubebuilder:validation:XValidation:rule="!has(self.server) || self.accountID.endsWith('@' + self.server.substring(8))",message="the accountID of a Mastodon connection must end in @ and its server's host, such as 109300000000000001@mastodon.example",fieldPath=".accountID"
// +kubebuilder:validation:XValidation:rule="!has(self.server) || !has(oldSelf.server) || self.server == oldSelf.server",message="a connection's server cannot be changed; create another Connection instead",fieldPath=".server"
type ConnectionSpec struct {
	// platform of the account. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a connection's platform cannot be changed; create another Connection instead"
	Platform Platform `json:"platform"`

	// accountID is the platform's ID of the account. Immutable, because outcome lookups of posts in delivery use this account.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[!-~]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a connection's account cannot be changed; create another Connection instead"
	AccountID string `json:"accountID"`

	// server is the https URL of the account's server, on Mastodon only: "https://mastodon.example". accountID ends in "@" and its host. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=261
	// +kubebuilder:validation:Pattern=`^https://([a-z0-9-]+\.)+[a-z0-9-]+(:[1-9][0-9]{0,4})?$`
	// +kubebuilder:validation:XValidation:rule="!self.endsWith(':443') && !self.matches(':(6553[6-9]|655[4-9].|65[6-9]..|6[6-9]...|[7-9]....)$')",message="a server's port must be at most 65535, and must be omitted if it is 443"
	Server string `json:"server,omitempty"`

	// credentialsSecretRef names the Secret in this namespace that holds accessToken, refreshToken, expiresAt, refreshExpiresAt and scopes.
	// Herald only reads it, and stores renewed tokens in another Secret (status.workingSecret).
	// +required
	CredentialsSecretRef LocalReference `json:"credentialsSecretRef"`

	// disabled stops publishing to the connection without deleting it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// ConnectionStatus is the observed state of the account on its platform.
type ConnectionStatus struct {
	// conditions of the connection: Ready; RateLimited, PublishingRefused, CredentialsSuperseded, CredentialsRefused, Reconciling and
	// Stalled while they apply.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions are based on; -1 until Herald has processed the object.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// accountName is the account's display name.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	AccountName string `json:"accountName,omitempty"`

	// username is the account's handle, without "@".
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username,omitempty"`

	// iconURL is the URL of the account's avatar.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	IconURL string `json:"iconURL,omitempty"`

	// connectedAt is the time of the first successful request with these credentials.
	// +optional
	ConnectedAt *Time `json:"connectedAt,omitempty"`

	// tokenExpiresAt is the access token's expiry time. The manager renews the token earlier, if the platform permits.
	// +optional
	TokenExpiresAt *Time `json:"tokenExpiresAt,omitempty"`

	// reconnectBy is the deadline for reconnecting the account, after which the token can no longer be renewed. Token renewal extends it,
	// if the platform permits. Absent if no deadline is known.
	// +optional
	ReconnectBy *Time `json:"reconnectBy,omitempty"`

	// lastProbedAt is the time of the last account probe.
	// +optional
	LastProbedAt *Time `json:"lastProbedAt,omitempty"`

	// lastHandledProbe echoes the latest handled probe request (annotation
	// social.herald.dev/probe-requested).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledProbe string `json:"lastHandledProbe,omitempty"`

	// rateLimitedUntil is the end of the account's rate limit. Until then, Herald makes no calls for the account.
	// +optional
	RateLimitedUntil *Time `json:"rateLimitedUntil,omitempty"`

	// appRateLimitedUntil is set when the rate limit applies to Herald's app and not only to this account. Until then, Herald makes no
	// calls for any account with credentials of the app in status.app.
	// +optional
	AppRateLimitedUntil *Time `json:"appRateLimitedUntil,omitempty"`

	// rateLimitedMessage describes the rate limit.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RateLimitedMessage string `json:"rateLimitedMessage,omitempty"`

	// rateLimits are the platform's limits and remaining quotas, as far as the platform reports them. Each probe updates them, more often
	// when little quota remains. A limit reported only in responses to posts is recorded when little of it remains.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	RateLimits []RateLimit `json:"rateLimits,omitempty"`

	// tiktok holds the account's options on TikTok; absent on other platforms.
	// +optional
	TikTok *TikTokAccount `json:"tiktok,omitempty"`

	// mastodon holds the limits of the account's Mastodon server; absent on other platforms.
	// +optional
	Mastodon *MastodonServer `json:"mastodon,omitempty"`

	// workingSecret names Herald's Secret with the account's tokens, copied from credentialsSecretRef and renewed since. Connections to the
	// same account share it. If it is deleted, Herald copies the tokens from credentialsSecretRef again.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	WorkingSecret string `json:"workingSecret,omitempty"`

	// credentialsVersion is the resourceVersion of the working Secret that the conditions
	// are based on.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	CredentialsVersion string `json:"credentialsVersion,omitempty"`

	// verifiedVersion is the latest credentialsVersion whose token the platform confirmed for this account. Herald updates it with each
	// token renewal. While it differs from credentialsVersion and the platform does not answer, nothing is published.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	VerifiedVersion string `json:"verifiedVersion,omitempty"`

	// app is the client ID of Herald's app on the platform, if the credentials are known to belong to it: Herald obtained them by OAuth, or
	// renewed them with the app's secret. The platform's app limits then apply to all accounts of the app, otherwise to this account only.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	App string `json:"app,omitempty"`
}

// Verified reports whether the platform confirmed the current credentials for the account.
func (s *ConnectionStatus) Verified() bool {
	return s.VerifiedVersion != "" && s.VerifiedVersion == s.CredentialsVersion
}

// Confirmed is like Verified, but also accepts a status written by a version of Herald without verifiedVersion, which set Ready after the
// platform's confirmation.
func (s *ConnectionStatus) Confirmed() bool {
	return s.Verified() || s.VerifiedVersion == "" && s.CredentialsVersion != "" &&
		meta.IsStatusConditionTrue(s.Conditions, ConditionReady)
}

// RateLimit is a platform limit, as last reported.
type RateLimit struct {
	// name of the limit: postsPerDay and repliesPerDay (within 24 hours), postsPerWindow (within a few minutes), appPostsPerDay
	// (all accounts of the app together), and usage and appUsage, which are percentages.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`

	// limit is the maximum, or 100 for percentages. Absent if the platform does not report
	// it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Limit int32 `json:"limit,omitempty"`

	// remaining is the remaining quota.
	// +required
	// +kubebuilder:validation:Minimum=0
	Remaining int32 `json:"remaining"`

	// resetsAt is when the remaining quota increases again. Absent if the platform does not report it.
	// +optional
	ResetsAt *Time `json:"resetsAt,omitempty"`

	// observedAt is when the platform reported the limit.
	// +required
	ObservedAt Time `json:"observedAt"`
}

// TikTokAccount holds an account's options on TikTok, as of the latest probe.
type TikTokAccount struct {
	// privacyLevelOptions are the account's privacy levels, in TikTok's spelling. A Post supports only some of them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	PrivacyLevelOptions []string `json:"privacyLevelOptions,omitempty"`

	// commentDisabled is true if comments are disabled for the account.
	// +optional
	CommentDisabled bool `json:"commentDisabled,omitempty"`

	// duetDisabled is true if duets are disabled for the account.
	// +optional
	DuetDisabled bool `json:"duetDisabled,omitempty"`

	// stitchDisabled is true if stitches are disabled for the account.
	// +optional
	StitchDisabled bool `json:"stitchDisabled,omitempty"`

	// maxVideoPostDurationSeconds is the account's maximum video duration, in seconds. Absent if TikTok does not report it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	MaxVideoPostDurationSeconds int32 `json:"maxVideoPostDurationSeconds,omitempty"`
}

// MastodonServer holds the limits of an account's server, as of the latest probe. A missing value is Mastodon's default.
type MastodonServer struct {
	// maxCharacters is the maximum length of a post.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxCharacters int32 `json:"maxCharacters,omitempty"`

	// charactersPerURL is the length that each URL in a post counts as.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CharactersPerURL int32 `json:"charactersPerURL,omitempty"`

	// maxMedia is the maximum number of images in a post.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxMedia int32 `json:"maxMedia,omitempty"`

	// maxImageBytes is the maximum size of an image.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxImageBytes int64 `json:"maxImageBytes,omitempty"`

	// maxVideoBytes is the maximum size of a video.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxVideoBytes int64 `json:"maxVideoBytes,omitempty"`

	// mediaTypes are the file types that the server accepts. Absent if it accepts all of Herald's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	MediaTypes []MimeType `json:"mediaTypes,omitempty"`

	// maxAltText is the maximum length of an alt text in characters. Absent if it is at least Herald's, 1,000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxAltText int32 `json:"maxAltText,omitempty"`

	// maxImagePixels is the maximum of an image's width times its height. Absent if it is at least Mastodon's default, as are the next two.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxImagePixels int64 `json:"maxImagePixels,omitempty"`

	// maxVideoPixels is the maximum of a video's width times its height.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxVideoPixels int64 `json:"maxVideoPixels,omitempty"`

	// maxVideoFrameRate is the maximum number of a video's frames per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxVideoFrameRate int32 `json:"maxVideoFrameRate,omitempty"`
}

// Connection is a social account that a team may publish to.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hconn,categories=herald
// +kubebuilder:selectablefield:JSONPath=`.spec.platform`
// +kubebuilder:selectablefield:JSONPath=`.spec.accountID`
// +kubebuilder:printcolumn:name="Platform",type=string,JSONPath=`.spec.platform`
// +kubebuilder:printcolumn:name="Account",type=string,JSONPath=`.status.accountName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Refused",type=string,JSONPath=`.status.conditions[?(@.type=="PublishingRefused")].reason`
// +kubebuilder:printcolumn:name="Limited",type=string,JSONPath=`.status.conditions[?(@.type=="RateLimited")].reason`
// +kubebuilder:printcolumn:name="Token expires",type=string,JSONPath=`.status.tokenExpiresAt`
// +kubebuilder:printcolumn:name="Account ID",type=string,priority=1,JSONPath=`.spec.accountID`
// +kubebuilder:printcolumn:name="Probed",type=date,priority=1,JSONPath=`.status.lastProbedAt`
// +kubebuilder:printcolumn:name="Rate limited until",type=string,priority=1,JSONPath=`.status.rateLimitedUntil`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Connection struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the account and its credentials.
	// +required
	Spec ConnectionSpec `json:"spec"`

	// status is the observed state of the account.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status ConnectionStatus `json:"status,omitzero"`
}

// ConnectionList is a list of connections.
//
// +kubebuilder:object:root=true
type ConnectionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Connection `json:"items"`
}
