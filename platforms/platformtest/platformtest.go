// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platformtest contains the contract that every platform fulfills, as tests against the sandbox: a call results
// in at most one post, its reported outcome is correct, and a published post can be looked up. New platforms run it in
// their tests.
package platformtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/sandboxtest"
)

// Renewal is how a platform renews access tokens.
type Renewal string

const (
	// ByRefreshToken means that a refresh token yields a new access token and remains valid.
	ByRefreshToken Renewal = "refresh token"
	// ByRotation means that a refresh token yields a new access token and a new refresh token. The old refresh
	// token becomes invalid.
	ByRotation Renewal = "rotation"
	// ByItself means that a valid access token yields a new one.
	ByItself Renewal = "itself"
	// Never: tokens cannot be renewed.
	Never Renewal = "never"
)

// Suite is a platform under test.
type Suite struct {
	// Name is the platform's name in the sandbox.
	Name string
	// New returns the platform, configured for the sandbox at sandboxURL.
	New func(t *testing.T, sandboxURL string) platforms.Platform
	// Renewal is how the platform renews access tokens.
	Renewal Renewal
	// Sessions reports whether calls renew an expired session themselves, without the caller noticing.
	Sessions bool
	// NoPicture reports whether the platform returns no picture URL for accounts.
	NoPicture bool
	// AccountID returns the id of the n-th account; nil if ids are numbers.
	AccountID func(n int64) string
	// Account holds additional settings for the platform's accounts in the sandbox, such as a different login.
	Account map[string]any
	// Refuses lists the names of captions in testPublish that the platform's documented rules do not allow.
	Refuses []string
	// SilentLimits reports whether the platform's responses omit the end of a rate limit.
	SilentLimits bool
	// LateProcessing reports whether the platform processes files only after they are published. Errors then appear
	// afterwards.
	LateProcessing bool
	// TellsPostsLeft reports whether an inspection returns only the account's remaining posting quota.
	TellsPostsLeft bool
	// Resumes is the maximum number of bytes that are sent again after an upload was interrupted. Zero means that the
	// upload starts over.
	Resumes int64
	// UploadsAgain reports whether a preparation uploads the files of an earlier preparation again, because the
	// platform does not show whether it still has them.
	UploadsAgain bool
	// First is the category for tests that need only one kind of post; empty for the simplest category that the
	// platform delivers.
	First v1alpha1.Category
	// Unprovable are the categories whose posts cannot be proven absent.
	Unprovable []v1alpha1.Category
	// Bearerless are categories whose visible call does not send a token, because it uses a URL that expires and
	// that each preparation replaces.
	Bearerless []v1alpha1.Category
	// AltTexts are the categories whose files have an alt text on the platform. AltTextCall is the sandbox's name
	// for the call that sets it, or empty if the call that uploads the file sets it.
	AltTexts    []v1alpha1.Category
	AltTextCall string
	// MaxAltText is the longest alt text that the platform accepts, in characters. It defaults to
	// v1alpha1.MaxAltText; a negative value means that there is no limit.
	MaxAltText int
	// Refusals are responses that the platform may send for a published post, by name, in addition to the responses
	// that every suite tests.
	Refusals map[string]Answer
	// Remakes are the categories whose publishing call sends part of the upload. If the platform rejects that call as
	// invalid, the upload is restarted.
	Remakes []v1alpha1.Category

	accounts atomic.Int64
}

// Run runs the contract's tests. For a platform that is not a Publisher, it runs only those for accounts.
func (s *Suite) Run(t *testing.T) {
	t.Run("Identify", s.testIdentify)
	t.Run("Refresh", s.testRefresh)
	if s.TellsPostsLeft {
		t.Run("PostsLeft", s.testPostsLeft)
	}
	publisher, ok := s.New(t, "http://herald.invalid").(platforms.Publisher)
	if !ok {
		return
	}
	t.Run("Limits", s.testLimits)
	t.Run("Publish", s.testPublish)
	t.Run("PublishFaults", s.testPublishFaults)
	t.Run("PublishedAndRefused", s.testPublishedAndRefused)
	t.Run("Lookup", s.testLookup)
	t.Run("LookupFaults", s.testLookupFaults)
	t.Run("LookupLag", s.testLookupLag)
	t.Run("LookupPages", s.testLookupPages)
	t.Run("Repeated", s.testRepeated)
	t.Run("Confirm", s.testConfirm)
	t.Run("Recent", s.testRecent)
	if s.prepares(publisher) {
		t.Run("Prepare", s.testPrepare)
		t.Run("PrepareFaults", s.testPrepareFaults)
	} else {
		t.Run("Uploads", s.testUploads)
	}
	t.Run("Resume", s.testResume)
	t.Run("Thumbnail", s.testThumbnail)
	t.Run("Media", s.testMedia)
	t.Run("MediaFaults", s.testMediaFaults)
	t.Run("AltText", s.testAltText)
}

// now returns the real time, for sandboxes that run in this process.
func now() time.Time { return clock.RealClock{}.Now() }

// fixture is the sandbox, platform and account of one test.
type fixture struct {
	suite    *Suite
	name     string
	platform platforms.Platform
	control  sandboxtest.Client
	account  sandboxtest.Account
	// stop stops the sandbox early. Otherwise, it stops at the end of the test.
	stop func()
	// fetched waits until the platform has fetched all declared files.
	fetched func()

	mu    sync.Mutex
	notes []savedCheckpoint
}

// savedCheckpoint is the progress that a preparation stored.
type savedCheckpoint struct{ checkpoint, secret string }

// saveCheckpoint stores a checkpoint, as Prepare's caller would.
func (f *fixture) saveCheckpoint(_ context.Context, checkpoint, secret string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, savedCheckpoint{checkpoint, secret})
	return nil
}

// checkpoints returns the checkpoints stored so far.
func (f *fixture) checkpoints() []savedCheckpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.notes)
}

// withSecret returns the job with a checkpoint and its secret.
func (f *fixture) withSecret(job platforms.Job, checkpoint string) platforms.Job {
	job.Checkpoint = checkpoint
	for _, n := range f.checkpoints() {
		if n.checkpoint == checkpoint {
			job.Secret = n.secret
		}
	}
	return job
}

// resumed returns the job as another process would resume it, with the last stored checkpoint.
func (f *fixture) resumed(job platforms.Job) platforms.Job {
	if notes := f.checkpoints(); len(notes) > 0 {
		last := notes[len(notes)-1]
		job.Checkpoint, job.Secret = last.checkpoint, last.secret
	}
	return job
}

// start returns a fixture whose sandbox uses the given clock.
func (s *Suite) start(t *testing.T, clk clock.WithTicker) *fixture {
	t.Helper()
	server, err := sandbox.New(sandbox.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(server)
	stop := sync.OnceFunc(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		site.Close()
	})
	t.Cleanup(stop)
	id := fmt.Sprint(100 + s.accounts.Add(1))
	if s.AccountID != nil {
		id = s.AccountID(s.accounts.Add(1))
	}
	f := &fixture{suite: s, name: s.Name, platform: s.New(t, site.URL), control: sandboxtest.Client{URL: site.URL}, stop: stop, fetched: server.AwaitFetched}
	// Preparations are ready and posts are listed immediately, unless a test overrides this.
	settings := map[string]any{"processing_ms": 0, "listing_lag_ms": 0}
	maps.Copy(settings, s.Account)
	if f.account, err = f.control.Account(t.Context(), s.Name, id, settings); err != nil {
		t.Fatal(err)
	}
	return f
}

// publisher starts a fixture on the real clock for a platform that publishes.
func (s *Suite) publisher(t *testing.T) (*fixture, platforms.Publisher) {
	t.Helper()
	f := s.start(t, clock.RealClock{})
	p, ok := f.platform.(platforms.Publisher)
	if !ok {
		t.Fatalf("%s is not a Publisher", s.Name)
	}
	return f, p
}

func (f *fixture) token() platforms.Token {
	return platforms.Token{
		Access: f.account.AccessToken, Refresh: f.account.RefreshToken, ExpiresAt: f.account.ExpiresAt,
		Scopes: strings.Join(f.account.Scopes, " "),
	}
}

// job returns an unprepared job for the simplest post that the platform accepts with the given text: only text, or with
// an image or a video if the platform requires one.
func (f *fixture) job(t *testing.T, text string) platforms.Job {
	t.Helper()
	return f.post(t, f.suite.simplest(f.platform)[0], text)
}

// simplest returns the platform's categories, simplest first, unless Suite.First overrides it.
func (s *Suite) simplest(p platforms.Platform) []v1alpha1.Category {
	all := []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo}
	if i := slices.Index(all, s.First); i > 0 {
		all = slices.Insert(slices.Delete(all, i, i+1), 0, s.First)
	}
	return slices.DeleteFunc(all, func(c v1alpha1.Category) bool { return !p.Capabilities().CanDeliver(c) })
}

// post returns an unprepared job for the simplest post of the given category and text.
func (f *fixture) post(t *testing.T, category v1alpha1.Category, text string) platforms.Job {
	t.Helper()
	job := platforms.Job{
		Account: platforms.Account{ID: f.account.ID, Username: f.account.Username, Token: f.token()},
		Key:     platforms.Key{CreatedAt: now(), Sum: [16]byte([]byte(rand.Text()))}, // each job is another post
		Content: platforms.Content{Category: category, Text: text}, SearchFrom: now().Add(-2 * time.Second), StoreCheckpoint: f.saveCheckpoint,
	}
	switch category {
	case v1alpha1.CategoryImage:
		job.Content.Media = []platforms.File{file(t, "picture.jpg", v1alpha1.MimeJPEG, 0)}
	case v1alpha1.CategoryVideo:
		job.Content.Media = []platforms.File{file(t, "tenseconds.mp4", v1alpha1.MimeMP4, 0)}
	case v1alpha1.CategoryText, v1alpha1.CategoryTree:
	}
	if f.platform.Capabilities().MaxTitle > 0 {
		job.Content.Title = "a title"
	}
	return job
}

// prepared returns the same post as job, but prepared.
func (f *fixture) prepared(t *testing.T, text string) platforms.Job {
	t.Helper()
	return f.prepare(t, f.job(t, text))
}

// prepares reports whether the platform requires two steps even for its simplest post.
func (s *Suite) prepares(p platforms.Platform) bool {
	preparer, ok := p.(platforms.Preparer)
	if !ok {
		return false
	}
	categories := s.simplest(p)
	if len(categories) == 0 {
		return false
	}
	content := platforms.Content{Category: categories[0], Text: "hello"}
	if content.Category != v1alpha1.CategoryText {
		content.Media = make([]platforms.File, 1)
	}
	return preparer.Prepares(content)
}

// prepare runs a job's steps before the visible call.
func (f *fixture) prepare(t *testing.T, job platforms.Job) platforms.Job {
	t.Helper()
	preparer, ok := f.platform.(platforms.Preparer)
	if !ok || !preparer.Prepares(job.Content) {
		return job
	}
	checkpoint, err := preparer.Prepare(t.Context(), job)
	if err != nil || checkpoint == "" {
		t.Fatalf("cannot prepare the post: %q, %v", checkpoint, err)
	}
	job = f.withSecret(job, checkpoint)
	if job.Secret != "" && !f.platform.Capabilities().SecretUploads {
		t.Error("the limits do not declare that uploads have a secret")
	}
	return job
}

func (f *fixture) fault(t *testing.T, fault sandboxtest.Fault) {
	t.Helper()
	fault.Platform, fault.Account = f.name, f.account.ID
	if fault.Times == 0 {
		fault.Times = 1
	}
	if err := f.control.Fault(t.Context(), fault); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) clearFaults(t *testing.T) {
	t.Helper()
	if err := f.control.ClearFaults(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// published lists the posts that actually exist in the sandbox.
func (f *fixture) published(t *testing.T) []sandboxtest.Post {
	t.Helper()
	posts, err := f.control.Posts(t.Context(), f.name, f.account.ID)
	if err != nil {
		t.Fatal(err)
	}
	return posts
}

// arrived counts the calls of an operation.
func (f *fixture) arrived(t *testing.T, operation string) int {
	t.Helper()
	calls, err := f.control.Calls(t.Context(), f.name)
	if err != nil {
		t.Fatal(err)
	}
	return calls[operation]
}

// checkNoSecrets fails if an error, anything it wraps, or a checkpoint contains a token or an upload secret.
func (f *fixture) checkNoSecrets(t *testing.T, err error) {
	t.Helper()
	secrets := []string{f.account.AccessToken, f.account.RefreshToken}
	for _, n := range f.checkpoints() {
		for word := range strings.FieldsSeq(n.secret) {
			if len(word) > 16 { // a number next to the secret is not secret
				secrets = append(secrets, word)
			}
		}
	}
	for _, n := range f.checkpoints() {
		for _, secret := range secrets {
			if secret != "" && strings.Contains(n.checkpoint, secret) {
				t.Errorf("the checkpoint %s contains a secret", n.checkpoint)
			}
		}
	}
	for ; err != nil; err = errors.Unwrap(err) {
		message := fmt.Sprintf("%v %+v %#v", err, err, err)
		for _, secret := range secrets {
			if secret != "" && strings.Contains(message, secret) {
				t.Errorf("the error contains a secret: %s", message)
			}
		}
	}
}

// asError converts a nil *Error to a nil error.
func asError(err *platforms.Error) error {
	if err == nil {
		return nil
	}
	return err
}
