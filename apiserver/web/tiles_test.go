// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// notReady makes an account unusable.
func notReady(reason, message string) func(*v1alpha1.Connection) {
	return func(c *v1alpha1.Connection) {
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
}

// TestTiles verifies what the composer says about accounts that need something, and about platforms that do not accept
// a kind of post.
func TestTiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		account string
		edit    func(*v1alpha1.Connection)
		want    []string
		lack    []string
	}{
		{"a ready account needs no text", "our-x", func(*v1alpha1.Connection) {}, nil, []string{"Reconnect first", "does not accept", "Connect it again"}},
		{"a revoked account", "our-x", notReady(v1alpha1.ReasonRevoked, "X has revoked the access"), []string{"Reconnect first", "X has revoked the access.", "Posts to it wait until it is connected again.", "Connect it again"}, nil},
		{"an account that expires soon", "our-x", func(c *v1alpha1.Connection) { c.Status.ReconnectBy = v1alpha1.NewTimePtr(now.Add(48 * time.Hour)) }, []string{"Ends soon", "It has to be connected again in 2 days.", "Connect it again"}, []string{"Reconnect first", "Posts to it wait"}},
		{"a platform that is down needs no action", "our-x", notReady(v1alpha1.ReasonPlatformUnavailable, "X does not respond"), []string{"Not ready", "X does not respond."}, []string{"Reconnect first", "Connect it again"}},
		{"each kind has its reason", "our-instagram", func(*v1alpha1.Connection) {}, []string{"Instagram does not accept posts without files.", "Instagram does not accept threads."}, []string{"not accept images", "not accept videos"}},
		{"YouTube accepts videos only", "our-youtube", func(*v1alpha1.Connection) {}, []string{"YouTube does not accept posts without files.", "YouTube does not accept images.", "YouTube does not accept threads."}, []string{"not accept videos"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			for _, c := range w.connections[acme] {
				if c.Name == tc.account {
					tc.edit(c)
				}
			}
			tile := withID(t, w.get(t, administrator, "/teams/"+acme+"/posts/new"), "target-"+tc.account).Parent
			says(t, tc.name, textOf(tile), tc.want, tc.lack)
			if state := textOf(withID(t, w.preview(t, tc.account, "a"), "mock-"+tc.account)); strings.Contains(state, "Reconnect first") != strings.Contains(textOf(tile), "Reconnect first") {
				t.Errorf("the preview and the tile differ: %s", state)
			}
			class, _ := attribute(tile, "class")
			for kind, words := range kindsOfPosts {
				if strings.Contains(class, "no-"+string(kind)) != strings.Contains(textOf(tile), "does not accept "+words+".") {
					t.Errorf("the class %q does not match the reasons", class)
				}
			}
		})
	}
}

// TestTilesOfEditors verifies that only those who may connect accounts get the link.
func TestTilesOfEditors(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	notReady(v1alpha1.ReasonRevoked, "revoked")(w.connections[acme][0])
	page := textOf(w.get(t, editor, "/teams/"+acme+"/posts/new"))
	says(t, "an editor cannot connect it", page, []string{"Reconnect first"}, []string{"Connect it again"})
}
