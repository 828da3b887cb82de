// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
)

// maxLine limits a line of a text, in characters. Slack rejects texts of more than 40,000.
const maxLine = 300

// Text is a notification in human-readable form.
type Text struct {
	// Subject is a single line.
	Subject string
	Lines   []string
	// URL is the page with more details, or empty.
	URL string
}

// Text returns the notification in human-readable form.
func (p *Payload) Text() Text {
	d := &p.Data
	t := Text{Subject: line(subject(p)), URL: d.URL}
	add := func(format string, args ...any) { t.Lines = append(t.Lines, line(fmt.Sprintf(format, args...))) }
	for i := range d.Platforms {
		about := &d.Platforms[i]
		name := v1alpha1.Platform(about.Platform).Title()
		switch {
		case about.Status != string(v1alpha1.PhasePosted):
			add("%s (%s): %s", name, about.ConnectionID, cmp.Or(about.ErrorMessage, about.Status))
		case about.ExternalURL != "":
			add("%s (%s): %s", name, about.ConnectionID, about.ExternalURL)
		default:
			add("%s (%s): published", name, about.ConnectionID)
		}
	}
	if d.ErrorMessage != "" {
		add("%s", d.ErrorMessage)
	}
	if p.Type == v1alpha1.EventConnectionExpiring && d.ReconnectBy != nil {
		add("Reconnect the account before %s.", dateFormat(d.ReconnectBy.Time))
	}
	if d.Deleted {
		add("It has been deleted in the meantime.")
	}
	add("Team %s, %s", d.Team, dateFormat(p.Timestamp.Time))
	return t
}

func subject(p *Payload) string {
	d := &p.Data
	title := cmp.Or(d.Title, d.Name, d.ID)
	account := cmp.Or(d.AccountName, d.ID)
	if d.Platform != "" {
		account += " on " + v1alpha1.Platform(d.Platform).Title()
	}
	switch p.Type {
	case v1alpha1.EventPostPosted:
		return "Published: " + title
	case v1alpha1.EventPostFailed:
		return "Not published everywhere: " + title
	case v1alpha1.EventPostNeedsAttention:
		return "Check whether this was published: " + title
	case v1alpha1.EventConnectionBroken:
		return "Account not ready: " + account
	case v1alpha1.EventConnectionExpiring:
		return "Reconnect soon: " + account
	case v1alpha1.EventMediaRejected:
		return "File rejected: " + title
	}
	return string(p.Type)
}

// line returns text as a single line without control characters.
func line(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	return text.Truncate(strings.Join(words, " "), maxLine)
}

// slackEscapes escapes the characters that have a special meaning in Slack's texts. Without these, a text contains
// neither links nor mentions (https://docs.slack.dev/messaging/formatting-message-text#escaping).
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Slack returns the body in the slack format.
func (t *Text) Slack() ([]byte, error) {
	head := slackEscapes.Replace(t.Subject)
	if t.URL != "" {
		// A bar separates the address from the text of a link.
		head = "<" + slackEscapes.Replace(t.URL) + "|" + strings.ReplaceAll(head, "|", "¦") + ">"
	}
	parts := []string{head}
	for _, l := range t.Lines {
		parts = append(parts, slackEscapes.Replace(l))
	}
	body, err := json.Marshal(map[string]any{"text": strings.Join(parts, "\n"), "unfurl_links": false})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the notification: %w", err)
	}
	return body, nil
}

// Body returns the text of an email, without its subject.
func (t *Text) Body() string {
	lines := append([]string{t.Subject, ""}, t.Lines...)
	if t.URL != "" {
		lines = append(lines, "", t.URL)
	}
	return strings.Join(lines, "\n") + "\n"
}
