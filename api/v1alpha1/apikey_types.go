// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// APIKeyTokenKey is the key of the Secret made for an APIKey that holds the
// token.
const APIKeyTokenKey = "token"

// APIKeySpec is what its owner decides about a key.
// +kubebuilder:validation:XValidation:rule="has(self.tokenSHA256) == has(oldSelf.tokenSHA256)",message="tokenSHA256 can only be set when the key is created"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.revoked) && oldSelf.revoked) || (has(self.revoked) && self.revoked)",message="a revoked key stays revoked; create a new APIKey instead"
type APIKeySpec struct {
	// description tells people what the key is for.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Description string `json:"description,omitempty"`

	// expiresAt is when the key stops working. Omitted, it never expires.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`

	// revoked stops the key at once and for good.
	// +optional
	Revoked bool `json:"revoked,omitempty"`

	// tokenSHA256 is the lower-case hex SHA-256 of a token that another party
	// made and handed out. Left empty, the manager makes a token and puts it
	// into a Secret of this namespace (status.secretRef, key "token").
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the token of a key cannot be replaced; create a new APIKey instead"
	TokenSHA256 string `json:"tokenSHA256,omitempty"`
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

	// observedGeneration is the generation that the conditions speak of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// tokenSHA256 is the lower-case hex SHA-256 of the token that is in
	// force.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TokenSHA256 string `json:"tokenSHA256,omitempty"`

	// prefix is the beginning of the token, to recognise it by.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Prefix string `json:"prefix,omitempty"`

	// lastUsedAt is when the key was last used, to within an hour.
	// +optional
	LastUsedAt *Time `json:"lastUsedAt,omitempty"`

	// secretRef names the Secret with the token, if the manager made it.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
}

// APIKey lets a program act for the team in whose namespace it stands.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=apikeys,shortName=hkey,categories=herald
// +kubebuilder:printcolumn:name="Prefix",type=string,JSONPath=`.status.prefix`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.secretRef.name`
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
	Status APIKeyStatus `json:"status,omitzero"`
}

// APIKeyList is a list of API keys.
//
// +kubebuilder:object:root=true
type APIKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []APIKey `json:"items"`
}
