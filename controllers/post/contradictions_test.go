// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// everywhere adds all platforms to a manager, with a listing lag of half a second.
func everywhere(o *post.Options) {
	const lag = 500 * time.Millisecond
	out := transport.New(transport.Options{})
	at := func(p v1alpha1.Platform) string { return platform.URL + "/" + string(p) }
	o.Platforms[v1alpha1.PlatformThreads] = threads.New(threads.Config{Config: platforms.Config{APIURL: at(v1alpha1.PlatformThreads), ListingLag: lag}}, out)
	o.Platforms[v1alpha1.PlatformInstagram] = instagram.New(instagram.Config{Config: platforms.Config{APIURL: at(v1alpha1.PlatformInstagram), ListingLag: lag}}, out)
	o.Platforms[v1alpha1.PlatformFacebook] = facebook.New(facebook.Config{Config: platforms.Config{
		APIURL: at(v1alpha1.PlatformFacebook), WebURL: at(v1alpha1.PlatformFacebook), ListingLag: lag,
	}}, out)
	o.Platforms[v1alpha1.PlatformTikTok] = tiktok.New(tiktok.Config{
		APIURL: at(v1alpha1.PlatformTikTok), WebURL: at(v1alpha1.PlatformTikTok), ListingLag: lag,
	}, out)
	o.Platforms[v1alpha1.PlatformYouTube] = youtube.New(youtube.Config{
		APIURL: at(v1alpha1.PlatformYouTube), WebURL: at(v1alpha1.PlatformYouTube), ListingLag: lag,
	}, out)
}

// lie is a refusal by a platform that has published the post.
type lie struct {
	reason string
	to     v1alpha1.Platform
	// content turns the text post into another kind of post.
	content func(*v1alpha1.Post)
	answer  sandboxtest.Fault
}

// graphError returns an error in the format of Meta's Graph APIs.
func graphError(code, subcode int) sandboxtest.Fault {
	return sandboxtest.Fault{Status: 400, Body: map[string]any{
		"error": map[string]any{"message": "m", "type": "OAuthException", "code": code, "error_subcode": subcode, "is_transient": false},
	}}
}

func xError(status, code int, words string) sandboxtest.Fault {
	return sandboxtest.Fault{Status: status, Body: map[string]any{
		"title": "m", "detail": words, "type": "about:blank", "status": status, "errors": []any{map[string]any{"code": code, "message": words}},
	}}
}

func inWords(refusal string) sandboxtest.Fault { return sandboxtest.Fault{Refusal: refusal} }

func withFilm(p *v1alpha1.Post) {
	p.Spec.Category = v1alpha1.CategoryVideo
	p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}}
}

var withPicture = showing("a")

func lies() []lie {
	const (
		onX, onThreads, onInstagram = v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformInstagram
		onFacebook, onTikTok        = v1alpha1.PlatformFacebook, v1alpha1.PlatformTikTok
		onYouTube                   = v1alpha1.PlatformYouTube
	)
	all := []lie{
		{"a limit without an end", onX, nil, sandboxtest.Fault{Status: 429, Body: map[string]any{"title": "Too Many Requests", "type": "about:blank", "status": 429}}},
		{"a limit with a time to come back", onX, nil, sandboxtest.Fault{Refusal: "rate_limit", RetryAfterS: 600}},
		{"a post that looks automated", onX, nil, xError(403, 226, "This request looks like it might be automated.")},
		{"a locked account", onX, nil, xError(403, 326, "To protect our users, this account is temporarily locked.")},
		{"a suspended account", onX, nil, xError(403, 64, "Your account is suspended and is not permitted to access this feature.")},
		{"a daily limit of the account", onX, nil, xError(403, 185, "User is over daily status update limit.")},
		{"a missing permission", onX, nil, inWords("permission")},
		{"an invalid post", onX, nil, inWords("invalid")},
		{"a token that does not work", onX, nil, sandboxtest.Fault{Status: 401}},
		{"a picture that is not valid", onX, withPicture, inWords("invalid")},
		{"a film, and a limit", onX, withFilm, inWords("rate_limit")},
		{"each card of a tree", onX, cards("first", "second", "third"), sandboxtest.Fault{Refusal: "invalid", Times: 3}},
		{"each card of a tree, by a limit", onThreads, cards("first", "second", "third"), sandboxtest.Fault{Refusal: "rate_limit", Times: 3}},
		{"a Page with a picture, and a limit", onFacebook, withPicture, graphError(613, 0)},
		{"the host of uploads, by a limit", onTikTok, withFilm, inWords("rate_limit")},
		{"the host of uploads, by a status alone", onTikTok, withFilm, inWords("permission")},
		{"the host of uploads, as an invalid request", onTikTok, withFilm, inWords("invalid")},
		{"photos, as too many posts", onTikTok, withPicture, inWords("spam")},
		{"photos, by a limit", onTikTok, withPicture, inWords("rate_limit")},
		{"photos, as invalid", onTikTok, withPicture, inWords("invalid")},
		{"the last part of a film, by a limit", onYouTube, withFilm, inWords("rate_limit")},
		{"the last part of a film, as too many uploads", onYouTube, withFilm, inWords("spam")},
		{"the last part of a film, as forbidden", onYouTube, withFilm, inWords("permission")},
		{"the last part of a film, as invalid", onYouTube, withFilm, inWords("invalid")},
	}
	content := map[v1alpha1.Platform]func(*v1alpha1.Post){onInstagram: withPicture}
	for _, on := range []v1alpha1.Platform{onThreads, onInstagram, onFacebook} {
		for _, e := range []struct {
			reason        string
			code, subcode int
		}{
			{"a spam block", 4, 2207051},
			{"a quota of posts", 9, 2207042},
			{"a block", 368, 0},
			{"a temporary block", 368, 1390008},
			{"a limit of the app", 4, 0},
			{"a limit of calls", 613, 0},
			{"a limit of the Page", 32, 0},
			{"a restricted account", 25, 2207050},
			{"an expired token", 190, 463},
			{"a missing permission", 10, 0},
			{"a parameter", 100, 0},
		} {
			all = append(all, lie{fmt.Sprintf("%s, %d/%d", e.reason, e.code, e.subcode), on, content[on], graphError(e.code, e.subcode)})
		}
	}
	return all
}

var _ = Describe("A platform that publishes but responds with an error", Ordered, ContinueOnFailure, func() {
	type begun struct {
		lie
		account sandboxtest.Account
		post    *v1alpha1.Post
	}
	rows := lies()
	posts := make([]begun, len(rows))

	// begin sends a post that will be refused. Each has its own account, so all are sent concurrently.
	begin := func(ctx context.Context, l lie) begun {
		t := newTeam(ctx)
		on := string(l.to)
		if l.to != v1alpha1.PlatformX {
			t.account = t.connectTo(ctx, l.to, on, fmt.Sprintf("26%08d", serial.Add(1)), map[string]any{"processing_ms": 0, "listing_lag_ms": 300})
		}
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		film := suite.Must(mediatest.Film("../.."))
		fileOf(ctx, t, "film", "film.mp4", v1alpha1.MimeMP4, film)
		fault := l.answer
		fault.Platform, fault.Account, fault.Operation, fault.Kind = on, t.account.ID, "publish", "publishes_and_refuses"
		fault.Times = max(fault.Times, 1)
		Expect(platform.Fault(ctx, fault)).To(Succeed())
		return begun{l, t.account, t.post(ctx, fmt.Sprintf("a lie %d", serial.Add(1)), func(p *v1alpha1.Post) {
			target := &p.Spec.Targets[0]
			target.ConnectionRef.Name = on
			if l.to == v1alpha1.PlatformYouTube {
				target.YouTube = &v1alpha1.YouTubeOptions{Title: "a lie"}
			}
			if l.content != nil {
				l.content(p)
			}
		})}
	}
	BeforeAll(func(ctx SpecContext) {
		runManager(everywhere)
		for i, l := range rows {
			posts[i] = begin(ctx, l)
		}
	})

	for i, l := range rows {
		It(fmt.Sprintf("is not believed: %s, %s", l.to, l.reason), func(ctx SpecContext) {
			b := posts[i]
			Eventually(func() v1alpha1.PostPhase {
				passPause(ctx, b.post)
				now := read(ctx, b.post)
				if now.Status.Phase == v1alpha1.PhaseFailed {
					StopTrying(fmt.Sprintf("%s: %s", now.Status.Targets[0].Reason, now.Status.Targets[0].Message)).Now()
				}
				return now.Status.Phase
			}).Should(Equal(v1alpha1.PhasePosted))
			online := suite.Must(platform.Posts(ctx, string(b.to), b.account.ID))
			Expect(online).To(HaveLen(cardsOf(b.post)))
			target := read(ctx, b.post).Status.Targets[0]
			Expect(target.ExternalID).To(Equal(online[0].ID))
			Expect(target.Attempt.Number).To(BeEquivalentTo(len(online)), "one call for each post that is online")
		})
	}
})

// passPause ends the pause of an announced rate limit, which would otherwise last for minutes, and the pause after a
// preparation that was too slow on a busy machine.
func passPause(ctx context.Context, p *v1alpha1.Post) {
	GinkgoHelper()
	now := read(ctx, p)
	if len(now.Status.Targets) == 0 {
		return
	}
	target := &now.Status.Targets[0]
	// Without a time for the next attempt, the post waits for the connection's limit.
	pauses := target.Reason == v1alpha1.ReasonRateLimited || target.Reason == v1alpha1.ReasonPlatformUnavailable
	if !pauses || target.NextTryAt != nil && time.Until(target.NextTryAt.Time) < 2*time.Second {
		return
	}
	var conn v1alpha1.Connection
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Spec.Targets[0].ConnectionRef.Name}, &conn)).To(Succeed())
	conn.Status.RateLimitedUntil, conn.Status.AppRateLimitedUntil, conn.Status.RateLimits = nil, nil, nil
	// On a conflict with the manager, the next poll repeats the update.
	Expect(client.IgnoreNotFound(ignoreConflict(k8s.Status().Update(ctx, &conn)))).To(Succeed())
	if target.NextTryAt != nil {
		target.NextTryAt = v1alpha1.NewTimePtr(time.Now())
		Expect(ignoreConflict(k8s.Status().Update(ctx, now))).To(Succeed())
	}
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// cardsOf returns the number of published posts that a Post becomes.
func cardsOf(p *v1alpha1.Post) int {
	if p.Spec.Tree == nil {
		return 1
	}
	return len(p.Spec.Tree.Cards)
}
