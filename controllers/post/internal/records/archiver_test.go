// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestRecordsOfABurst checks that the records of a burst are not written during its deliveries, but within a minute.
func TestRecordsOfABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Options{Clock: clock.RealClock{}, Records: someArchive(t)}
		a := NewArchiver(o, New(o))
		defer a.teamQueue.ShutDown()
		defer a.queue.ShutDown()
		finish := func(first, posts int) {
			for i := first; i < first+posts; i++ {
				name := fmt.Sprintf("p%d", i)
				a.Enqueue(&v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.PostStatus{Finished: true}})
			}
		}
		for _, step := range []struct {
			why                string
			finished           int
			after              time.Duration
			fewest, atMost, of int
		}{
			{"a few records are written immediately; the others belong to a burst", 500, 0, recordsBurst, recordsBurst, 500},
			{"the burst continues", 500, 0, recordsBurst, recordsBurst, 1000},
			{"records within the rate are written immediately", recordsPerSecond, time.Second, recordsBurst + recordsPerSecond, recordsBurst + recordsPerSecond, 1010},
			{"the remaining ones start only now", 0, burstDelay - 2*time.Second, recordsBurst + recordsPerSecond, recordsBurst + recordsPerSecond, 1010},
			{"the writes are spread, to avoid another burst", 0, burstSpread / 2, 300, 900, 1010},
			{"all are written within a minute", 0, burstSpread, 1010, 1010, 1010},
		} {
			time.Sleep(step.after) //nolint:forbidigo // in a bubble of synctest
			finish(step.of-step.finished, step.finished)
			synctest.Wait()
			if got := a.queue.Len(); got < step.fewest || got > step.atMost {
				t.Errorf("%d records are written by now, want %d to %d (%s)", got, step.fewest, step.atMost, step.why)
			}
		}
	})
}
