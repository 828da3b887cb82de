// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// APIKeyTokenKey is the key of the Secret made for a token of an APIKey that holds
// the token.
const APIKeyTokenKey = "token"

// DefaultTokenName is the name of the one token of an APIKey that lists none.
const DefaultTokenName = "token"

// APIKeySpec is what its owner decides about a key.
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.revoked) && oldSelf.revoked) || (has(self.revoked) && self.revoked)",message="a revoked key stays revoked; create a new APIKey instead"
type APIKeySpec struct {
	// description tells people what the key is for.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Description string `json:"description,omitempty"`

	// expiresAt is when the key stops working, with all its tokens. Omitted, it
	// never expires.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`

	// revoked stops the key at once and for good, with all its tokens.
	// +optional
	Revoked bool `json:"revoked,omitempty"`

	// tokens are the tokens that the key answers to; left empty, it is one, named
	// "token", which the manager makes. To replace a token without a gap, list a
	// second one beside it, give that to the clients, then remove the first: it
	// stops working at once. A token needs a name that the key has not had before.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2
	Tokens []APIKeyToken `json:"tokens,omitempty"`
}

// APIKeyToken is one of the tokens of a key.
// +kubebuilder:validation:XValidation:rule="has(self.sha256) == has(oldSelf.sha256) && (!has(self.sha256) || self.sha256 == oldSelf.sha256)",message="a token cannot be replaced by another of the same name; list one with a new name instead"
type APIKeyToken struct {
	// name tells the tokens of the key apart.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// expiresAt is when this token stops working. Omitted, it works as long as
	// the key.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`

	// sha256 is the hash of a token that another party made with `herald token`
	// and handed out: the lower-case hex SHA-256 of
	// "<namespace>/<name of the APIKey>/<token>". Left empty, the manager makes
	// a token and puts it into a Secret of this namespace (status.tokens).
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`
}

// APIKeyStatus is what the manager found and did.
type APIKeyStatus struct {
	// conditions of the key: Ready.
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

	// tokens are those of the key that are in force, or have expired.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2
	Tokens []APIKeyTokenStatus `json:"tokens,omitempty"`

	// lastUsedAt is when the key was last used, to within an hour.
	// +optional
	LastUsedAt *Time `json:"lastUsedAt,omitempty"`
}

// APIKeyTokenStatus is what the manager did for one token.
type APIKeyTokenStatus struct {
	// name is the token's name in the spec.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// createdAt is when the manager made the token, or first saw its hash.
	CreatedAt Time `json:"createdAt"`

	// sha256 is the hash of the token, if the manager made it; the spec says how
	// it is computed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`

	// prefix is the beginning of the token, to recognise it by, if the manager
	// made it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Prefix string `json:"prefix,omitempty"`

	// secretRef names the Secret with the token, if the manager made it.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
}

// APIKey lets a program act for the team in whose namespace it stands.
//
// The rule below holds everyone who writes its status, the manager too: the hash of a token that Herald made is the
// token's for as long as the key wants that token, and is not revoked. Taken away and put back in two writes, it would
// be another one.
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

	// spec is what is wanted.
	// +optional
	// +kubebuilder:default={}
	Spec APIKeySpec `json:"spec,omitzero"`

	// status is what is.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status APIKeyStatus `json:"status,omitzero"`
}

// WantedTokens returns the tokens that the key is to have.
func (k *APIKey) WantedTokens() []APIKeyToken {
	if len(k.Spec.Tokens) == 0 {
		return []APIKeyToken{{Name: DefaultTokenName}}
	}
	return k.Spec.Tokens
}

// EndOf returns when a token of the key stops working; nil if never.
func (k *APIKey) EndOf(token APIKeyToken) *Time {
	end := k.Spec.ExpiresAt
	if own := token.ExpiresAt; own != nil && (end == nil || own.Before(end.Time)) {
		return own
	}
	return end
}

// Token returns what the manager did for the token of that name; nil if it did
// nothing yet.
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
