// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting"
)

// Payload is the body of a notification in the standard-webhooks format, and the source of the other formats.
type Payload struct {
	Type v1alpha1.NotifierEvent `json:"type"`
	// Timestamp is when the event occurred.
	Timestamp v1alpha1.Time `json:"timestamp"`
	Data      Data          `json:"data"`
}

// Data describes the object of an event, using the names of the REST API. It is the state at the time of the attempt.
// An object that was deleted in the meantime has only its id.
type Data struct {
	// ID is the name of the object, and Object its kind in the REST API: post, connection or media.
	ID      string `json:"id"`
	Object  string `json:"object"`
	Team    string `json:"team"`
	Deleted bool   `json:"deleted"`
	// URL is the address of the object's page in the web application.
	URL string `json:"url,omitempty"`

	Title       string         `json:"title,omitempty"`
	Category    string         `json:"category,omitempty"`
	Status      string         `json:"status,omitempty"`
	ScheduledAt *v1alpha1.Time `json:"scheduled_at,omitempty"`
	Platforms   []Target       `json:"platforms,omitempty"`

	Platform    string         `json:"platform,omitempty"`
	AccountName string         `json:"account_name,omitempty"`
	ReconnectBy *v1alpha1.Time `json:"reconnect_by,omitempty"`

	Name string `json:"name,omitempty"`

	Reason       string `json:"reason,omitempty"`
	ErrorMessage string `json:"error_message,omitempty"`
}

// Target describes a target of a post.
type Target struct {
	Platform     string         `json:"platform"`
	ConnectionID string         `json:"connection_id"`
	Status       string         `json:"status"`
	ExternalID   string         `json:"external_id,omitempty"`
	ExternalURL  string         `json:"external_url,omitempty"`
	PostedAt     *v1alpha1.Time `json:"posted_at,omitempty"`
	Reason       string         `json:"reason,omitempty"`
	ErrorMessage string         `json:"error_message,omitempty"`
}

// Site holds what notifications contain about the installation and the team.
type Site struct {
	// URL is the address of the web application, without a trailing slash. It is empty if there is none.
	URL string
	// Namespace is the team's namespace.
	Namespace string
}

func (s *Site) page(path ...string) string {
	if s.URL == "" {
		return ""
	}
	return s.URL + "/teams/" + url.PathEscape(s.Namespace) + "/" + path[0] + escaped(path[1:])
}

func escaped(path []string) (out string) {
	for _, part := range path {
		out += "/" + url.PathEscape(part)
	}
	return out
}

// Deleted returns the payload of an event whose object was deleted.
func Deleted(e *Event, site *Site) *Payload {
	p := payload(e, site)
	p.Data.Deleted = true
	return p
}

func payload(e *Event, site *Site) *Payload {
	object := map[string]string{KindPost: "post", KindConnection: "connection", KindMedia: "media"}[e.Kind]
	return &Payload{Type: e.Type, Timestamp: v1alpha1.NewTime(e.At), Data: Data{ID: e.Name, Object: object, Team: site.Namespace}}
}

// AboutPost returns the payload of a post's event.
func AboutPost(e *Event, site *Site, post *v1alpha1.Post) *Payload {
	p, view := payload(e, site), posting.Of(post)
	p.Data.URL = site.page("posts", post.Name)
	p.Data.Title = view.Title(func(i int) v1alpha1.Platform {
		if t := view.Target(i); t != nil {
			return t.Platform
		}
		return ""
	})
	p.Data.Category, p.Data.Status, p.Data.ScheduledAt = string(post.Spec.Category), string(post.Status.Phase), post.Spec.ScheduledAt
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if int(t.Index) >= len(post.Spec.Targets) || t.State == v1alpha1.TargetWithdrawn {
			continue
		}
		about := Target{
			Platform: string(t.Platform), ConnectionID: post.Spec.Targets[t.Index].ConnectionRef.Name, Status: string(t.Phase),
			ExternalID: t.ExternalID, ExternalURL: t.ExternalURL, PostedAt: t.PostedAt,
		}
		if t.Phase != v1alpha1.PhasePosted {
			about.Reason, about.ErrorMessage = t.Reason, t.Message
		}
		p.Data.Platforms = append(p.Data.Platforms, about)
	}
	return p
}

// AboutConnection returns the payload of a connection's event.
func AboutConnection(e *Event, site *Site, c *v1alpha1.Connection) *Payload {
	p := payload(e, site)
	p.Data.URL = site.page("connections")
	p.Data.Platform, p.Data.AccountName, p.Data.ReconnectBy = string(c.Spec.Platform), c.Status.AccountName, c.Status.ReconnectBy
	if !conditions.IsReady(c.Status.Conditions) {
		p.Data.Reason, p.Data.ErrorMessage = conditions.Reason(c.Status.Conditions), conditions.Message(c.Status.Conditions)
	}
	return p
}

// AboutMedia returns the payload of a file's event.
func AboutMedia(e *Event, site *Site, m *v1alpha1.Media) *Payload {
	p := payload(e, site)
	p.Data.URL, p.Data.Name, p.Data.Status = site.page("files"), m.Spec.FileName, string(m.Status.Phase)
	p.Data.Reason, p.Data.ErrorMessage = conditions.Reason(m.Status.Conditions), conditions.Message(m.Status.Conditions)
	return p
}

// JSON returns the body in the standard-webhooks format.
func (p *Payload) JSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(p); err != nil {
		return nil, fmt.Errorf("cannot encode the notification: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// dateFormat formats a date for human readers. The recipients' time zones are unknown.
func dateFormat(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04") + " UTC" }
