// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestListAccounts lists a connection that was deleted between two reads of the cache.
func TestListAccounts(t *testing.T) {
	t.Parallel()
	s := service(&posts{}, nil)
	s.Connections = &listing{connections{memory: map[string]*v1alpha1.Connection{"a": onX("a")}}, []*v1alpha1.Connection{onX("a"), onX("b")}}
	if got := s.ListAccounts(caller); len(got) != 1 || got[0].ID != "a" {
		t.Errorf("%+v", got)
	}
}

// slowQuota answers each read after a second.
type slowQuota struct{ *counts }

func (q slowQuota) Read(ctx context.Context, namespace string, counter v1alpha1.UsageSpec) (*v1alpha1.Usage, error) {
	time.Sleep(time.Second) //nolint:forbidigo // fake clock
	return q.counts.Read(ctx, namespace, counter)
}

// TestDraftMeters verifies that a team's TikTok accounts are listed by name, and that their usage is read eight accounts
// at a time.
func TestDraftMeters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all []*v1alpha1.Connection
		for i := range 20 {
			all = append(all, account(fmt.Sprintf("tok-%02d", 19-i), v1alpha1.PlatformTikTok, i, nil))
		}
		s := service(&posts{}, nil)
		s.Connections, s.Quota = &listing{all: all}, slowQuota{newCounts()}
		begun := time.Now()
		view, err := s.ViewTeam(t.Context(), person)
		if err != nil || len(view.TikTokDrafts) != 20 {
			t.Fatalf("%d accounts, %v", len(view.TikTokDrafts), err)
		}
		if view.Accounts.Used != 20 {
			t.Errorf("got %d used accounts, want 20", view.Accounts.Used)
		}
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("20 reads of a second each took %s, want 3 s", took)
		}
		if !slices.IsSortedFunc(view.TikTokDrafts, func(a, b bridge.AccountMeter) int { return strings.Compare(a.Connection.Name, b.Connection.Name) }) {
			t.Error("the accounts are not sorted by name")
		}
	})
}
