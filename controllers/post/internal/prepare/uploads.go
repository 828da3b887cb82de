// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/forecast"
)

type upload struct {
	kind      forecast.Kind
	bytes     int64
	startedAt time.Time
	sent      *sent
	// whole is set if the upload started from zero, so that it is a valid measurement of the upload rate.
	whole bool
}

// uploadOf returns the upload of a preparation, or nil for a text post.
func uploadOf(t *Target, c *platforms.Content, started *preparation) *upload {
	if len(c.Media) == 0 {
		return nil
	}
	u := &upload{kind: kindOf(t.Conn.Spec.Platform, c), bytes: bytesOf(c), startedAt: started.startedAt, sent: &sent{}, whole: started.part == Prepared{}}
	if original, ok := c.Media[0].Bytes.(stored); ok {
		u.sent = original.sent
	}
	return u
}

func kindOf(platform v1alpha1.Platform, c *platforms.Content) forecast.Kind {
	return forecast.Kind{Platform: string(platform), Video: len(c.Media) == 1 && c.Media[0].IsVideo()}
}

func bytesOf(c *platforms.Content) (bytes int64) {
	for i := range c.Media {
		bytes += c.Media[i].Size
	}
	return bytes
}

func (p *Preparer) newSent(platform v1alpha1.Platform) *sent {
	if p.o.Sent == nil {
		return &sent{}
	}
	return &sent{all: p.o.Sent(platform)}
}

// trackUpload and finishUpload mark the start and the end of an upload. u is nil for a text post, which is not
// measured.
func (p *Preparer) trackUpload(t *Target, u *upload) {
	if u == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay[t.uploadID()] = u
}

func (p *Preparer) finishUpload(t *Target, u *upload, done bool, now time.Time) {
	if u == nil {
		return
	}
	if done && u.whole {
		p.pace.Observe(u.kind, u.bytes, now.Sub(u.startedAt), now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// After an edit, another upload may already be running.
	if id := t.uploadID(); p.underWay[id] == u {
		delete(p.underWay, id)
	}
}

func (t *Target) uploadID() string {
	return uploadID(client.ObjectKeyFromObject(t.Post).String(), t.Index)
}

// Waiting returns the number of targets that wait for an upload slot.
func (p *Preparer) Waiting() int { return p.uploads.Waiting() }

// Rates returns the measured rate of one upload of each kind, in bytes per second.
func (p *Preparer) Rates() map[forecast.Kind]float64 { return p.pace.Rates() }

// Outlook is the forecast for the uploads of one team to one platform.
type Outlook struct {
	// Bytes is the number of bytes left to send for posts that are due within Horizon.
	Bytes int64
	// Late is the number of their targets that will not be ready in time.
	Late int
}

// OutlookKey identifies the uploads of one team to one platform.
type OutlookKey struct {
	Namespace string
	Platform  v1alpha1.Platform
}

// Horizon is the period of the forecast. Later posts may still be changed, or joined by others.
const Horizon = 24 * time.Hour

// Outlook forecasts the uploads of posts. An immediate post cannot be late, but takes slots from scheduled ones.
func (p *Preparer) Outlook(posts func(func(*v1alpha1.Post)), media map[types.NamespacedName]*v1alpha1.Media, settings *delivery.Settings) map[OutlookKey]Outlook {
	now := p.o.Clock.Now()
	pending := &pending{p: p, media: media, settings: settings, now: now, rates: p.pace.Rates()}
	posts(pending.add)
	outlooks := map[OutlookKey]Outlook{}
	for i, late := range forecast.Late(pending.uploads, p.o.MaxUploads, p.o.Managers, now) {
		of := &pending.of[i]
		outlook := outlooks[of.OutlookKey]
		outlook.Bytes += of.remaining
		if late && of.scheduled {
			outlook.Late++
		}
		outlooks[of.OutlookKey] = outlook
	}
	return outlooks
}

type pending struct {
	p        *Preparer
	media    map[types.NamespacedName]*v1alpha1.Media
	settings *delivery.Settings
	now      time.Time
	rates    map[forecast.Kind]float64

	uploads []forecast.Upload
	of      []pendingUpload
}

type pendingUpload struct {
	OutlookKey

	remaining int64
	scheduled bool
}

func (l *pending) add(post *v1alpha1.Post) {
	view := posting.Of(post)
	if post.Spec.Draft || view.Cancelled() || post.Status.Finished || view.Due().Sub(l.now) > Horizon ||
		!meta.IsStatusConditionTrue(post.Status.Conditions, v1alpha1.ConditionAccepted) {
		return
	}
	for i := range post.Spec.Targets {
		t := view.Target(i)
		if t == nil || attempt.Settled(t) || attempt.IsOpen(t.Attempt) || t.Prepared != nil && t.Prepared.Complete {
			continue
		}
		l.addTarget(post, i, t.Platform)
	}
}

func (l *pending) addTarget(post *v1alpha1.Post, i int, platform v1alpha1.Platform) {
	media := map[string]*v1alpha1.Media{}
	for _, ref := range delivery.Files(post, i) {
		if m := l.media[types.NamespacedName{Namespace: post.Namespace, Name: ref.Name}]; m != nil {
			media[ref.Name] = m
		}
	}
	c, ok := l.p.converter(platform, nil)
	if len(media) == 0 || !ok || delivery.FileProblem(post, i, media) != "" {
		return
	}
	content := delivery.Content(post, i, media)
	if !c.Prepares(content) {
		return
	}
	u := forecast.Upload{Team: post.Namespace, Due: posting.Of(post).Due(), From: l.now}
	if post.Spec.ScheduledAt != nil {
		facts := delivery.Facts{View: posting.Of(post), Now: l.now, Settings: *l.settings, Media: media}
		u.From = facts.AheadFrom(i, c.ttl())
	}
	left := bytesOf(&content)
	rate, ok := l.rates[kindOf(platform, &content)]
	if !ok {
		rate = delivery.ExpectedRate
	}
	running, sent := l.p.running(uploadID(client.ObjectKeyFromObject(post).String(), i))
	switch held := posting.Of(post).Target(i).Prepared; {
	case running != nil:
		u.UnderWay, u.Duration = true, forecast.Remaining(left, sent, l.now.Sub(running.startedAt), rate)
		left = max(left-sent, 0)
	case held != nil && held.By != nil && held.By.Until.After(l.now):
		// Another process uploads it. Its progress since its last record is unknown.
		u.UnderWay, u.Duration = true, forecast.Remaining(left, 0, l.now.Sub(held.MadeAt.Time), rate)
	default:
		u.Duration = forecast.TransferTime(left, rate)
	}
	l.uploads = append(l.uploads, u)
	l.of = append(l.of, pendingUpload{OutlookKey{post.Namespace, platform}, left, post.Spec.ScheduledAt != nil})
}

func (p *Preparer) running(id string) (u *upload, sent int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u = p.underWay[id]; u != nil {
		sent = u.sent.bytes.Load()
	}
	return u, sent
}
