// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// logResult says in the log what came of a call.
func (s *scope) logResult(sh *shipment) {
	log := s.log.WithValues("uid", s.post.UID, "target", sh.index, "platform", sh.conn.Spec.Platform, "attempt", sh.attempt)
	switch sh.result.Outcome {
	case platforms.Posted:
		log.Info("published", "externalID", sh.result.ExternalID)
	case platforms.Accepted:
		log.Info("taken by the platform, which works on it", "operationID", sh.result.OperationID)
	case platforms.Refused, platforms.NotSent, platforms.Unknown:
		log.Info("not published, or not known to be", "outcome", sh.result.Outcome, "problem", problem(sh.result.Err))
	}
}

// reasonPostedWithNote is the reason of the event about a post that is online
// and not quite as it was asked for.
const reasonPostedWithNote = "PostedWithNote"

// tell lets those know of a result who can do something about it.
func (s *scope) tell(ctx context.Context, sh *shipment) {
	t := posting.Target(s.post, sh.index)
	if t == nil {
		return
	}
	if sh.result.Outcome == platforms.Posted {
		s.hold(ctx, sh)
	}
	defer s.watchQuota(ctx, sh)
	if sh.result.Note != "" {
		s.warn(reasonPostedWithNote, fmt.Sprintf("target %d (%s): %s", sh.index, t.Platform, sh.result.Note))
	}
	switch {
	case sh.result.Outcome == platforms.Posted && t.Phase != v1alpha1.PhasePosted:
		return // a card; the story is told when the tree is complete
	case sh.result.Outcome == platforms.Posted:
		s.story.note(s.post, v1alpha1.ReasonPosted, fmt.Sprintf("target %d: published to %s as %s", sh.index, t.Platform, t.ExternalURL))
		s.tellThumbnail(ctx, sh.index, sh.publisher, "")
		return
	}
	s.alert(ctx, sh)
	if a := t.Attempt; attempt.IsOpen(a) && a.ID == sh.attempt && a.OperationID != "" {
		return // the platform works on it; the story is told when it is done
	}
	s.warn(t.Reason, fmt.Sprintf("target %d (%s): %s", sh.index, t.Platform, t.Message))
}

// alert lets the connection's keeper know of a token that was refused, and the
// other posts of the connection of a limit.
func (s *scope) alert(ctx context.Context, sh *shipment) {
	if err := sh.result.Err; err != nil && (err.Class == platforms.ClassRefresh || err.Class == platforms.ClassReconnect) {
		s.Tokens.Forget(sh.conn)
		s.requestProbe(ctx, sh)
		s.waitForConnections()
	}
	s.hold(ctx, sh)
}

// requestProbe asks the connection controller to look at a connection whose
// token was refused. The attempt's id serves as the token of the request.
func (s *scope) requestProbe(ctx context.Context, sh *shipment) {
	conn := sh.conn.DeepCopy()
	base := conn.DeepCopy()
	if conn.Annotations == nil {
		conn.Annotations = map[string]string{}
	}
	conn.Annotations[v1alpha1.ProbeAnnotation] = sh.attempt
	if err := s.Client.Patch(ctx, conn, client.MergeFrom(base)); err != nil {
		s.log.Error(err, "cannot ask for a check of the connection", "connection", conn.Name)
	}
}

// tellLook lets people know what a look found.
func (s *scope) tellLook(ctx context.Context, t *v1alpha1.TargetStatus) {
	switch {
	case t.Phase == v1alpha1.PhasePosted && t.Attempt.OperationID != "":
		s.log.Info("published", "uid", s.post.UID, "target", t.Index, "platform", t.Platform, "attempt", t.Attempt.ID, "externalID", t.ExternalID)
		s.story.note(s.post, v1alpha1.ReasonPosted, fmt.Sprintf("target %d: published to %s as %s", t.Index, t.Platform, t.ExternalURL))
	case t.Phase == v1alpha1.PhasePosted:
		s.log.Info("found after a lost answer", "uid", s.post.UID, "target", t.Index, "externalID", t.ExternalID)
		s.story.note(s.post, v1alpha1.ReasonPosted, fmt.Sprintf("target %d: found on %s as %s", t.Index, t.Platform, t.ExternalURL))
		if p, ok := s.publisher(t.Platform); ok {
			s.tellThumbnail(ctx, int(t.Index), p, whyLostAnswer)
		}
	case !attempt.IsOpen(t.Attempt):
		s.warn(t.Reason, fmt.Sprintf("target %d (%s): %s", t.Index, t.Platform, t.Message))
	}
}

// tellConnection notes in the connection what its platform said in the end of a
// call that it had taken: what an answer to the call itself would have told.
func (s *scope) tellConnection(ctx context.Context, l *look, t *v1alpha1.TargetStatus) {
	sh := &shipment{index: int(t.Index), conn: s.connection(int(t.Index)), attempt: t.Attempt.ID}
	switch f := &l.result; {
	case sh.conn == nil || l.err != nil:
		return
	case f.Refused != nil:
		sh.result = platforms.Result{Outcome: platforms.Refused, Err: f.Refused}
		s.alert(ctx, sh)
	case f.Matches == 1 && f.Certain:
		sh.result = platforms.Result{Outcome: platforms.Posted}
		s.hold(ctx, sh)
	default:
		return
	}
	s.watchQuota(ctx, sh)
}
