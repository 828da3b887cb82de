// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// Costs are the measured costs of the parts of a delivery; docs/performance.md has the runs.
type Costs struct {
	// Write is the processor time of one write of the Kubernetes API, in all processes. A post of B2 takes 16.3 ms for
	// four writes.
	Write time.Duration
	// Processors is how many processors the control plane and Herald have for writes.
	Processors int
	// Answer is how long a platform takes to answer a publishing call, as in B7.
	Answer time.Duration
	// WaitingBytes is the size of an accepted post in etcd, and FinishedBytes that of a finished one with two targets (B6).
	WaitingBytes, FinishedBytes int64
	// WatchBytes is a post's size on the heap of each kube-apiserver (B6).
	WatchBytes int64
	// ManagerBytes is the memory for each unfinished post in the manager, and APIServerBytes the memory for each post in
	// the apiserver (docs/sizes.md). IdleBytes is the memory of either process without posts (B5).
	ManagerBytes, APIServerBytes, IdleBytes int64
	// ListBytes is a post's size in its team's lists in the archive: four lists of 40 bytes (docs/adr/0016-archive.md).
	ListBytes int64
	// UploadRate is how fast one upload is, in bytes per second: what Herald allows for (delivery.ExpectedRate).
	UploadRate float64
}

// measured returns the measured costs, on two processors.
func measured() Costs {
	return Costs{
		Write: 4100 * time.Microsecond, Processors: 2, Answer: 500 * time.Millisecond,
		WaitingBytes: 2540, FinishedBytes: 4100, WatchBytes: 11_800,
		ManagerBytes: 4500, APIServerBytes: 250, IdleBytes: 64 << 20, ListBytes: 160, UploadRate: 1 << 20,
	}
}

// server is the Kubernetes API as a queue: writes are stored in the order in which they are requested. Work that may
// wait, such as events and removals, takes the time that is left.
type server struct {
	each time.Duration
	// free is when the last requested write is stored, and rest the number of writes that may wait.
	free time.Time
	rest int
	// stored is the number of all writes. second and minute count the ones that a user waits for.
	stored         int
	second, minute counter
}

// counter counts what happens in one period after the other.
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

// write requests a write and returns when it is stored.
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

// backlog returns how long a write that is requested now would wait for the earlier ones.
func (s *server) backlog(now time.Time) time.Duration { return max(s.free.Sub(now), 0) }
