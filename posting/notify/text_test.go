// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

var site = &Site{URL: "https://herald.example.com", Namespace: "acme"}

func failedPost(caption string) *v1alpha1.Post {
	p := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Name: "launch"}}
	p.Spec.Category = v1alpha1.CategoryText
	p.Spec.Targets = []v1alpha1.PostTarget{
		{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: caption},
		{ConnectionRef: v1alpha1.LocalReference{Name: "acme-threads"}, Caption: caption},
	}
	p.Status.Phase = v1alpha1.PhaseFailed
	p.Status.Targets = []v1alpha1.TargetStatus{
		{Index: 0, Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhasePosted, ExternalID: "1", ExternalURL: "https://x.com/a/status/1", PostedAt: v1alpha1.NewTimePtr(noon)},
		{Index: 1, Platform: v1alpha1.PlatformThreads, Phase: v1alpha1.PhaseFailed, Reason: "Refused", Message: "Threads refused it:\r\nBcc: everyone@example.com"},
	}
	return p
}

func about(caption string) *Payload {
	e := event("launch", noon)
	e.Type = v1alpha1.EventPostFailed
	return AboutPost(&e, site, failedPost(caption))
}

func TestJSON(t *testing.T) {
	body, err := about("We <launched> & more").JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"post.failed","timestamp":"2026-12-01T12:00:00.000Z","data":{"id":"launch","object":"post","team":"acme","deleted":false,` +
		`"url":"https://herald.example.com/teams/acme/posts/launch","title":"We <launched> & more","category":"text","status":"failed","platforms":[` +
		`{"platform":"x","connection_id":"acme-x","status":"posted","external_id":"1","external_url":"https://x.com/a/status/1","posted_at":"2026-12-01T12:00:00.000Z"},` +
		`{"platform":"threads","connection_id":"acme-threads","status":"failed","reason":"Refused","error_message":"Threads refused it:\r\nBcc: everyone@example.com"}]}}`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Error(diff)
	}
	gone := event("launch", noon)
	body, err = Deleted(&gone, &Site{Namespace: "acme"}).JSON()
	if want := `{"type":"post.posted","timestamp":"2026-12-01T12:00:00.000Z","data":{"id":"launch","object":"post","team":"acme","deleted":true}}`; err != nil || string(body) != want {
		t.Errorf("of a deleted post: %s, %v", body, err)
	}
}

func TestSlack(t *testing.T) {
	text := about("<!channel> & <https://evil.example|our page>").Text()
	body, err := text.Slack()
	if err != nil {
		t.Fatal(err)
	}
	var message struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		t.Fatal(err)
	}
	want := `<https://herald.example.com/teams/acme/posts/launch|Not published everywhere: &lt;!channel&gt; &amp; &lt;https://evil.exa>
X (acme-x): https://x.com/a/status/1
Threads (acme-threads): Threads refused it: Bcc: everyone@example.com
Team acme, 1 December 2026, 12:00 UTC`
	if diff := cmp.Diff(want, message.Text); diff != "" {
		t.Error(diff)
	}
}

func TestText(t *testing.T) {
	for name, tc := range map[string]struct {
		payload *Payload
		want    string
	}{
		"a caption cannot add a line to the header of an email": {about("hi\r\nBcc: a@example.com\u2028x"), "Not published everywhere: hi Bcc: a@example.com x"},
		"a post without text has its name":                      {about(""), "Not published everywhere: launch"},
		"an account has its name for people": {AboutConnection(
			&Event{Type: v1alpha1.EventConnectionBroken, Kind: KindConnection, Name: "acme-x"}, site,
			&v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX}, Status: v1alpha1.ConnectionStatus{AccountName: "Acme"}},
		), "Account not ready: Acme on X"},
		"a file has its name": {AboutMedia(
			&Event{Type: v1alpha1.EventMediaRejected, Kind: KindMedia, Name: "m-1"}, site, &v1alpha1.Media{Spec: v1alpha1.MediaSpec{FileName: "cat.png"}},
		), "File rejected: cat.png"},
	} {
		t.Run(name, func(t *testing.T) {
			text := tc.payload.Text()
			if text.Subject != tc.want {
				t.Errorf("the subject is %q, want %q", text.Subject, tc.want)
			}
			if lines := strings.Count(text.Body(), "\n"); lines != len(text.Lines)+4 {
				t.Errorf("the body has %d lines: %q", lines, text.Body())
			}
		})
	}
}

func TestEveryEventHasASubject(t *testing.T) {
	for _, kind := range []v1alpha1.NotifierEvent{
		v1alpha1.EventPostPosted, v1alpha1.EventPostFailed, v1alpha1.EventPostNeedsAttention,
		v1alpha1.EventConnectionBroken, v1alpha1.EventConnectionExpiring, v1alpha1.EventMediaRejected,
	} {
		p := &Payload{Type: kind, Data: Data{ID: "a"}}
		if text := p.Text(); text.Subject == string(kind) {
			t.Errorf("%s has no text", kind)
		}
	}
}
