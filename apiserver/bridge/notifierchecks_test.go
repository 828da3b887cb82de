// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// mailTo returns the content of a notifier with n recipients besides the given ones.
func mailTo(n int, recipients ...string) *bridge.NotifierContent {
	c := contents()[v1alpha1.FormatEmail]
	c.To = recipients
	for i := range n {
		c.To = append(c.To, fmt.Sprintf("team-%d@example.com", i))
	}
	return c
}

// TestNotifierProblems verifies the problems of a notifier and their paths in REST.
func TestNotifierProblems(t *testing.T) {
	t.Parallel()
	at := func(url string) *bridge.NotifierContent {
		c := hooks()
		c.URL = url
		return c
	}
	of := func(c *bridge.NotifierContent, edit func(*bridge.NotifierContent)) *bridge.NotifierContent {
		edit(c)
		return c
	}
	const base = "https://hooks.example.com/"
	for name, tc := range map[string]struct {
		reason, id string
		content    *bridge.NotifierContent
		want       []string
	}{
		"Valid":         {"the notifier has no problems", "n", hooks(), nil},
		"LongestName":   {"lists have room for the name", strings.Repeat("a", 63), hooks(), nil},
		"LongName":      {"lists have no room for the name", strings.Repeat("a", 64), hooks(), []string{"name"}},
		"NoName":        {"the notifier needs a name", "", hooks(), []string{"name"}},
		"WrongName":     {"Kubernetes rejects the name", "N.1", hooks(), []string{"name"}},
		"NoEvents":      {"nothing would be sent", "n", of(hooks(), func(c *bridge.NotifierContent) { c.Events = nil }), []string{"events"}},
		"Event":         {"the event is listed twice", "n", of(hooks(), func(c *bridge.NotifierContent) { c.Events = append(c.Events, c.Events[0]) }), []string{"events[1]"}},
		"NoURL":         {"nothing could be sent", "n", at(""), []string{"url"}},
		"LongestURL":    {"the Notifier allows it", "n", at(base + strings.Repeat("a", 2048-len(base))), nil},
		"LongURL":       {"the Notifier does not allow it", "n", at(base + strings.Repeat("a", 2049-len(base))), []string{"url"}},
		"NoHost":        {"the URL leads nowhere", "n", at("https:///herald"), []string{"url"}},
		"Blank":         {"the URL is not one URL", "n", at(base + "a b"), []string{"url"}},
		"Delete":        {"the URL has a control character", "n", at(base + "a\x7f"), []string{"url"}},
		"User":          {"a password would be shown", "n", at("https://ada:x@hooks.example.com/"), []string{"url"}},
		"PublicIP":      {"the receiver has no name", "n", at("https://198.41.0.4/"), nil},
		"PrivateIP":     {"Herald does not send to private networks", "n", at("https://10.0.0.1/"), []string{"url"}},
		"Localhost":     {"Herald does not send to itself", "n", at("https://localhost/"), []string{"url"}},
		"NoSlackURL":    {"the notifier is new", "n", of(contents()[v1alpha1.FormatSlack], func(c *bridge.NotifierContent) { c.URL = "" }), []string{"url"}},
		"Recipients":    {"only a mail has recipients", "n", of(hooks(), func(c *bridge.NotifierContent) { c.To = []string{"team@example.com"} }), []string{"email_to"}},
		"MailWithURL":   {"a mail does not have a URL", "n", of(mailTo(1), func(c *bridge.NotifierContent) { c.URL = base }), []string{"url"}},
		"NoRecipient":   {"nobody would get the mail", "n", mailTo(0), []string{"email_to"}},
		"TenRecipients": {"the Notifier allows ten", "n", mailTo(10), nil},
		"Eleven":        {"the Notifier allows ten", "n", mailTo(11), []string{"email_to"}},
		"Address":       {"the second recipient has no address", "n", mailTo(1, "team@example.com", "team"), []string{"email_to[1]"}},
		"Longest":       {"no mail server allows more", "n", mailTo(0, strings.Repeat("a", 242)+"@example.com"), nil},
		"TooLong":       {"no mail server allows it", "n", mailTo(0, strings.Repeat("a", 243)+"@example.com"), []string{"email_to[0]"}},
		"Twice":         {"the recipient would get each mail twice", "n", mailTo(1, "ada@example.com", "ada@example.com"), []string{"email_to[1]"}},
		"SeveralAtOnce": {"a user corrects all at once", "", of(at("http://plain.example.com/"), func(c *bridge.NotifierContent) { c.Events = nil }), []string{"name", "events", "url"}},
	} {
		n, service := newNotifiers()
		_, err := service.CreateNotifier(t.Context(), person, tc.id, tc.content)
		var paths []string
		if refused, ok := errors.AsType[*bridge.Error](err); ok && refused.Code == bridge.CodeValidation {
			for _, p := range refused.Problems {
				paths = append(paths, p.Path)
			}
		}
		if diff := cmp.Diff(tc.want, paths); diff != "" || (err == nil) != (tc.want == nil) || len(n.stored) > 0 != (tc.want == nil) {
			t.Errorf("%s: %s: %v, %d notifiers; -want +got\n%s", name, tc.reason, err, len(n.stored), diff)
		}
	}
}

// TestContentOf verifies what clients learn about a notifier's content.
func TestContentOf(t *testing.T) {
	t.Parallel()
	for format, tc := range map[v1alpha1.NotifierFormat]struct{ reason, url string }{
		v1alpha1.FormatStandardWebhooks: {"the secret protects the receiver", hooks().URL},
		v1alpha1.FormatSlack:            {"whoever knows Slack's URL can send messages, and somebody may have applied it", ""},
		v1alpha1.FormatEmail:            {"the notifier has recipients instead", ""},
	} {
		want := contents()[format]
		n := &v1alpha1.Notifier{
			ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1alpha1.NotifierSpec{Format: format, URL: want.URL, Events: want.Events},
		}
		if len(want.To) > 0 {
			n.Spec.Email = &v1alpha1.NotifierEmail{To: want.To}
		}
		want.URL = tc.url
		if diff := cmp.Diff(*want, bridge.ContentOf(n)); diff != "" {
			t.Errorf("%s: %s: -want +got\n%s", format, tc.reason, diff)
		}
	}
}
