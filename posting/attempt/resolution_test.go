// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestParseNamedResolutions(t *testing.T) {
	t.Parallel()
	const address = "https://www.facebook.com/acme/posts/pfbid02abc"
	longest := "https://x.com/" + strings.Repeat("a", longestURL-len("https://x.com/"))
	for name, tc := range map[string]struct {
		reason, value string
		want          []Resolution
		problem       string
	}{
		"Address":       {"the platform's folder finds the id", "0=posted:" + address, []Resolution{{ExternalURL: address}}, ""},
		"Unnamed":       {"the user saw it and has no id", "2=posted", []Resolution{{Index: 2, Unnamed: true}}, ""},
		"All":           {"each target has its own answer", "0=posted:" + address + ", 1=posted,2=not-sent,3=posted:7", []Resolution{{ExternalURL: address}, {Index: 1, Unnamed: true}, {Index: 2}, {Index: 3, ExternalID: "7"}}, ""},
		"Comma":         {"addresses may have commas", "0=posted:https://x.com/a,b?c=1,d=2,1=not-sent", []Resolution{{ExternalURL: "https://x.com/a,b?c=1,d=2"}, {Index: 1}}, ""},
		"HTTP":          {"simulated platforms do not have HTTPS", "0=posted:http://127.0.0.1:9100/x/acme/status/1", []Resolution{{ExternalURL: "http://127.0.0.1:9100/x/acme/status/1"}}, ""},
		"Bare":          {"without its scheme it reads as an id", "0=posted:x.com/acme/status/1", nil, "starting with https://"},
		"OtherScheme":   {"scripts must not be linked", "0=posted:javascript://x.com/%0aalert(1)", nil, "is not the URL of a post"},
		"NoHost":        {"a post is somewhere", "0=posted:https:///status/1", nil, "it names no site"},
		"User":          {"user names are not part of a post's URL", "0=posted:https://x.com@evil.example/status/1", nil, "it names no site"},
		"Blank":         {"URLs do not contain blanks", "0=posted:https://x.com/a b", nil, "a character that URLs cannot contain"},
		"Accented":      {"browsers encode such characters", "0=posted:https://x.com/é", nil, "a character that URLs cannot contain"},
		"Delete":        {"a control character is not part of an address", "0=posted:https://x.com/a\x7f", nil, "a character that URLs cannot contain"},
		"Longest":       {"the schema's maximum", "0=posted:" + longest, []Resolution{{ExternalURL: longest}}, ""},
		"TooLong":       {"the schema would reject the status", "0=posted:https://x.com/" + strings.Repeat("a", longestURL), nil, "longer than 2048"},
		"UnnamedColon":  {"the id is missing", "0=posted:", nil, "is not the id of a post"},
		"UnnamedLonger": {"a longer word is not an answer", "0=postedby", nil, "is not a resolution"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseResolutions(tc.value)
			if (err != nil) != (tc.problem != "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.problem)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestResolveNamed records answers without the platform's ID.
func TestResolveNamed(t *testing.T) {
	t.Parallel()
	listed := []v1alpha1.Candidate{{ExternalID: "7", ExternalURL: "https://x.com/acme/status/7", PostedAt: v1alpha1.NewTimePtr(t0.Add(time.Minute))}}
	cardsOut := func(n int) []v1alpha1.CardStatus {
		var out []v1alpha1.CardStatus
		for i := range n {
			out = append(out, v1alpha1.CardStatus{Index: int32(i), ExternalID: "1"})
		}
		return out
	}
	for name, tc := range map[string]struct {
		reason string
		answer Resolution
		cards  int
		out    int
		want   v1alpha1.TargetStatus
		// recorded is the number of cards that are recorded afterwards.
		recorded int
		problem  string
	}{
		"Unnamed":     {"the target is posted, without a link", Resolution{Unnamed: true}, 1, 0, v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, Unconfirmed: true, PostedAt: v1alpha1.NewTimePtr(t0)}, 0, ""},
		"Address":     {"only the URL is known", Resolution{ExternalURL: "https://fb.watch/abcdef"}, 1, 0, v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, Unconfirmed: true, ExternalURL: "https://fb.watch/abcdef", PostedAt: v1alpha1.NewTimePtr(t0)}, 0, ""},
		"Candidate":   {"the list contains its URL and its time", Resolution{ExternalID: "7", AccountID: "4711"}, 1, 0, v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, ExternalID: "7", ExternalURL: "https://x.com/acme/status/7", PostedAt: v1alpha1.NewTimePtr(t0.Add(time.Minute))}, 0, ""},
		"FirstCard":   {"the second card replies to the id of the first", Resolution{Unnamed: true}, 3, 0, v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided}, 0, "card 1 of 3 has later cards"},
		"SecondCard":  {"the third card needs the second one's id, and a URL without an id does not suffice", Resolution{ExternalURL: "https://x.com/a"}, 3, 1, v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided, ExternalID: "1"}, 1, "card 2 of 3 has later cards"},
		"LastCard":    {"the last card has no replies", Resolution{Unnamed: true}, 3, 2, v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, ExternalID: "1"}, 2, ""},
		"LastCardNot": {"the post may also be missing", Resolution{}, 3, 2, v1alpha1.TargetStatus{State: v1alpha1.TargetPending, ExternalID: "1"}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := claimed(t)
			closeUnknown(target, v1alpha1.OnUnknownFail, t0, "no proof")
			target.Candidates, target.Cards = listed, cardsOut(tc.out)
			if tc.out > 0 {
				target.ExternalID = "1"
			}
			err := Resolve(target, tc.answer, tc.cards, at(time.Hour), t0)
			if (err != nil) != (tc.problem != "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.problem)
			}
			got := v1alpha1.TargetStatus{State: target.State, Unconfirmed: target.Unconfirmed, ExternalID: target.ExternalID, ExternalURL: target.ExternalURL, PostedAt: target.PostedAt}
			if !v1alpha1.SemanticEqual(got, tc.want) || len(target.Cards) != tc.recorded {
				t.Errorf("%s: got %+v with %d cards, want %+v with %d", tc.reason, got, len(target.Cards), tc.want, tc.recorded)
			}
			if posted := target.State == v1alpha1.TargetPosted; posted && (target.TryUntil != nil || target.Attempt.Outcome != v1alpha1.OutcomePosted) {
				t.Errorf("%s: its attempt is %+v, tried until %v", tc.reason, target.Attempt, target.TryUntil)
			}
		})
	}
}

// FuzzResolutions checks, for any value of the annotation, that accepted IDs are safe in URLs and logs.
func FuzzResolutions(f *testing.F) {
	for _, value := range []string{"0=posted:1991", "0=not-sent, 1=posted:a_b", "0=posted:ID", "-1=not-sent", "99999999999=not-sent", "0=posted:https://x.com/1", "0=posted", "0=posted:https://x.com/a,b,1=posted", "=,=", ""} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		verdicts, err := ParseResolutions(value)
		if err != nil {
			if verdicts != nil {
				t.Errorf("%q is rejected, but parsed as %+v", value, verdicts)
			}
			return
		}
		commas := 0
		for _, v := range verdicts {
			commas += strings.Count(v.ExternalURL, ",")
		}
		if len(verdicts)+commas != strings.Count(value, ",")+1 {
			t.Errorf("%q has %d verdicts", value, len(verdicts))
		}
		for _, v := range verdicts {
			if v.Index < 0 || len(v.ExternalID) > longestID || strings.ContainsAny(v.ExternalID, "/?#%&=\"'<> \r\n\t,\\") || v.ExternalID == idPlaceholder ||
				len(v.ExternalURL) > longestURL || strings.ContainsAny(v.ExternalURL, " \r\n\t<>\"\\") || v.ExternalURL != "" && !strings.HasPrefix(v.ExternalURL, "http") {
				t.Errorf("%q is parsed as %+v", value, v)
			}
		}
	})
}
