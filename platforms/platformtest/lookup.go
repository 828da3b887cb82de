// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/sandboxtest"
)

func (s *Suite) testLookup(t *testing.T) {
	f, p := s.publisher(t)
	published := f.prepared(t, "hello")
	first := p.Publish(t.Context(), published)
	if other := p.Publish(t.Context(), f.prepared(t, "something else")); other.Outcome != platforms.Posted {
		t.Fatalf("got %+v", other)
	}
	tests := map[string]struct {
		reason string
		change func(job *platforms.Job)
		want   int
	}{
		"there":        {"the post is found among others", func(*platforms.Job) {}, 1},
		"not prepared": {"the text alone identifies the post, too", func(j *platforms.Job) { j.Checkpoint = "" }, 1},
		"another text": {"other posts do not match", func(j *platforms.Job) { j.Content.Text, j.Checkpoint = "hello you", "" }, 0},
		"taken": {"another job's post is skipped", func(j *platforms.Job) {
			j.BelongsToOther, j.Checkpoint = func(id string) bool { return id == first.ExternalID }, ""
		}, 0},
		"another's kept": {"other jobs' posts do not matter", func(j *platforms.Job) { j.BelongsToOther = func(id string) bool { return id != first.ExternalID } }, 1},
		"too old":        {"posts older than the job are skipped", func(j *platforms.Job) { j.SearchFrom, j.Checkpoint = now().Add(2*time.Second), "" }, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := published
			tc.change(&job)
			if p.Capabilities().Idempotent {
				tc.reason, tc.want = "the key alone identifies the post", 1
			}
			found, err := p.Lookup(t.Context(), job)
			if err != nil || found.Matches != tc.want {
				t.Errorf("%s: found %+v, %v", tc.reason, found, err)
			}
		})
	}
	if n := len(f.published(t)); n != 2 || f.arrived(t, "publish") != 2 {
		t.Errorf("a lookup must not publish: the sandbox has %d posts", n)
	}
}

// testLookupFaults injects faults into a lookup's calls. None of them may make Lookup report an existing post as
// absent.
func (s *Suite) testLookupFaults(t *testing.T) {
	faults := map[string]sandboxtest.Fault{
		"closed before": {Kind: "drop_before"},
		"closed after":  {Kind: "drop_after"},
		"outage":        {Kind: "status", Status: 500},
		"gateway":       {Kind: "status", Status: 502},
		"redirect":      {Kind: "status", Status: 307},
		"no content":    {Kind: "status", Status: 204},
		"refused":       {Kind: "status", Status: 400},
		"rate limited":  {Kind: "rate_limit", RetryAfterS: 60},
		"token expired": {Kind: "token_expired"},
		"token revoked": {Kind: "token_revoked"},
	}
	for _, category := range s.simplest(s.New(t, "http://herald.invalid")) {
		t.Run(string(category), func(t *testing.T) {
			f, p := s.publisher(t)
			job := f.prepare(t, f.post(t, category, "hello"))
			if got := Publish(t, p, &job, waitALittle); got.Outcome != platforms.Posted {
				t.Fatalf("got %+v", got)
			}
			operations := []string{"list"}
			if job.Checkpoint != "" || job.OperationID != "" || p.Capabilities().Idempotent {
				operations = append(operations, "status")
			}
			for _, operation := range operations {
				for name, fault := range faults {
					t.Run(operation+" "+name, func(t *testing.T) {
						fault.Operation = operation
						f.fault(t, fault)
						found, err := p.Lookup(t.Context(), job)
						f.clearFaults(t)
						if err == nil && found.Matches != 1 {
							t.Errorf("a published post was reported absent: %+v", found)
						}
						if err != nil && recorder.ClassOf(err) == "" {
							t.Errorf("an error must name its operation: %v", err)
						}
						f.checkNoSecrets(t, err)
					})
				}
			}
			f.checkLookup(t, p, job, 1)
		})
	}
}

func (s *Suite) testLookupLag(t *testing.T) {
	f, p := s.publisher(t)
	if p.Capabilities().Idempotent {
		t.Skipf("%s reads a post by its key", s.Name)
	}
	job := f.prepared(t, "hello")
	published := p.Publish(t.Context(), job)
	if published.Outcome != platforms.Posted {
		t.Fatalf("got %+v", published)
	}
	f.fault(t, sandboxtest.Fault{Operation: "list", Kind: "stale_list", DelayMS: 60000, Times: 2})
	found, err := p.Lookup(t.Context(), job)
	if job.Checkpoint != "" && found.Matches == 1 && found.ExternalID == published.ExternalID {
		// The checkpoint by itself would identify the post; without it, the listing is searched.
		job.Checkpoint, job.Secret = "", ""
		found, err = p.Lookup(t.Context(), job)
	}
	switch {
	case found.Matches != 0, found.Proof:
		t.Errorf("a delayed listing does not prove absence: %+v, %v", found, err)
	case err == nil && !p.Capabilities().ProvesAbsence(job.Content.Category) && job.Checkpoint != "":
		t.Error("the platform knows that the preparation was published, which excludes absence")
	}
	f.clearFaults(t)
	f.checkLookup(t, p, job, 1)
}

// testRepeated repeats the publishing call on an idempotent platform. Only one post may result, even if a response was
// lost.
func (s *Suite) testRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		fault  sandboxtest.Fault
	}{
		"answered":      {"another process may repeat a call", sandboxtest.Fault{}},
		"closed before": {"the first call had no effect", sandboxtest.Fault{Kind: "drop_before"}},
		"closed after":  {"the first call had its effect", sandboxtest.Fault{Kind: "drop_after"}},
		"error after":   {"an error does not exclude it", sandboxtest.Fault{Kind: "error_after", Status: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			f, p := s.publisher(t)
			if !p.Capabilities().Idempotent {
				t.Skipf("%s is not idempotent", s.Name)
			}
			job := f.prepared(t, "hello")
			if tc.fault.Kind != "" {
				tc.fault.Operation = "publish"
				f.fault(t, tc.fault)
			}
			for range 3 {
				got := p.Publish(t.Context(), job)
				if got.Outcome != platforms.Posted && got.Outcome != platforms.Unknown {
					t.Errorf("%s: got %+v (%v)", tc.reason, got, got.Err)
				}
			}
			f.checkLookup(t, p, job, 1)
			other := job
			other.Key.Sum[0]++
			if found, err := p.Lookup(t.Context(), other); err != nil || !found.Proof || found.Matches != 0 {
				t.Errorf("another key has the post %+v, %v", found, err)
			}
		})
	}
}

// testLookupPages looks up a post that is followed by more posts than any platform lists on one page.
func (s *Suite) testLookupPages(t *testing.T) {
	const others = 105
	f, p := s.publisher(t)
	if !p.Capabilities().CanDeliver(v1alpha1.CategoryText) {
		t.Skipf("%s delivers no texts, and files take too long", s.Name)
	}
	job := f.prepare(t, f.post(t, v1alpha1.CategoryText, "hello"))
	published := p.Publish(t.Context(), job)
	for n := range others {
		other := f.prepare(t, f.post(t, v1alpha1.CategoryText, fmt.Sprintf("something else %d", n)))
		if got := p.Publish(t.Context(), other); got.Outcome != platforms.Posted {
			t.Fatalf("got %+v (%v)", got, got.Err)
		}
	}
	job.Checkpoint, job.Secret = "", ""
	found, err := p.Lookup(t.Context(), job)
	if err != nil || found.Matches != 1 || found.ExternalID != published.ExternalID {
		t.Errorf("found %+v, %v; want %s, which is on a later page", found, err, published.ExternalID)
	}
}

// testConfirm tests whether the owner of a post is recognized, because users may enter the id of any post.
func (s *Suite) testConfirm(t *testing.T) {
	f, p := s.publisher(t)
	whose, ok := p.(platforms.Confirmer)
	if !ok {
		t.Fatalf("%s does not identify the owners of posts", s.Name)
	}
	job := f.prepare(t, f.job(t, "hello"))
	if got := Publish(t, p, &job, waitALittle); got.Outcome != platforms.Posted {
		t.Fatalf("got %+v", got)
	}
	id := f.published(t)[0].ID
	if got, err := whose.Confirm(t.Context(), job.Account, id); got != platforms.OwnershipConfirmed || err != nil {
		t.Errorf("the account's own post %s has the owner %q, %v", id, got, err)
	}
	for _, told := range []string{id[:len(id)-1] + "0", "1", "no id", "../me", ""} {
		if told == id {
			continue
		}
		if got, _ := whose.Confirm(t.Context(), job.Account, told); got != platforms.OwnershipUnknown {
			t.Errorf("the post %q does not exist, but has the owner %q", told, got)
		}
	}
	f.fault(t, sandboxtest.Fault{Operation: "*", Kind: "status", Status: 503})
	got, err := whose.Confirm(t.Context(), job.Account, id)
	f.clearFaults(t)
	if got != platforms.OwnershipUnknown || err == nil {
		t.Errorf("without a response the owner is %q, %v", got, err)
	}
	f.checkNoSecrets(t, err)
	if n := f.arrived(t, "publish"); n != 1 {
		t.Errorf("the request must not publish: %d calls", n)
	}
}

// testRecent lists an account's posts, as when a user is looking for one, and parses the listed addresses.
func (s *Suite) testRecent(t *testing.T) {
	f, p := s.publisher(t)
	lister, lists := p.(platforms.Lister)
	reader, reads := p.(platforms.PostParser)
	if !lists || !reads {
		t.Fatal("an account's posts cannot be listed for a user, or entered by one")
	}
	started := now().Add(-2 * time.Second)
	var ids []string
	for _, text := range []string{"hello", "something else"} {
		result := p.Publish(t.Context(), f.prepared(t, text))
		if result.Outcome != platforms.Posted {
			t.Fatalf("got %+v", result)
		}
		ids = append([]string{result.ExternalID}, ids...)
		waitALittle() // Bluesky lists posts of the same millisecond in the order of their keys, which is random.
	}
	account := platforms.Account{ID: f.account.ID, Username: f.account.Username, Token: f.token()}
	for name, tc := range map[string]struct {
		reason string
		which  platforms.Recent
		want   []string
	}{
		"all":     {"the latest post comes first", platforms.Recent{Since: started, Limit: 20}, ids},
		"one":     {"the limit applies", platforms.Recent{Since: started, Limit: 1}, ids[:1]},
		"later":   {"older posts are omitted", platforms.Recent{Since: now().Add(time.Hour), Limit: 20}, nil},
		"replies": {"replies have no parent here", platforms.Recent{Since: started, Limit: 20, Replies: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := lister.RecentPosts(t.Context(), account, tc.which)
			var got []string
			for i := range found {
				got = append(got, found[i].ID)
				named, ok := reader.ParsePost(account, found[i].URL)
				if !ok || named.ID != "" && named.ID != found[i].ID || named.ID == "" && named.Code == "" {
					t.Errorf("the listed URL %s is parsed as %+v", found[i].URL, named)
				}
				if found[i].Text == "" || found[i].At.IsZero() {
					t.Errorf("a post is listed without its text or its time: %+v", found[i])
				}
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%s: %v, %v, want %v", tc.reason, got, err, tc.want)
			}
		})
	}
	for _, fault := range []sandboxtest.Fault{{Kind: "status", Status: 503}, {Kind: "token_revoked"}} {
		fault.Operation = "list"
		f.fault(t, fault)
		found, err := lister.RecentPosts(t.Context(), account, platforms.Recent{Since: started, Limit: 20})
		if err == nil || len(found) > 0 || recorder.ClassOf(err) == "" {
			t.Errorf("%s: %v, %v, want a platform error", fault.Kind, found, err)
		}
		f.checkNoSecrets(t, err)
		f.clearFaults(t)
	}
	if reader.PostHint() == "" {
		t.Error("the description of the user's input is missing")
	}
}
