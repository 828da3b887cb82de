// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// APIKeyTokenKey is the key of the token in the Secret created for an APIKey token.
const APIKeyTokenKey = "token"

// DefaultTokenName is the token name of an APIKey without listed tokens.
const DefaultTokenName = "token"

// KeyPermission is what a key may do beyond reading the team's objects, and writing posts, schedules and files.
// +kubebuilder:validation:Enum=notifiers
type KeyPermission string

// PermissionNotifiers allows creating, changing and deleting the team's Notifiers.
const PermissionNotifiers KeyPermission = "notifiers"

// APIKeySpec is the desired state of a key.
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.revoked) && oldSelf.revoked) || (has(self.revoked) && self.revoked)",message="a revoked key stays revoked; create a new APIKey instead"
type APIKeySpec struct {
	// description is the human-readable purpose of the key.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Description string `json:"description,omitempty"`

	// expiresAt is the expiry time of the key and all its tokens. If omitted, the key never expires.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`

	// revoked invalidates the key and all its tokens immediately. It cannot be undone.
	// +optional
	Revoked bool `json:"revoked,omitempty"`

	// permissions are what the key may do beyond reading the team's objects, and writing posts, schedules and files: "notifiers" allows
	// creating, changing and deleting Notifiers, which send the team's data to others.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Permissions []KeyPermission `json:"permissions,omitempty"`

	// tokens are the key's valid tokens. If empty, the key has one token named "token", which the manager creates. To rotate a token
	// without downtime, add a second one, distribute it to the clients, and remove the first, which becomes invalid immediately. Token
	// names cannot be reused within a key.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2
	Tokens []APIKeyToken `json:"tokens,omitempty"`
}

// APIKeyToken is one token of a key.
// +kubebuilder:validation:XValidation:rule="has(self.sha256) == has(oldSelf.sha256) && (!has(self.sha256) || self.sha256 == oldSelf.sha256)",message="a token cannot be replaced by another of the same name; list one with a new name instead"
type APIKeyToken struct {
	// name identifies the token within the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// expiresAt is the expiry time of this token. If omitted, the token expires with its key.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`

	// sha256 is the hash of a token that another party created with `herald token` and
	// distributed: the SHA-256 of "<namespace>/<name of the APIKey>/<token>", in lower-case
	// hexadecimal. If empty, the manager creates a token and stores it in a Secret of this
	// namespace (status.tokens).
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`
}

// APIKeyStatus is the observed state of a key.
type APIKeyStatus struct {
	// conditions of the key: Ready.
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

	// tokens are the valid and the expired tokens of the key.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2
	Tokens []APIKeyTokenStatus `json:"tokens,omitempty"`

	// lastUsedAt is the time of the key's last use, with a precision of one hour.
	// +optional
	LastUsedAt *Time `json:"lastUsedAt,omitempty"`
}

// APIKeyTokenStatus is the observed state of one token.
type APIKeyTokenStatus struct {
	// name is the token's name in the spec.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// createdAt is when the manager created the token, or first saw its hash.
	CreatedAt Time `json:"createdAt"`

	// sha256 is the hash of the token, if the manager created it; spec.tokens describes how
	// it is computed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`

	// prefix is the recognizable start of a token that the manager created.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Prefix string `json:"prefix,omitempty"`

	// secretRef names the Secret with the token, if the manager created it.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
}

// APIKey lets a program act for the team that owns the namespace.
//
// The rule below applies to every writer of the status, the manager included: while the key
// lists a token and is not revoked, the hash of a token that Herald created cannot be
// removed. Otherwise two writes could replace the hash, by removing it and adding another.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.tokens) || (has(self.spec) && has(self.spec.revoked) && self.spec.revoked) || oldSelf.status.tokens.all(t, !has(t.sha256) || (has(self.spec) && has(self.spec.tokens) && size(self.spec.tokens) > 0 ? self.spec.tokens.all(w, w.name != t.name || has(w.sha256)) : t.name != 'token') || (has(self.status) && has(self.status.tokens) && self.status.tokens.exists(n, n.name == t.name && has(n.sha256) && n.sha256 == t.sha256)))",message="the hash of a token never changes; list a token with a new name instead",fieldPath=".spec"
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=apikeys,shortName=hkey,categories=herald
// +kubebuilder:printcolumn:name="Prefix",type=string,JSONPath=`.status.tokens[*].prefix`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.tokens[*].secretRef.name`
// +kubebuilder:printcolumn:name="Last used",type=date,JSONPath=`.status.lastUsedAt`
// +kubebuilder:printcolumn:name="Expires",type=string,priority=1,JSONPath=`.spec.expiresAt`
// +kubebuilder:printcolumn:name="Description",type=string,priority=1,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type APIKey struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the key.
	// +optional
	// +kubebuilder:default={}
	Spec APIKeySpec `json:"spec,omitzero"`

	// status is the observed state of the key.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status APIKeyStatus `json:"status,omitzero"`
}

// WantedTokens returns the key's desired tokens.
func (k *APIKey) WantedTokens() []APIKeyToken {
	if len(k.Spec.Tokens) == 0 {
		return []APIKeyToken{{Name: DefaultTokenName}}
	}
	return k.Spec.Tokens
}

// EndOf returns a token's expiry time; nil if it never expires.
func (k *APIKey) EndOf(token APIKeyToken) *Time {
	end := k.Spec.ExpiresAt
	if own := token.ExpiresAt; own != nil && (end == nil || own.Before(end.Time)) {
		return own
	}
	return end
}

// Token returns the status of the named token; nil if it has none yet.
func (s *APIKeyStatus) Token(name string) *APIKeyTokenStatus {
	for i := range s.Tokens {
		if s.Tokens[i].Name == name {
			return &s.Tokens[i]
		}
	}
	return nil
}

// APIKeyList is a list of API keys.
//
// +kubebuilder:object:root=true
type APIKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []APIKey `json:"items"`
}
