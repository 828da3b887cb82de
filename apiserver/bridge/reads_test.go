// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/platforms"
)

// counted is a fake Kubernetes API that counts reads of files and connections. Files named m… are uploaded and
// verified, those named p… are pending, and others do not exist.
type counted struct {
	bridge.Media
	*connections

	media, live, looks atomic.Int64
}

func (c *counted) Get(_ context.Context, _, name string) (*v1alpha1.Media, error) {
	c.media.Add(1)
	media := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MediaSpec{MimeType: v1alpha1.MimePNG}}
	switch name[0] {
	case 'm':
		media.Status.Phase = v1alpha1.MediaUploaded
	case 'p':
	default:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "media"}, name)
	}
	return media, nil
}

// ofConnections separates the two Get methods.
type ofConnections struct{ *counted }

func (c ofConnections) Get(namespace, name string) *v1alpha1.Connection {
	return c.connections.Get(namespace, name)
}

func (c ofConnections) Live(context.Context, string, string) (*v1alpha1.Connection, error) {
	c.live.Add(1)
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "connections"}, "c")
}

// thread returns a tree of cards with the given number of files each.
func thread(cards, each int, kind string, edits ...func(*v1alpha1.PostSpec)) v1alpha1.PostSpec {
	spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Draft: true, Targets: to("acme"), Tree: &v1alpha1.TreeContent{}}
	for i := range cards {
		var card v1alpha1.TreeCard
		for j := range each {
			card.MediaRefs = append(card.MediaRefs, v1alpha1.MediaReference{Name: fmt.Sprintf("%s%x-%x", kind, i, j)})
		}
		spec.Tree.Cards = append(spec.Tree.Cards, card)
	}
	for _, edit := range edits {
		edit(&spec)
	}
	return spec
}

func to(names ...string) (targets []v1alpha1.PostTarget) {
	for _, name := range names {
		targets = append(targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}})
	}
	return targets
}

// TestReads verifies what is read for a post before it is rejected, and what its team is charged.
func TestReads(t *testing.T) {
	t.Parallel()
	var strangers []string
	for i := range 100 {
		strangers = append(strangers, fmt.Sprintf("c%d", i))
	}
	fiveMissing := func(s *v1alpha1.PostSpec) {
		for i := range 5 {
			s.Tree.Cards[0].MediaRefs[i].Name = fmt.Sprint("x", i)
		}
	}
	toNobody := func(s *v1alpha1.PostSpec) { s.Targets = to("nobody") }
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.PostSpec
		words  string
		// media, live and looks are the maximum reads of files, connections and the store.
		media, live, looks int64
		cost               int
	}{
		"unknown files": {
			"five missing files fill the response, so the others are not read",
			thread(100, 20, "x"), "tree_cards[0].media_ids[4]: no such media file", 8, 0, 0, 0,
		},
		"wrong before": {
			"problems of the post itself are reported first", thread(100, 20, "m", func(s *v1alpha1.PostSpec) { s.Targets = to("acme", "acme") }),
			"targets[1]", 0, 0, 0, 0,
		},
		"no card fits": {
			"a card with more files than any account accepts", thread(2, 21, "m", func(s *v1alpha1.PostSpec) { s.Draft = false }), "at most 4 media", 0, 0, 0, 0,
		},
		"too many files": {"no platform accepts as many", thread(100, 21, "m"), "the post names 2100 different media files", 0, 0, 0, 0},
		"fresh files":    {"each is checked in the store, and read again in case it was just rejected", thread(100, 20, "p"), "nothing has been uploaded yet", 16, 0, 8, 9},
		"unknown accounts": {
			"the account is rejected too; few files are read, so the response covers them", thread(2, 1, "m", func(s *v1alpha1.PostSpec) { s.Targets = to(strangers...) }), "no such connection", 2, 5, 0, 10,
		},
		"five unknown files": {
			"five missing files are enough to reject the post", thread(100, 20, "m", fiveMissing), "tree_cards[0].media_ids[4]: no such media file", 8, 0, 0, 0,
		},
		"wrong account and few files": {
			"an image post can have 35 files, and the response covers them", thread(35, 1, "x", toNobody), "tree_cards[0].media_ids[0]: no such media file", 8, 1, 0, 1,
		},
		"wrong account and many files": {
			"the files are read after the account is corrected", thread(36, 1, "x", toNobody), "targets[0].connection_id: no such connection", 0, 1, 0, 0,
		},
		"unknown accounts alone": {
			"each account read costs as much as a target", thread(2, 0, "m", func(s *v1alpha1.PostSpec) { s.Targets = to(strangers[:95]...) }), "no such connection", 0, 5, 0, 10,
		},
		"all there": {"the largest draft has the cost of its reads", thread(100, 20, "m"), "", 2000, 0, 0, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &counted{connections: inMemory("acme")}
			s := service(&posts{stored: map[string]*v1alpha1.Post{}}, api.connections)
			s.Connections, s.Media = ofConnections{api}, api
			s.Verify = func(context.Context, *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
				api.looks.Add(1)
				return v1alpha1.MediaStatus{}, store.ErrNotFound
			}
			s.Capabilities = func(v1alpha1.Platform) (platforms.Capabilities, bool) {
				return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryTree}, Card: platforms.CardLimits{MaxItems: 4}}, true
			}
			ctx, meter := limits.WithMeter(t.Context())
			_, err := s.CreatePost(ctx, caller, bridge.CreatePost{Spec: tc.spec})
			var refused *bridge.Error
			switch {
			case tc.words == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.words != "" && (!errors.As(err, &refused) || refused.Code != bridge.CodeValidation || !strings.Contains(refused.Message, tc.words)):
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.words)
			}
			if m, l, k := api.media.Load(), api.live.Load(), api.looks.Load(); m > tc.media || l > tc.live || k > tc.looks {
				t.Errorf("%s: read %d files, %d connections, and called the store %d times; want at most %d, %d and %d", tc.reason, m, l, k, tc.media, tc.live, tc.looks)
			}
			if got := meter.Requests(); got != tc.cost {
				t.Errorf("%s: costs %d more requests, want %d", tc.reason, got, tc.cost)
			}
		})
	}
}

// TestSearchesAreCharged verifies that a search is charged by the number of posts that it compares, and that a list is
// not.
func TestSearchesAreCharged(t *testing.T) {
	t.Parallel()
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("acme"))
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for i := range 5000 {
		s.Index.Upsert(caller.Namespace, postindex.Summary{ID: fmt.Sprint("p", i), Status: v1alpha1.PhaseDraft, DisplayAt: start.Add(time.Duration(i) * time.Second)}, uint64(i+1))
	}
	for name, tc := range map[string]struct {
		reason string
		of     postindex.Search
		cost   int
	}{
		"List":   {"a page of a list costs the request", postindex.Search{}, 0},
		"Words":  {"all posts are compared", postindex.Search{Conditions: postindex.Conditions{Words: []string{"absent"}}}, 2},
		"Bounds": {"bounds reduce the compared posts", postindex.Search{Conditions: postindex.Conditions{Words: []string{"absent"}}, From: start, To: start.Add(time.Minute)}, 0},
	} {
		tc.of.Limit = 1
		ctx, meter := limits.WithMeter(t.Context())
		if _, err := s.FindPosts(ctx, caller, &tc.of); err != nil || meter.Requests() != tc.cost {
			t.Errorf("%s: %s: %v, costs %d more requests, want %d", name, tc.reason, err, meter.Requests(), tc.cost)
		}
		from, to := start, start.Add(24*time.Hour)
		if !tc.of.From.IsZero() {
			from, to = tc.of.From, tc.of.To
		}
		ctx, meter = limits.WithMeter(t.Context())
		if _, err := s.PostsByDay(ctx, caller, &tc.of, []time.Time{from, to}); err != nil || meter.Requests() != tc.cost {
			t.Errorf("%s: in a calendar: %s: %v, costs %d more requests, want %d", name, tc.reason, err, meter.Requests(), tc.cost)
		}
	}
}
