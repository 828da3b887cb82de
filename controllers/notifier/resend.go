// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
)

// resend handles requests to resend a notification.
func (w *worker) resend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, request := range w.requests {
		id, _, _ := strings.Cut(request, " ")
		if w.queue.Resend(id, w.reconciler.Clock.Now()) {
			w.goneIn, w.checkedAt = 0, time.Time{}
		}
		w.handled, w.dirty = request, true
	}
	w.requests = nil
}

// maxRequest limits status.lastHandledResend, in characters.
const maxRequest = 256

// request remembers a Notifier's request to resend a notification. A call may be in flight for seconds, so further
// requests may arrive before the first is handled. The caller holds mu.
func (w *worker) request(n *v1alpha1.Notifier) {
	last := w.handled
	if len(w.requests) > 0 {
		last = w.requests[len(w.requests)-1]
	}
	if value := text.First(n.Annotations[v1alpha1.ResendAnnotation], maxRequest); value != "" && value != last {
		w.requests = append(w.requests, value)
	}
}
