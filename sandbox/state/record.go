// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"fmt"
	"time"
)

// The operations that a journal line may record.
const (
	opJournal = "journal" // the first line: the format's version
	opAccount = "account" // an account with all its settings, new (then with its first tokens) or changed
	opPost    = "post"
	// A container, before anything is published from it.
	opContainer = "container"
	opDetail    = "detail" // what a post keeps for its platform's simulator
	opDelete    = "delete"
	opGrant     = "grant"  // a pair of tokens, perhaps in place of an earlier refresh token
	opRevoke    = "revoke" // one access token, or a refresh token with all its access tokens
	opReset     = "reset"
)

// record is one line of the journal.
type record struct {
	Op        string       `json:"op"`
	Version   int          `json:"version,omitempty"`
	Key       *Key         `json:"key,omitempty"`
	Account   *Account     `json:"account,omitempty"`
	Post      *Post        `json:"post,omitempty"`
	Container *Container   `json:"container,omitempty"`
	Grant     *grantRecord `json:"grant,omitempty"`
	Token     string       `json:"token,omitempty"`
	ID        string       `json:"id,omitempty"`
	// Detail is a post's new one.
	Detail json.RawMessage `json:"detail,omitempty"`
	// Until, on an account, ends its access tokens no later than that.
	Until *time.Time `json:"until,omitempty"`
}

// apply changes the memory as a record says. It is the only place that does, for new and for replayed records alike.
func (s *Store) apply(rec record) error {
	switch rec.Op {
	case opJournal:
		if rec.Version != journalVersion {
			return fmt.Errorf("journal format %d is not known here, only %d", rec.Version, journalVersion)
		}
		return nil
	case opAccount:
		s.applyAccount(*rec.Account)
		if rec.Grant != nil {
			s.tokens.grant(*rec.Grant)
		}
		if rec.Until != nil {
			s.tokens.cut(rec.Account.Key, *rec.Until)
		}
		return nil
	case opPost:
		return s.applyPost(rec.Post)
	case opContainer:
		s.applyContainer(*rec.Container)
		return nil
	case opDetail:
		return s.applyDetail(rec.Key.Platform, rec.ID, rec.Detail)
	case opDelete:
		return s.applyDelete(rec.Key.Platform, rec.ID)
	case opGrant:
		s.tokens.grant(*rec.Grant)
		return nil
	case opRevoke:
		s.tokens.revoke(rec.Token)
		return nil
	case opReset:
		s.applyReset()
		return nil
	default:
		return fmt.Errorf("operation %q is not known here", rec.Op)
	}
}

// commit writes a record down and then applies it.
func (s *Store) commit(rec record) error {
	if err := s.journal.append(rec); err != nil {
		return err
	}
	return s.apply(rec)
}

// snapshot is the shortest journal that leads to the present memory.
func (s *Store) snapshot(now time.Time) []record {
	var records []record
	for _, a := range s.allAccounts() {
		view := a.view()
		records = append(records, record{Op: opAccount, Account: &view})
	}
	records = append(records, s.tokens.snapshot(now)...)
	for _, c := range s.everyContainer() {
		records = append(records, record{Op: opContainer, Container: c})
	}
	for _, post := range s.everyPost() {
		records = append(records, record{Op: opPost, Post: post})
	}
	return records
}
