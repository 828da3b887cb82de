// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state holds what the simulated platforms remember: accounts, tokens and posts.
//
// Every change is one line of JSON appended to a journal before it is answered, and the same function applies a line
// whether it was just decided or is read back at the start, so that a process that is killed at any instant comes back
// with exactly what it had acknowledged. Appends are not synced to the disk: they survive the death of the process, not
// the loss of the machine's power, which is the right price for a simulator that a benchmark leans on.
//
// Locks, in the order in which they may be taken: Store.change (held for reading by every change, for writing by
// Reset), account.mu, Store.mu, the token book's own, the journal's own.
package state
