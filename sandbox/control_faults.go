// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"net/http"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
)

// maxControlSeconds bounds times given to the control API: a day.
const maxControlSeconds = 86400

// controlFault is a fault as the control API reads and shows it.
type controlFault struct {
	Platform    string           `json:"platform"`
	Operation   faults.Operation `json:"operation"`
	Kind        faults.Kind      `json:"kind"`
	Times       *int             `json:"times,omitempty"`
	Account     string           `json:"account,omitempty"`
	Status      int              `json:"status,omitempty"`
	DelayMillis int64            `json:"delay_ms,omitempty"`
	RetryAfterS int64            `json:"retry_after_s,omitempty"`
}

func (s *Server) postFault(r *http.Request) (int, any, error) {
	var in controlFault
	if err := readControl(r, &in); err != nil {
		return 0, nil, err
	}
	if _, err := s.simulated(in.Platform); err != nil {
		return 0, nil, err
	}
	if in.Times != nil && *in.Times < 1 {
		return 0, nil, badInput("times is %d; it is how many requests the fault is for, at least 1", *in.Times)
	}
	if in.DelayMillis > maxControlSeconds*1000 || in.RetryAfterS > maxControlSeconds {
		return 0, nil, badInput("delay_ms and retry_after_s may be a day at most")
	}
	fault := faults.Fault{
		Platform: in.Platform, Operation: in.Operation, Kind: in.Kind, Account: in.Account, Status: in.Status,
		Delay:      time.Duration(in.DelayMillis) * time.Millisecond,
		RetryAfter: time.Duration(in.RetryAfterS) * time.Second,
	}
	if in.Times != nil {
		fault.Times = *in.Times
	}
	fault, err := fault.Normalized()
	if err != nil {
		return 0, nil, badInput("%v", err)
	}
	s.board.Add(fault)
	s.log.Info("fault added", "platform", fault.Platform, "operation", fault.Operation, "kind", fault.Kind, "times", fault.Times)
	return http.StatusCreated, controlFault{
		Platform: fault.Platform, Operation: fault.Operation, Kind: fault.Kind, Times: &fault.Times, Account: fault.Account,
		Status: fault.Status, DelayMillis: fault.Delay.Milliseconds(), RetryAfterS: int64(fault.RetryAfter / time.Second),
	}, nil
}

func (s *Server) deleteFaults(*http.Request) (int, any, error) {
	s.board.ClearFaults()
	return 0, nil, nil
}
