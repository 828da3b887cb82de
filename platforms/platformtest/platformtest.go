// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platformtest is the contract that every platform keeps, as tests
// against the sandbox: one call is one post at most, what is said of a call is
// true, and what was published can be found again. A new platform runs it from
// its own tests.
package platformtest

import (
	"context"
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

// The ways to renew a token.
const (
	// ByRefreshToken: a refresh token gives a new access token. The refresh
	// token stays.
	ByRefreshToken Renewal = "refresh token"
	// ByRotation: the same, and a new refresh token comes in place of the old
	// one, which does not work any more.
	ByRotation Renewal = "rotation"
	// ByItself: an access token that works gives another one.
	ByItself Renewal = "itself"
	// Never: nothing renews a token.
	Never Renewal = "never"
)

// Suite is a platform under test.
type Suite struct {
	// Name is the platform's name in the sandbox.
	Name string
	// New makes the platform, to talk to a sandbox at this address.
	New func(t *testing.T, sandboxURL string) platforms.Platform
	// Renewal is how the platform renews access tokens.
	Renewal Renewal
	// AccountID makes the id of the n-th account; nil makes numbers.
	AccountID func(n int64) string
	// Account is how its accounts are made in the sandbox, beside what every
	// suite asks for, such as another way to log in.
	Account map[string]any
	// Refuses names the texts among those of testPublish that the platform
	// does not take, by its documented rules.
	Refuses []string
	// SilentLimits says that the platform does not tell when a limit that was
	// reached passes.
	SilentLimits bool
	// LateProcessing says that the platform works on files only after it has
	// published them, so that what is wrong with them shows afterwards.
	LateProcessing bool
	// TellsPostsLeft says that an inspection of an account tells how many posts it
	// may still make, and nothing else.
	TellsPostsLeft bool
	// Resumes is how many bytes of an upload are sent twice at most if it is
	// cut off: a later preparation goes on behind the last so many that had
	// arrived. Zero says that it begins anew.
	Resumes int64
	// First is the category of those posts of which one kind is enough; empty
	// for the simplest that the platform delivers.
	First v1alpha1.Category
	// Unprovable are categories of which nothing tells for certain that a post
	// was not published.
	Unprovable []v1alpha1.Category
	// Bearerless are categories whose visible call bears no token: it goes to an
	// address that ends, and that another preparation replaces.
	Bearerless []v1alpha1.Category
	// Refusals are answers of the platform that its posts may get although they are
	// online, by name, beside those that every suite has.
	Refusals map[string]Answer
	// Remakes are categories whose upload is begun again if the platform finds
	// the call invalid that publishes: that call sends a part of the upload.
	Remakes []v1alpha1.Category

	accounts atomic.Int64
}

// Run runs the contract. A platform that is no publisher keeps the part about
// accounts.
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
}

// now is the time of a sandbox that runs in this process.
func now() time.Time { return clock.RealClock{}.Now() }

// fixture is one test's sandbox, platform and account.
type fixture struct {
	suite    *Suite
	name     string
	platform platforms.Platform
	control  sandboxtest.Client
	account  sandboxtest.Account
	// stop ends the sandbox; the test's end does it as well.
	stop func()
	// fetched waits until the platform has what it was told to fetch.
	fetched func()

	mu    sync.Mutex
	notes []savedCheckpoint
}

// savedCheckpoint is what a preparation told about how far it is.
type savedCheckpoint struct{ checkpoint, secret string }

// saveCheckpoint stores a note, as a caller of Prepare does.
func (f *fixture) saveCheckpoint(_ context.Context, checkpoint, secret string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, savedCheckpoint{checkpoint, secret})
	return nil
}

// checkpoints returns the notes so far.
func (f *fixture) checkpoints() []savedCheckpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.notes)
}

// withSecret is a job with what was prepared for it.
func (f *fixture) withSecret(job platforms.Job, checkpoint string) platforms.Job {
	job.Checkpoint = checkpoint
	for _, n := range f.checkpoints() {
		if n.checkpoint == checkpoint {
			job.Secret = n.secret
		}
	}
	return job
}

// resumed is a job as another process takes it up: with what was noted last.
func (f *fixture) resumed(job platforms.Job) platforms.Job {
	if notes := f.checkpoints(); len(notes) > 0 {
		last := notes[len(notes)-1]
		job.Checkpoint, job.Secret = last.checkpoint, last.secret
	}
	return job
}

// start makes a fixture whose sandbox tells the time by a clock.
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
	// What is prepared is ready at once, and what is published listed, unless a
	// test wants it otherwise.
	settings := map[string]any{"processing_ms": 0, "listing_lag_ms": 0}
	maps.Copy(settings, s.Account)
	if f.account, err = f.control.Account(t.Context(), s.Name, id, settings); err != nil {
		t.Fatal(err)
	}
	return f
}

// publisher starts a fixture in real time, for a platform that publishes.
func (s *Suite) publisher(t *testing.T) (*fixture, platforms.Publisher) {
	t.Helper()
	f := s.start(t, clock.RealClock{})
	p, ok := f.platform.(platforms.Publisher)
	if !ok {
		t.Fatalf("%s is no publisher", s.Name)
	}
	return f, p
}

func (f *fixture) token() platforms.Token {
	return platforms.Token{
		Access: f.account.AccessToken, Refresh: f.account.RefreshToken, ExpiresAt: f.account.ExpiresAt,
		Scopes: strings.Join(f.account.Scopes, " "),
	}
}

// job is the simplest post with a text that the platform takes, not prepared
// yet: the text alone, or else an image or a video with it.
func (f *fixture) job(t *testing.T, text string) platforms.Job {
	t.Helper()
	return f.post(t, f.suite.simplest(f.platform)[0], text)
}

// simplest are the categories of the simplest posts that a platform delivers,
// the simplest first, unless the suite wants it otherwise.
func (s *Suite) simplest(p platforms.Platform) []v1alpha1.Category {
	all := []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo}
	if i := slices.Index(all, s.First); i > 0 {
		all = slices.Insert(slices.Delete(all, i, i+1), 0, s.First)
	}
	return slices.DeleteFunc(all, func(c v1alpha1.Category) bool { return !p.Capabilities().CanDeliver(c) })
}

// post is the simplest post of a category with a text, not prepared yet.
func (f *fixture) post(t *testing.T, category v1alpha1.Category, text string) platforms.Job {
	t.Helper()
	job := platforms.Job{
		Account:         platforms.Account{ID: f.account.ID, Username: f.account.Username, Token: f.token()},
		Content:         platforms.Content{Category: category, Text: text},
		SearchFrom:      now().Add(-2 * time.Second),
		StoreCheckpoint: f.saveCheckpoint,
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

// prepared is such a post that can be published.
func (f *fixture) prepared(t *testing.T, text string) platforms.Job {
	t.Helper()
	return f.prepare(t, f.job(t, text))
}

// prepares reports whether a platform takes even its simplest post in two steps.
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

// prepare does what precedes the visible call of a job.
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
		t.Error("the limits do not say that uploads have a secret")
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

// published lists what the sandbox really holds.
func (f *fixture) published(t *testing.T) []sandboxtest.Post {
	t.Helper()
	posts, err := f.control.Posts(t.Context(), f.name, f.account.ID)
	if err != nil {
		t.Fatal(err)
	}
	return posts
}

// arrived counts the calls for an operation.
func (f *fixture) arrived(t *testing.T, operation string) int {
	t.Helper()
	calls, err := f.control.Calls(t.Context(), f.name)
	if err != nil {
		t.Fatal(err)
	}
	return calls[operation]
}

// checkNoSecrets fails if an error, or anything that it wraps, tells a token, or
// the secret of an upload; or if a checkpoint does.
func (f *fixture) checkNoSecrets(t *testing.T, err error) {
	t.Helper()
	secrets := []string{f.account.AccessToken, f.account.RefreshToken}
	for _, n := range f.checkpoints() {
		for word := range strings.FieldsSeq(n.secret) {
			if len(word) > 16 { // a number beside the secret is none
				secrets = append(secrets, word)
			}
		}
	}
	for _, n := range f.checkpoints() {
		for _, secret := range secrets {
			if secret != "" && strings.Contains(n.checkpoint, secret) {
				t.Errorf("the checkpoint %s tells a secret", n.checkpoint)
			}
		}
	}
	for ; err != nil; err = errors.Unwrap(err) {
		said := fmt.Sprintf("%v %+v %#v", err, err, err)
		for _, secret := range secrets {
			if secret != "" && strings.Contains(said, secret) {
				t.Errorf("the error tells a secret: %s", said)
			}
		}
	}
}

// classOf is the class of an error; "" for none, and for one that is not a
// platform's.
func classOf(err error) platforms.Class {
	if failure, ok := errors.AsType[*platforms.Error](err); ok && failure != nil {
		return failure.Class
	}
	return ""
}

// asError makes an error of what may be none.
func asError(err *platforms.Error) error {
	if err == nil {
		return nil
	}
	return err
}
