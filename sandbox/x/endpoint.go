// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"sync"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
)

// Operations of X that faults cannot name, only match with `*`.
const (
	opDelete faults.Operation = "delete"
	opRevoke faults.Operation = "revoke"
)

// endpoint is one path of the API with one method. X counts requests by endpoint.
type endpoint struct {
	// name is empty where nothing is counted.
	name string
	op   faults.Operation
	// limit is X's documented number of requests per user and window.
	limit int
}

// The endpoints. For those of OAuth, X documents no limit; they say what creating a post says.
var (
	callUnknown = endpoint{"", "", limitPosts}

	callMe       = endpoint{"users/me", faults.Identity, 75}
	callCreate   = endpoint{"tweets", faults.Publish, limitPosts}
	callDelete   = endpoint{"tweets/delete", opDelete, 50}
	callTimeline = endpoint{"users/tweets", faults.List, 900}

	callUpload     = endpoint{"media/upload", faults.Upload, 500}
	callInitialize = endpoint{"media/upload/initialize", faults.Upload, 1875}
	callAppend     = endpoint{"media/upload/append", faults.Upload, 1875}
	callFinalize   = endpoint{"media/upload/finalize", faults.Upload, 1875}
	callMetadata   = endpoint{"media/metadata", faults.Upload, 500}
	callStatus     = endpoint{"media/upload/status", faults.Status, 1000}

	callToken  = endpoint{"", faults.RefreshToken, limitPosts}
	callRevoke = endpoint{"", opRevoke, limitPosts}
)

const (
	limitPosts = 100
	// rateWindow is the window of X's limits per user.
	rateWindow = 15 * time.Minute
)

// meter counts the requests of the accounts whose documented limits apply. It lives in memory: a restart forgets it.
type meter struct {
	mu     sync.Mutex
	window time.Time
	used   map[metered]int
}

type metered struct{ account, endpoint string }

// take counts one more request in a window, unless all are used up, and returns how many are left then.
func (m *meter) take(window time.Time, account string, of endpoint) (remaining int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.window.Equal(window) {
		m.window, m.used = window, map[metered]int{}
	}
	key := metered{account, of.name}
	if m.used[key] >= of.limit {
		return 0, false
	}
	m.used[key]++
	return of.limit - m.used[key], true
}
