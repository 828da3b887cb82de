// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OAuthScope is what an agent may do: read posts and accounts, write drafts, or publish.
// +kubebuilder:validation:Enum=read;draft;publish
type OAuthScope string

// OAuthGrantSpec is what a person allowed an agent.
// +kubebuilder:validation:XValidation:rule="self.client == oldSelf.client && self.person == oldSelf.person && self.scopes == oldSelf.scopes && self.resource == oldSelf.resource && self.expiresAt == oldSelf.expiresAt",message="what a person allowed cannot be changed; revoke the grant, and let the agent ask again"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.revoked) && oldSelf.revoked) || (has(self.revoked) && self.revoked)",message="a revoked grant stays revoked; let the agent ask again"
type OAuthGrantSpec struct {
	// client is the agent.
	Client OAuthGrantClient `json:"client"`

	// person who allowed it. The agent may never do more than this person may by
	// the roles of the team's namespace.
	Person OAuthGrantPerson `json:"person"`

	// scopes are what the agent may do: "read", "draft", "publish".
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Scopes []OAuthScope `json:"scopes"`

	// resource is the address of the MCP server that the agent's tokens are good
	// for (RFC 8707).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Resource string `json:"resource"`

	// expiresAt is when the grant ends, however often it is used.
	ExpiresAt Time `json:"expiresAt"`

	// revoked ends the grant at once and for good.
	// +optional
	Revoked bool `json:"revoked,omitempty"`
}

// OAuthGrantClient is an OAuth client as it was when it was allowed.
type OAuthGrantClient struct {
	// id of the client: the address of its metadata document; or, of a client that
	// registered itself, "dcr:" and the beginning of the SHA-256 of its client_id.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ID string `json:"id"`

	// name as the client calls itself.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// uri is the client's home page, as it says itself.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	URI string `json:"uri,omitempty"`

	// redirectHost is where the answer was sent: a host, or the scheme of an
	// application on the person's machine.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	RedirectHost string `json:"redirectHost"`

	// verified is true if the metadata document stands at the client's own
	// address; false for a client that registered itself, under any name it liked.
	// +optional
	Verified bool `json:"verified,omitempty"`
}

// OAuthGrantPerson is a person as they were when they allowed the agent.
type OAuthGrantPerson struct {
	// name by which Kubernetes' roles know the person.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// groups that the person was in.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=256
	Groups []string `json:"groups,omitempty"`

	// displayName is what pages call the person.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`
}

// Why Herald revoked a grant: the values of status.revokedReason.
const (
	// GrantReuse is that a refresh token was used a second time: two parties have it.
	GrantReuse = "RefreshTokenReused"
	// GrantReplay is that the authorization code was used a second time.
	GrantReplay = "CodeReplayed"
	// GrantSignedOff is that the agent itself revoked its tokens.
	GrantSignedOff = "RevokedByClient"
	// GrantExpired is that its time was over, or that it was not used for too long. It is
	// noted when the grant is removed.
	GrantExpired = "Expired"
)

// OAuthGrantStatus is what became of the grant. It holds no token.
type OAuthGrantStatus struct {
	// redeemedAt is when the agent fetched its first tokens. Without it, the grant
	// is removed after some minutes.
	// +optional
	RedeemedAt *Time `json:"redeemedAt,omitempty"`

	// refresh is what there is to know of the refresh token.
	// +optional
	Refresh *OAuthGrantRefresh `json:"refresh,omitempty"`

	// lastUsedAt is when the agent last called, to within an hour.
	// +optional
	LastUsedAt *Time `json:"lastUsedAt,omitempty"`

	// revokedAt is when the grant was ended by Herald, by the agent, or by a person
	// with spec.revoked: of these, Herald notes it within some minutes.
	// +optional
	RevokedAt *Time `json:"revokedAt,omitempty"`

	// revokedReason says why.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RevokedReason string `json:"revokedReason,omitempty"`
}

// OAuthGrantRefresh tells the refresh token of a grant by its hash. Each use replaces
// the token.
type OAuthGrantRefresh struct {
	// generation counts the tokens, from 1.
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation"`

	// sha256 is the lower-case hex SHA-256 of the token.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`

	// previousSHA256 is the hash of the token before, which is taken for some
	// seconds more: the answer that held the new one may have been lost.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	PreviousSHA256 string `json:"previousSHA256,omitempty"`

	// rotatedAt is when the token was made.
	RotatedAt Time `json:"rotatedAt"`
}

// The rules about the status stand at the whole resource: at the status itself they say
// nothing of an update that leaves it out.

// OAuthGrant is a person's consent that an agent acts for the team in whose namespace it
// stands. The consent page of the web application makes it; revoke it with spec.revoked,
// or delete it.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.revokedAt) || (has(self.status) && has(self.status.revokedAt) && self.status.revokedAt == oldSelf.status.revokedAt)",message="a revoked grant stays revoked",fieldPath=".status"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.redeemedAt) || (has(self.status) && has(self.status.redeemedAt) && self.status.redeemedAt == oldSelf.status.redeemedAt)",message="a code is good once",fieldPath=".status"
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

	// spec is what was allowed.
	// +required
	Spec OAuthGrantSpec `json:"spec"`

	// status is what became of it.
	// +optional
	Status OAuthGrantStatus `json:"status,omitzero"`
}

// Revoked reports whether somebody ended the grant.
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
