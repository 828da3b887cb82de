// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/herald-social/herald/platforms/internal/errordocs"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

func TestErrorTable(t *testing.T) {
	rows := make([]errordocs.Row, len(table))
	for i := range table {
		r := &table[i]
		rows[i] = errordocs.Row{Code: r.code(), Kind: r.error.Problem, Error: r.error, Source: r.source}
	}
	errordocs.Check(t, "mastodon", rows)
}

// TestTableRows tests that each row can be reached: an earlier row must not match its words.
func TestTableRows(t *testing.T) {
	t.Parallel()
	for i := range table {
		r := &table[i]
		p, _ := start(t, recorder.Respond(r.status, fmt.Sprintf(`{"error":%q}`, "zzz "+r.words)))
		got := p.Publish(t.Context(), hello)
		if got.Err == nil || got.Err.Code != r.code() || got.Err.Class != r.error.Class || got.Err.Problem != r.error.Problem {
			t.Errorf("%s is classified as %+v", r.code(), got.Err)
		}
		if strings.Contains(fmt.Sprint(got.Err), "zzz") {
			t.Errorf("%s: the message quotes the server: %v", r.code(), got.Err)
		}
	}
}
