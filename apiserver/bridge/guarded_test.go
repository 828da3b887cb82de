// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestGuarded verifies that protecting a grant is recorded as an event and in the log, even if the event cannot be
// written.
func TestGuarded(t *testing.T) {
	t.Parallel()
	grant := &v1alpha1.OAuthGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "agent-1"}}
	for name, trail := range map[string]*events{"written": {}, "not written": {err: errors.New("boom")}} {
		var log bytes.Buffer
		s := bridge.New(bridge.Config{Events: trail, Log: slog.New(slog.NewTextHandler(&log, nil))})
		s.Guarded(t.Context(), grant, v1alpha1.GrantReuse, "a token was used twice")
		if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "act=RefreshTokenReused kind=OAuthGrant namespace=team-a name=agent-1") {
			t.Errorf("%s: the log is %s", name, log.String())
		}
		if warned := strings.Contains(log.String(), "Cannot write the event about an action"); warned != (trail.err != nil) {
			t.Errorf("%s: a warning is logged if the event is missing, and only then: %s", name, log.String())
		}
		if diff := cmp.Diff([]string{"RefreshTokenReused OAuthGrant/agent-1: a token was used twice"}, trail.written); diff != "" {
			t.Error(diff)
		}
	}
}
