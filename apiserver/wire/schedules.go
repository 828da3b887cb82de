// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/strictjson"
	"github.com/herald-social/herald/posting"
)

// These limits equal those of the CRD.
const (
	maxScheduleName    = 48
	maxExpression      = 128
	maxZone            = 64
	maxScheduleTexts   = 100
	maxScheduleText    = 32768
	maxScheduleTargets = 20
)

// CreateSchedule decodes the body of createSchedule. The error is a *bridge.Error.
func CreateSchedule(body strictjson.Value) (name string, spec v1alpha1.PostScheduleSpec, err error) {
	name = body.Field("name").Text(1, maxScheduleName)
	spec.Schedule = body.Field("schedule").Text(1, maxExpression)
	template := &spec.Template
	template.Category = strictjson.OneOf(body.Field("category"), v1alpha1.CategoryImage, v1alpha1.CategoryText, v1alpha1.CategoryVideo)
	switch template.Category {
	case v1alpha1.CategoryImage:
		template.Image = &v1alpha1.ImageContent{}
	case v1alpha1.CategoryVideo:
		template.Video = &v1alpha1.VideoContent{}
	case v1alpha1.CategoryText, v1alpha1.CategoryTree:
	}
	requireFields(body, template)
	var problems []string
	scheduleFields(body, &spec, &problems)
	return name, spec, refusedWith(body, problems)
}

// requireFields refuses a new schedule without accounts or files.
func requireFields(body strictjson.Value, template *v1alpha1.PostTemplate) {
	needs := []string{"targets"}
	switch {
	case template.Image != nil:
		needs = append(needs, "media_ids")
	case template.Video != nil:
		needs = append(needs, "media_id")
	}
	for _, name := range needs {
		if field := body.Field(name); !field.IsSet() {
			field.Refuse("is missing")
		}
	}
}

// UpdateSchedule decodes the body of updateSchedule: the fields to replace in a stored schedule. Fields that the body
// lacks keep their value. The error is a *bridge.Error.
func UpdateSchedule(body strictjson.Value, stored *v1alpha1.PostScheduleSpec) (v1alpha1.PostScheduleSpec, error) {
	spec := *stored.DeepCopy()
	if category := body.Optional("category"); category.IsSet() {
		if read := strictjson.OneOf(category, categories...); read != "" && read != stored.Template.Category {
			category.Refuse("cannot be changed; create a new schedule instead")
		}
	}
	if expression := body.Optional("schedule"); expression.IsSet() {
		spec.Schedule = expression.Text(1, maxExpression)
	}
	var problems []string
	scheduleFields(body, &spec, &problems)
	return spec, refusedWith(body, problems)
}

// refusedWith is like refused, but adds problems that the schedule cannot represent.
func refusedWith(body strictjson.Value, more []string) error {
	problems, unlisted := body.Problems()
	if problems = append(slices.Clip(problems), more...); len(problems) == 0 {
		return nil
	}
	return &bridge.Error{Code: bridge.CodeValidation, Message: bridge.JoinFirst(problems, unlisted)}
}

// scheduleFields decodes the optional fields of a schedule into spec.
func scheduleFields(body strictjson.Value, spec *v1alpha1.PostScheduleSpec, problems *[]string) {
	if zone := body.Optional("time_zone"); zone.IsSet() {
		spec.TimeZone = zone.OrNull().Text(0, maxZone)
	}
	scheduleTime(body.Optional("start_at"), &spec.StartAt)
	scheduleTime(body.Optional("end_at"), &spec.EndAt)
	if count := body.Optional("count"); count.IsSet() {
		spec.Count = strictjson.Pointer(count.OrNull(), func(v strictjson.Value) int32 { return int32(min(v.Integer(1), math.MaxInt32)) }) //nolint:gosec // a count is bounded by min
	}
	if suspend := body.Optional("suspend"); suspend.IsSet() {
		spec.Suspend = suspend.Bool()
	}
	if texts := body.Optional("texts"); texts.IsSet() {
		spec.Texts = strictjson.List(texts, 0, maxScheduleTexts, func(v strictjson.Value) string { return v.Text(1, maxScheduleText) })
	}
	if targets := body.Optional("targets"); targets.IsSet() {
		spec.Template.Targets = strictjson.List(targets, 1, maxScheduleTargets, targetUpdater(spec.Template.Targets, spec.Template.Category, problems))
	}
	content := v1alpha1.PostSpec{Image: spec.Template.Image, Video: spec.Template.Video}
	updateFiles(body, &content)
}

func scheduleTime(v strictjson.Value, into **v1alpha1.Time) {
	if v.IsSet() {
		*into = strictjson.Pointer(v.OrNull(), func(v strictjson.Value) v1alpha1.Time { return v1alpha1.NewTime(v.Time()) })
	}
}

// AppendSchedules appends the response to listSchedules.
func AppendSchedules(b []byte, schedules []bridge.Schedule) []byte {
	return append(appendList(append(b, `{"data":`...), schedules, appendSchedule), '}')
}

// AppendSchedule appends the response to the operations that return a schedule.
func AppendSchedule(b []byte, schedule *bridge.Schedule) []byte {
	return append(appendSchedule(append(b, `{"data":`...), schedule), '}')
}

// AppendDeleted appends the response to deleteSchedule and deleteNotifier.
func AppendDeleted(b []byte, name string) []byte {
	b = appendString(append(b, `{"data":{"name":`...), name)
	return append(b, `,"deleted":true}}`...)
}

func appendSchedule(b []byte, of *bridge.Schedule) []byte {
	spec, template := &of.Spec, &of.Spec.Template
	b = appendString(append(b, `{"name":`...), of.Name)
	b = appendString(append(b, `,"schedule":`...), spec.Schedule)
	b = appendStringOrNull(append(b, `,"time_zone":`...), spec.TimeZone)
	b = appendOptionalTime(append(b, `,"start_at":`...), spec.StartAt)
	b = appendOptionalTime(append(b, `,"end_at":`...), spec.EndAt)
	b = append(b, `,"count":`...)
	if spec.Count == nil {
		b = append(b, `null`...)
	} else {
		b = strconv.AppendInt(b, int64(*spec.Count), 10)
	}
	b = strconv.AppendBool(append(b, `,"suspend":`...), spec.Suspend)
	b = appendList(append(b, `,"texts":`...), spec.Texts, func(b []byte, text *string) []byte { return appendString(b, *text) })
	b = appendString(append(b, `,"category":`...), template.Category)
	files := posting.OwnMedia(&v1alpha1.PostSpec{Image: template.Image, Video: template.Video})
	b = appendReferences(append(b, `,"media_ids":`...), files)
	b = appendFiles(b, files)
	b = appendThumbnailTime(append(b, `,"thumbnail_time":`...), template.Video)
	b = appendList(append(b, `,"targets":`...), template.Targets, appendScheduleTarget)
	b = appendScheduleState(b, of)
	b = appendTime(append(b, `,"created_at":`...), of.CreationTimestamp.Time)
	b = appendString(append(b, `,"version":`...), of.Version)
	return append(b, '}')
}

// appendScheduleState appends the status of a schedule and its computed state.
func appendScheduleState(b []byte, of *bridge.Schedule) []byte {
	reason, message := "", ""
	if ready := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionReady); ready != nil && of.Status.ObservedGeneration == of.Generation {
		reason, message = ready.Reason, ready.Message
	}
	b = appendStringOrNull(append(b, `,"state":`...), reason)
	b = appendStringOrNull(append(b, `,"message":`...), message)
	b = appendStringOrNull(append(b, `,"warning":`...), of.Warning)
	b = strconv.AppendInt(append(b, `,"posts":`...), int64(of.Status.Posts), 10)
	b = appendOptionalTime(append(b, `,"last_scheduled_at":`...), of.Status.LastScheduledTime)
	b = append(b, `,"upcoming":[`...)
	for i, at := range of.Upcoming {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTime(b, at)
	}
	return append(b, ']')
}

func appendScheduleTarget(b []byte, target *v1alpha1.PostTarget) []byte {
	b = appendString(append(b, `{"connection_id":`...), target.ConnectionRef.Name)
	b = appendStringOrNull(append(b, `,"caption":`...), target.Caption)
	title := ""
	if target.YouTube != nil {
		title = target.YouTube.Title
	}
	b = appendStringOrNull(append(b, `,"youtube_title":`...), title)
	return append(appendTarget(b, target), '}')
}

func appendOptionalTime(b []byte, at *v1alpha1.Time) []byte {
	if at == nil {
		return append(b, `null`...)
	}
	return appendTime(b, at.Time)
}
