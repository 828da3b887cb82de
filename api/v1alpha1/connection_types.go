// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys of the Secret that a Connection refers to.
const (
	// CredentialsAccessToken is the token that calls are made with.
	CredentialsAccessToken = "accessToken"
	// CredentialsRefreshToken is the token that renews it; absent where the
	// platform has none.
	CredentialsRefreshToken = "refreshToken"
	// CredentialsExpiresAt is when the access token ends, in RFC 3339; absent
	// where it does not.
	CredentialsExpiresAt = "expiresAt"
	// CredentialsRefreshExpiresAt is when the refresh token ends, in RFC 3339;
	// absent where the platform does not say.
	CredentialsRefreshExpiresAt = "refreshExpiresAt"
	// CredentialsScopes lists the granted scopes, separated by spaces.
	CredentialsScopes = "scopes"
)

// ConnectionSpec is the connected account.
type ConnectionSpec struct {
	// platform of the account. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a connection's platform cannot be changed; create another Connection instead"
	Platform Platform `json:"platform"`

	// accountID is the platform's own id of the account. Immutable: posts
	// that are under way are looked up on this account.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[!-~]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a connection's account cannot be changed; create another Connection instead"
	AccountID string `json:"accountID"`

	// credentialsSecretRef names the Secret in this namespace that holds
	// accessToken, refreshToken, expiresAt, refreshExpiresAt and scopes. Herald only
	// reads it, and keeps the tokens that it renews in a Secret of its own.
	// +required
	CredentialsSecretRef LocalReference `json:"credentialsSecretRef"`

	// disabled keeps the connection but publishes nothing to it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// ConnectionStatus is what the manager learnt from the platform.
type ConnectionStatus struct {
	// conditions of the connection: Ready; RateLimited, PublishingRefused,
	// CredentialsSuperseded, CredentialsRefused, Reconciling and Stalled while they
	// apply.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions speak of. It is
	// -1 until Herald has looked at the object.
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

	// iconURL is the address of the account's picture.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	IconURL string `json:"iconURL,omitempty"`

	// connectedAt is when the account was first reached with these
	// credentials.
	// +optional
	ConnectedAt *Time `json:"connectedAt,omitempty"`

	// tokenExpiresAt is when the access token ends. The manager renews it
	// before, where the platform allows.
	// +optional
	TokenExpiresAt *Time `json:"tokenExpiresAt,omitempty"`

	// reconnectBy is until when the account has to be connected again by a
	// person: from then on nothing can renew its token. Renewing the token moves
	// it where the platform allows. Omitted, it has no end that is known.
	// +optional
	ReconnectBy *Time `json:"reconnectBy,omitempty"`

	// lastProbedAt is when the platform was last asked about the account.
	// +optional
	LastProbedAt *Time `json:"lastProbedAt,omitempty"`

	// lastHandledProbe echoes the latest probe request that was answered
	// (annotation social.herald.dev/probe-requested).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledProbe string `json:"lastHandledProbe,omitempty"`

	// rateLimitedUntil is when the platform takes calls for the account again,
	// if it said that there were too many. Until then nothing is sent.
	// +optional
	RateLimitedUntil *Time `json:"rateLimitedUntil,omitempty"`

	// appRateLimitedUntil is set when the platform said so of Herald's app, and
	// not of this account alone: until then nothing is sent to any account whose
	// credentials are of the app that status.app names.
	// +optional
	AppRateLimitedUntil *Time `json:"appRateLimitedUntil,omitempty"`

	// rateLimitedMessage says which limit it is.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RateLimitedMessage string `json:"rateLimitedMessage,omitempty"`

	// rateLimits are the platform's limits and what remains of them, as far as it
	// tells. They are read with a probe, and again when little remains. A limit
	// that only an answer to a post tells is noted when little of it remains.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	RateLimits []RateLimit `json:"rateLimits,omitempty"`

	// tiktok is what TikTok says that the account may choose; absent on other
	// platforms.
	// +optional
	TikTok *TikTokAccount `json:"tiktok,omitempty"`

	// workingSecret names the Secret in which Herald keeps the tokens of the account,
	// which were taken from the Secret of credentialsSecretRef and renewed since.
	// Connections of one account share it. Deleting it has the account begin again
	// with the tokens of credentialsSecretRef.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	WorkingSecret string `json:"workingSecret,omitempty"`

	// credentialsVersion is the resourceVersion of the working Secret that the
	// conditions speak of.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	CredentialsVersion string `json:"credentialsVersion,omitempty"`

	// verifiedVersion is the credentialsVersion for which the platform last
	// confirmed that the token is this account's. It follows when Herald renews the
	// token. While it is another one and the platform does not answer, nothing is
	// sent.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	VerifiedVersion string `json:"verifiedVersion,omitempty"`

	// app is the client id of Herald's app on the platform, if the credentials are
	// known to be of it: Herald got them by OAuth, or renewed them with the app's
	// secret. What the platform says of the limits of "the app" is believed then;
	// otherwise it holds this account alone.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	App string `json:"app,omitempty"`
}

// Verified reports whether the platform confirmed that the present credentials are
// those of the account.
func (s *ConnectionStatus) Verified() bool {
	return s.VerifiedVersion != "" && s.VerifiedVersion == s.CredentialsVersion
}

// Confirmed reports the same also of a status that a version of Herald wrote that kept no
// verifiedVersion: it called an account connected when the platform confirmed it.
func (s *ConnectionStatus) Confirmed() bool {
	return s.Verified() || s.VerifiedVersion == "" && s.CredentialsVersion != "" &&
		meta.IsStatusConditionTrue(s.Conditions, ConditionReady)
}

// RateLimit is one limit of a platform, as of its latest word.
type RateLimit struct {
	// name of the limit: postsPerDay and repliesPerDay (within any 24 hours),
	// postsPerWindow (within some minutes), appPostsPerDay (those of all
	// accounts of the app), and usage and appUsage, which are told in percent.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`

	// limit is how many there may be, or 100 for percents. Omitted, the platform
	// has not said.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Limit int32 `json:"limit,omitempty"`

	// remaining is how many of them are left.
	// +required
	// +kubebuilder:validation:Minimum=0
	Remaining int32 `json:"remaining"`

	// resetsAt is when there are more again. Omitted, the platform has not said.
	// +optional
	ResetsAt *Time `json:"resetsAt,omitempty"`

	// observedAt is when the platform said so.
	// +required
	ObservedAt Time `json:"observedAt"`
}

// TikTokAccount is what TikTok lets an account choose, as of the latest probe.
type TikTokAccount struct {
	// privacyLevelOptions are the privacy levels that the account may choose,
	// in TikTok's own spelling; some of them a Post cannot ask for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	PrivacyLevelOptions []string `json:"privacyLevelOptions,omitempty"`

	// commentDisabled is true when the account has comments turned off.
	// +optional
	CommentDisabled bool `json:"commentDisabled,omitempty"`

	// duetDisabled is true when the account has duets turned off.
	// +optional
	DuetDisabled bool `json:"duetDisabled,omitempty"`

	// stitchDisabled is true when the account has stitches turned off.
	// +optional
	StitchDisabled bool `json:"stitchDisabled,omitempty"`

	// maxVideoPostDurationSeconds is how long a video of the account may play,
	// in seconds. Omitted, TikTok has not said.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	MaxVideoPostDurationSeconds int32 `json:"maxVideoPostDurationSeconds,omitempty"`
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

	// spec is what is wanted.
	// +required
	Spec ConnectionSpec `json:"spec"`

	// status is what is.
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
