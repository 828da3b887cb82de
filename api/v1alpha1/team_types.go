// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Plan is a team's subscription plan.
// +kubebuilder:validation:Enum=starter;unlimited
type Plan string

// The plans.
const (
	PlanStarter   Plan = "starter"
	PlanUnlimited Plan = "unlimited"
)

// SubscriptionState determines whether a team may create posts through the API.
// +kubebuilder:validation:Enum=active;trialing;pastDue;cancelled
type SubscriptionState string

// The subscription states. A trialing team may post until its trial ends.
const (
	SubscriptionActive    SubscriptionState = "active"
	SubscriptionTrialing  SubscriptionState = "trialing"
	SubscriptionPastDue   SubscriptionState = "pastDue"
	SubscriptionCancelled SubscriptionState = "cancelled"
)

// Subscription is a team's plan and its payment state.
type Subscription struct {
	// plan sets the limits of the team.
	// +optional
	// +kubebuilder:default=unlimited
	Plan Plan `json:"plan,omitempty"`

	// state determines whether the team may create posts and uploads through the HTTP API.
	// +optional
	// +kubebuilder:default=active
	State SubscriptionState `json:"state,omitempty"`

	// trialEndsAt is when a trial ends. Defaults to seven days after the creation of the
	// Team.
	// +optional
	TrialEndsAt *Time `json:"trialEndsAt,omitempty"`
}

// AgentPublishing determines how a post that an agent wants to publish is handled.
// +kubebuilder:validation:Enum=allowed;asDraft
type AgentPublishing string

const (
	// AgentsMayPublish delivers the post like any other.
	AgentsMayPublish AgentPublishing = "allowed"
	// AgentsDraft keeps the post as a draft, until a person publishes it in the web
	// application.
	AgentsDraft AgentPublishing = "asDraft"
)

// Agents sets the permissions of agents that connect through the MCP server.
type Agents struct {
	// publishing determines how a post that an agent wants to publish is handled: "allowed"
	// delivers it like any other; "asDraft" keeps it as a draft, with the requested time,
	// until a person publishes it in the web application.
	// +optional
	// +kubebuilder:default=allowed
	Publishing AgentPublishing `json:"publishing,omitempty"`
}

// TeamMedia sets how a team's photos and videos are changed before they are sent to
// platforms.
type TeamMedia struct {
	// convert enables the conversion of videos that a platform accepts only with another
	// size, frame rate, codec or file size. Without it, such a post is refused. Conversion
	// needs ffmpeg and uses much of the manager's CPU time.
	// +optional
	Convert bool `json:"convert,omitempty"`

	// keepLocation keeps the location, as coordinates or as a name, in the metadata of
	// photos and videos. Without it, Herald removes the location for every platform. Pixels
	// and frames are not changed.
	// +optional
	KeepLocation bool `json:"keepLocation,omitempty"`
}

// TeamBudget limits the objects that a team may store in the cluster and its work in
// progress, so that no team uses up the capacity for the others. Omitted fields default to
// the plan's values (docs/plans.md).
type TeamBudget struct {
	// posts is the maximum number of stored Posts: finished and cancelled ones count until
	// they are deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	Posts *int32 `json:"posts,omitempty"`

	// postBytes is the maximum total size of these Posts in bytes: their spec and metadata,
	// as the Kubernetes API stores them, 2 KiB per target for Herald's data, and 256 bytes
	// for each card of a tree at each target.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1152921504606846976 : isQuantity(self) && !quantity(self).isLessThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('1Ei'))",message="must be a number of bytes, such as 1048576, 128Mi or 1.5Gi"
	PostBytes *resource.Quantity `json:"postBytes,omitempty"`

	// unfinishedPosts is the maximum number of Posts that are drafts, scheduled or in
	// delivery.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	UnfinishedPosts *int32 `json:"unfinishedPosts,omitempty"`

	// pendingFiles is the maximum number of Media that wait for their files.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	PendingFiles *int32 `json:"pendingFiles,omitempty"`

	// pendingFileBytes is the maximum total size of these files in bytes.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1152921504606846976 : isQuantity(self) && !quantity(self).isLessThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('1Ei'))",message="must be a number of bytes, such as 1048576, 128Mi or 1.5Gi"
	PendingFileBytes *resource.Quantity `json:"pendingFileBytes,omitempty"`

	// keys is the maximum number of APIKeys: revoked and expired ones count until they are
	// deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Keys *int32 `json:"keys,omitempty"`
}

// BudgetItem is the name of a field of a TeamBudget.
// +kubebuilder:validation:Enum=posts;postBytes;unfinishedPosts;pendingFiles;pendingFileBytes;keys
type BudgetItem string

// The fields of a TeamBudget.
const (
	BudgetPosts            BudgetItem = "posts"
	BudgetPostBytes        BudgetItem = "postBytes"
	BudgetUnfinishedPosts  BudgetItem = "unfinishedPosts"
	BudgetPendingFiles     BudgetItem = "pendingFiles"
	BudgetPendingFileBytes BudgetItem = "pendingFileBytes"
	BudgetKeys             BudgetItem = "keys"
)

// BudgetQuota is the name of the ResourceQuota in a team's namespace that limits the number
// of its objects.
const BudgetQuota = "budget.social.herald.dev"

// BudgetUse is the usage of one field of a budget.
type BudgetUse struct {
	// item is the field of Team.spec.budget.
	// +required
	Item BudgetItem `json:"item"`

	// used is the current usage: a number of objects, or bytes.
	// +required
	// +kubebuilder:validation:Minimum=0
	Used int64 `json:"used"`

	// limit is the maximum.
	// +required
	// +kubebuilder:validation:Minimum=0
	Limit int64 `json:"limit"`
}

// maxPercent is the maximum that Percent returns. A budget may have been lowered below its
// usage.
const maxPercent = 1000

// Percent returns the usage in percent of the limit. A field without usage is at 0,
// whatever its limit.
func (u BudgetUse) Percent() int {
	switch {
	case u.Used == 0:
		return 0
	case u.Limit == 0:
		return maxPercent
	default:
		return int(min(100*float64(u.Used)/float64(u.Limit), maxPercent))
	}
}

// TeamSpec is the desired state of a team. A platform team sets it.
type TeamSpec struct {
	// namespace of the team, with its connections, keys, media and posts. Herald creates
	// it. Immutable and unique among teams; kube-* names and existing namespaces without
	// Herald's label are refused.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a team's namespace cannot be changed; create another Team instead"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('kube-') && self != 'default'",message="kube-* namespaces and the default namespace cannot belong to a team"
	Namespace string `json:"namespace"`

	// displayName is the team's name for people.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	DisplayName string `json:"displayName,omitempty"`

	// subscription of the team. Defaults to an active unlimited one.
	// +optional
	// +kubebuilder:default={}
	Subscription Subscription `json:"subscription,omitzero"`

	// budget limits the objects that the team may store in the cluster and its work in
	// progress. Omitted fields default to the plan's values; a team on trial has the values
	// of the starter plan.
	// +optional
	Budget TeamBudget `json:"budget,omitzero"`

	// agents sets the permissions of agents that connect through the MCP server. By
	// default, their key or grant alone limits them.
	// +optional
	// +kubebuilder:default={}
	Agents Agents `json:"agents,omitzero"`

	// media sets how photos and videos are changed before they are sent to platforms.
	// +optional
	Media TeamMedia `json:"media,omitzero"`

	// suspend stops publishing for the team: while it is true, posts are accepted and
	// prepared, and nothing is published. Running calls finish and are recorded. Deadlines
	// are extended by the suspended time; due posts are published when suspend is false
	// again.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// retention is how long finished posts are kept in the cluster and in the archive.
	// +optional
	Retention TeamRetention `json:"retention,omitzero"`
}

// TeamStatus is the observed state of a team.
type TeamStatus struct {
	// conditions of the team: Ready; Suspended while publishing is suspended.
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

	// usage is the team's usage of the limits of its plan.
	// +optional
	Usage *TeamUsage `json:"usage,omitempty"`

	// archive describes the team's posts in the archive; absent until a first post is
	// archived.
	// +optional
	Archive *TeamArchive `json:"archive,omitempty"`

	// suspensions are the periods without publishing for the team, by spec.suspend or by
	// the manager's configuration, oldest first. Periods that no deadline of a post can
	// depend on are dropped. While the last period has no end, the team is suspended.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Suspensions []Suspension `json:"suspensions,omitempty"`
}

// Suspension is a period without publishing for a team.
type Suspension struct {
	// from is when the suspension started.
	// +required
	From Time `json:"from"`

	// until is when the suspension ended; absent while it lasts.
	// +optional
	Until *Time `json:"until,omitempty"`
}

// Suspended reports whether publishing is suspended for the team: spec.suspend is set, or
// its last suspension has no end yet.
func (t *Team) Suspended() bool {
	last := len(t.Status.Suspensions) - 1
	return t.Spec.Suspend || last >= 0 && t.Status.Suspensions[last].Until == nil
}

// TeamArchive describes the archive's contents for a team.
type TeamArchive struct {
	// revision of the team's lists in the archive. It increases with each change and
	// invalidates cached lists.
	// +required
	// +kubebuilder:validation:Minimum=0
	Revision int64 `json:"revision"`

	// posts is the number of archived posts.
	// +required
	// +kubebuilder:validation:Minimum=0
	Posts int64 `json:"posts"`
}

// TeamUsage is a team's usage of the limits of its plan.
type TeamUsage struct {
	// xPostsThisMonth is the number of posts to X in the current month (UTC), published or
	// pending. Each account and each card of a tree counts; drafts do not. Absent if the
	// team's plan does not limit them, because they are not counted then.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	XPostsThisMonth *int32 `json:"xPostsThisMonth,omitempty"`

	// connectedAccounts is the number of the team's connections that are not disabled,
	// including those in excess of the plan.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	ConnectedAccounts int32 `json:"connectedAccounts"`

	// budget is the usage of each field of the team's budget, with a delay of up to a
	// minute.
	// +optional
	// +listType=map
	// +listMapKey=item
	// +kubebuilder:validation:MaxItems=16
	Budget []BudgetUse `json:"budget,omitempty"`
}

// Team owns a namespace with connections, API keys, media and posts.
//
// The rule about the name applies to new Teams only: existing Teams can always be updated
// and deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || size(self.metadata.name) <= 63",message="the name of a Team has at most 63 characters, since it is the value of the label social.herald.dev/team of its namespace; choose a shorter one",fieldPath=".metadata"
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=hteam,categories=herald
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.spec.subscription.plan`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.subscription.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Suspended",type=string,JSONPath=`.status.conditions[?(@.type=="Suspended")].reason`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="X posts",type=integer,priority=1,JSONPath=`.status.usage.xPostsThisMonth`
// +kubebuilder:printcolumn:name="Accounts",type=integer,priority=1,JSONPath=`.status.usage.connectedAccounts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Team struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the team.
	// +required
	Spec TeamSpec `json:"spec"`

	// status is the observed state of the team.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
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
