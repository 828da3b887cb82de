// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// undecidedPost returns a post with an undecided target on a platform.
func undecidedPost(platform v1alpha1.Platform, edits ...func(*v1alpha1.TargetStatus)) *v1alpha1.Post {
	return textPost("p-1", "text", func(post *v1alpha1.Post) {
		post.Spec.Targets[0].ConnectionRef.Name = "our-" + string(platform)
		target := v1alpha1.TargetStatus{Platform: platform, Phase: v1alpha1.PhaseFailed, State: v1alpha1.TargetUndecided}
		for _, edit := range edits {
			edit(&target)
		}
		post.Status.Targets = []v1alpha1.TargetStatus{target}
	})
}

func TestSettle(t *testing.T) {
	t.Parallel()
	const x, threads, facebook = v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook
	for name, tc := range map[string]struct {
		reason string
		on     v1alpha1.Platform
		form   url.Values
		status int
		want   string
	}{
		"Posted":    {"the URL contains the id", x, url.Values{"target": {"0"}, "verdict": {"posted"}, "found": {"https://x.com/a/status/186?s=20"}}, 303, "0=posted:186"},
		"Address":   {"the manager resolves the id", threads, url.Values{"target": {"0"}, "verdict": {"posted"}, "found": {"www.threads.com/@acme/post/CuZ1abcDEFg?xmt=AQ"}}, 303, "0=posted:https://www.threads.com/@acme/post/CuZ1abcDEFg"},
		"Comma":     {"a URL cannot contain several answers", facebook, url.Values{"target": {"0"}, "verdict": {"posted"}, "found": {"https://www.facebook.com/a,1=posted/posts/pfbid02abc"}}, 303, "0=posted:https://www.facebook.com/a%2C1=posted/posts/pfbid02abc"},
		"Candidate": {"a candidate has an id", x, url.Values{"target": {"0"}, "verdict": {"candidate"}, "candidate": {"186"}}, 303, "0=posted:186"},
		"NoOne":     {"a button without an id does not select a candidate", x, url.Values{"target": {"0"}, "verdict": {"candidate"}}, 400, ""},
		"Unnamed":   {"the user saw the post", x, url.Values{"target": {"0"}, "verdict": {"unnamed"}}, 303, "0=posted"},
		"NotSent":   {"the post may be sent", x, url.Values{"target": {"0"}, "verdict": {"not-sent"}}, 303, "0=not-sent"},
		"NoID":      {"a space is neither an id nor the statement that it was not published", x, url.Values{"target": {"0"}, "verdict": {"posted"}, "found": {" "}}, 400, ""},
		"NoTarget":  {"the account is unknown", x, url.Values{"verdict": {"not-sent"}}, 400, ""},
		"Another":   {"the account does not exist", x, url.Values{"target": {"7"}, "verdict": {"not-sent"}}, 400, ""},
		"Refused":   {"an invalid id is rejected", x, url.Values{"target": {"0"}, "verdict": {"posted"}, "found": {"https://x.com/a"}}, 400, ""},
		"Injected":  {"an id cannot contain several answers", x, url.Values{"target": {"0"}, "verdict": {"candidate"}, "candidate": {"1,1=posted:2"}}, 400, ""},
		"NoWord":    {"a form without an answer has no effect", x, url.Values{"target": {"0"}}, 400, ""},
		"LookAgain": {"a new lookup is not an answer", x, url.Values{"target": {"0"}, "verdict": {"look-again"}}, 303, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(undecidedPost(tc.on))
			answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/settle", tc.form))
			stored := w.posts[acme+"/p-1"].Annotations
			if got := stored[v1alpha1.SettleAnnotation]; answer.Code != tc.status || got != tc.want {
				t.Errorf("%s: %d, and the annotation is %q, want %d and %q", tc.reason, answer.Code, got, tc.status, tc.want)
			}
			if _, asks := stored[v1alpha1.ListCandidatesAnnotation]; asks != (name == "LookAgain") {
				t.Errorf("%s: the manager lists posts: %v", tc.reason, asks)
			}
		})
	}
}

// TestSettleInstructions verifies that the page explains, before and after a wrong answer, how to identify one of
// its platform's posts.
func TestSettleInstructions(t *testing.T) {
	t.Parallel()
	for platform, want := range map[v1alpha1.Platform]string{
		v1alpha1.PlatformX: "/status/", v1alpha1.PlatformTikTok: "/photo/", v1alpha1.PlatformYouTube: "11 characters", v1alpha1.PlatformFacebook: "time below the name",
		v1alpha1.PlatformInstagram: "/reel/", v1alpha1.PlatformThreads: "Copy link",
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		w.put(undecidedPost(platform))
		page := w.get(t, editor, "/teams/"+acme+"/posts/p-1")
		help, _ := attribute(withID(t, page, "found-0"), "aria-describedby")
		if said := textOf(withID(t, page, help)); !strings.Contains(said, want) {
			t.Errorf("the form of %s contains %q, want %q", platform, said, want)
		}
		answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/settle", url.Values{"target": {"0"}, "verdict": {"posted"}, "found": {"the one of yesterday"}}))
		if said := textOf(parsed(t, answer.Body.String())); answer.Code != http.StatusBadRequest || !strings.Contains(said, "does not identify a post on "+platform.Title()) || !strings.Contains(said, want) {
			t.Errorf("an invalid post of %s returned %d: %s", platform, answer.Code, said)
		}
	}
}

// TestVerdictPage verifies the form's questions and possible answers.
func TestVerdictPage(t *testing.T) {
	t.Parallel()
	listed := func(target *v1alpha1.TargetStatus) {
		target.Candidates = []v1alpha1.Candidate{
			{ExternalID: "187", ExternalURL: "https://x.com/acme/status/187", Text: "Is it <this>?", PostedAt: v1alpha1.NewTimePtr(now.Add(-time.Minute))},
			{ExternalID: "186"},
		}
	}
	for name, tc := range map[string]struct {
		reason     string
		edit       func(*v1alpha1.Post)
		want, lack []string
	}{
		"Listed": {
			"each candidate has its text, time, URL and a button", func(p *v1alpha1.Post) { listed(&p.Status.Targets[0]) },
			[]string{"Is it one of these?", "Is it <this>?", "Open on X", "A post without text", "Yes, it is this one", "Look again", "It was published, but I have no address", "It was not published", "it is published twice"},
			[]string{"annotation", "target 0"},
		},
		"None":    {"only existing candidates are offered", func(*v1alpha1.Post) {}, []string{"None of the account", "Look again"}, []string{"Is it one of these?"}},
		"Looking": {"the question is shown once", func(p *v1alpha1.Post) { p.Annotations[v1alpha1.ListCandidatesAnnotation] = "1" }, []string{"is checking the account"}, []string{"Look again"}},
		"Refused": {"the user reads the problem, without hints for kubectl", func(p *v1alpha1.Post) {
			p.Status.Targets[0].AnswerProblem = `target 0: the post of "https://x" was not found. If it does, answer that it was published, without the URL ("0=posted")`
		}, []string{`Herald could not apply your last answer: The post of "https://x" was not found.`, "without the URL."}, []string{"target 0", "0=posted"}},
		"Thread": {"a card with replies needs its id", func(p *v1alpha1.Post) {
			p.Spec.Category, p.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "a"}, {Caption: "b"}}}
		}, []string{"Herald needs its address to continue"}, []string{"I have no address"}},
		"LastPart": {"the last card has no replies", func(p *v1alpha1.Post) {
			p.Spec.Category, p.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "a"}, {Caption: "b"}}}
			p.Status.Targets[0].Cards = []v1alpha1.CardStatus{{ExternalID: "1"}}
		}, []string{"I have no address"}, []string{"Herald needs its address"}},
		"Answered": {"an answer is processed once", func(p *v1alpha1.Post) { p.Annotations[v1alpha1.SettleAnnotation] = "0=posted" }, []string{"is applying your answer"}, []string{"Look again", "It was not published"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			post := undecidedPost(v1alpha1.PlatformX)
			post.Annotations = map[string]string{}
			tc.edit(post)
			w.put(post)
			page := textOf(parsed(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1", nil)).Body.String()))
			says(t, tc.reason, page, tc.want, tc.lack)
			if page := textOf(parsed(t, w.serve(newRequest(&viewer, "/teams/"+acme+"/posts/p-1", nil)).Body.String())); strings.Contains(page, "It was not published") {
				t.Error("a viewer gets the question")
			}
		})
	}
}

// TestSettleEndsWithTheCluster verifies that an archived post has no form, because an answer would have no effect.
// TestVerdictPage shows the form of a post in the cluster.
func TestSettleEndsWithTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(undecidedPost(v1alpha1.PlatformX))
	w.posts[acme+"/p-1"].ResourceVersion = ""
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1", nil))
	if answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), "/posts/p-1/settle") {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
}

func TestUndecidedOutcome(t *testing.T) {
	t.Parallel()
	lost := v1alpha1.NewTimePtr(now.Add(-time.Hour))
	for name, tc := range map[string]struct {
		reason string
		target v1alpha1.TargetStatus
		want   []string
	}{
		"call": {"the call has a time, which dates the candidates", v1alpha1.TargetStatus{
			Attempt: &v1alpha1.Attempt{Number: 1, ID: "a", StartedAt: *lost, Outcome: v1alpha1.OutcomeUnknown},
		}, []string{"It is not known whether the post was published: the listing does not show it.", "made after " + lost.UTC().Format(momentForm)}},
		"thread": {"a card is looked up, not the whole tree", v1alpha1.TargetStatus{
			Attempt: &v1alpha1.Attempt{Number: 2, ID: "b", StartedAt: *lost, Outcome: v1alpha1.OutcomeUnknown, Card: 1},
			Cards:   []v1alpha1.CardStatus{{ExternalID: "1"}},
		}, []string{"whether part 2 was published", "The parts before it are online."}},
		"restored": {"the attempt is unknown", v1alpha1.TargetStatus{}, []string{"The listing does not show it."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(textPost("p-1", "text", func(post *v1alpha1.Post) {
				target := tc.target
				target.Platform, target.Phase, target.State = v1alpha1.PlatformX, v1alpha1.PhaseFailed, v1alpha1.TargetUndecided
				target.Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonOutcomeUnknown, Problem: "the listing does not show it"}
				target.Message = "look, then say so with the annotation " + v1alpha1.SettleAnnotation
				post.Status.Targets = []v1alpha1.TargetStatus{target}
			}))
			page := textOf(parsed(t, w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1", nil)).Body.String()))
			says(t, tc.reason, page, append(tc.want, "Needs your answer", "It was published"), []string{"annotation"})
		})
	}
}

// TestForbidden verifies that an error names a permission in everyday words.
func TestForbidden(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, path, want string }{
		"keys":    {"resources have other names in Kubernetes", "/keys", "You are not allowed to view the API keys of the team"},
		"compose": {"verbs have other names in Kubernetes", "/posts/new", "You are not allowed to write posts of the team"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			answer := w.serve(newRequest(&viewer, "/teams/"+acme+tc.path, nil))
			if answer.Code != http.StatusForbidden {
				t.Errorf("%s: %d", tc.reason, answer.Code)
			}
			says(t, tc.reason, answer.Body.String(), []string{tc.want}, []string{`aria-current="page"`}) // an error is not in the navigation
		})
	}
}
