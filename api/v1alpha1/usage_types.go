// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The counted resources, the values of a Usage's spec.resource.
const (
	// ResourceXPosts counts posts to X. Each account and each tree card counts.
	ResourceXPosts = "x-posts"
	// ResourceTikTokDrafts counts drafts in a TikTok account's inbox.
	ResourceTikTokDrafts = "tiktok-drafts"
	// ResourceBudget is the team's budget, with all its fields in one Usage.
	ResourceBudget = "budget"
)

// UsageSpec identifies the counted resource, account and period.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="what a Usage counts cannot be changed; Herald creates another one"
type UsageSpec struct {
	// resource that is counted, such as "x-posts", "tiktok-drafts" or "budget".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Resource string `json:"resource"`

	// account whose usage is counted, by the platform's ID. Absent if the team's accounts are counted together.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Account string `json:"account,omitempty"`

	// period of the limit: a calendar month in UTC, such as "2026-11", or a sliding window in hours, such as "24h". Absent if the limit
	// applies to the number of existing objects.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:Pattern=`^([12][0-9]{3}-(0[1-9]|1[0-2])|[1-9][0-9]{0,5}h)$`
	Period string `json:"period,omitempty"`
}

// UsageStatus is the current count and its entries.
type UsageStatus struct {
	// limit is the maximum in the period, at the time of the last count; 100 for a budget.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Limit int32 `json:"limit,omitempty"`

	// used is the current usage: for a sliding window the usage of the fullest window, and for a budget the usage of its fullest field in
	// percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Used int32 `json:"used"`

	// entries are the post targets included in used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Entries []UsageEntry `json:"entries,omitempty"`

	// budget is the usage of each budget field.
	// +optional
	// +listType=map
	// +listMapKey=item
	// +kubebuilder:validation:MaxItems=16
	Budget []BudgetUse `json:"budget,omitempty"`

	// countedAt is when budget was last written.
	// +optional
	CountedAt *Time `json:"countedAt,omitempty"`
}

// UsageEntry is a post target's usage.
type UsageEntry struct {
	// post is the name of the target's post.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Post string `json:"post"`

	// target is the index of the target in its post.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	Target int32 `json:"target"`

	// count is the target's usage.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Count int32 `json:"count"`

	// at is the target's due time.
	// +required
	At Time `json:"at"`

	// uid of the post whose delivery confirmed this entry. An entry without it is only reserved, because the post does not exist yet or its
	// delivery has not started.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	UID types.UID `json:"uid,omitempty"`

	// request that reserved this entry. Several requests may use one Idempotency-Key, but at most one of them creates the post, so only the
	// largest of their reservations counts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Request string `json:"request,omitempty"`

	// since is when this entry was reserved or confirmed.
	// +required
	Since Time `json:"since"`

	// settled is true when this entry is final.
	// +optional
	Settled bool `json:"settled,omitempty"`
}

// Usage counts a team's usage of a limited resource. Only Herald writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=usages,singular=usage,shortName=huse,categories=herald
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.spec.resource`
// +kubebuilder:printcolumn:name="Period",type=string,JSONPath=`.spec.period`
// +kubebuilder:printcolumn:name="Used",type=integer,JSONPath=`.status.used`
// +kubebuilder:printcolumn:name="Limit",type=integer,JSONPath=`.status.limit`
// +kubebuilder:printcolumn:name="Account",type=string,JSONPath=`.spec.account`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Usage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the counted resource.
	// +required
	Spec UsageSpec `json:"spec"`

	// status is the current count.
	// +optional
	Status UsageStatus `json:"status,omitzero"`
}

// UsageList is a list of usages.
//
// +kubebuilder:object:root=true
type UsageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Usage `json:"items"`
}
