// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/bluesky"
)

// stored is a file in memory.
type stored []byte

func (s stored) Open(_ context.Context, offset, length int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s[offset : offset+length])), nil
}

func (stored) Address(context.Context, time.Duration) (string, error) {
	return "", errors.New("files are uploaded")
}

func picture(t *testing.T, shade uint8) platforms.File {
	t.Helper()
	data := gray(t, shade)
	return platforms.File{Name: "picture.jpg", MIMEType: v1alpha1.MimeJPEG, Size: int64(len(data)), Width: 4, Height: 3, AltText: "a gray area", Bytes: stored(data)}
}

func film(t *testing.T) platforms.File {
	t.Helper()
	data := moving(t)
	return platforms.File{Name: "tenseconds.mp4", MIMEType: v1alpha1.MimeMP4, Size: int64(len(data)), Width: 720, Height: 1280, AltText: "ten seconds", Bytes: stored(data)}
}

// site is the only web page that texts link to, with its picture.
type site struct{ picture platforms.File }

func (s site) Page(ctx context.Context, address, _ string, _ int64) (fetch.Page, error) {
	at, err := url.Parse(address)
	if err != nil || at.Path == "/slow" {
		return fetch.Page{}, errors.New("the server took too long")
	}
	if at.Path != "/p.jpg" {
		return fetch.Page{URL: at, Type: "text/html", Body: []byte(`<title>Launch</title><meta name="description" content="All of it"><meta property="og:image" content="p.jpg">`), Whole: true}, nil
	}
	content, err := s.picture.Bytes.Open(ctx, 0, s.picture.Size)
	if err != nil {
		return fetch.Page{}, err
	}
	data, err := io.ReadAll(content)
	return fetch.Page{URL: at, Body: data, Whole: true}, err
}

func newAt(t *testing.T, address string) *bluesky.Platform {
	t.Helper()
	return bluesky.New(bluesky.Config{Config: platforms.Config{APIURL: address}, Pages: site{picture(t, 77)}}, transport.New(transport.Options{}))
}

// job returns a job for the account. Its key depends on n.
func (a *account) job(n byte, content platforms.Content) platforms.Job {
	return platforms.Job{
		Account: platforms.Account{ID: a.DID, Username: a.Handle, Token: platforms.Token{Access: a.token()}},
		Content: content, Key: platforms.Key{CreatedAt: time.Date(2026, 1, int(n), 9, 30, 0, 0, time.UTC), Sum: [16]byte{n, n, n, n, n, n, n, n}},
	}
}

// publish prepares and publishes a job, and returns the key of its record.
func publish(t *testing.T, p *bluesky.Platform, job platforms.Job) string {
	t.Helper()
	if p.Prepares(job.Content) {
		checkpoint, failure := p.Prepare(t.Context(), job)
		if failure != nil {
			t.Fatal(failure, failure.Err)
		}
		job.Checkpoint = checkpoint
	}
	result := p.Publish(t.Context(), job)
	if result.Outcome != platforms.Posted || !strings.HasSuffix(result.ExternalURL, "/"+result.ExternalID) {
		t.Fatalf("got %+v, %v", result, result.Err)
	}
	return result.ExternalID
}

// TestPosts publishes every kind of post, and checks what Bluesky's client reads.
func TestPosts(t *testing.T) {
	for name, begin := range servers {
		t.Run(name, func(t *testing.T) { testPosts(t, begin(t, "bakery.test", "zoe.test")) })
	}
}

func testPosts(t *testing.T, s *server) {
	t.Helper()
	acme, zoe := &s.Accounts[0], &s.Accounts[1]
	p := newAt(t, s.URL)
	identity, err := p.Identify(t.Context(), platforms.Token{Access: acme.token()})
	if err != nil || identity.AccountID != acme.DID || identity.Username != acme.Handle {
		t.Fatalf("got %+v, %v", identity, err)
	}

	text := "Größe 🎉 https://example.com/slow?b=c. Thanks @zoe.test, not @nobody.test! #launch"
	publish(t, p, acme.job(1, platforms.Content{Category: v1alpha1.CategoryText, Text: text}))
	publish(t, p, acme.job(2, platforms.Content{Category: v1alpha1.CategoryImage, Text: "two", Media: []platforms.File{picture(t, 10), picture(t, 200)}}))
	publish(t, p, acme.job(3, platforms.Content{Category: v1alpha1.CategoryVideo, Text: "moves", Media: []platforms.File{film(t)}}))
	first := publish(t, p, acme.job(4, platforms.Content{Category: v1alpha1.CategoryTree, Text: "one"}))
	second := publish(t, p, acme.job(5, platforms.Content{Category: v1alpha1.CategoryTree, Text: "two", InReplyTo: first, Media: []platforms.File{picture(t, 20)}}))
	publish(t, p, acme.job(6, platforms.Content{Category: v1alpha1.CategoryTree, Text: "three", InReplyTo: second}))
	publish(t, p, acme.job(7, platforms.Content{Category: v1alpha1.CategoryText, Text: "Read https://example.com/news", Language: "zh-Hant-TW"}))

	posts := s.read(t, acme)
	if len(posts) != 7 {
		t.Fatalf("got %d posts: %+v", len(posts), posts)
	}
	if diff := cmp.Diff([]segment{
		{Text: "https://example.com/slow?b=c", Link: "https://example.com/slow?b=c"}, {Text: "@zoe.test", Mention: zoe.DID}, {Text: "#launch", Tag: "launch"},
	}, posts[0].Facets); diff != "" || posts[0].Text != text {
		t.Errorf("the text is %q, with the links (-want +got):\n%s", posts[0].Text, diff)
	}
	for i, got := range append(posts[1].Images, posts[4].Images...) {
		if got.Size != got.Downloaded || got.Size == 0 || got.MIME != "image/jpeg" || got.Alt != "a gray area" || got.Width != 4 || got.Height != 3 {
			t.Errorf("image %d is %+v", i, got)
		}
	}
	if len(posts[1].Images) != 2 || len(posts[4].Images) != 1 {
		t.Errorf("got %d and %d images", len(posts[1].Images), len(posts[4].Images))
	}
	if got := posts[2].Video; got == nil || got.Size != got.Downloaded || int64(got.Size) != film(t).Size || got.MIME != "video/mp4" || got.Alt != "ten seconds" || got.Width != 720 {
		t.Errorf("the video is %+v", got)
	}
	if got := posts[6].Card; posts[0].Card != nil || got == nil || got.URI != "https://example.com/news" || got.Title != "Launch" || got.Description != "All of it" || got.Thumb == nil || int64(got.Thumb.Downloaded) != picture(t, 77).Size {
		t.Errorf("the cards are %+v and %+v", posts[0].Card, got)
	}
	if len(posts[0].Languages) != 0 || !slices.Equal(posts[6].Languages, []string{"zh-Hant-TW"}) {
		t.Errorf("the languages are %v and %v", posts[0].Languages, posts[6].Languages)
	}
	root := &ref{posts[3].URI, posts[3].CID}
	for card, want := range map[int][2]*ref{3: {nil, nil}, 4: {root, root}, 5: {root, {posts[4].URI, posts[4].CID}}} {
		if diff := cmp.Diff(want, [2]*ref{posts[card].Root, posts[card].Parent}); diff != "" {
			t.Errorf("%s replies to (-want +got):\n%s", posts[card].Text, diff)
		}
	}
	listed(t, p, acme, first)
}

// listed checks the lists of posts, and which posts belong to the account.
func listed(t *testing.T, p *bluesky.Platform, a *account, first string) {
	t.Helper()
	of := a.job(0, platforms.Content{}).Account
	for replies, want := range map[bool]int{false: 5, true: 2} {
		if posts, err := p.RecentPosts(t.Context(), of, platforms.Recent{Limit: 20, Replies: replies}); err != nil || len(posts) != want {
			t.Errorf("listed %d posts, %v; want %d", len(posts), err, want)
		}
	}
	for key, want := range map[string]platforms.Ownership{first: platforms.OwnershipConfirmed, "3222222222222": platforms.OwnershipUnknown, "../x": platforms.OwnershipUnknown} {
		if got, err := p.Confirm(t.Context(), of, key); got != want || err != nil {
			t.Errorf("%s belongs to %s, %v; want %s", key, got, err, want)
		}
	}
}

// TestLostAnswer cuts the connection of the call that publishes. One read determines the outcome, and repeating the
// call does not publish the post again.
func TestLostAnswer(t *testing.T) {
	for name, begin := range servers {
		t.Run(name, func(t *testing.T) { testLostAnswer(t, begin(t, "bakery.test")) })
	}
}

func testLostAnswer(t *testing.T, s *server) {
	t.Helper()
	acme := &s.Accounts[0]
	p := newAt(t, s.URL)
	for name, tc := range map[string]struct {
		reason string
		fate   fate
		n      byte
	}{
		"before": {"the read proves absence, and the next call publishes the post", cutBefore, 1},
		"after":  {"the read finds the post, and another call changes nothing", cutAfter, 2},
	} {
		t.Run(name, func(t *testing.T) {
			isThere := tc.fate == cutAfter
			address, cuts := cut(t, s, func(request) fate { return tc.fate })
			job := acme.job(tc.n, platforms.Content{Category: v1alpha1.CategoryText, Text: name})
			lost := newAt(t, address).Publish(t.Context(), job)
			if lost.Outcome != platforms.Unknown || cuts.Load() != 1 {
				t.Fatalf("%s: got %+v, %v after %d calls", tc.reason, lost, lost.Err, cuts.Load())
			}
			found, err := p.Lookup(t.Context(), job)
			if err != nil || (found.Matches == 1 && found.Certain && !found.PostedAt.IsZero()) != isThere || found.Proof == isThere {
				t.Errorf("%s: found %+v, %v", tc.reason, found, err)
			}
			again := p.Publish(t.Context(), job)
			if isDuplicate := again.Outcome == platforms.Unknown && again.Err.Class == platforms.ClassDuplicate; isDuplicate != isThere {
				t.Errorf("%s: the second call has %+v, %v", tc.reason, again, again.Err)
			}
			if found, err := p.Lookup(t.Context(), job); err != nil || found.Matches != 1 {
				t.Errorf("%s: found %+v, %v", tc.reason, found, err)
			}
			published := 0
			for _, post := range s.read(t, acme) {
				if post.Text == name {
					published++
				}
			}
			if published != 1 {
				t.Errorf("%s: published %d times", tc.reason, published)
			}
		})
	}
}

// TestRefusals checks the errors that the real server returns, and that the simulated server returns the same ones.
func TestRefusals(t *testing.T) {
	for name, begin := range servers {
		t.Run(name, func(t *testing.T) { testRefusals(t, begin(t, "bakery.test")) })
	}
}

func testRefusals(t *testing.T, s *server) {
	t.Helper()
	acme := &s.Accounts[0]
	p := newAt(t, s.URL)
	for name, tc := range map[string]struct {
		reason string
		change func(*platforms.Job)
		class  platforms.Class
	}{
		"wrong password": {"the account must be reconnected", func(j *platforms.Job) { j.Account.Token.Access = acme.Handle + ":aaaa-bbbb-cccc-dddd" }, platforms.ClassReconnect},
		"no password":    {"the Secret does not have the documented form", func(j *platforms.Job) { j.Account.Token.Access = "secret" }, platforms.ClassReconnect},
		"too long":       {"the lexicon allows 300 characters", func(j *platforms.Job) { j.Content.Text = strings.Repeat("a", 301) }, platforms.ClassPermanent},
		"lost blob": {"the file is uploaded again", func(j *platforms.Job) {
			j.Content.Media = []platforms.File{picture(t, 1)}
			j.Checkpoint = "bafkreibjfgx2gprinfvicegelk5kosd6y2frmqpqzwqkg7usac74l3t2v4;10;image/png"
		}, platforms.ClassTransient},
		"gone parent": {"the card has no parent", func(j *platforms.Job) { j.Content.InReplyTo = "3222222222222" }, platforms.ClassPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			job := acme.job(1, platforms.Content{Category: v1alpha1.CategoryText, Text: "hello"})
			tc.change(&job)
			got := p.Publish(t.Context(), job)
			if got.Err == nil || got.Err.Class != tc.class || got.Outcome != platforms.Refused && got.Outcome != platforms.NotSent || got.Err.Unlisted {
				t.Errorf("%s: %s, %+v", tc.reason, got.Outcome, got.Err)
			}
		})
	}
	if posts := s.read(t, acme); len(posts) != 0 {
		t.Errorf("published %+v", posts)
	}
}
