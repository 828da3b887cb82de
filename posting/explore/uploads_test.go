// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// Upload: a call publishes a container whose files are all uploaded, and an upload is continued with its own content.
const Upload Rule = "upload"

// Once: without faults, the files of a post are uploaded once.
const Once Rule = "once"

// files holds the media files of a post with shared uploads.
var files = map[string]*v1alpha1.Media{"file": {Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 1}}}

// holder returns the name under which a process holds preparations.
func (w *world) holder(i int) string { return fmt.Sprintf("m%d-%d", i, w.manager[i].life) }

// share completes the facts of a post with shared uploads.
func (w *world) share(i int, f *delivery.Facts) {
	f.Media, f.Holder = files, w.holder(i)
	t := f.Target(0)
	if t == nil || t.Prepared == nil || t.Prepared.By == nil {
		return
	}
	switch by := t.Prepared.By; {
	case w.x.broken.anyHolder:
		f.Holder = by.Holder
	case w.x.broken.endlessHold && by.Holder != f.Holder:
		t.Prepared.By = &v1alpha1.PreparedBy{Holder: by.Holder, Until: v1alpha1.NewTime(f.Now.Add(time.Minute))}
	}
}

// upload returns the state of the process's upload.
func (w *world) upload(i int, post *v1alpha1.Post, target int) delivery.Preparation {
	p := w.manager[i].prep
	d := delivery.Preparation{
		State: delivery.PreparationMissing, Hash: hashOf(post, target), BegunAt: p.begunAt, EndedAt: p.endedAt, TTL: time.Hour,
		Ahead: p.begunAt.Before(posting.Of(post).Due()),
	}
	if p.hash != d.Hash && (!w.x.broken.otherCheckpoint || p.container == 0) {
		return d
	}
	if p.container > 0 {
		d.Checkpoint = strconv.Itoa(p.container)
	}
	switch {
	case p.failed:
		d.State, d.Err = delivery.PreparationFailed, platforms.Errorf(platforms.ClassTransient, "the upload failed")
	case p.running:
		d.State = delivery.PreparationRunning
	case p.visible:
		d.State, d.Err = delivery.PreparationVisible, platforms.Errorf(platforms.ClassDuplicate, "it is published")
	default:
		d.State = delivery.PreparationReady
	}
	return d
}

// startHolding ends a reconciliation with the write that holds preparations.
func (w *world) startHolding(i int, f *delivery.Facts, targets []int) {
	m := &w.manager[i]
	if w.x.broken.unheld {
		w.prepare(i, targets[0])
		f.Post, f.SlotsRequested = m.read.post.DeepCopy(), true
		w.decide(i, f)
		return
	}
	f.Post = f.Post.DeepCopy() // the version of the decision is not changed
	f.RecordHolds(targets)
	m.pc, m.ready, m.copy = holding, targets, w.x.intern(f.Post)
}

// startUpload adopts the complete upload in the post's status, or starts one. It continues the one in the status, or
// the one of an earlier attempt.
func (w *world) startUpload(i, target int) {
	m := &w.manager[i]
	t := posting.Of(m.read.post).Target(target)
	m.prep = preparation{
		hash: hashOf(m.read.post, target), text: contentOf(m.read.post, target), running: true, begunAt: m.passAt, limit: w.now + w.x.uploadTime,
	}
	if earlier := attempt.Checkpoint(t.Attempt, m.prep.hash); earlier != "" {
		m.prep.container = number(earlier)
	}
	known := t.Prepared
	if known == nil || known.Checkpoint == "" || known.ContentHash != m.prep.hash && !w.x.broken.otherCheckpoint {
		return
	}
	m.prep.container = number(known.Checkpoint)
	if known.Complete || w.x.broken.trustPart {
		m.prep.running, m.prep.limit, m.prep.begunAt, m.prep.endedAt = false, 0, known.MadeAt.Time, known.MadeAt.Time
	}
}

// uploadSteps adds what may become of a manager's running preparation.
func (w *world) uploadSteps(i int, add adder) {
	switch p := w.manager[i].prep; {
	case !w.x.shares:
		add(i, "has prepared", "", false, func(n *world) { n.prepared(i) })
		return
	case p.container == 0:
		add(i, "begins an upload", "", false, func(n *world) { n.beginUpload(i) })
	default:
		add(i, fmt.Sprintf("completes upload %d", p.container), "", false, func(n *world) { n.completeUpload(i) })
	}
	add(i, "fails to upload", uploadFails, false, func(n *world) {
		m := &n.manager[i]
		m.prep.running, m.prep.failed, m.prep.limit, m.prep.endedAt, m.dirty = false, true, 0, n.local(i), true
	})
}

func (w *world) beginUpload(i int) {
	m := &w.manager[i]
	for _, c := range w.containers {
		if c.text == m.prep.text && w.left == w.x.faults && w.elections == w.x.elections {
			w.failf(Once, "manager %d uploads what is uploaded already, or about to be", i)
		}
	}
	w.containers = append(w.containers, container{text: m.prep.text, partial: true})
	m.prep.container, m.dirty = len(w.containers), true
}

func (w *world) completeUpload(i int) {
	m := &w.manager[i]
	c := &w.containers[m.prep.container-1]
	if c.text != m.prep.text {
		w.failf(Upload, "manager %d continues the upload of %q with %q", i, c.text, m.prep.text)
	}
	c.partial = false
	m.prep.running, m.prep.visible, m.prep.limit, m.prep.endedAt, m.dirty = false, c.post > 0, 0, w.local(i), true
}

// electionSteps adds the election of the second manager, which the first one has not noticed yet.
func (w *world) electionSteps(add adder) {
	if m := &w.manager[1]; w.elections > 0 && m.standby && m.pc == idle && !m.stalled {
		add(1, "begins to lead", "", true, func(n *world) {
			n.elections--
			n.manager[1].standby, n.manager[1].dirty = false, true
		})
	}
}

// shared returns a scenario of a post with a file that two managers may upload, one of which leads.
func shared(name string, change func(*scenario)) scenario {
	return text(name, func(s *scenario) {
		s.shares, s.containers, s.faults = true, true, 1
		s.capabilities.Delivers = []v1alpha1.Category{v1alpha1.CategoryImage}
		s.settings.StartingDeadline, s.uploadTime = 10*time.Minute, 35_000
		change(s)
	})
}

func uploads() []scenario {
	return []scenario{
		shared("a file that either manager uploads", func(s *scenario) { s.kinds = []fault{stall, writeLost, stale} }),
		shared("a file that either manager uploads, and processes die", func(s *scenario) {
			s.undisturbed, s.kinds = true, []fault{crash}
		}),
		shared("a file that either manager uploads, and uploads fail", func(s *scenario) { s.kinds = []fault{uploadFails} }),
		shared("a file that either manager uploads, where the leader changes", func(s *scenario) {
			s.elections, s.kinds = 1, []fault{crash}
		}),
		shared("a file that either manager uploads, of a post that is cancelled", func(s *scenario) {
			s.cancels, s.kinds = true, []fault{crash}
		}),
		shared("a file that either manager uploads, of a post that is edited", func(s *scenario) {
			s.edits, s.faults = true, 0
		}),
		shared("a file that either manager uploads, with clocks that lie", func(s *scenario) {
			s.clocks, s.kinds = lying[1:], []fault{crash}
		}),
	}
}

// uploadMutations break rules of shared uploads.
var uploadMutations = []mutation{
	{
		"an upload that does not wait for its hold", "the other manager uploads the same file",
		func(s *scenario) { faults(0)(s); s.broken.unheld = true },
		[]Rule{Once},
	},
	{
		"an upload after a conflict of its hold", "the other manager holds it",
		func(s *scenario) { faults(0)(s); s.broken.startUnheld = true },
		[]Rule{Once},
	},
	{
		"a hold of another process taken for one's own", "both upload",
		func(s *scenario) { faults(0)(s); s.broken.anyHolder = true },
		[]Rule{Once},
	},
	{
		"a hold that its process does not extend", "the other manager takes over while it uploads",
		func(s *scenario) { faults(0)(s); s.uploadTime, s.broken.silentHolder = 80_000, true },
		[]Rule{Once},
	},
	{
		"a hold that does not end", "its process has died, and the post waits for it",
		func(s *scenario) { faults(1, crash)(s); s.undisturbed, s.broken.endlessHold = true, true },
		[]Rule{Lost},
	},
	{
		"a record of an upload without its resourceVersion", "it undoes a claim",
		func(s *scenario) { faults(1, stall)(s); s.broken.blindNotes, s.noSchema = true, true },
		[]Rule{I2, I3, I7},
	},
	{
		"a record of an upload without its resourceVersion, under the schema", "the schema is the second line",
		func(s *scenario) { faults(1, stall)(s); s.broken.blindNotes = true },
		[]Rule{Schema},
	},
	{
		"an upload from before an edit", "it is published with the text from before the edit",
		func(s *scenario) { faults(0)(s); s.edits, s.broken.otherCheckpoint = true, true },
		[]Rule{I1, Upload},
	},
	{
		"a partial upload taken for a complete one", "the process that uploaded it has died",
		func(s *scenario) { faults(1, crash)(s); s.broken.trustPart = true },
		[]Rule{Upload},
	},
	{
		"an upload that another process has taken over, but does not stop", "both are complete and hidden, and a claim names one of them",
		func(s *scenario) { faults(1, stall)(s); s.broken.deafLoser = true },
		nil,
	},
}

// TestUploadMutations is TestMutations for a file that two managers may upload.
func TestUploadMutations(t *testing.T) {
	for _, m := range uploadMutations {
		t.Run(m.name, func(t *testing.T) { m.try(t, shared(m.name, m.change)) })
	}
}
