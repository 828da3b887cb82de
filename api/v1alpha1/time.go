// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
)

// timeLayout is RFC 3339 with exactly three fractional digits, in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// Time is a point in time with millisecond precision. metav1.Time drops fractions of a second, and metav1.MicroTime rejects times without
// one.
//
// Its wire format is RFC 3339 in UTC with three fractional digits. It parses any RFC 3339 time between the years 1000 and 2999 in UTC. The
// schema accepts the same values as UnmarshalJSON: the format checks the calendar, the pattern restricts RFC 3339 variants, and the rule
// limits the years to the representable ones. The rule also rejects lists, which the API server accepts for every field with a format.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=date-time
// +kubebuilder:validation:MaxLength=35
// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
// +kubebuilder:validation:XValidation:rule="self >= timestamp('1000-01-01T00:00:00Z') && self < timestamp('3000-01-01T00:00:00Z')",message="must be a time such as 2026-12-01T09:00:00Z, between the years 1000 and 2999"
type Time struct {
	time.Time `json:"-"`
}

// NewTime returns t in UTC, truncated to the millisecond.
func NewTime(t time.Time) Time {
	return Time{Time: t.UTC().Truncate(time.Millisecond)}
}

// NewTimePtr is NewTime for optional fields.
func NewTimePtr(t time.Time) *Time {
	return new(NewTime(t))
}

// Equal reports whether both represent the same time, or both are nil.
func (t *Time) Equal(u *Time) bool {
	if t == nil || u == nil {
		return t == nil && u == nil
	}
	return t.Time.Equal(u.Time)
}

// String returns the wire format.
func (t Time) String() string { return t.UTC().Format(timeLayout) }

// MarshalJSON returns the wire format, and null for the zero time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.String())
}

// UnmarshalJSON parses any RFC 3339 time and null. It returns an error for other formats.
func (t *Time) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		t.Time = time.Time{}
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("a time must be a string in RFC 3339 form: %w", err)
	}
	parsed, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("%q is not a time in RFC 3339 form such as 2026-12-01T09:00:00Z", s)
	}
	t.Time = parsed.UTC()
	return nil
}

// DeepCopyInto copies t by assignment.
func (t *Time) DeepCopyInto(out *Time) { *out = *t }

// equalities extends Kubernetes' semantic equality with a comparison of this package's times, regardless of time zone.
var equalities = func() conversion.Equalities {
	e := equality.Semantic.Copy()
	if err := e.AddFunc(func(a, b Time) bool { return a.Time.Equal(b.Time) }); err != nil {
		panic(err)
	}
	return e
}()

// SemanticEqual reports whether two values are semantically equal. nil equals an empty list, and times are compared regardless of time
// zone.
func SemanticEqual(a, b any) bool { return equalities.DeepEqual(a, b) }
