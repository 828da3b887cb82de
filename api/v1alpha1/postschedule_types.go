// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScheduleLabel contains the name of the PostSchedule that created a Post.
const ScheduleLabel = "social.herald.dev/schedule"

// PostScheduleSpec is what to post, and when to repeat it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.startAt) || !has(self.endAt) || self.startAt <= self.endAt",message="endAt must not be before startAt",fieldPath=".endAt"
// +kubebuilder:validation:XValidation:rule="has(self.texts) || self.template.targets.all(t, size(t.?caption.orValue(\"\")) > 0)",message="every target needs a caption unless the schedule has texts",fieldPath=".template.targets"
type PostScheduleSpec struct {
	// schedule is a cron expression of five fields, such as "0 9 * * 1" for Mondays at nine, or one of @hourly, @daily, @weekly, @monthly
	// and @yearly. Occurrences are at least five minutes apart.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=') && !self.startsWith('@every')",message="set the time zone in timeZone, and use times of day instead of @every"
	Schedule string `json:"schedule"`

	// timeZone is the IANA name of the time zone of schedule, such as Europe/Berlin. Defaults to the team's time zone, or UTC. Posts keep
	// their time of day when clocks change: a skipped time moves by as much as the clocks do, and a time that occurs twice counts once.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^(UTC|[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){1,2})$')",message="must be the IANA name of a time zone, such as Europe/Berlin, America/New_York or UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// startAt is the earliest time of a post. Defaults to the creation of the schedule.
	// +optional
	StartAt *Time `json:"startAt,omitempty"`

	// endAt is the latest time of a post.
	// +optional
	EndAt *Time `json:"endAt,omitempty"`

	// count is the total number of posts that the schedule creates.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Count *int32 `json:"count,omitempty"`

	// suspend stops the creation of posts. Occurrences in the meantime are skipped. Posts that were already created are published.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// texts are the captions of successive posts, used in rotation. A target with its own caption keeps it. X rejects a text that repeats
	// a recent one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.map(t, size(t)).sum() <= 32768",message="the texts total more than 32,768 characters; shorten them, or create several schedules"
	Texts []string `json:"texts,omitempty"`

	// template is the content and the targets of each post. A change applies to posts that are created afterwards. A post is created an
	// hour before its time.
	// +required
	Template PostTemplate `json:"template"`
}

// PostTemplate is the content of a PostSchedule's posts. It has the fields of a Post's spec that make sense for several posts. Trees cannot
// recur, because their texts do not alternate.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) == (self.category == 'image')",message="the image block is required for category image, and not allowed for other categories",fieldPath=".image"
// +kubebuilder:validation:XValidation:rule="has(self.video) == (self.category == 'video')",message="the video block is required for category video, and not allowed for other categories",fieldPath=".video"
type PostTemplate struct {
	// category of the content.
	// +required
	// +kubebuilder:validation:XValidation:rule="self != 'tree'",message="a tree cannot recur; choose text, image or video"
	Category Category `json:"category"`

	// image is the content of posts of category image.
	// +optional
	Image *ImageContent `json:"image,omitempty"`

	// video is the content of posts of category video.
	// +optional
	Video *VideoContent `json:"video,omitempty"`

	// targets are the accounts to publish to. Each has its own caption, or uses the texts in rotation.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self.map(t, has(t.caption) ? size(t.caption) : 0).sum() <= 32768",message="the captions of all targets total more than 32,768 characters; shorten them, or create several schedules"
	Targets []PostTarget `json:"targets"`

	// onUnknownOutcome determines the reaction to a call whose outcome the platform cannot determine: "fail" waits for a user's answer;
	// "retry" sends the post again, which may publish it twice.
	// +optional
	// +kubebuilder:default=fail
	OnUnknownOutcome UnknownOutcomePolicy `json:"onUnknownOutcome,omitempty"`
}

// PostScheduleStatus is the observed state of a schedule.
type PostScheduleStatus struct {
	// conditions of the schedule: Ready; Reconciling while a post cannot be created; Stalled if the schedule or its template is invalid;
	// TextRepeats while X is likely to reject its posts.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions are based on; -1 until Herald has processed the object.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// posts is how many posts the schedule has created. It selects the next of the texts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Posts int32 `json:"posts,omitempty"`

	// lastScheduledTime is the time of the latest post that was created. Earlier occurrences do not get another post.
	// +optional
	LastScheduledTime *Time `json:"lastScheduledTime,omitempty"`

	// nextScheduledTime is the time of the next post, which is created an hour earlier. Absent while the schedule is suspended or
	// complete.
	// +optional
	NextScheduledTime *Time `json:"nextScheduledTime,omitempty"`

	// skippedThrough is the time up to which occurrences without a post are skipped, because the schedule was suspended or they were
	// overdue by more than the starting deadline.
	// +optional
	SkippedThrough *Time `json:"skippedThrough,omitempty"`
}

// GetConditions returns the conditions.
func (s *PostScheduleStatus) GetConditions() []metav1.Condition { return s.Conditions }

// PostSchedule creates Posts at recurring times, as a CronJob creates Jobs. Deleting it deletes its Posts, which withdraws those that are not
// yet published; `kubectl delete --cascade=orphan` keeps them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hsched,categories=herald
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Time Zone",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Posts",type=integer,JSONPath=`.status.posts`
// +kubebuilder:printcolumn:name="Last",type=string,priority=1,JSONPath=`.status.lastScheduledTime`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduledTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 48",message="the name must have at most 48 characters: the names of posts add their time, and labels have at most 63",fieldPath=".metadata"
type PostSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to post, and when to repeat it.
	// +required
	Spec PostScheduleSpec `json:"spec"`

	// status is the observed state of the schedule.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status PostScheduleStatus `json:"status,omitzero"`
}

// PostScheduleList is a list of schedules.
//
// +kubebuilder:object:root=true
type PostScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PostSchedule `json:"items"`
}
