// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// Costs are the measured costs of the steps of a delivery; docs/performance.md describes the measurements.
type Costs struct {
	// Write is the CPU time of one write to the Kubernetes API, in all processes. In benchmark B2, a post's four writes
	// take 16.3 ms.
	Write time.Duration
	// Processors is the number of CPUs that the control plane and Herald have for writes.
	Processors int
	// Answer is a platform's response time for a publishing call, as in B7.
	Answer time.Duration
	// WaitingBytes is an accepted post's size in etcd, and FinishedBytes the size of a finished post with two targets
	// (B6).
	WaitingBytes, FinishedBytes int64
	// WatchBytes is a post's size on the heap of each kube-apiserver (B6).
	WatchBytes int64
	// ManagerBytes is the memory for each unfinished post in the manager, and APIServerBytes the memory for each post in
	// the apiserver (docs/sizes.md). IdleBytes is the memory of either process without posts (B5).
	ManagerBytes, APIServerBytes, IdleBytes int64
	// ListBytes is the size of a post's entries in its team's lists in the archive: 40 bytes in each of four lists
	// (docs/adr/0016-archive.md).
	ListBytes int64
	// UploadRate is the speed of one upload in bytes per second: the rate that Herald expects (delivery.ExpectedRate).
	UploadRate float64
}

// measured returns the measured costs, on two CPUs.
func measured() Costs {
	return Costs{
		Write: 4100 * time.Microsecond, Processors: 2, Answer: 500 * time.Millisecond,
		WaitingBytes: 2540, FinishedBytes: 4100, WatchBytes: 11_800,
		ManagerBytes: 4500, APIServerBytes: 250, IdleBytes: 64 << 20, ListBytes: 160, UploadRate: 1 << 20,
	}
}

// server models the Kubernetes API as a queue: writes are stored in the order in which they are requested. Deferrable
// writes, such as events and removals, use the idle time.
type server struct {
	each time.Duration
	// free is the time at which the last requested write is stored, and rest the number of deferrable writes.
	free time.Time
	rest int
	// stored counts all writes. second and minute count the writes that a user waits for.
	stored         int
	second, minute counter
}

// counter counts the writes in each period, and keeps the largest count.
type counter struct {
	period   time.Duration
	at       time.Time
	in, peak int
}

func (c *counter) add(at time.Time) {
	if at = at.Truncate(c.period); !at.Equal(c.at) {
		c.at, c.in = at, 0
	}
	c.in++
	c.peak = max(c.peak, c.in)
}

func newServer(c *Costs, now time.Time) *server {
	return &server{each: c.Write / time.Duration(c.Processors), free: now, second: counter{period: time.Second}, minute: counter{period: time.Minute}}
}

// write requests a write and returns the time at which it is stored.
func (s *server) write(now time.Time) time.Time {
	for s.rest > 0 && !s.free.Add(s.each).After(now) {
		s.rest--
		s.stored++
		s.free = s.free.Add(s.each)
	}
	s.free = later(s.free, now).Add(s.each)
	s.stored++
	s.second.add(s.free)
	s.minute.add(s.free)
	return s.free
}

// backlog returns the time that a write requested now would wait for earlier ones.
func (s *server) backlog(now time.Time) time.Duration { return max(s.free.Sub(now), 0) }
