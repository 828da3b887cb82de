// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// readSchedule reads the form for the schedule in the address, or for a new one.
func (s *Site) readSchedule(w http.ResponseWriter, v *visit) (*scheduleForm, error) {
	written, err := s.readForm(w, v)
	if err != nil {
		return nil, err
	}
	f := &scheduleForm{composer: &composer{title: "New schedule", action: v.path(pageSchedules + "/new"), check: v.path(pageSchedules + "/check")}, name: nameFrom(v.PostForm.Get("name"))}
	if id := v.PathValue("id"); id != "" {
		stored, err := s.Service.GetSchedule(v.Context(), v.caller, id)
		if err != nil {
			return nil, err
		}
		f = v.storedForm(&stored)
		written.category = stored.Spec.Template.Category
	}
	if written.category == v1alpha1.CategoryTree {
		written.category = v1alpha1.CategoryText
	}
	f.writing = written
	for _, entered := range v.PostForm["text"] {
		if len(f.texts) < formTexts {
			f.texts = append(f.texts, text(entered))
		}
	}
	if len(f.texts) == 0 {
		f.texts = []string{""}
	}
	f.repeat, f.timeZone = readRepeat(v.PostForm), cmp.Or(strings.TrimSpace(v.PostForm.Get("time_zone")), v.zone.String())
	f.from, f.until, f.count = v.PostForm.Get("from"), v.PostForm.Get("until"), strings.TrimSpace(v.PostForm.Get("count"))
	return f, nil
}

// nameFrom converts entered text to a resource name.
func nameFrom(entered string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimSpace(entered)))
	parts := strings.FieldsFunc(clean, func(r rune) bool { return r == '-' })
	return strings.Join(parts, "-")
}

// Errors for a form that cannot be turned into a schedule.
var (
	errNoName   = errors.New("give the schedule a name with letters from a to z or digits")
	errNoText   = errors.New("write at least one text, or a different text for each account")
	errBadCount = errors.New("the number of posts must be a whole number from 1 to 1,000,000; leave it empty for no limit")
	errBadDays  = errors.New("choose the first and the last day from the calendar, or leave them empty")
)

// maxCount is the schema's limit on a schedule's posts.
const maxCount = 1_000_000

// spec returns the schedule that the form describes, as far as it is valid, and the first error in the form's order.
func (f *scheduleForm) spec(platformOf func(connection string) v1alpha1.Platform) (v1alpha1.PostScheduleSpec, error) {
	var spec v1alpha1.PostScheduleSpec
	if f.stored != nil {
		spec = *f.stored.Spec.DeepCopy()
	}
	ofTimes := f.timesOf(&spec)
	if err := f.contentOf(&spec, platformOf); err != nil {
		return spec, err
	}
	return spec, ofTimes
}

// contentOf sets the content of a schedule's posts.
func (f *scheduleForm) contentOf(spec *v1alpha1.PostScheduleSpec, platformOf func(connection string) v1alpha1.Platform) error {
	content, err := f.writing.spec(platformOf)
	if err != nil {
		return err
	}
	template := &spec.Template
	template.Category, template.Image, template.Video, template.Targets = content.Category, content.Image, content.Video, content.Targets
	spec.Texts = slices.DeleteFunc(slices.Clone(f.texts), func(text string) bool { return strings.TrimSpace(text) == "" })
	if len(spec.Texts) == 0 {
		spec.Texts = nil
		if slices.ContainsFunc(content.Targets, func(t v1alpha1.PostTarget) bool { return t.Caption == "" }) {
			return errNoText
		}
	}
	return audienceChosen(&content)
}

// timesOf sets the times of a schedule's posts.
func (f *scheduleForm) timesOf(spec *v1alpha1.PostScheduleSpec) (err error) {
	if spec.Schedule, err = f.repeat.cron(); err != nil {
		return err
	}
	if f.stored == nil || f.stored.Spec.TimeZone != "" || f.timeZone != f.stored.Zone.String() { // otherwise it is the team's
		spec.TimeZone = f.timeZone
	}
	zone := loadZone(f.timeZone)
	if zone == nil {
		zone = time.UTC // the check reports the name
	}
	if spec.StartAt, err = onDay(spec.StartAt, f.from, 0, zone); err != nil {
		return err
	}
	if spec.EndAt, err = onDay(spec.EndAt, f.until, 1, zone); err != nil {
		return err
	}
	spec.Count = nil
	if f.count != "" {
		n, err := strconv.Atoi(f.count)
		if err != nil || n < 1 || n > maxCount {
			return errBadCount
		}
		spec.Count = new(int32(n)) //nolint:gosec // at most maxCount
	}
	return nil
}

// onDay returns the start of the entered day. If later is not 0, it returns the last millisecond before the start of
// the day that many days later. A stored time on the entered day is returned unchanged.
func onDay(stored *v1alpha1.Time, entered string, later int, zone *time.Location) (*v1alpha1.Time, error) {
	if entered == "" {
		return nil, nil //nolint:nilnil // nil is no bound
	}
	day, err := time.ParseInLocation(dateForm, entered, zone)
	switch {
	case err != nil:
		return nil, errBadDays
	case dayOf(stored, zone) == entered:
		return stored, nil
	case later == 0:
		return v1alpha1.NewTimePtr(day), nil
	default:
		return v1alpha1.NewTimePtr(day.AddDate(0, 0, later).Add(-time.Millisecond)), nil
	}
}
