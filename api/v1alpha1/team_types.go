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

// Subscription is a team's plan and payment state.
type Subscription struct {
	// plan sets the team's limits.
	// +optional
	// +kubebuilder:default=unlimited
	Plan Plan `json:"plan,omitempty"`

	// state determines whether the team may create posts and uploads through the HTTP API.
	// +optional
	// +kubebuilder:default=active
	State SubscriptionState `json:"state,omitempty"`

	// trialEndsAt is the end of the trial. Defaults to seven days after the Team's creation.
	// +optional
	TrialEndsAt *Time `json:"trialEndsAt,omitempty"`
}

// AgentPublishing determines how agents' publish requests are handled.
// +kubebuilder:validation:Enum=allowed;asDraft
type AgentPublishing string

const (
	// AgentsMayPublish delivers the post like any other.
	AgentsMayPublish AgentPublishing = "allowed"
	// AgentsDraft keeps the post as a draft until a user publishes it in the web application.
	AgentsDraft AgentPublishing = "asDraft"
)

// Agents sets the permissions of MCP agents.
type Agents struct {
	// publishing determines how agents' publish requests are handled: "allowed" delivers the post like any other; "asDraft" keeps it as a
	// draft, with the requested time, until a user publishes it in the web application.
	// +optional
	// +kubebuilder:default=allowed
	Publishing AgentPublishing `json:"publishing,omitempty"`
}

// TeamMedia sets how a team's photos and videos are changed before publication.
type TeamMedia struct {
	// convert enables converting videos to a size, frame rate, codec or file size that the platform accepts. Without it, such posts are
	// rejected. Conversion requires ffmpeg and takes a lot of CPU time in the manager.
	// +optional
	Convert bool `json:"convert,omitempty"`

	// keepLocation keeps the location, as coordinates or as a name, in the metadata of photos and videos. Without it, Herald removes the
	// location for every platform. Pixels and frames are not changed.
	// +optional
	KeepLocation bool `json:"keepLocation,omitempty"`
}

// TeamPublishing sets how the web application publishes a team's posts.
type TeamPublishing struct {
	// undoSeconds is how long the web application waits after Publish now, in seconds. Until then, the post can be taken back. 0
	// publishes immediately. Posts from other clients are not delayed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=60
	UndoSeconds int32 `json:"undoSeconds,omitempty"`
}

// TeamBudget limits a team's objects in the cluster and its work in progress, which preserves capacity for other teams. Omitted fields
// default to the plan's values (docs/plans.md).
type TeamBudget struct {
	// posts is the maximum number of stored Posts, including finished and cancelled ones until they are deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	Posts *int32 `json:"posts,omitempty"`

	// postBytes is the maximum total size of these Posts in bytes: their spec and metadata as stored by the Kubernetes API, 2 KiB per
	// target for Herald's data, and 256 bytes per tree card and target.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1152921504606846976 : isQuantity(self) && !quantity(self).isLessThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('1Ei'))",message="must be a number of bytes, such as 1048576, 128Mi or 1.5Gi"
	PostBytes *resource.Quantity `json:"postBytes,omitempty"`

	// unfinishedPosts is the maximum number of draft, scheduled and processing Posts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	UnfinishedPosts *int32 `json:"unfinishedPosts,omitempty"`

	// pendingFiles is the maximum number of Media without a received file.
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

	// keys is the maximum number of APIKeys, including revoked and expired ones until they are deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Keys *int32 `json:"keys,omitempty"`
}

// BudgetItem is the name of a TeamBudget field.
// +kubebuilder:validation:Enum=posts;postBytes;unfinishedPosts;pendingFiles;pendingFileBytes;keys
type BudgetItem string

// The TeamBudget fields.
const (
	BudgetPosts            BudgetItem = "posts"
	BudgetPostBytes        BudgetItem = "postBytes"
	BudgetUnfinishedPosts  BudgetItem = "unfinishedPosts"
	BudgetPendingFiles     BudgetItem = "pendingFiles"
	BudgetPendingFileBytes BudgetItem = "pendingFileBytes"
	BudgetKeys             BudgetItem = "keys"
)

// BudgetQuota is the name of the ResourceQuota that limits the number of objects in a team's namespace.
const BudgetQuota = "budget.social.herald.dev"

// BudgetUse is the usage of a budget field.
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

// maxPercent is the maximum result of Percent. A budget may have been lowered below its usage.
const maxPercent = 1000

// Percent returns the usage as a percentage of the limit. Zero usage is 0 %, regardless of the limit.
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
	// namespace of the team, with its connections, keys, media and posts. Herald creates it. Immutable and unique among teams; kube-* names
	// and existing namespaces without Herald's label are rejected.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a team's namespace cannot be changed; create another Team instead"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('kube-') && self != 'default'",message="kube-* namespaces and the default namespace cannot belong to a team"
	Namespace string `json:"namespace"`

	// displayName is the team's human-readable name.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	DisplayName string `json:"displayName,omitempty"`

	// subscription of the team. Defaults to an active unlimited one.
	// +optional
	// +kubebuilder:default={}
	Subscription Subscription `json:"subscription,omitzero"`

	// budget limits the team's objects in the cluster and its work in progress. Omitted fields default to the plan's values; a team on
	// trial has the starter plan's values.
	// +optional
	Budget TeamBudget `json:"budget,omitzero"`

	// agents sets the permissions of MCP agents. By default, they are limited only by their key or grant.
	// +optional
	// +kubebuilder:default={}
	Agents Agents `json:"agents,omitzero"`

	// media sets how photos and videos are changed before publication.
	// +optional
	Media TeamMedia `json:"media,omitzero"`

	// publishing sets how the web application publishes posts.
	// +optional
	Publishing TeamPublishing `json:"publishing,omitzero"`

	// timeZone is the IANA name of the team's time zone, such as Europe/Berlin. The web application shows times and plans posts in this
	// zone, and also shows a user's own time where it differs. Without it, each user's own time zone applies.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^(UTC|[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){1,2})$')",message="must be the IANA name of a time zone, such as Europe/Berlin, America/New_York or UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// suspend stops publishing for the team. While it is true, posts are accepted and prepared but not published. Running calls finish and
	// are recorded. Deadlines are extended by the time spent suspended. Due posts are published when suspend is false again.
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

	// usage is the team's plan usage.
	// +optional
	Usage *TeamUsage `json:"usage,omitempty"`

	// archive describes the team's archived posts; absent until a post is archived.
	// +optional
	Archive *TeamArchive `json:"archive,omitempty"`

	// suspensions are the team's suspended periods, by spec.suspend or the manager's configuration, oldest first. Periods that affect no
	// post deadline are dropped. The team is suspended while the last period has no end.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Suspensions []Suspension `json:"suspensions,omitempty"`

	// shard is the shard that delivers the team's posts; absent if the installation has one shard. The leader sets it once, and changes it
	// only to move the team.
	// +optional
	// +kubebuilder:validation:MaxLength=2
	// +kubebuilder:validation:Pattern=`^[0-9]{2}$`
	Shard string `json:"shard,omitempty"`

	// move is the team's last move to the shard in status.shard. The team is suspended until all its posts have the label of that shard.
	// +optional
	Move *ShardMove `json:"move,omitempty"`
}

// ShardMove is a team's move from one shard to another.
type ShardMove struct {
	// from is the previous shard.
	// +required
	// +kubebuilder:validation:MaxLength=2
	// +kubebuilder:validation:Pattern=`^[0-9]{2}$`
	From string `json:"from"`

	// since is when the move started.
	// +required
	Since Time `json:"since"`

	// until is when the move ended; absent while it lasts.
	// +optional
	Until *Time `json:"until,omitempty"`
}

// Moving reports whether the team is being moved to another shard.
func (t *Team) Moving() bool { return t.Status.Move != nil && t.Status.Move.Until == nil }

// Suspension is a period without publishing for a team.
type Suspension struct {
	// from is when the suspension started.
	// +required
	From Time `json:"from"`

	// until is when the suspension ended; absent while it lasts.
	// +optional
	Until *Time `json:"until,omitempty"`
}

// Suspended reports whether publishing is suspended for the team: spec.suspend is set, the team is being moved to another shard, or its last
// suspension has no end.
func (t *Team) Suspended() bool {
	last := len(t.Status.Suspensions) - 1
	return t.Spec.Suspend || t.Moving() || last >= 0 && t.Status.Suspensions[last].Until == nil
}

// TeamArchive describes a team's archived posts.
type TeamArchive struct {
	// revision of the team's archive lists. It increases with each change and invalidates cached lists.
	// +required
	// +kubebuilder:validation:Minimum=0
	Revision int64 `json:"revision"`

	// posts is the number of archived posts.
	// +required
	// +kubebuilder:validation:Minimum=0
	Posts int64 `json:"posts"`
}

// TeamUsage is a team's plan usage.
type TeamUsage struct {
	// xPostsThisMonth is the number of published or pending posts to X in the current month (UTC). Each account and each tree card counts;
	// drafts do not. Absent if the team's plan does not limit them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	XPostsThisMonth *int32 `json:"xPostsThisMonth,omitempty"`

	// connectedAccounts is the number of enabled connections, including those in excess of the plan.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	ConnectedAccounts int32 `json:"connectedAccounts"`

	// budget is the usage of each budget field, updated within a minute.
	// +optional
	// +listType=map
	// +listMapKey=item
	// +kubebuilder:validation:MaxItems=16
	Budget []BudgetUse `json:"budget,omitempty"`
}

// Team owns a namespace with connections, API keys, media and posts.
//
// The name rule applies to new Teams only: existing Teams can always be updated and deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || size(self.metadata.name) <= 63",message="the name of a Team can have at most 63 characters, because it is the value of its namespace's label social.herald.dev/team; choose a shorter one",fieldPath=".metadata"
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
