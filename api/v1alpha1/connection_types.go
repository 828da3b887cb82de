// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys of the Secret that a Connection refers to.
const (
	// CredentialsAccessToken is the access token for API calls.
	CredentialsAccessToken = "accessToken"
	// CredentialsRefreshToken is the token that renews the access token; absent if the
	// platform has none.
	CredentialsRefreshToken = "refreshToken"
	// CredentialsExpiresAt is when the access token expires, in RFC 3339; absent if it does
	// not expire.
	CredentialsExpiresAt = "expiresAt"
	// CredentialsRefreshExpiresAt is when the refresh token expires, in RFC 3339; absent if
	// the platform does not specify it.
	CredentialsRefreshExpiresAt = "refreshExpiresAt"
	// CredentialsScopes lists the granted scopes, separated by spaces.
	CredentialsScopes = "scopes"
)

// ConnectionSpec identifies the connected account.
type ConnectionSpec struct {
	// platform of the account. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a connection's platform cannot be changed; create another Connection instead"
	Platform Platform `json:"platform"`

	// accountID is the platform's own id of the account. Immutable, because posts in
	// delivery are looked up on this account.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[!-~]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a connection's account cannot be changed; create another Connection instead"
	AccountID string `json:"accountID"`

	// credentialsSecretRef names the Secret in this namespace that holds accessToken,
	// refreshToken, expiresAt, refreshExpiresAt and scopes. Herald only reads it, and
	// stores renewed tokens in another Secret (status.workingSecret).
	// +required
	CredentialsSecretRef LocalReference `json:"credentialsSecretRef"`

	// disabled keeps the connection but stops publishing to it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// ConnectionStatus is the observed state of the account on its platform.
type ConnectionStatus struct {
	// conditions of the connection: Ready; RateLimited, PublishingRefused,
	// CredentialsSuperseded, CredentialsRefused, Reconciling and Stalled while they apply.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions are based on. It is -1 until
	// Herald has processed the object.
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

	// tokenExpiresAt is when the access token expires. The manager renews it before that,
	// if the platform permits.
	// +optional
	TokenExpiresAt *Time `json:"tokenExpiresAt,omitempty"`

	// reconnectBy is the deadline for a person to connect the account again: after it, the
	// token can no longer be renewed. A renewal of the token extends it, if the platform
	// permits. Absent if there is no known deadline.
	// +optional
	ReconnectBy *Time `json:"reconnectBy,omitempty"`

	// lastProbedAt is when the manager last checked the account on the platform.
	// +optional
	LastProbedAt *Time `json:"lastProbedAt,omitempty"`

	// lastHandledProbe echoes the latest handled probe request (annotation
	// social.herald.dev/probe-requested).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledProbe string `json:"lastHandledProbe,omitempty"`

	// rateLimitedUntil is when the platform accepts calls for the account again after a
	// rate limit. Until then, nothing is sent.
	// +optional
	RateLimitedUntil *Time `json:"rateLimitedUntil,omitempty"`

	// appRateLimitedUntil is set when the rate limit applies to Herald's app and not only
	// to this account: until then, nothing is sent to any account whose credentials belong
	// to the app in status.app.
	// +optional
	AppRateLimitedUntil *Time `json:"appRateLimitedUntil,omitempty"`

	// rateLimitedMessage describes the rate limit.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RateLimitedMessage string `json:"rateLimitedMessage,omitempty"`

	// rateLimits are the platform's limits and their remaining quota, as far as the
	// platform reports them. They are read with each probe, and again when little remains.
	// A limit that the platform reports only in answers to posts is recorded when little
	// remains of it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	RateLimits []RateLimit `json:"rateLimits,omitempty"`

	// tiktok holds the options that TikTok offers to the account; absent on other
	// platforms.
	// +optional
	TikTok *TikTokAccount `json:"tiktok,omitempty"`

	// workingSecret names Herald's Secret with the account's tokens, copied from the Secret
	// in credentialsSecretRef and renewed since. Connections of one account share it. If it
	// is deleted, Herald copies the tokens from credentialsSecretRef again.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	WorkingSecret string `json:"workingSecret,omitempty"`

	// credentialsVersion is the resourceVersion of the working Secret that the conditions
	// are based on.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	CredentialsVersion string `json:"credentialsVersion,omitempty"`

	// verifiedVersion is the latest credentialsVersion whose token the platform confirmed
	// to be this account's. It is updated when Herald renews the token. While it differs
	// from credentialsVersion and the platform does not answer, nothing is sent.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	VerifiedVersion string `json:"verifiedVersion,omitempty"`

	// app is the client id of Herald's app on the platform, if the credentials are known to
	// belong to it: Herald obtained them by OAuth, or renewed them with the app's secret. A
	// limit that the platform reports for "the app" then applies to all accounts of the
	// app; otherwise it applies to this account only.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	App string `json:"app,omitempty"`
}

// Verified reports whether the platform confirmed that the current credentials belong to
// the account.
func (s *ConnectionStatus) Verified() bool {
	return s.VerifiedVersion != "" && s.VerifiedVersion == s.CredentialsVersion
}

// Confirmed is like Verified, but also accepts a status from a version of Herald without
// verifiedVersion, which set Ready when the platform confirmed the account.
func (s *ConnectionStatus) Confirmed() bool {
	return s.Verified() || s.VerifiedVersion == "" && s.CredentialsVersion != "" &&
		meta.IsStatusConditionTrue(s.Conditions, ConditionReady)
}

// RateLimit is one limit of a platform, as last reported.
type RateLimit struct {
	// name of the limit: postsPerDay and repliesPerDay (within any 24 hours),
	// postsPerWindow (within some minutes), appPostsPerDay (of all accounts of the app
	// together), and usage and appUsage, which are percentages.
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

	// resetsAt is when the quota increases again. Absent if the platform does not report
	// it.
	// +optional
	ResetsAt *Time `json:"resetsAt,omitempty"`

	// observedAt is when the platform reported the limit.
	// +required
	ObservedAt Time `json:"observedAt"`
}

// TikTokAccount holds the options that TikTok offers to an account, as of the latest probe.
type TikTokAccount struct {
	// privacyLevelOptions are the privacy levels that TikTok offers to the account, in
	// TikTok's own spelling. A Post supports only some of them.
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

	// maxVideoPostDurationSeconds is the maximum duration of a video of the account, in
	// seconds. Absent if TikTok does not report it.
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
