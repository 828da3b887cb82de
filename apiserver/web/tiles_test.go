// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"maps"
	"net/url"
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

// TestTiles verifies what the composer says about accounts that need attention, and about platforms that do not accept
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
		{"a revoked account", "our-x", notReady(v1alpha1.ReasonRevoked, "X has revoked the access"), []string{"Reconnect first", "X has revoked the access.", "Posts to it wait until it is reconnected.", "Connect it again"}, nil},
		{"an account that expires soon", "our-x", func(c *v1alpha1.Connection) { c.Status.ReconnectBy = v1alpha1.NewTimePtr(now.Add(48 * time.Hour)) }, []string{"Ends soon", "It must be reconnected in 2 days.", "Connect it again"}, []string{"Reconnect first", "Posts to it wait"}},
		{"a platform that is down needs no action", "our-x", notReady(v1alpha1.ReasonPlatformUnavailable, "X does not respond"), []string{"Not ready", "X does not respond."}, []string{"Reconnect first", "Connect it again"}},
		{"each kind has its own reason", "our-instagram", func(*v1alpha1.Connection) {}, []string{"Instagram does not accept posts without files.", "Instagram does not accept threads."}, []string{"not accept images", "not accept videos"}},
		{"a server without videos", "our-mastodon", func(c *v1alpha1.Connection) {
			c.Status.Mastodon = &v1alpha1.MastodonServer{MaxCharacters: 500, MediaTypes: []v1alpha1.MimeType{v1alpha1.MimeJPEG}}
		}, []string{"The account's server does not accept videos."}, []string{"Mastodon does not accept"}},
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

// TestTilesOfContent verifies what the tiles say about content that an account cannot take, after each change.
func TestTilesOfContent(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for i := range 6 {
		w.upload(fmt.Sprint("m-", i))
	}
	w.upload("film", func(m *v1alpha1.Media) {
		m.Spec.MimeType, m.Spec.FileName = v1alpha1.MimeMP4, "film.mp4"
		m.Status.SizeBytes, m.Status.Width, m.Status.Height, m.Status.DurationMillis = 1000, 720, 1280, 10_000_000
	})
	form := func(kind, caption string, more url.Values) url.Values {
		values := url.Values{"category": {kind}, "caption": {caption}, "when": {"now"}}
		maps.Copy(values, more)
		return values
	}
	long := strings.Repeat("a", 281)
	for _, tc := range []struct {
		reason, account string
		form            url.Values
		unfit, remark   string
		not             string
	}{
		{"the content fits", "our-x", form("image", "a", url.Values{"image": {"m-0", "m-1", "m-2", "m-3"}}), "", "", ""},
		{"X shows four pictures", "our-x", form("image", "a", url.Values{"image": {"m-0", "m-1", "m-2", "m-3", "m-4"}}), "X accepts at most 4 images; leave some out", "", ""},
		{"Threads shows more pictures", "our-threads", form("image", "a", url.Values{"image": {"m-0", "m-1", "m-2", "m-3", "m-4"}}), "", "", ""},
		{"a chosen account is not exempt", "our-x", form("image", "a", url.Values{"target": {"our-x"}, "image": {"m-0", "m-1", "m-2", "m-3", "m-4"}}), "X accepts at most 4 images", "", ""},
		{"a video is too long for X", "our-x", form("video", "a", url.Values{"video": {"film"}}), `The video "film.mp4" plays for 2 h 46 min; X accepts at most 2 h 5 min`, "", ""},
		{"YouTube accepts the video", "our-youtube", form("video", "a", url.Values{"video": {"film"}}), "", "", ""},
		{"a file of a thread is named with its part", "our-x", form("tree", "", url.Values{"cards": {"2"}, "card-0": {"a"}, "media-1": {"film"}}), `Part 2: The video "film.mp4" plays`, "", ""},
		{"a long text can be replaced", "our-x", form("text", long, nil), "", "The text is too long for X: 281 of 280. Choose it to write a different text.", ""},
		{"a chosen account has a count", "our-x", form("text", long, url.Values{"target": {"our-x"}}), "", "", ""},
		{"a thread has the same texts everywhere", "our-x", form("tree", "", url.Values{"cards": {"2"}, "card-0": {long}, "card-1": {"b"}}), "", "The text is too long for X: 281 of 280.", "Choose it"},
		{"the kind already has a reason", "our-youtube", form("image", "a", url.Values{"image": {"m-0"}}), "", "", ""},
	} {
		answer := w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", tc.form))
		page := parsed(t, answer.Body.String())
		for id, want := range map[string]string{"unfit-": tc.unfit, "remark-": tc.remark} {
			got := textOf(withID(t, page, id+tc.account))
			if want == "" && got != "" || !strings.Contains(got, want) || tc.not != "" && strings.Contains(got, tc.not) {
				t.Errorf("%s: %s says %q, want %q", tc.reason, id+tc.account, got, want)
			}
		}
	}
}

// TestTilesNameFewProblems verifies that a tile does not list a problem for each of many files.
func TestTilesNameFewProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	values := url.Values{"category": {"image"}, "caption": {"a"}, "when": {"now"}}
	for i := range 5 {
		name := fmt.Sprint("m-", i)
		w.upload(name, func(m *v1alpha1.Media) {
			m.Spec.MimeType, m.Status.Unconvertible = v1alpha1.MimeWebP, "is an animation; upload a still"
		})
		values.Add("image", name)
	}
	tile := textOf(withID(t, parsed(t, w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", values)).Body.String()), "unfit-our-instagram"))
	if strings.Count(tile, "animation") != shownProblems || !strings.HasSuffix(tile, "And 2 more reasons.") {
		t.Errorf("the tile says %q", tile)
	}
}
