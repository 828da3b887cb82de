// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Duration extends the Kubernetes duration format with days of 24 hours: "168h", "36h30m", "7d", "1d12h". metav1.Duration does not support
// days.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=26
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,4}d([0-9]{1,2}h)?|[0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$')",message="must be a time in days, hours, minutes and seconds, such as 7d, 36h30m or 0s"
type Duration struct {
	time.Duration `json:"-"`
}

// days matches the days prefix of a duration.
var days = regexp.MustCompile(`^([0-9]{1,4})d`)

// ParseDuration parses the string form of a Duration.
func ParseDuration(text string) (Duration, error) {
	var d Duration
	rest := text
	if found := days.FindStringSubmatch(text); found != nil {
		n, err := strconv.Atoi(found[1])
		if err != nil {
			return Duration{}, fmt.Errorf("%q is not a time: %w", text, err)
		}
		d.Duration, rest = time.Duration(n)*24*time.Hour, text[len(found[0]):]
		if rest == "" {
			return d, nil
		}
	}
	of, err := time.ParseDuration(rest)
	if err != nil || of < 0 {
		return Duration{}, fmt.Errorf("%q is not a time; write days, hours, minutes and seconds, such as 7d, 36h30m or 0s", text)
	}
	d.Duration += of
	return d, nil
}

// MarshalJSON returns hours, minutes and seconds, which older versions also parse.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String()) //nolint:wrapcheck // marshalling a string cannot fail
}

// UnmarshalJSON parses the string form.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("cannot read a time: %w", err)
	}
	parsed, err := ParseDuration(text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
