// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Plan is what a team has subscribed to.
// +kubebuilder:validation:Enum=starter;unlimited
type Plan string

// The plans.
const (
	PlanStarter   Plan = "starter"
	PlanUnlimited Plan = "unlimited"
)

// SubscriptionState tells whether a team may create posts through the API.
// +kubebuilder:validation:Enum=active;trialing;pastDue;cancelled
type SubscriptionState string

// The subscription states. A trialing team may post until its trial ends.
const (
	SubscriptionActive    SubscriptionState = "active"
	SubscriptionTrialing  SubscriptionState = "trialing"
	SubscriptionPastDue   SubscriptionState = "pastDue"
	SubscriptionCancelled SubscriptionState = "cancelled"
)

// Subscription is a team's plan and whether it is paid for.
// +kubebuilder:validation:XValidation:rule="!has(self.state) || self.state != 'trialing' || has(self.trialEndsAt)",message="a trialing subscription needs trialEndsAt"
type Subscription struct {
	// plan decides the limits of the team.
	// +optional
	// +kubebuilder:default=unlimited
	Plan Plan `json:"plan,omitempty"`

	// state decides whether the team may create posts and uploads through the
	// HTTP API.
	// +optional
	// +kubebuilder:default=active
	State SubscriptionState `json:"state,omitempty"`

	// trialEndsAt is when a trial ends. Required while state is "trialing".
	// +optional
	TrialEndsAt *Time `json:"trialEndsAt,omitempty"`
}

// TeamSpec is what a platform team decides about a team.
type TeamSpec struct {
	// namespace that the team owns: its connections, keys and posts live
	// there. Herald creates it. Immutable; no two teams share one; kube-*
	// names and existing namespaces without Herald's label are refused.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a team's namespace cannot be changed; create another Team instead"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('kube-') && self != 'default'",message="kube-* namespaces and the default namespace cannot belong to a team"
	Namespace string `json:"namespace"`

	// displayName is shown to people.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	DisplayName string `json:"displayName,omitempty"`

	// subscription of the team. Omitted, it is an active unlimited one.
	// +optional
	// +kubebuilder:default={}
	Subscription Subscription `json:"subscription,omitzero"`
}

// TeamStatus is what the manager found and did.
type TeamStatus struct {
	// conditions of the team: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// Team owns a namespace with connections, API keys and posts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=htm,categories=herald
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.spec.subscription.plan`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.subscription.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Team struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec TeamSpec `json:"spec"`

	// status is what is.
	// +optional
	Status TeamStatus `json:"status,omitzero"`
}

// TeamList is a list of teams.
//
// +kubebuilder:object:root=true
type TeamList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Team `json:"items"`
}
