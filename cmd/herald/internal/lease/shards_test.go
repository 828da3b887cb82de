// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStatedShards(t *testing.T) {
	since := metav1.NewMicroTime(time.Date(2026, 12, 1, 9, 0, 0, 123_456_789, time.UTC))
	led := func(shards int) *coordinationv1.Lease {
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("a"), AcquireTime: &since}}
		stateShards(lease, shards)
		return lease
	}
	for _, tt := range []struct {
		name, reason string
		change       func(*coordinationv1.Lease)
		shards       int
		known        bool
	}{
		{"four shards", "replicas with four shards take them", func(*coordinationv1.Lease) {}, 4, true},
		{"read from the API server", "it stores microseconds", func(l *coordinationv1.Lease) { l.Spec.AcquireTime.Time = since.Truncate(time.Microsecond).Local() }, 4, true},
		{"one shard", "the leader delivers all posts itself", func(l *coordinationv1.Lease) { stateShards(l, 1) }, 0, true},
		{"renewed by an older manager that took over", "it keeps the annotation, and delivers all posts itself", func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.AcquireTime = new("b"), &metav1.MicroTime{Time: since.Add(time.Minute)}
		}, 0, true},
		{"an older manager with the same name", "a process with a stable identity was replaced by an older version", func(l *coordinationv1.Lease) { l.Spec.AcquireTime = &metav1.MicroTime{Time: since.Add(time.Minute)} }, 0, true},
		{"released", "its successor will state the number", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new(""); stateShards(l, 4) }, 0, false},
		{"no lease", "nobody has led yet", func(l *coordinationv1.Lease) { *l = coordinationv1.Lease{} }, 0, false},
		{"a number that is none", "somebody has edited the annotation", func(l *coordinationv1.Lease) { l.Annotations[shardsAnnotation] = "four@" + acquired(l) }, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lease := led(4)
			lease.Spec.AcquireTime = lease.Spec.AcquireTime.DeepCopy()
			tt.change(lease)
			if shards, known := StatedShards(lease); shards != tt.shards || known != tt.known {
				t.Errorf("%s: got %d, %t", tt.reason, shards, known)
			}
		})
	}
}
