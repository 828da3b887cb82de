// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// sample is an admitted object that changes start from.
type sample struct {
	name   string
	plural string
	object any
	decode func() any
}

var (
	at         = v1alpha1.NewTime(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", Message: "all is well",
		ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(at.Time),
	}}
)

func meta(kind string) (metav1.TypeMeta, metav1.ObjectMeta) {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}, metav1.ObjectMeta{Name: "a", Namespace: "n"}
}

func samples(tb testing.TB) []sample {
	tb.Helper()
	list := []sample{
		{"team", "teams", sampleTeam(), func() any { return new(v1alpha1.Team) }},
		{"key", "apikeys", sampleKey(), func() any { return new(v1alpha1.APIKey) }},
		{"connection", "connections", sampleConnection(), func() any { return new(v1alpha1.Connection) }},
		{"mastodon", "connections", sampleMastodon(), func() any { return new(v1alpha1.Connection) }},
		{"media", "media", sampleMedia(), func() any { return new(v1alpha1.Media) }},
		{"usage", "usages", sampleUsage(), func() any { return new(v1alpha1.Usage) }},
	}
	for _, post := range samplePosts() {
		list = append(list, sample{string(post.Spec.Category), "posts", post, func() any { return new(v1alpha1.Post) }})
	}
	return list
}

func sampleTeam() *v1alpha1.Team {
	team := &v1alpha1.Team{
		Spec: v1alpha1.TeamSpec{
			Namespace: "team-a", DisplayName: "A",
			Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter, State: v1alpha1.SubscriptionTrialing, TrialEndsAt: &at},
			Retention:    v1alpha1.TeamRetention{InCluster: &v1alpha1.Duration{}, Archived: &v1alpha1.Duration{Duration: 90 * time.Hour}, Applied: true},
			Budget: v1alpha1.TeamBudget{
				Posts: new(int32(10)), PostBytes: new(resource.MustParse("10Mi")), UnfinishedPosts: new(int32(5)),
				PendingFiles: new(int32(5)), PendingFileBytes: new(resource.MustParse("1Gi")), Keys: new(int32(2)),
			},
			Media: v1alpha1.TeamMedia{KeepLocation: true}, TimeZone: "Europe/Berlin", Publishing: v1alpha1.TeamPublishing{UndoSeconds: 10},
		},
		Status: v1alpha1.TeamStatus{
			Conditions: conditions, ObservedGeneration: 1,
			Archive:     &v1alpha1.TeamArchive{Revision: 7, Posts: 1_000_000},
			Suspensions: []v1alpha1.Suspension{{From: at, Until: &at}},
			Shard:       "03", Move: &v1alpha1.ShardMove{From: "07", Since: at, Until: &at},
			Usage: &v1alpha1.TeamUsage{
				XPostsThisMonth: new(int32(3)), ConnectedAccounts: 2, Budget: []v1alpha1.BudgetUse{{Item: v1alpha1.BudgetPosts, Used: 1, Limit: 2}},
			},
		},
	}
	team.TypeMeta, team.ObjectMeta = meta("Team")
	team.Namespace = ""
	return team
}

func sampleKey() *v1alpha1.APIKey {
	key := &v1alpha1.APIKey{
		Spec: v1alpha1.APIKeySpec{Description: "d", ExpiresAt: &at, Revoked: true, Permissions: []v1alpha1.KeyPermission{v1alpha1.PermissionNotifiers}, Tokens: []v1alpha1.APIKeyToken{{Name: "a", ExpiresAt: &at, SHA256: hash}}},
		Status: v1alpha1.APIKeyStatus{
			Conditions: conditions, ObservedGeneration: 1, LastUsedAt: &at,
			Tokens: []v1alpha1.APIKeyTokenStatus{{
				Name: "a", CreatedAt: at, SHA256: hash, Prefix: "hrld_", SecretRef: &v1alpha1.LocalReference{Name: "s"},
			}},
		},
	}
	key.TypeMeta, key.ObjectMeta = meta("APIKey")
	return key
}

const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func sampleConnection() *v1alpha1.Connection {
	connection := &v1alpha1.Connection{
		Spec: v1alpha1.ConnectionSpec{
			Platform: v1alpha1.PlatformTikTok, AccountID: "1", Disabled: true,
			CredentialsSecretRef: v1alpha1.LocalReference{Name: "s"},
		},
		Status: v1alpha1.ConnectionStatus{
			Conditions: conditions, ObservedGeneration: 1, AccountName: "A", Username: "a", IconURL: "https://example.com/a.png",
			ConnectedAt: &at, TokenExpiresAt: &at, LastProbedAt: &at, LastHandledProbe: "p", CredentialsVersion: "7", WorkingSecret: "w",
			RateLimitedUntil: &at, AppRateLimitedUntil: &at, RateLimitedMessage: "m", ReconnectBy: &at,
			RateLimits: []v1alpha1.RateLimit{{Name: "postsPerDay", Limit: 50, Remaining: 7, ResetsAt: &at, ObservedAt: at}},
			TikTok: &v1alpha1.TikTokAccount{
				PrivacyLevelOptions: []string{"SELF_ONLY", "MUTUAL_FOLLOW_FRIENDS"}, CommentDisabled: true, DuetDisabled: true,
				StitchDisabled: true, MaxVideoPostDurationSeconds: 300,
			},
		},
	}
	connection.TypeMeta, connection.ObjectMeta = meta("Connection")
	return connection
}

func sampleMastodon() *v1alpha1.Connection {
	connection := sampleConnection()
	connection.Spec.Platform, connection.Spec.Server, connection.Spec.AccountID = v1alpha1.PlatformMastodon, "https://mastodon.example", "1@mastodon.example"
	connection.Status.TikTok = nil
	connection.Status.Mastodon = &v1alpha1.MastodonServer{
		MaxCharacters: 500, CharactersPerURL: 23, MaxMedia: 4, MaxImageBytes: 16 << 20, MaxVideoBytes: 99 << 20,
		MediaTypes: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimeMP4}, MaxAltText: 500, MaxImagePixels: 16 << 20, MaxVideoPixels: 2 << 20, MaxVideoFrameRate: 60,
	}
	return connection
}

func sampleUsage() *v1alpha1.Usage {
	usage := &v1alpha1.Usage{
		Spec: v1alpha1.UsageSpec{Resource: v1alpha1.ResourceTikTokDrafts, Account: "1", Period: "24h"},
		Status: v1alpha1.UsageStatus{
			Limit: 5, Used: 2, Budget: []v1alpha1.BudgetUse{{Item: v1alpha1.BudgetPosts, Used: 1, Limit: 2}},
			Entries: []v1alpha1.UsageEntry{
				{Post: "a", Target: 1, Count: 1, At: at, Request: "r", Since: at},
				{Post: "b", Target: 0, Count: 1, At: at, UID: "u", Since: at, Settled: true},
			},
		},
	}
	usage.TypeMeta, usage.ObjectMeta = meta("Usage")
	return usage
}

func sampleMedia() *v1alpha1.Media {
	media := &v1alpha1.Media{
		Spec: v1alpha1.MediaSpec{
			FileName: "a.mp4", MimeType: v1alpha1.MimeMP4, SizeBytes: 7,
			Source: &v1alpha1.MediaSource{URL: "https://example.com/a.mp4"}, WhenUnused: v1alpha1.KeepWhenUnused,
		},
		Status: v1alpha1.MediaStatus{
			Conditions: conditions, ObservedGeneration: 1, Phase: v1alpha1.MediaUploaded, SizeBytes: 7, ETag: "e",
			Width: 1920, Height: 1080, DurationMillis: 1500,
			UploadURL: "https://store.example.com/a", UploadURLExpiresAt: &at, UnusedSince: &at,
		},
	}
	media.TypeMeta, media.ObjectMeta = meta("Media")
	return media
}

// samplePosts returns one post of each category.
func samplePosts() []*v1alpha1.Post {
	yes, ref := true, v1alpha1.MediaReference{Name: "m", FocalPoint: &v1alpha1.FocalPoint{X: 10, Y: 20}}
	text := samplePost(v1alpha1.CategoryText)
	text.Spec.ScheduledAt, text.Spec.Cancelled = &at, true

	image := samplePost(v1alpha1.CategoryImage)
	image.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{ref, ref}}
	image.Spec.Targets[0].TikTok = &v1alpha1.TikTokOptions{AllowComment: &yes, AutoAddMusic: true, IsAIGenerated: true}

	video := samplePost(v1alpha1.CategoryVideo)
	video.Spec.Draft = true
	video.Spec.Video = &v1alpha1.VideoContent{MediaRef: ref, ThumbnailOffsetMillis: new(int32)}
	video.Spec.Targets[0].TikTok = &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly, AllowDuet: &yes, AllowStitch: &yes}
	video.Spec.Targets[1].TikTok = &v1alpha1.TikTokOptions{Draft: true}

	tree := samplePost(v1alpha1.CategoryTree)
	tree.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{
		{Caption: "one"}, {Caption: "two", MediaRefs: []v1alpha1.MediaReference{ref}}, {MediaRefs: []v1alpha1.MediaReference{ref, ref}},
	}}
	for i := range tree.Spec.Targets {
		tree.Spec.Targets[i].Caption, tree.Spec.Targets[i].YouTube = "", nil
	}
	tree.Status.Targets[0].Attempt.Card = 2
	tree.Status.Targets[0].Cards = []v1alpha1.CardStatus{{Index: 0, ExternalID: "7", PostedAt: &at}, {Index: 1, ExternalID: "8", PostedAt: &at}}
	return []*v1alpha1.Post{text, image, video, tree}
}

func samplePost(category v1alpha1.Category) *v1alpha1.Post {
	target := func(name string) v1alpha1.PostTarget {
		return v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: "hello", Language: "en",
			YouTube:  &v1alpha1.YouTubeOptions{Title: "title"},
			Mastodon: &v1alpha1.MastodonOptions{ContentWarning: "w", Sensitive: true, Visibility: v1alpha1.MastodonPrivate},
		}
	}
	post := &v1alpha1.Post{
		Spec: v1alpha1.PostSpec{
			Category: category, Targets: []v1alpha1.PostTarget{target("a"), target("b")}, OnUnknownOutcome: v1alpha1.OnUnknownRetry,
			RetryOf: &v1alpha1.LocalReference{Name: "failed"},
		},
		Status: v1alpha1.PostStatus{
			Conditions: conditions, ObservedGeneration: 1, Phase: v1alpha1.PhaseProcessing, Finished: true, Platforms: "x",
			Earlier: &v1alpha1.EarlierPost{Object: "o", Record: "r", Targets: []int32{0, 1}, PublishAgain: true},
			Retry:   &v1alpha1.RetryStatus{Object: "o", Targets: []int32{0, -1}},
			Targets: []v1alpha1.TargetStatus{
				{
					Platform: v1alpha1.PlatformX, State: v1alpha1.TargetPending, Phase: v1alpha1.PhaseProcessing, Reason: "Settling", Message: "m",
					Blocked:   &v1alpha1.Blocked{Reason: "Settling", Problem: "p", Remedy: "r"},
					NextTryAt: &at, TryUntil: &at,
					Prepared: &v1alpha1.Prepared{ContentHash: "h", Checkpoint: "c", Secret: true, SecretHash: "s", MadeAt: at, Complete: true, Problem: "m", By: &v1alpha1.PreparedBy{Holder: "h", Until: at}},
					Attempt: &v1alpha1.Attempt{
						Number: 2, ID: "i", StartedAt: at, SendBefore: at, ContentHash: "h", Checkpoint: "c", OperationID: "h", SearchFrom: &at,
						UnknownSince: &at, EndedAt: &at, Duplicate: true, Lookups: 1, Refusal: &v1alpha1.Refusal{RetryAt: &at},
					},
					Candidates: []v1alpha1.Candidate{{ExternalID: "9", ExternalURL: "https://example.com/9", Text: "hello", PostedAt: &at}},
				},
				{
					Index: 1, Platform: v1alpha1.PlatformThreads, State: v1alpha1.TargetPosted, Phase: v1alpha1.PhasePosted, Reason: "Posted",
					ExternalID: "7", ExternalURL: "https://example.com/7", PostedAt: &at,
					Attempt: &v1alpha1.Attempt{Number: 1, ID: "i", StartedAt: at, SendBefore: at, Outcome: v1alpha1.OutcomePosted},
				},
			},
		},
	}
	post.TypeMeta, post.ObjectMeta = meta("Post")
	return post
}
