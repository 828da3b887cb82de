// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"fmt"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// Confirm asks the platform about the id of a post that a person told for a target:
// people may tell any id, also that of another team's post. Only a connection whose
// account is verified can answer for that account. Without an answer nothing is
// confirmed.
func (l *Lookups) Confirm(ctx context.Context, f *delivery.Facts, t *v1alpha1.TargetStatus, externalID string) (said delivery.Confirmation) {
	conn := f.Connections[f.Post.Spec.Targets[t.Index].ConnectionRef.Name]
	timing, known := f.Timing(t.Platform)
	to, tells := f.Platforms[t.Platform].(platforms.Confirmer)
	if !known || !tells || conn == nil || conn.Spec.Platform != t.Platform ||
		!conn.Status.Verified() || t.Attempt != nil && !attempt.SameAccount(t.Attempt, conn.Spec.AccountID) {
		return said
	}
	token, err := l.Token(ctx, conn)
	if err != nil {
		return said
	}
	account := platforms.Account{ID: conn.Spec.AccountID, Username: conn.Status.Username, Token: token}
	ctx, cancel := context.WithTimeout(ctx, timing.CallTimeout)
	defer cancel()
	switch whose, err := to.Confirm(ctx, account, externalID); {
	case err != nil:
	case whose == platforms.Own:
		said.AccountID = conn.Spec.AccountID
	case whose == platforms.Foreign:
		said.Foreign = fmt.Sprintf("%s says that post %q is not one of account %s", t.Platform, externalID, conn.Spec.AccountID)
	}
	return said
}
