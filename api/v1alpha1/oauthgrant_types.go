// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OAuthScope is a permission of an agent: to read posts and accounts, to write drafts, or
// to publish.
// +kubebuilder:validation:Enum=read;draft;publish
type OAuthScope string

// OAuthGrantSpec is a user's permission for an agent.
// +kubebuilder:validation:XValidation:rule="self.client == oldSelf.client && self.person == oldSelf.person && self.scopes == oldSelf.scopes && self.resource == oldSelf.resource && self.expiresAt == oldSelf.expiresAt",message="what a user allowed cannot be changed; revoke the grant, and let the agent ask again"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.revoked) && oldSelf.revoked) || (has(self.revoked) && self.revoked)",message="a revoked grant stays revoked; let the agent ask again"
type OAuthGrantSpec struct {
	// client is the agent.
	Client OAuthGrantClient `json:"client"`

	// person is the user who granted the permission. The agent's permissions never exceed those of this user in the team's
	// namespace.
	Person OAuthGrantPerson `json:"person"`

	// scopes are the agent's permissions: "read", "draft", "publish".
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Scopes []OAuthScope `json:"scopes"`

	// resource is the URL of the MCP server that accepts the agent's tokens (RFC 8707).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Resource string `json:"resource"`

	// expiresAt is the grant's expiry time. Using the grant does not extend it.
	ExpiresAt Time `json:"expiresAt"`

	// revoked ends the grant immediately. It cannot be undone.
	// +optional
	Revoked bool `json:"revoked,omitempty"`
}

// OAuthGrantClient is an OAuth client, as of the time of consent.
type OAuthGrantClient struct {
	// id of the client: the URL of its metadata document, or for a self-registered client "dcr:" and the SHA-256 prefix of its
	// client_id.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ID string `json:"id"`

	// name of the client, self-reported.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// uri is the client's home page, self-reported.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	URI string `json:"uri,omitempty"`

	// redirectHost is the destination of the authorization code: a host, or the URL scheme of an application on the user's machine.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	RedirectHost string `json:"redirectHost"`

	// verified is true if the metadata document is at the client's own URL. It is false for a self-registered client, whose name is
	// arbitrary.
	// +optional
	Verified bool `json:"verified,omitempty"`
}

// OAuthGrantPerson is a user, as of the time of consent.
type OAuthGrantPerson struct {
	// name is the username in Kubernetes RBAC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// groups of the user.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=256
	Groups []string `json:"groups,omitempty"`

	// displayName is the user's display name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`
}

// Revocation reasons, the values of status.revokedReason.
const (
	// GrantReuse: a refresh token was used twice, so two parties have it.
	GrantReuse = "RefreshTokenReused"
	// GrantReplay: the authorization code was used twice.
	GrantReplay = "CodeReplayed"
	// GrantSignedOff: the agent revoked its own tokens.
	GrantSignedOff = "RevokedByClient"
	// GrantExpired: the grant expired or was unused for too long. It is recorded when the grant is removed.
	GrantExpired = "Expired"
)

// OAuthGrantStatus is the observed state of the grant. It holds no token.
type OAuthGrantStatus struct {
	// redeemedAt is when the agent received its first tokens. An unredeemed grant is removed after a few minutes.
	// +optional
	RedeemedAt *Time `json:"redeemedAt,omitempty"`

	// refresh describes the current refresh token.
	// +optional
	Refresh *OAuthGrantRefresh `json:"refresh,omitempty"`

	// lastUsedAt is the time of the agent's last call, with a precision of one hour.
	// +optional
	LastUsedAt *Time `json:"lastUsedAt,omitempty"`

	// revokedAt is when the grant was revoked by Herald, the agent, or a user with spec.revoked. Herald records a change to spec.revoked
	// within a few minutes.
	// +optional
	RevokedAt *Time `json:"revokedAt,omitempty"`

	// revokedReason is the revocation reason.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RevokedReason string `json:"revokedReason,omitempty"`
}

// OAuthGrantRefresh identifies the refresh token of a grant by its hash. Each use replaces
// the token.
type OAuthGrantRefresh struct {
	// generation is the token's sequence number, starting at 1.
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation"`

	// sha256 is the token's SHA-256 in lower-case hexadecimal.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`

	// previousSHA256 is the hash of the previous token, which remains valid for a few seconds because the response with the new token
	// may have been lost.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	PreviousSHA256 string `json:"previousSHA256,omitempty"`

	// rotatedAt is the token's issue time.
	RotatedAt Time `json:"rotatedAt"`
}

// The status rules are on the resource itself, because rules on the status are not evaluated for an update that omits it.

// OAuthGrant is a user's consent for an agent to act for the team that owns the namespace. The web application's consent page creates it.
// To revoke it, set spec.revoked or delete it.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.revokedAt) || (has(self.status) && has(self.status.revokedAt) && self.status.revokedAt == oldSelf.status.revokedAt)",message="a revoked grant stays revoked",fieldPath=".status"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.redeemedAt) || (has(self.status) && has(self.status.redeemedAt) && self.status.redeemedAt == oldSelf.status.redeemedAt)",message="a code can be used only once",fieldPath=".status"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=oauthgrants,shortName=hgrant,categories=herald
// +kubebuilder:selectablefield:JSONPath=`.spec.person.name`
// +kubebuilder:printcolumn:name="Client",type=string,JSONPath=`.spec.client.name`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.client.redirectHost`
// +kubebuilder:printcolumn:name="Person",type=string,JSONPath=`.spec.person.name`
// +kubebuilder:printcolumn:name="Scopes",type=string,JSONPath=`.spec.scopes`
// +kubebuilder:printcolumn:name="Revoked",type=boolean,JSONPath=`.spec.revoked`
// +kubebuilder:printcolumn:name="Last used",type=date,JSONPath=`.status.lastUsedAt`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.revokedReason`
// +kubebuilder:printcolumn:name="Expires",type=string,priority=1,JSONPath=`.spec.expiresAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OAuthGrant struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the granted permission.
	// +required
	Spec OAuthGrantSpec `json:"spec"`

	// status is the observed state of the grant.
	// +optional
	Status OAuthGrantStatus `json:"status,omitzero"`
}

// Revoked reports whether the grant was revoked or is being deleted.
func (g *OAuthGrant) Revoked() bool {
	return g.Spec.Revoked || g.Status.RevokedAt != nil || g.DeletionTimestamp != nil
}

// OAuthGrantList is a list of grants.
//
// +kubebuilder:object:root=true
type OAuthGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OAuthGrant `json:"items"`
}
