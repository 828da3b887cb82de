// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclock

import (
	"testing"
	"time"
)

func TestState(t *testing.T) {
	set := func(by time.Duration) func(*world) {
		return func(w *world) {
			w.asks(3)
			w.machine.SetTime(w.machine.Now().Add(by))
			w.asks(1)
		}
	}
	for name, tt := range map[string]struct {
		reason string
		ahead  time.Duration
		then   func(*world)
		want   Measurement
	}{
		"nothing asked":    {"before the first answer nothing is known", 0, func(*world) {}, Measurement{}},
		"a right clock":    {"there is nothing to correct", 0, func(w *world) { w.asks(3) }, Measurement{Measured: true}},
		"a minute ahead":   {"it is corrected from the first answer on", time.Minute, func(w *world) { w.asks(3) }, Measurement{Measured: true, Correction: -time.Minute}},
		"set a moment ago": {"one answer tells that it was wrong to set it", 0, set(20 * time.Second), Measurement{Measured: true, Correction: -20 * time.Second}},
		"the API's was set": {"one answer corrects nothing, and nothing is known for certain", 0, func(w *world) {
			w.asks(3)
			w.api.mu.Lock()
			w.api.now = w.api.now.Add(20 * time.Second)
			w.api.mu.Unlock()
			w.asks(1)
		}, Measurement{Measured: true, Unsettled: true}},
		"set by less than matters": {"NTP does that", 0, set(300 * time.Millisecond), Measurement{Measured: true}},
		"servers an hour apart": {"which of two is right cannot be told", 0, func(w *world) {
			w.asks(3)
			w.api.mu.Lock()
			w.api.now = w.api.now.Add(time.Hour)
			w.api.mu.Unlock()
			w.asks(1)
		}, Measurement{Measured: true, Unsettled: true, Inconsistent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, tt.ahead)
			tt.then(w)
			got := w.clock.Measurement()
			if (got.Correction-tt.want.Correction).Abs() > resolution/2 || got.Correction == 0 != (tt.want.Correction == 0) {
				t.Errorf("%s: corrected by %s, want about %s", tt.reason, got.Correction, tt.want.Correction)
			}
			got.Correction = tt.want.Correction
			if got != tt.want {
				t.Errorf("%s: %+v, want %+v", tt.reason, got, tt.want)
			}
		})
	}
}
