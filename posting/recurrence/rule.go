// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recurrence computes the times of recurring posts, and decides which posts a PostSchedule creates next. It
// does no I/O, and the time is an argument.
package recurrence

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
	_ "time/tzdata" // images from scratch have no time zone database

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MinInterval is the minimum interval between two occurrences of a rule, in wall-clock time. Kubernetes allows a minute
// for CronJobs, but posts at that rate would use up a team's budget within a day.
const MinInterval = 5 * time.Minute

// widestShift is the largest change of an offset in the time zone database: Samoa skipped a whole day in 2011.
const widestShift = 24 * time.Hour

// minutesPerHour is the number of values that the minute field of a cron expression can select.
const minutesPerHour = 60

// hoursPerDay is the same for the hour field.
const hoursPerDay = 24

// Rule is a cron expression in a time zone.
type Rule struct {
	// cron runs on the wall clock. It has no zone and is evaluated for times in UTC, where every time exists once.
	cron cron.Schedule
	zone *time.Location
}

// parser accepts what CronJob accepts, with the exception of intervals (@every), which are not times on a clock.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse returns the rule of a cron expression and the IANA name of a time zone. It returns a field error of the
// PostSchedule with a remedy if either is invalid, or if occurrences are less than MinInterval apart.
func Parse(expression, zone string) (*Rule, error) {
	location, err := parseZone(zone)
	if err != nil {
		return nil, field.Invalid(field.NewPath("spec", "timeZone"), zone, err.Error())
	}
	fields, err := parseExpression(expression)
	if err != nil {
		return nil, field.Invalid(field.NewPath("spec", "schedule"), expression, err.Error())
	}
	return &Rule{cron: fields, zone: location}, nil
}

func parseZone(zone string) (*time.Location, error) {
	if zone == "Local" {
		return nil, errors.New("depends on the machine; write the IANA name of a time zone, such as Europe/Berlin")
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, errors.New("is not the IANA name of a time zone, such as Europe/Berlin")
	}
	return location, nil
}

// parseExpression returns a cron expression without a zone. It is evaluated in its argument's zone.
func parseExpression(expression string) (*cron.SpecSchedule, error) {
	if strings.Contains(expression, "TZ=") {
		return nil, errors.New("contains a time zone; write it into timeZone instead")
	}
	parsed, err := parser.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("is not a cron expression of five fields, such as \"0 9 * * 1\" for Mondays at nine: %w", err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("is an interval; write times of day, such as \"0 */6 * * *\" for every six hours")
	}
	if closest := closest(fields); closest < MinInterval {
		return nil, fmt.Errorf("has occurrences %s apart; at least %s are required", closest, MinInterval)
	}
	leapYear := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	if fields.Next(leapYear).IsZero() {
		return nil, errors.New("has no occurrences: there is no such day")
	}
	return fields, nil
}

// closest returns the shortest interval between two occurrences on one day, or between the last of an hour and the
// first of the next hour.
func closest(fields *cron.SpecSchedule) time.Duration {
	minutes := fields.Minute & (1<<minutesPerHour - 1)
	first, last := bits.TrailingZeros64(minutes), bits.Len64(minutes)-1
	least := minutesPerHour
	for previous, minute := first, first+1; minute <= last; minute++ {
		if minutes&(1<<minute) != 0 {
			least, previous = min(least, minute-previous), minute
		}
	}
	hours := fields.Hour & (1<<hoursPerDay - 1)
	if following := hours>>1 | hours<<(hoursPerDay-1); hours&following != 0 {
		least = min(least, first+minutesPerHour-last)
	}
	return time.Duration(least) * time.Minute
}

// Next returns the first occurrence after the given time, or zero if there is none within five years.
//
// The rule selects wall-clock times. When clocks are set forward, a skipped time is interpreted as if they had not
// been: 02:30 becomes 03:30. When they are set back, a time that occurs twice means the first occurrence. Calendars do
// the same (RFC 5545, section 3.3.5). CronJobs skip the former, and run twice for the latter.
func (r *Rule) Next(after time.Time) time.Time {
	var next time.Time
	for wall := r.wall(after).Add(-r.skipped(after)); ; {
		wall = r.cron.Next(wall)
		if wall.IsZero() || !next.IsZero() && !wall.Before(r.wall(next)) {
			return next
		}
		at := r.instant(wall)
		if at.After(after) && (next.IsZero() || at.Before(next)) {
			next = at
		}
		if next.Equal(at) && r.wall(at).Equal(wall) {
			return next // later wall-clock times mean later times too
		}
	}
}

// skipped returns the time by which clocks were set forward in the last day. A skipped wall-clock time that is earlier
// than that of the given time may mean a later time.
func (r *Rule) skipped(at time.Time) time.Duration {
	return max(0, r.wall(at).Sub(r.wall(at.Add(-widestShift)))-widestShift)
}

// wall returns the wall-clock time at the given time, as a time in UTC.
func (r *Rule) wall(at time.Time) time.Time {
	local := at.In(r.zone)
	_, offset := local.Zone()
	return local.UTC().Add(time.Duration(offset) * time.Second)
}

// instant returns the time when the wall clock first shows the given time or, if that time is skipped, when it would
// have shown it.
func (r *Rule) instant(wall time.Time) time.Time {
	// time.Date uses either of the two offsets around a change, without a guarantee of which.
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, r.zone)
	if shown := r.wall(at); shown.Before(wall) {
		return at.Add(wall.Sub(shown)).UTC()
	}
	start, _ := at.ZoneBounds()
	_, before := start.Add(-1).Zone()
	if earlier := wall.Add(-time.Duration(before) * time.Second); earlier.Before(start) {
		return earlier
	}
	return at.UTC()
}
