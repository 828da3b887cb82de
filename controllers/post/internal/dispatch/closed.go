// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

// SetClosed closes the gate of an account while another process may be calling it, or opens it again for the first of
// its waiters. Tickets that also wait for other gates do not wait for a closed one. The gate is also open if nobody
// waits for it, so that it must be closed before each TryAcquire.
func (s *Scheduler) SetClosed(key string, closed bool) {
	s.mu.Lock()
	defer s.unlock()
	g := s.gates[key]
	switch {
	case closed:
		s.gateOf(key).closed = true
	case g != nil && g.closed:
		g.closed = false
		s.offer(key)
	}
}
