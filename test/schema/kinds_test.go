// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

func media(mime v1alpha1.MimeType, size int64) *v1alpha1.Media {
	return &v1alpha1.Media{ObjectMeta: meta(), Spec: v1alpha1.MediaSpec{FileName: "a", MimeType: mime, SizeBytes: size}}
}

func named(name string) *v1alpha1.Media {
	m := media(v1alpha1.MimePNG, 1)
	m.Spec.FileName = name
	return m
}

func fetched(url string, size int64) *v1alpha1.Media {
	m := media(v1alpha1.MimePNG, size)
	m.Spec.Source = &v1alpha1.MediaSource{URL: url}
	return m
}

func withAltText(characters int) *v1alpha1.Media {
	m := media(v1alpha1.MimePNG, 1)
	m.Spec.AltText = strings.Repeat("a", characters)
	return m
}

func unused(policy v1alpha1.WhenUnused) *v1alpha1.Media {
	m := media(v1alpha1.MimePNG, 1)
	m.Spec.WhenUnused = policy
	return m
}

func changeMedia(change func(*v1alpha1.MediaSpec)) func(client.Object) {
	return func(o client.Object) { change(&o.(*v1alpha1.Media).Spec) }
}

func teamWithRetention(ttl time.Duration) *v1alpha1.Team {
	t := team("keeps", v1alpha1.Subscription{})
	t.Spec.Retention.InCluster = &v1alpha1.Duration{Duration: ttl}
	return t
}

func inZone(zone string) *v1alpha1.Team {
	t := team("zone", v1alpha1.Subscription{})
	t.Spec.TimeZone = zone
	return t
}

func reclaimed(seconds int32) *v1alpha1.Team {
	t := team("undo", v1alpha1.Subscription{})
	t.Spec.Publishing.UndoSeconds = seconds
	return t
}

var _ = DescribeTable("the time to take back a Team's posts", others,
	Entry("zero", reclaimed(0), nil, ""),
	Entry("a Team's time to withdraw posts", reclaimed(60), nil, ""),
	Entry("longer: a user waits for the post", reclaimed(61), nil, "spec.publishing.undoSeconds: Invalid value: 61: spec.publishing.undoSeconds in body should be less than or equal to 60"),
	Entry("negative: a post is not published in the past", reclaimed(-1), nil, "spec.publishing.undoSeconds: Invalid value: -1: spec.publishing.undoSeconds in body should be greater than or equal to 0"),
)

const aZone = ": must be the IANA name of a time zone, such as Europe/Berlin"

var _ = DescribeTable("the time zone of a Team", others,
	Entry("an empty zone", inZone(""), nil, ""),
	Entry("a city's", inZone("Europe/Berlin"), nil, ""),
	Entry("with small letters after a hyphen", inZone("America/Port-au-Prince"), nil, ""),
	Entry("with three parts", inZone("America/North_Dakota/New_Salem"), nil, ""),
	Entry("with a sign", inZone("Etc/GMT+5"), nil, ""),
	Entry("the universal time", inZone("UTC"), nil, ""),
	Entry("an abbreviation, which several zones share", inZone("CET"), nil, aZone),
	Entry("an offset, which does not have daylight saving time", inZone("+01:00"), nil, aZone),
	Entry("a city without its area", inZone("Berlin"), nil, aZone),
	Entry("with a blank instead of an underscore", inZone("America/New York"), nil, aZone),
	Entry("a path outside the database", inZone("Europe/../../etc/passwd"), nil, aZone),
)

var _ = DescribeTable("a Media", others,
	Entry("a video", media(v1alpha1.MimeMP4, 1), nil, ""),
	Entry("a QuickTime video", media(v1alpha1.MimeQuickTime, 1), nil, ""),
	Entry("a JPEG picture", media(v1alpha1.MimeJPEG, 1), nil, ""),
	Entry("a PNG picture", media(v1alpha1.MimePNG, 1), nil, ""),
	Entry("a WebP picture", media(v1alpha1.MimeWebP, 1), nil, ""),
	Entry("a GIF picture", media("image/gif", 1), nil, "spec.mimeType"),
	Entry("an empty file", media(v1alpha1.MimePNG, 0), nil, "spec.sizeBytes"),
	Entry("the largest video", media(v1alpha1.MimeMP4, v1alpha1.MaxVideoBytes), nil, ""),
	Entry("a larger video", media(v1alpha1.MimeMP4, v1alpha1.MaxVideoBytes+1), nil, "spec.sizeBytes"),
	Entry("the largest picture", media(v1alpha1.MimePNG, v1alpha1.MaxImageBytes), nil, ""),
	Entry("a larger picture", media(v1alpha1.MimePNG, v1alpha1.MaxImageBytes+1), nil, "the file is too large"),
	Entry("without a name", named(""), nil, "spec.fileName"),
	Entry("with any name", named("häuser am see.PNG"), nil, ""),
	Entry("that gets another type", media(v1alpha1.MimePNG, 1), func(o client.Object) { o.(*v1alpha1.Media).Spec.MimeType = v1alpha1.MimeJPEG }, "cannot be changed"),
	Entry("that gets another size", media(v1alpha1.MimePNG, 1), func(o client.Object) { o.(*v1alpha1.Media).Spec.SizeBytes = 2 }, "cannot be changed"),
	Entry("that is fetched", fetched("https://cdn.example.com/a.png", 1), nil, ""),
	Entry("that is fetched from a port, with a query", fetched("https://cdn.example.com:8443/a.png?v=1#top", 1), nil, ""),
	Entry("that is fetched, of any size", fetched("https://cdn.example.com/a.png", 0), nil, ""),
	Entry("that is fetched from an IPv6 address", fetched("https://[2606:4700::1111]/a.png", 0), nil, ""),
	Entry("that is fetched without encryption", fetched("http://cdn.example.com/a.png", 0), nil, "spec.source.url"),
	Entry("that is fetched from a local file", fetched("file:///etc/passwd", 0), nil, "spec.source.url"),
	Entry("that is fetched with a password", fetched("https://me:secret@cdn.example.com/a.png", 0), nil, "spec.source.url"),
	Entry("that is fetched from nowhere", fetched("https://", 0), nil, "spec.source.url"),
	Entry("that is fetched from something with a blank", fetched("https://cdn.example.com/a b.png", 0), nil, "spec.source.url"),
	Entry("that is fetched from no URL", fetched("https://[::1/a.png", 0), nil, "not a valid URL"),
	Entry("that gets a source", media(v1alpha1.MimePNG, 1), changeMedia(func(s *v1alpha1.MediaSpec) { s.Source = &v1alpha1.MediaSource{URL: "https://a.example/"} }), "cannot be changed"),
	Entry("that gets another source", fetched("https://a.example/", 0), changeMedia(func(s *v1alpha1.MediaSpec) { s.Source.URL = "https://b.example/" }), "cannot be changed"),
	Entry("that loses its source", fetched("https://a.example/", 1), changeMedia(func(s *v1alpha1.MediaSpec) { s.Source = nil }), "cannot be changed"),
	Entry("that gets a size", fetched("https://a.example/", 0), changeMedia(func(s *v1alpha1.MediaSpec) { s.SizeBytes = 2 }), "cannot be changed"),
	Entry("with an alt text", withAltText(1000), nil, ""),
	Entry("with a longer alt text than any platform accepts", withAltText(1001), nil, "spec.altText"),
	Entry("that gets an alt text", media(v1alpha1.MimePNG, 1), changeMedia(func(s *v1alpha1.MediaSpec) { s.AltText = "a rocket" }), "cannot be changed"),
	Entry("that gets another alt text", withAltText(1), changeMedia(func(s *v1alpha1.MediaSpec) { s.AltText = "b" }), "cannot be changed"),
	Entry("that is kept", unused(v1alpha1.KeepWhenUnused), nil, ""),
	Entry("that is to be deleted", unused(v1alpha1.DeleteWhenUnused), nil, ""),
	Entry("with an unknown choice", unused("forget"), nil, "spec.whenUnused"),
	Entry("that is kept after an earlier choice to delete it", unused(v1alpha1.DeleteWhenUnused), changeMedia(func(s *v1alpha1.MediaSpec) { s.WhenUnused = v1alpha1.KeepWhenUnused }), ""),
	Entry("that gets a label", media(v1alpha1.MimePNG, 1), func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) }, ""),
)

func stored(phase v1alpha1.MediaPhase, etag string) v1alpha1.MediaStatus {
	return v1alpha1.MediaStatus{Phase: phase, ETag: etag, SizeBytes: 1, Width: 640, Height: 480}
}

func awaited(expires *v1alpha1.Time) v1alpha1.MediaStatus {
	return v1alpha1.MediaStatus{Phase: v1alpha1.MediaPending, UploadURL: "https://store.example/a?signature=b", UploadURLExpiresAt: expires}
}

var _ = DescribeTable("a Media status update",
	func(ctx SpecContext, before, after v1alpha1.MediaStatus, message string) {
		m := media(v1alpha1.MimePNG, 1)
		Expect(k8s.Create(ctx, m)).To(Succeed())
		m.Status = before
		Expect(k8s.Status().Update(ctx, m)).To(Succeed())
		m.Status = after
		outcomeIs(k8s.Status().Update(ctx, m), message)
	},
	Entry("pending from the start", v1alpha1.MediaStatus{}, stored(v1alpha1.MediaPending, ""), ""),
	Entry("verified immediately", v1alpha1.MediaStatus{}, stored(v1alpha1.MediaUploaded, "e"), ""),
	Entry("pending, uploaded", stored(v1alpha1.MediaPending, ""), stored(v1alpha1.MediaUploaded, "e"), ""),
	Entry("pending, rejected", stored(v1alpha1.MediaPending, ""), stored(v1alpha1.MediaRejected, ""), ""),
	Entry("pending, expired", stored(v1alpha1.MediaPending, ""), stored(v1alpha1.MediaExpired, ""), ""),
	Entry("uploaded, changed afterwards", stored(v1alpha1.MediaUploaded, "e"), stored(v1alpha1.MediaRejected, "e"), ""),
	Entry("uploaded, expired", stored(v1alpha1.MediaUploaded, "e"), stored(v1alpha1.MediaExpired, "e"), ""),
	Entry("rejected, expired", stored(v1alpha1.MediaRejected, ""), stored(v1alpha1.MediaExpired, ""), ""),
	Entry("uploaded without an etag", stored(v1alpha1.MediaPending, ""), stored(v1alpha1.MediaUploaded, ""), "must have an etag"),
	Entry("uploaded, pending again", stored(v1alpha1.MediaUploaded, "e"), stored(v1alpha1.MediaPending, "e"), "only goes forward"),
	Entry("rejected, uploaded after all", stored(v1alpha1.MediaRejected, ""), stored(v1alpha1.MediaUploaded, "e"), "only goes forward"),
	Entry("expired, uploaded after all", stored(v1alpha1.MediaExpired, ""), stored(v1alpha1.MediaUploaded, "e"), "only goes forward"),
	Entry("expired, rejected", stored(v1alpha1.MediaExpired, ""), stored(v1alpha1.MediaRejected, ""), "only goes forward"),
	Entry("a phase that moves back", stored(v1alpha1.MediaUploaded, "e"), v1alpha1.MediaStatus{ETag: "e"}, "only goes forward"),
	Entry("other bytes", stored(v1alpha1.MediaUploaded, "e"), stored(v1alpha1.MediaUploaded, "f"), "etag never changes"),
	Entry("the etag is removed", stored(v1alpha1.MediaUploaded, "e"), stored(v1alpha1.MediaExpired, ""), "etag never changes"),
	Entry("an unknown phase", v1alpha1.MediaStatus{}, stored("lost", ""), "status.phase"),
	Entry("an upload URL", v1alpha1.MediaStatus{}, awaited(future), ""),
	Entry("an upload URL without an expiry", v1alpha1.MediaStatus{}, awaited(nil), "must be set together"),
	Entry("a URL that is withdrawn", awaited(future), stored(v1alpha1.MediaUploaded, "e"), ""),
	Entry("no longer used", stored(v1alpha1.MediaUploaded, "e"), func() v1alpha1.MediaStatus {
		s := stored(v1alpha1.MediaUploaded, "e")
		s.UnusedSince = future
		return s
	}(), ""),
)

var _ = DescribeTable("immutable Team fields", others,
	Entry("for 90 days", teamWithRetention(2160*time.Hour), nil, ""),
	Entry("for a minute and a half", teamWithRetention(90*time.Second), nil, ""),
	Entry("for a zero duration", teamWithRetention(0), nil, ""),
	Entry("for half a second", teamWithRetention(500*time.Millisecond), nil, "spec.retention.inCluster"),
	Entry("for a negative duration", teamWithRetention(-time.Hour), nil, "spec.retention.inCluster"),
	Entry("for longer than a duration can be", durable("9999999h"), nil, "spec.retention.inCluster"),
	Entry("for a number without a unit", durable("90"), nil, "spec.retention.inCluster"),
	Entry("for days", durable("90d"), nil, ""),
	Entry("for days and hours", durable("1d12h"), nil, ""),
	Entry("for months, whose length varies", durable("3mo"), nil, "must be a time in days, hours, minutes and seconds, such as 7d, 36h30m or 0s"),
	Entry("for more days than a duration can be", durable("99999d"), nil, "spec.retention.inCluster"),
	Entry("for an empty time", durable(""), nil, "spec.retention.inCluster"),
	Entry("in the archive for days", retained(map[string]any{"archived": "90d"}), nil, ""),
	Entry("in the archive for a part of a day", retained(map[string]any{"archived": "1.5d"}), nil, "must be a time"),
	Entry("in the archive for less than in the cluster, which counts as the same", retained(map[string]any{"inCluster": "48h", "archived": "0s"}), nil, ""),
	Entry("only in the archive", retained(map[string]any{"inCluster": "0s", "applied": true}), nil, ""),
)

func durable(inCluster string) *unstructured.Unstructured {
	return retained(map[string]any{"inCluster": inCluster})
}

func retained(retention map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Team",
		"metadata": map[string]any{"name": fmt.Sprintf("o%d", serial.Add(1))},
		"spec":     map[string]any{"namespace": "keeps", "retention": retention},
	}}
}

var _ = Describe("the defaults of a Team", func() {
	It("are an active unlimited subscription and the installation's retention", func(ctx SpecContext) {
		t := team("plain", v1alpha1.Subscription{})
		Expect(k8s.Create(ctx, t)).To(Succeed())
		Expect(t.Spec.Retention).To(Equal(v1alpha1.TeamRetention{}))
		Expect(t.Spec.Subscription).To(Equal(v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive}))
	})
})

var _ = DescribeTable("a Connection status update",
	func(ctx SpecContext, status v1alpha1.ConnectionStatus, message string) {
		c := connection()
		Expect(k8s.Create(ctx, c)).To(Succeed())
		c.Status = status
		outcomeIs(k8s.Status().Update(ctx, c), message)
	},
	Entry("the account's options on TikTok", v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{
		PrivacyLevelOptions: []string{"FOLLOWER_OF_CREATOR", "SELF_ONLY"}, CommentDisabled: true, MaxVideoPostDurationSeconds: 600,
	}}, ""),
	Entry("an account without options from TikTok", v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{}}, ""),
	Entry("a privacy level twice", v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"SELF_ONLY", "SELF_ONLY"}}}, "Duplicate value"),
	Entry("a privacy level without a name", v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{""}}}, "privacyLevelOptions[0]"),
	Entry("a negative duration", v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{MaxVideoPostDurationSeconds: -1}}, "maxVideoPostDurationSeconds"),
	Entry("the limits of a Mastodon server", v1alpha1.ConnectionStatus{Mastodon: &v1alpha1.MastodonServer{MaxCharacters: 5000, CharactersPerURL: 23, MaxMedia: 4}}, ""),
	Entry("a file type that Herald does not have", v1alpha1.ConnectionStatus{Mastodon: &v1alpha1.MastodonServer{MediaTypes: []v1alpha1.MimeType{"image/gif"}}}, "mediaTypes[0]"),
	Entry("a server without limits", v1alpha1.ConnectionStatus{Mastodon: &v1alpha1.MastodonServer{}}, ""),
	Entry("a negative length", v1alpha1.ConnectionStatus{Mastodon: &v1alpha1.MastodonServer{MaxCharacters: -1}}, "maxCharacters"),
	Entry("a limit on calls", v1alpha1.ConnectionStatus{RateLimitedUntil: future}, ""),
)

var _ = DescribeTable("a Team status update",
	func(ctx SpecContext, usage v1alpha1.TeamUsage, message string) {
		t := team("used", v1alpha1.Subscription{})
		Expect(k8s.Create(ctx, t)).To(Succeed())
		t.Status.Usage = &usage
		outcomeIs(k8s.Status().Update(ctx, t), message)
	},
	Entry("a zero usage", v1alpha1.TeamUsage{}, ""),
	Entry("a positive usage", v1alpha1.TeamUsage{XPostsThisMonth: new(int32(30)), ConnectedAccounts: 10}, ""),
	Entry("a negative usage", v1alpha1.TeamUsage{XPostsThisMonth: new(int32(-1))}, "xPostsThisMonth"),
)

// newUsage returns a Usage for a resource and, if it is not empty, an account.
func newUsage(resource, account, period string) *v1alpha1.Usage {
	return &v1alpha1.Usage{ObjectMeta: meta(), Spec: v1alpha1.UsageSpec{Resource: resource, Account: account, Period: period}}
}

var _ = DescribeTable("the spec of a Usage", others,
	Entry("a month", newUsage("x-posts", "", "2026-11"), nil, ""),
	Entry("any 24 hours of an account", newUsage("tiktok-drafts", "act.1", "24h"), nil, ""),
	Entry("the thirteenth month", newUsage("x-posts", "", "2026-13"), nil, "spec.period"),
	Entry("days, which Go does not parse", newUsage("x-posts", "", "1d"), nil, "spec.period"),
	Entry("no duration", newUsage("x-posts", "", "0h"), nil, "spec.period"),
	Entry("a resource whose name is not a valid object name", newUsage("X posts", "", "24h"), nil, "spec.resource"),
	Entry("a changed period", newUsage("x-posts", "", "2026-11"), func(o client.Object) { o.(*v1alpha1.Usage).Spec.Period = "2026-12" }, "cannot be changed"),
)

var _ = DescribeTable("a Usage status update",
	func(ctx SpecContext, change func(*v1alpha1.UsageEntry), message string) {
		u := newUsage("x-posts", "", "2026-11")
		Expect(k8s.Create(ctx, u)).To(Succeed())
		entry := v1alpha1.UsageEntry{Post: "a", Target: 99, Count: 1, At: *future, Since: *future}
		change(&entry)
		u.Status = v1alpha1.UsageStatus{Limit: 30, Used: 1, Entries: []v1alpha1.UsageEntry{entry}}
		outcomeIs(k8s.Status().Update(ctx, u), message)
	},
	Entry("a reservation", func(e *v1alpha1.UsageEntry) { e.Request = "r" }, ""),
	Entry("a delivery", func(e *v1alpha1.UsageEntry) { e.UID, e.Settled = "u", true }, ""),
	Entry("an entry with a count of zero", func(e *v1alpha1.UsageEntry) { e.Count = 0 }, "count"),
	Entry("an index above the maximum number of targets", func(e *v1alpha1.UsageEntry) { e.Target = 100 }, "target"),
	Entry("an entry without a post", func(e *v1alpha1.UsageEntry) { e.Post = "" }, "post"),
)

// outcomeIs expects that a write is rejected with the message or, if that is empty, that it succeeds.
func outcomeIs(err error, message string) {
	GinkgoHelper()
	if message == "" {
		Expect(err).NotTo(HaveOccurred())
		return
	}
	refused(err, message)
}

var _ = DescribeTable("the time of a condition",
	func(ctx SpecContext, written any, admitted bool) {
		p := validPost()
		Expect(k8s.Create(ctx, p)).To(Succeed())
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Post",
			"metadata": map[string]any{"name": p.Name, "namespace": p.Namespace, "resourceVersion": p.ResourceVersion},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": written,
			}}},
		}}
		err := k8s.Status().Update(ctx, u)
		if !admitted {
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "got: %v", err)
			return
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
	},
	Entry("Go's format", "2026-12-01T09:00:00Z", true),
	Entry("in lower case, which the format admits and Go rejects", "2026-12-01t09:00:00z", false),
	Entry("with an invalid fraction", "2026-12-01T09:00:00x5Z", false),
	Entry("a list", []any{}, false),
	Entry("Go's zero time, which is written as null", "0001-01-01T00:00:00Z", false),
	Entry("the end of time, which becomes a year of five digits in UTC", "9999-12-31T23:59:59-01:00", false),
)

var _ = DescribeTable("a target's index",
	func(ctx SpecContext, index, message string) {
		p := validPost()
		Expect(k8s.Create(ctx, p)).To(Succeed())
		patch := `{"status":{"targets":[{"index":` + index + `,"phase":"processing"}]}}`
		outcomeIs(k8s.Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(patch))), message)
	},
	Entry("a whole number", "1", ""),
	Entry("with a fraction of zero, which would be another key", "1.0", "whole number"),
)
