// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

	// trialEndsAt is when a trial ends. Omitted, a trial ends seven days after the
	// Team was created.
	// +optional
	TrialEndsAt *Time `json:"trialEndsAt,omitempty"`
}

// AgentPublishing says what becomes of a post that an agent wants to publish.
// +kubebuilder:validation:Enum=allowed;asDraft
type AgentPublishing string

const (
	// AgentsMayPublish delivers it like any other.
	AgentsMayPublish AgentPublishing = "allowed"
	// AgentsDraft keeps it as a draft, until a person publishes it in the web application.
	AgentsDraft AgentPublishing = "asDraft"
)

// Agents is what a team lets agents do, which come by the MCP server.
type Agents struct {
	// publishing says what becomes of a post that an agent wants to publish: "allowed"
	// delivers it like any other; "asDraft" keeps it as a draft, with the time that was
	// wanted, until a person publishes it in the web application.
	// +optional
	// +kubebuilder:default=allowed
	Publishing AgentPublishing `json:"publishing,omitempty"`
}

// TeamMedia is what becomes of a team's photos and videos on their way to platforms.
type TeamMedia struct {
	// convert converts a video for a platform that does not take it as it is, and would take
	// it with another size, frame rate, codec or number of bytes. Without it such a post is
	// refused. It needs ffmpeg, and takes much time of the manager's processors.
	// +optional
	Convert bool `json:"convert,omitempty"`

	// keepLocation sends photos and videos with the place where they were taken, by
	// coordinates or by name, as their files say it. Without it Herald takes the place out
	// for every platform. Neither a pixel nor a frame is touched.
	// +optional
	KeepLocation bool `json:"keepLocation,omitempty"`
}

// TeamBudget is how much a team may keep in the cluster and have under way, so that no
// team fills it for the others. What is left out is as the plan has it (docs/plans.md).
type TeamBudget struct {
	// posts is how many Posts the team may store: finished and cancelled ones
	// count until they are deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	Posts *int32 `json:"posts,omitempty"`

	// postBytes is how many bytes those Posts may have together: their spec and
	// metadata, as the Kubernetes API stores them, 2 KiB for what Herald writes of each
	// target, and 256 bytes for each card of a tree at each target.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1152921504606846976 : isQuantity(self) && !quantity(self).isLessThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('1Ei'))",message="must be a number of bytes, such as 1048576, 128Mi or 1.5Gi"
	PostBytes *resource.Quantity `json:"postBytes,omitempty"`

	// unfinishedPosts is how many of them may be drafts, scheduled or being
	// delivered.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	UnfinishedPosts *int32 `json:"unfinishedPosts,omitempty"`

	// pendingFiles is how many Media may wait for their files.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	PendingFiles *int32 `json:"pendingFiles,omitempty"`

	// pendingFileBytes is how many bytes the files may have together that are
	// waited for.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1152921504606846976 : isQuantity(self) && !quantity(self).isLessThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('1Ei'))",message="must be a number of bytes, such as 1048576, 128Mi or 1.5Gi"
	PendingFileBytes *resource.Quantity `json:"pendingFileBytes,omitempty"`

	// keys is how many APIKeys the team may have: revoked and expired ones count
	// until they are deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Keys *int32 `json:"keys,omitempty"`
}

// BudgetItem is a field of a TeamBudget.
// +kubebuilder:validation:Enum=posts;postBytes;unfinishedPosts;pendingFiles;pendingFileBytes;keys
type BudgetItem string

// The fields of a TeamBudget, by their names.
const (
	BudgetPosts            BudgetItem = "posts"
	BudgetPostBytes        BudgetItem = "postBytes"
	BudgetUnfinishedPosts  BudgetItem = "unfinishedPosts"
	BudgetPendingFiles     BudgetItem = "pendingFiles"
	BudgetPendingFileBytes BudgetItem = "pendingFileBytes"
	BudgetKeys             BudgetItem = "keys"
)

// BudgetQuota is the name of the ResourceQuota that bounds a team's objects, in the
// team's namespace.
const BudgetQuota = "budget.social.herald.dev"

// BudgetUse is how much of one field of a budget is used.
type BudgetUse struct {
	// item is the field of Team.spec.budget.
	// +required
	Item BudgetItem `json:"item"`

	// used is how much is used: objects, or bytes.
	// +required
	// +kubebuilder:validation:Minimum=0
	Used int64 `json:"used"`

	// limit is how much the team may use.
	// +required
	// +kubebuilder:validation:Minimum=0
	Limit int64 `json:"limit"`
}

// maxPercent is the most that Percent tells: a budget may have been lowered below what is used.
const maxPercent = 1000

// Percent is how full the field is. One that nothing uses is empty, whatever its limit.
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

	// budget is how much the team may keep in the cluster and have under way.
	// What is left out is as the plan has it; a team on trial has that of the
	// starter plan.
	// +optional
	Budget TeamBudget `json:"budget,omitzero"`

	// agents says what agents may do that come by the MCP server. Omitted, they may do
	// what their key or their grant allows.
	// +optional
	// +kubebuilder:default={}
	Agents Agents `json:"agents,omitzero"`

	// media says what becomes of photos and videos on their way to platforms.
	// +optional
	Media TeamMedia `json:"media,omitzero"`

	// suspend is the team's brake: while it is true, posts are accepted and prepared,
	// and nothing is published. Calls under way end and are recorded. Deadlines move
	// along by the time suspended; what is due goes out when it is false again.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// retention is how long finished posts are kept in the cluster, and how long in
	// the archive.
	// +optional
	Retention TeamRetention `json:"retention,omitzero"`

	// ttlAfterFinished is the older name of retention.archived, which is read where
	// that is not written. Deprecated: write retention.archived.
	// +optional
	TTLAfterFinished *Duration `json:"ttlAfterFinished,omitempty"`
}

// TeamStatus is what the manager found and did.
type TeamStatus struct {
	// conditions of the team: Ready; Suspended while nothing of it is published.
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

	// usage is what the team has used of what its plan limits.
	// +optional
	Usage *TeamUsage `json:"usage,omitempty"`

	// archive is how many posts of the team are in the archive; absent while none was
	// ever archived.
	// +optional
	Archive *TeamArchive `json:"archive,omitempty"`

	// suspensions are the times in which nothing of the team was published, by
	// spec.suspend or by the manager's configuration: the first one first, without
	// those that no deadline of a post can depend on any more. While the last one has
	// no end, the team is suspended.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Suspensions []Suspension `json:"suspensions,omitempty"`
}

// Suspension is a time in which nothing of a team was published.
type Suspension struct {
	// from is when it began.
	// +required
	From Time `json:"from"`

	// until is when it ended; absent while it lasts.
	// +optional
	Until *Time `json:"until,omitempty"`
}

// Suspended reports whether nothing of the team is to be published: it says so itself, or its
// last suspension has not been ended yet.
func (t *Team) Suspended() bool {
	last := len(t.Status.Suspensions) - 1
	return t.Spec.Suspend || last >= 0 && t.Status.Suspensions[last].Until == nil
}

// TeamArchive is what the archive holds of a team.
type TeamArchive struct {
	// revision of the team's lists in the archive. It grows with each change, and tells
	// who keeps lists in memory that there are newer ones.
	// +required
	// +kubebuilder:validation:Minimum=0
	Revision int64 `json:"revision"`

	// posts is how many posts the archive holds.
	// +required
	// +kubebuilder:validation:Minimum=0
	Posts int64 `json:"posts"`
}

// TeamUsage is what a team has used of what its plan limits.
type TeamUsage struct {
	// xPostsThisMonth counts the posts to X that are published, or are to be,
	// in the present month (UTC). Each account and each card of a tree counts;
	// drafts do not. Absent for a team whose plan does not limit them: nobody
	// counts those.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	XPostsThisMonth *int32 `json:"xPostsThisMonth,omitempty"`

	// connectedAccounts counts the team's connections that are not disabled,
	// also those beyond what its plan allows.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	ConnectedAccounts int32 `json:"connectedAccounts"`

	// budget is how much the team uses of each field of its budget, as of a minute
	// ago.
	// +optional
	// +listType=map
	// +listMapKey=item
	// +kubebuilder:validation:MaxItems=16
	Budget []BudgetUse `json:"budget,omitempty"`
}

// Team owns a namespace with connections, API keys, media and posts.
//
// The rule about its name holds new ones alone: a Team that exists can always be written, and so deleted.
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

	// spec is what is wanted.
	// +required
	Spec TeamSpec `json:"spec"`

	// status is what is.
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
