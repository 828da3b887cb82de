// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"

	"github.com/herald-social/herald/platforms"
)

const (
	// maxSessions is the maximum number of uploads that one preparation starts: YouTube may lose an upload while it
	// is in progress. Each is assumed to use one of the 100 uploads that a project may start per day.
	maxSessions = 2
	// chunkTries is the maximum number of consecutive attempts to send a part without making progress, and the
	// number of times that YouTube may lose received bytes in one preparation.
	chunkTries = 3
)

const (
	msgNoVideo  = "a post to YouTube must have exactly one video"
	msgForgot   = "YouTube discarded the upload while it was in progress"
	msgStuck    = "YouTube does not accept the next part of the file %q"
	msgVisible  = "YouTube already has the whole video, sent by a call whose response was lost"
	msgUnderway = "YouTube has the whole video, but has not returned the outcome yet"
)

// Prepares returns true: every video is uploaded before it becomes visible.
func (*Platform) Prepares(platforms.Content) bool { return true }

// Prepare uploads a video except for its last part, which makes it visible. It resumes an earlier upload at the offset
// that YouTube returns.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	file, failure := videoOf(&job)
	if failure != nil {
		return "", failure
	}
	if s, ok := p.sessionOf(&job); ok {
		at, failure := p.querySession(ctx, s, file.Size)
		if failure != nil {
			return "", failure
		}
		if at.state != gone {
			checkpoint, forgotten, failure := p.fill(ctx, &job, file, s, at)
			if !forgotten {
				return checkpoint, failure
			}
		}
	}
	for range maxSessions {
		s, failure := p.startSession(ctx, &job, file)
		if failure != nil {
			return "", failure
		}
		// The session is stored before the first byte is sent, so an upload that has been started is not lost.
		if failure := job.SaveCheckpoint(ctx, s.checkpoint(), s.secret()); failure != nil {
			return "", failure
		}
		checkpoint, forgotten, failure := p.fill(ctx, &job, file, s, sessionStatus{state: open})
		if !forgotten {
			return checkpoint, failure
		}
	}
	return "", platforms.Errorf(platforms.ClassTransient, msgForgot)
}

func videoOf(job *platforms.Job) (*platforms.File, *platforms.Error) {
	if len(job.Content.Media) != 1 || !job.Content.Media[0].IsVideo() || job.Content.Media[0].Size < 1 {
		return nil, platforms.Errorf(platforms.ClassPermanent, msgNoVideo)
	}
	return &job.Content.Media[0], nil
}

// fill uploads a session's missing bytes, except for the last part. forgotten reports whether YouTube no longer knows
// the session.
func (p *Platform) fill(
	ctx context.Context, job *platforms.Job, file *platforms.File, s session, at sessionStatus,
) (checkpoint string, forgotten bool, failure *platforms.Error) {
	for tries, losses := 0, 0; ; {
		switch {
		case at.state == gone:
			return "", true, nil
		case at.state == done, at.stored == file.Size:
			return s.checkpoint(), false, platforms.Errorf(platforms.ClassDuplicate, msgVisible)
		}
		last := lastPart(at.stored, file.Size)
		if last == at.stored {
			if last == s.last {
				return s.checkpoint(), false, nil
			}
			// An upload of a part was interrupted, and YouTube kept the bytes that it had received.
			s.last = last
			return s.checkpoint(), false, job.SaveCheckpoint(ctx, s.checkpoint(), s.secret())
		}
		next, failure := p.send(ctx, s, file, at.stored, min(chunk, last-at.stored))
		if failure != nil {
			if failure.Class != platforms.ClassTransient || ctx.Err() != nil {
				return "", false, failure
			}
			cause := failure
			if next, failure = p.querySession(ctx, s, file.Size); failure != nil {
				return "", false, cause
			}
		}
		tries++
		switch {
		case next.stored > at.stored:
			tries = 0
		case next.state == open && next.stored < at.stored:
			losses++
		}
		at = next
		if tries == chunkTries || losses == chunkTries {
			return "", false, platforms.Errorf(platforms.ClassTransient, msgStuck, file.Name)
		}
	}
}
