// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/strictjson"
	"github.com/herald-social/herald/test/realplatforms"
)

// maxAllocated limits the allocations for one 1 MiB body, in bytes.
const maxAllocated = 8 << 20

type activeTeam struct{}

func (activeTeam) Owner(string) *v1alpha1.Team {
	return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{State: v1alpha1.SubscriptionActive}}}
}

// full returns a 1 MiB body that repeats an item.
func full(prefix, item, suffix string) string {
	n := (maxBody - len(prefix) - len(suffix) - len(item)) / (len(item) + 1)
	return prefix + strings.Repeat(item+",", n) + item + suffix
}

// names returns an object with the maximum number of members.
func names() string {
	var b strings.Builder
	for i := range strictjson.MaxNames {
		fmt.Fprintf(&b, `"%061d":0,`, i)
	}
	return "{" + strings.TrimSuffix(b.String(), ",") + "}"
}

// accounts holds a connection for each name: its platform is the part before the dash.
type accounts struct{ bridge.ConnectionReader }

func (accounts) Get(_, name string) *v1alpha1.Connection {
	platform, _, ok := strings.Cut(name, "-")
	if !ok {
		return nil
	}
	return &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.Platform(platform)}}
}

func (accounts) List(string) []*v1alpha1.Connection { return nil }

func (accounts) Live(_ context.Context, _, name string) (*v1alpha1.Connection, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "connections"}, name)
}

// pictures has every file.
type pictures struct{ bridge.Media }

func (pictures) Get(_ context.Context, _, name string) (*v1alpha1.Media, error) {
	return &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MediaSpec{MimeType: v1alpha1.MimePNG}, Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded},
	}, nil
}

// taken discards created posts.
type taken struct{ bridge.PostClient }

func (taken) Create(_ context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	post.ResourceVersion = "1"
	return post, nil
}

func (taken) Get(_ context.Context, _, name string) (*v1alpha1.Post, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "posts"}, name)
}

// serving returns a handler like the API's, with ready accounts of all platforms.
func serving(limits Limits) *Handler {
	return NewHandler(bridge.New(bridge.Config{
		Key: anyKey{}.Authenticate, Used: func(*v1alpha1.APIKey) {}, Index: postindex.New(), Owner: activeTeam{}.Owner,
		Connections: accounts{}, Media: pictures{}, Posts: taken{},
		Readiness: func(context.Context, *v1alpha1.Connection) readiness.Result {
			return readiness.Result{State: readiness.Ready}
		},
		Capabilities: realplatforms.All().Capabilities,
		Clock:        clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	}), limits)
}

func post(ctx context.Context, body io.Reader, length int) *http.Request {
	info := &request.Info{Header: http.Header{}}
	r := httptest.NewRequestWithContext(request.With(ctx, info), http.MethodPost, Prefix+"/posts", body)
	r.ContentLength = int64(length)
	r.Header.Set("Authorization", "Bearer t")
	r.Header.Set("Content-Type", "application/json")
	return r
}

// items returns the given number of numbered items, separated by commas.
func items(format string, count int) string {
	var b strings.Builder
	for i := range count {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestHostilePosts limits the cost of a body of up to 1 MiB, regardless of its content, including well-formed posts
// that all rules validate.
func TestHostilePosts(t *testing.T) {
	handler := serving(Limits{Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes)})
	caption := func(piece string, bytes int) string { return strings.Repeat(piece, bytes/len(piece)) }
	tree := func(targets, cards string, more string) string {
		return `{"category":"tree","targets":[` + targets + `],"tree_cards":[` + cards + `]` + more + `}`
	}
	text := func(target string, count int) string {
		return `{"category":"text","targets":[` + items(target, count) + `]}`
	}
	const draft = `,"draft":true`
	both := `{"connection_id":"x-1"},{"connection_id":"threads-1"}`
	ids := func(name string) string {
		card := `{"media_ids":[` + items(`"`+name+`%d"`, 100) + `]}`
		return strings.Repeat(card+",", 99) + card
	}
	const cards, targets = `{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":[`, `{"category":"text","targets":[`
	const tooMany = "the body contains more than 16384 values"
	for name, tc := range map[string]struct{ body, want string }{
		"empty cards":                   {full(cards, `{}`, `]}`), tooMany},
		"cards of 1":                    {full(cards, `1`, `]}`), tooMany},
		"targets":                       {full(targets, `{"connection_id":"a"}`, `]}`), tooMany},
		"empty targets":                 {full(`{"category":"tree","tree_cards":[{}],"targets":[`, `{}`, `]}`), tooMany},
		"media ids":                     {full(`{"category":"image","targets":[{"connection_id":"a"}],"media_ids":[`, `"a"`, `]}`), tooMany},
		"no media ids":                  {full(`{"category":"image","targets":[{"connection_id":"a"}],"media_ids":[`, `1`, `]}`), tooMany},
		"arrays":                        {full(`{"x":[`, `[]`, `]}`), tooMany},
		"objects":                       {full(`{"x":[`, `{}`, `]}`), tooMany},
		"names":                         {full(`{"x":[`, names(), `]}`), "category: is missing"},
		"names with other values":       {full(`{"x":[`, `{"a":0,"b":0,"c":0,"d":0}`, `]}`), tooMany},
		"nearly all":                    {full(targets, `{"connection_id":1,"caption":1,"x":"`+strings.Repeat("a", 220)+`"}`, `]}`), "targets: must have at most 100 items"},
		"depth":                         {strings.Repeat("[", maxBody), "the body is nested deeper than 64 levels"},
		"escapes":                       {full(`{"x":["`, strings.Repeat(`\u00e4`, 100), `"]}`), "category: is missing"},
		"escaped names":                 {full(`{"`, strings.Repeat(`\u00e4`, 100), `":1}`), "category: is missing"},
		"invalid at the end":            {full(`{"x":"`, "a", `"`), "the body is not valid JSON"},
		"bad UTF-8":                     {full(`{"x":"`, "a", "\xff\"}"), "the body is not valid UTF-8"},
		"100 bad targets":               {targets + strings.Repeat(`{"`+strings.Repeat("x", 10_000)+`":1},`, 99) + `1]}`, "targets[0].connection_id: is missing"},
		"cards x ids, unknown accounts": {tree(items(`{"connection_id":"a%d"}`, 100), ids("m"), ""), "the outcomes of this many cards"},
		"cards x ids, too many":         {tree(`{"connection_id":"x-1"}`, ids("m"), ""), "at most 4 media on a card"},
		"cards x ids, invalid names":    {tree(`{"connection_id":"x-1"}`, ids("M"), draft), "no such media file"},
		"cards x ids, long names":       {tree(`{"connection_id":"x-1"}`, ids(caption("M", 90)), draft), "shorten the cards"},
		"cards x ids, numbers":          {tree(both, strings.Repeat(`{"media_ids":[`+items(`%d`, 100)+`]},`, 99)+`{}`, draft), "tree_cards[0].media_ids[1]: must be a string"},
		"targets x options": {
			text(`{"connection_id":"tiktok-%d","is_ai_generated":true,"tiktok_auto_add_music":true,"tiktok_draft":true,"tiktok_privacy_level":"SELF_ONLY",`+
				`"tiktok_allow_comment":false,"tiktok_allow_duet":true,"tiktok_allow_stitch":true,"caption":"`+caption("a", 2300)+`"}`, 100), "leave",
		},
		"targets x titles":           {text(`{"connection_id":"youtube-%d","youtube_title":"`+caption("é", 2000)+`","caption":"`+caption("<", 20)+`"}`, 100), "targets[0]"},
		"targets x titles, 1 MiB":    {text(`{"connection_id":"youtube-%d","youtube_title":"`+caption("<", 4000)+`","caption":"`+caption("<", 6000)+`"}`, 100), "the post takes"},
		"emoji that X counts":        {text(`{"connection_id":"x-%d","caption":"`+caption("👩‍👩‍👧‍👦", 64_000)+`"}`, 4), "too many for x"},
		"links that X counts":        {text(`{"connection_id":"x-%d","caption":"`+caption("http://a.co ", 64_000)+`"}`, 4), "too many for x"},
		"dots that X counts":         {text(`{"connection_id":"x-%d","caption":"`+caption("a.", 64_000)+`"}`, 4), "too many for x"},
		"marks that X counts":        {text(`{"connection_id":"x-%d","caption":"`+caption("\u0301", 64_000)+`"}`, 4), "too many for x"},
		"marks, 1 MiB":               {text(`{"connection_id":"x-%d","caption":"`+caption("\u0301", 64_000)+`"}`, 16), "the post takes"},
		"mentions":                   {text(`{"connection_id":"threads-%d","caption":"`+caption("@a #b ", 64_000)+`"}`, 4), "too many for threads"},
		"cards of two platforms":     {tree(both, items(`{"caption":"`+caption("é.co ", 2_400)+`%d"}`, 100), ""), "too many for x"},
		"cards, 1 MiB":               {tree(both, items(`{"caption":"`+caption("é.co ", 10_000)+`%d"}`, 100), ""), "the post takes"},
		"angle brackets, stored":     {text(`{"connection_id":"facebook-%d","caption":"`+caption("<", 10_000)+`"}`, 100), "shorten the captions"},
		"a number of 1 MiB":          {`{"category":"video","media_id":"m","targets":[{"connection_id":"x-1","caption":"a"}],"thumbnail_time":` + caption("1", 1<<20-200) + `}`, "larger number"},
		"a fraction of 1 MiB":        {`{"category":"video","media_id":"m","targets":[{"connection_id":"x-1","caption":"a"}],"thumbnail_time":-0.` + caption("1", 1<<20-200) + `}`, "at least 0"},
		"a time of 1 MiB":            {`{"category":"text","targets":[{"connection_id":"x-1","caption":"a"}],"scheduled_at":"` + caption("2030-01-01T00:00:00.", 1<<20-200) + `"}`, "RFC 3339"},
		"a category of 1 MiB":        {`{"category":"` + caption("a", 1<<20-200) + `"}`, "category: must be one of"},
		"an escaped caption":         {`{"category":"text","targets":[{"connection_id":"x-1","caption":"` + caption(`\u00e4`, 1<<20-200) + `"}]}`, "at most 65536 characters"},
		"deep, with many names":      {strings.Repeat(`{"`+caption("k", 4000)+`":1,"a":[`, 31) + strings.Repeat(`]}`, 31), "category: is missing"},
		"names with common prefixes": {`{"x":[` + strings.TrimSuffix(strings.Repeat(names()+",", 60), ",") + `]}`, "category: is missing"},
		"twice, at the end":          {`{"category":"text","targets":[],"x":"` + caption("a", 1<<20-200) + `","x":1}`, "appears twice"},
		"spaces":                     {`{` + caption(" ", 1<<20-200) + `"category":"text"}`, "targets: is missing"},
		"wrong values in all fields": {tree(items(`{"connection_id":%d,"caption":1,"youtube_title":1,"is_ai_generated":1}`, 100), strings.Repeat(`{"caption":1,"media_ids":1},`, 99)+`1`, ""), "more"},
	} {
		t.Run(name, func(t *testing.T) {
			if len(tc.body) > maxBody {
				t.Fatalf("the body has %d bytes", len(tc.body))
			}
			r, w := post(t.Context(), strings.NewReader(tc.body), len(tc.body)), httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			handler.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), tc.want) || w.Body.Len() > 16<<10 {
				t.Errorf("got %d %.600s, want %q", w.Code, w.Body, tc.want)
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes used %.1f MiB", len(tc.body), float64(allocated)/(1<<20))
			if allocated > slack*maxAllocated {
				t.Errorf("allocated %d bytes, want at most %d", allocated, maxAllocated)
			}
		})
	}
}

// stuck is a body that blocks until it is released, and signals its first read.
type stuck struct {
	reading chan<- struct{}
	let     <-chan struct{}
	told    bool
}

func (s *stuck) Read([]byte) (int, error) {
	if !s.told {
		s.told = true
		s.reading <- struct{}{}
	}
	<-s.let
	return 0, errors.New("the client left")
}

// TestConcurrentBodies verifies the number of 1 MiB bodies that are read concurrently; others are rejected unread.
func TestConcurrentBodies(t *testing.T) {
	t.Parallel()
	const sent, most = 64, 2
	gate := limits.NewBodyLimiter(limits.MaxBodyBytes)
	handler := serving(Limits{Bodies: gate})
	reading, let := make(chan struct{}, sent), make(chan struct{})
	var group sync.WaitGroup
	answers := make(chan *httptest.ResponseRecorder, sent)
	for range sent {
		group.Go(func() {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, post(t.Context(), &stuck{reading: reading, let: let}, maxBody))
			answers <- w
		})
	}
	for range sent - most {
		w := <-answers
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "RATE_LIMITED") {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
	for range most {
		<-reading // admitted requests arrive here in any order
	}
	if n := len(reading); n != 0 {
		t.Errorf("%d bodies more than the allowed %d are read concurrently", n, most)
	}
	small := httptest.NewRecorder()
	body := `{"category":"text","targets":[{"connection_id":"x-1","caption":"hi"}],"draft":true}`
	request := post(t.Context(), strings.NewReader(body), len(body))
	handler.ServeHTTP(small, request)
	if small.Code != http.StatusTooManyRequests {
		t.Errorf("the team's share is used up, but another post returned %d %s", small.Code, small.Body)
	}
	close(let)
	group.Wait()
	after := httptest.NewRecorder()
	handler.ServeHTTP(after, post(t.Context(), strings.NewReader(body), len(body)))
	if after.Code != http.StatusCreated {
		t.Errorf("got %d %s after memory was released", after.Code, after.Body)
	}
}
