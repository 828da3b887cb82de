// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Keys of the Secret that spec.secretRef of a Notifier names.
const (
	// NotifierSecretKey holds the secrets that sign webhooks, as whsec_ followed by 24 to 64 bytes in base64, separated by spaces or line
	// breaks. Each of them signs every request, so a secret can be replaced without interruption.
	NotifierSecretKey = "secret"
	// NotifierURLKey holds the URL of a receiver of format slack, which is a secret itself.
	NotifierURLKey = "url"
)

// ResendAnnotation on a Notifier is the id, from status.deliveries, of a notification to send again. Text after a space is ignored, so a
// changed value can request the same notification once more.
const ResendAnnotation = "social.herald.dev/resend"

// SecretsMadeAnnotation on a Notifier counts the Secrets that the API created for it. They exist until the Notifier is deleted.
const SecretsMadeAnnotation = "social.herald.dev/secrets-made"

// NotifierFormat determines how notifications are sent.
// +kubebuilder:validation:Enum=standard-webhooks;slack;email
type NotifierFormat string

// The formats.
const (
	FormatStandardWebhooks NotifierFormat = "standard-webhooks"
	FormatSlack            NotifierFormat = "slack"
	FormatEmail            NotifierFormat = "email"
)

// NotifierEvent is the type of a notification.
// +kubebuilder:validation:Enum=post.posted;post.failed;post.needs_attention;connection.broken;connection.expiring;media.rejected
type NotifierEvent string

// The events.
const (
	// EventPostPosted: a post was published on every target.
	EventPostPosted NotifierEvent = "post.posted"
	// EventPostFailed: a post was not published on at least one target, and is not retried.
	EventPostFailed NotifierEvent = "post.failed"
	// EventPostNeedsAttention: a user has to determine whether a target was published.
	EventPostNeedsAttention NotifierEvent = "post.needs_attention"
	// EventConnectionBroken: an account accepts no posts until a user reconnects or corrects it.
	EventConnectionBroken NotifierEvent = "connection.broken"
	// EventConnectionExpiring: an account must be reconnected within a week.
	EventConnectionExpiring NotifierEvent = "connection.expiring"
	// EventMediaRejected: a file does not match its description, or changed after verification.
	EventMediaRejected NotifierEvent = "media.rejected"
)

// NotifierSpec is what to report, and to whom.
//
// +kubebuilder:validation:XValidation:rule="self.format == 'email' || !has(self.email)",message="email is only allowed for format email; remove it",fieldPath=".email"
// +kubebuilder:validation:XValidation:rule="self.format != 'email' || has(self.email)",message="format email requires email",fieldPath=".email"
// +kubebuilder:validation:XValidation:rule="self.format != 'email' || !has(self.url)",message="url is not allowed for format email; list the recipients in email.to",fieldPath=".url"
// +kubebuilder:validation:XValidation:rule="self.format != 'email' || !has(self.secretRef)",message="secretRef is not allowed for format email; remove it: the mail server is part of Herald's configuration",fieldPath=".secretRef"
// +kubebuilder:validation:XValidation:rule="self.format != 'standard-webhooks' || has(self.url)",message="format standard-webhooks requires url",fieldPath=".url"
// +kubebuilder:validation:XValidation:rule="self.format != 'standard-webhooks' || has(self.secretRef)",message="format standard-webhooks requires secretRef, whose secret signs the requests",fieldPath=".secretRef"
// +kubebuilder:validation:XValidation:rule="self.format != 'slack' || has(self.url) != has(self.secretRef)",message="format slack requires either secretRef, with the URL in the key url, or url",fieldPath=".secretRef"
type NotifierSpec struct {
	// format determines how notifications are sent: "standard-webhooks" as signed JSON (https://www.standardwebhooks.com), "slack" as text
	// to an incoming webhook of Slack or a compatible service, "email" as plain text through the installation's mail server.
	// +optional
	// +kubebuilder:default=standard-webhooks
	Format NotifierFormat `json:"format,omitempty"`

	// url is the receiver's URL. It must start with https:// and resolve to a public address. Redirects are not followed. Users who can
	// read the Notifier can see it; the URL of format slack is a secret, so keep it in the Secret that secretRef names.
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://[^/?#@\s]+([/?#]\S*)?$`
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="not a valid URL"
	URL string `json:"url,omitempty"`

	// secretRef names the Secret in this namespace that holds, for format standard-webhooks, the secret that signs requests in the key
	// secret, or for format slack the receiver's URL in the key url.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// events are the events to report.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Events []NotifierEvent `json:"events"`

	// email holds the options of format email.
	// +optional
	Email *NotifierEmail `json:"email,omitempty"`

	// suspend stops deliveries. Meanwhile, notifications wait for up to a day.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// NotifierEmail holds the options of format email.
type NotifierEmail struct {
	// to are the recipients' addresses.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=254
	// +kubebuilder:validation:items:Pattern="^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)*$"
	To []string `json:"to"`
}

// DeliveryState is the state of a notification.
// +kubebuilder:validation:Enum=pending;delivered;failed
type DeliveryState string

// The states.
const (
	// DeliveryPending: the notification has not been accepted by the receiver, and will be retried.
	DeliveryPending DeliveryState = "pending"
	// DeliveryDelivered: the receiver accepted the notification.
	DeliveryDelivered DeliveryState = "delivered"
	// DeliveryFailed: the receiver did not accept the notification within a day.
	DeliveryFailed DeliveryState = "failed"
)

// NotifierDelivery is the record of a notification.
type NotifierDelivery struct {
	// id identifies the notification. Repeated requests have the same id, in the webhook-id or Message-ID header.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// event is the type of the notification.
	// +required
	Event NotifierEvent `json:"event"`

	// kind of the object that the notification is about: Post, Connection or Media.
	// +required
	// +kubebuilder:validation:Enum=Post;Connection;Media
	Kind string `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the object.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`

	// occurredAt is when the event occurred.
	// +required
	OccurredAt Time `json:"occurredAt"`

	// state of the delivery.
	// +required
	State DeliveryState `json:"state"`

	// attempts is the number of times the notification was sent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempts int32 `json:"attempts,omitempty"`

	// lastAttemptAt is when the notification was last sent; absent if it never was.
	// +optional
	LastAttemptAt *Time `json:"lastAttemptAt,omitempty"`

	// message explains why the last attempt failed; absent otherwise.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// Limits of a Notifier's status.deliveries.
const (
	// MaxPendingDeliveries and MaxFinishedDeliveries limit the recorded notifications.
	MaxPendingDeliveries  = 200
	MaxFinishedDeliveries = 50
	// MaxDeliveryMessage limits message, in characters.
	MaxDeliveryMessage = 256
)

// NotifierStatus is the observed state of a notifier. Only the manager writes it, as a whole; it is atomic because managedFields would
// otherwise list each of its fields.
//
// +structType=atomic
type NotifierStatus struct {
	// conditions of the notifier: Ready; Failing while the receiver does not accept notifications; Reconciling and Stalled while they
	// apply.
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

	// processedThrough is the time up to which every event was delivered, has failed, or is one of the pending deliveries. After a restart,
	// the manager looks for later events.
	// +optional
	ProcessedThrough *Time `json:"processedThrough,omitempty"`

	// pending is the number of notifications awaiting delivery.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pending int32 `json:"pending,omitempty"`

	// lastDeliveredAt is when the receiver last accepted a notification.
	// +optional
	LastDeliveredAt *Time `json:"lastDeliveredAt,omitempty"`

	// lastHandledResend echoes the latest handled value of the annotation social.herald.dev/resend.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledResend string `json:"lastHandledResend,omitempty"`

	// deliveries are the oldest 200 pending notifications, followed by the latest 50 others, each group newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=250
	Deliveries []NotifierDelivery `json:"deliveries,omitempty"`
}

// GetConditions returns the conditions.
func (s *NotifierStatus) GetConditions() []metav1.Condition { return s.Conditions }

// Notifier reports events of its namespace's posts, connections and media to another system or to people. Notifications are delivered at
// least once, retried for up to a day, and sent in order for each object.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hnot,categories=herald
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=`.spec.format`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Failing",type=string,JSONPath=`.status.conditions[?(@.type=="Failing")].status`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="Last",type=string,priority=1,JSONPath=`.status.lastDeliveredAt`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Failing")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Notifier struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to report, and to whom.
	// +required
	Spec NotifierSpec `json:"spec"`

	// status is the observed state of the notifier.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status NotifierStatus `json:"status,omitzero"`
}

// NotifierList is a list of notifiers.
//
// +kubebuilder:object:root=true
type NotifierList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Notifier `json:"items"`
}
