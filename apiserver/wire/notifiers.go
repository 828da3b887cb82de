// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// The limits of the Notifier resource.
const (
	maxNotifierName = 63
	maxAddress      = 2048
	maxRecipients   = 10
	maxRecipient    = 254
	maxDelivery     = 64
)

// notifierEvents are the events of notifiers.
var notifierEvents = []v1alpha1.NotifierEvent{
	v1alpha1.EventPostPosted, v1alpha1.EventPostFailed, v1alpha1.EventPostNeedsAttention,
	v1alpha1.EventConnectionBroken, v1alpha1.EventConnectionExpiring, v1alpha1.EventMediaRejected,
}

var notifierFormats = []v1alpha1.NotifierFormat{v1alpha1.FormatStandardWebhooks, v1alpha1.FormatSlack, v1alpha1.FormatEmail}

// CreateNotifier decodes the body of createNotifier. The error is a *bridge.Error.
func CreateNotifier(body strictjson.Value) (name string, content bridge.NotifierContent, err error) {
	name = body.Field("name").Text(1, maxNotifierName)
	content.Format = v1alpha1.FormatStandardWebhooks
	if format := body.Optional("format"); format.IsSet() {
		content.Format = strictjson.OneOf(format, notifierFormats...)
	}
	if events := body.Field("events"); !events.IsSet() {
		events.Refuse("is missing")
	}
	notifierFields(body, &content)
	return name, content, refusedWith(body, nil)
}

// UpdateNotifier decodes the body of updateNotifier: the fields to replace in the stored content. Fields that the body
// lacks keep their value. The error is a *bridge.Error.
func UpdateNotifier(body strictjson.Value, content bridge.NotifierContent) (bridge.NotifierContent, error) {
	if format := body.Optional("format"); format.IsSet() {
		if read := strictjson.OneOf(format, notifierFormats...); read != "" && read != content.Format {
			format.Refuse("cannot be changed; create a new notifier instead")
		}
	}
	notifierFields(body, &content)
	return content, refusedWith(body, nil)
}

// notifierFields decodes the optional fields of a notifier.
func notifierFields(body strictjson.Value, content *bridge.NotifierContent) {
	if address := body.Optional("url"); address.IsSet() {
		content.URL = address.OrNull().Text(0, maxAddress)
	}
	if to := body.Optional("email_to"); to.IsSet() {
		content.To = strictjson.List(to, 0, maxRecipients, func(v strictjson.Value) string { return v.Text(1, maxRecipient) })
	}
	if events := body.Optional("events"); events.IsSet() {
		content.Events = strictjson.List(events, 1, len(notifierEvents), func(v strictjson.Value) v1alpha1.NotifierEvent {
			return strictjson.OneOf(v, notifierEvents...)
		})
	}
	if suspend := body.Optional("suspend"); suspend.IsSet() {
		content.Suspend = suspend.Bool()
	}
}

// ResendDelivery decodes the body of resendDelivery: the id of a notification. The error is a *bridge.Error.
func ResendDelivery(body strictjson.Value) (id string, err error) {
	id = body.Field("delivery_id").Text(1, maxDelivery)
	return id, refusedWith(body, nil)
}

// AppendNotifiers appends the response to listNotifiers.
func AppendNotifiers(b []byte, notifiers []bridge.Notifier) []byte {
	return append(appendList(append(b, `{"data":`...), notifiers, appendNotifier), '}')
}

// AppendNotifier appends the response to the operations that return a notifier.
func AppendNotifier(b []byte, notifier *bridge.Notifier) []byte {
	return append(appendNotifier(append(b, `{"data":`...), notifier), '}')
}

// AppendDeliveries appends the response to listDeliveries.
func AppendDeliveries(b []byte, of *bridge.Notifier) []byte {
	return append(appendList(append(b, `{"data":`...), of.Status.Deliveries, func(b []byte, d *v1alpha1.NotifierDelivery) []byte {
		return appendDelivery(b, of, d)
	}), '}')
}

// AppendDelivery appends the response to resendDelivery.
func AppendDelivery(b []byte, of *bridge.Notifier, d *v1alpha1.NotifierDelivery) []byte {
	return append(appendDelivery(append(b, `{"data":`...), of, d), '}')
}

func appendNotifier(b []byte, of *bridge.Notifier) []byte {
	content := bridge.ContentOf(of.Notifier)
	b = appendString(append(b, `{"name":`...), of.Name)
	b = appendString(append(b, `,"format":`...), content.Format)
	b = appendStringOrNull(append(b, `,"url":`...), content.URL)
	b = appendList(append(b, `,"email_to":`...), content.To, func(b []byte, to *string) []byte { return appendString(b, *to) })
	b = appendList(append(b, `,"events":`...), content.Events, func(b []byte, e *v1alpha1.NotifierEvent) []byte { return appendString(b, *e) })
	b = strconv.AppendBool(append(b, `,"suspend":`...), content.Suspend)
	b = appendStringOrNull(append(b, `,"signing_secret":`...), of.SigningSecret)
	reason, message := "", ""
	if ready := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionReady); ready != nil && of.Status.ObservedGeneration == of.Generation {
		reason, message = ready.Reason, ready.Message
	}
	b = appendStringOrNull(append(b, `,"state":`...), reason)
	b = appendStringOrNull(append(b, `,"message":`...), message)
	since, problem := time.Time{}, ""
	if failing := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionFailing); failing != nil {
		since, problem = failing.LastTransitionTime.Time, failing.Message
	}
	b = appendTimeOrNull(append(b, `,"failing_since":`...), since)
	b = appendStringOrNull(append(b, `,"failing_message":`...), problem)
	b = strconv.AppendInt(append(b, `,"pending":`...), int64(of.Status.Pending), 10)
	b = appendOptionalTime(append(b, `,"last_delivered_at":`...), of.Status.LastDeliveredAt)
	b = appendTime(append(b, `,"created_at":`...), of.CreationTimestamp.Time)
	b = appendString(append(b, `,"version":`...), of.Version)
	return append(b, '}')
}

func appendDelivery(b []byte, of *bridge.Notifier, d *v1alpha1.NotifierDelivery) []byte {
	b = appendString(append(b, `{"id":`...), d.ID)
	b = appendString(append(b, `,"event":`...), d.Event)
	b = appendString(append(b, `,"object":`...), strings.ToLower(d.Kind))
	b = appendString(append(b, `,"object_id":`...), d.Name)
	b = appendTime(append(b, `,"occurred_at":`...), d.OccurredAt.Time)
	b = appendString(append(b, `,"state":`...), d.State)
	b = strconv.AppendInt(append(b, `,"attempts":`...), int64(d.Attempts), 10)
	b = appendOptionalTime(append(b, `,"last_attempt_at":`...), d.LastAttemptAt)
	b = appendStringOrNull(append(b, `,"message":`...), d.Message)
	b = strconv.AppendBool(append(b, `,"resend_requested":`...), of.IsRequested(d.ID))
	return append(b, '}')
}
