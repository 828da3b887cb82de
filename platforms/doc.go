// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platforms says what a social platform is to Herald: the interfaces
// that each platform's folder implements, what it declares about itself, and
// the words in which results and errors are reported. It knows no platform by
// name and no Kubernetes client.
//
// These are the points where a duplicate or a lost post hides.
//
// # Publishing
//
// Exactly one call of a platform makes a post visible, and Publish makes it
// once. Not sent is the only failure of the way that is not in doubt. A refusal
// needs the platform's own words: a bare 400 or 403 may come from a proxy in
// front of it. A success whose id cannot be read is Unknown. What is read after
// the call, such as the address of the post, and what follows it, such as a
// thumbnail, never changes the outcome; Result.Note tells people of it.
// Idempotency keys are not used: package transport refuses the header, for which
// net/http would repeat a call.
//
// A platform that works on after it has taken the call answers Accepted, with
// Result.OperationID. If only the answer tells that id, Publish returns at once:
// a crash before the id is stored would lose it. If Job.Checkpoint is that id,
// Publish may wait a moment for the outcome.
//
// # Lookup
//
// Lookup reports absence only if the platform listed everything, to the last
// page. A page that cannot be read, an entry without an id and an error beside
// the data are errors, and Herald looks again. If it is uncertain whether a
// listed post fits, it fits: a false match asks a person, a false absence
// publishes twice. What the platform says of the checkpoint itself is better
// than any listing: LookupResult.Proof, or Refused if it gave the post up. While
// it is still at work, the error is ClassTransient.
//
// # Preparing
//
// Some platforms say the same of a file that a post shows as of a file that is
// gone. Prepare then searches the listing before it uploads a file again: a post
// is known by its files and would not be found by the ids of others. What
// carries authority, such as the address of an upload session, is noted as the
// secret before the first byte is sent, and never stands in a checkpoint, which
// everyone who may read the post can read.
//
// # Accounts
//
// Refresh returns ClassReconnect only if a person can help by connecting the
// account again. A wrong client secret, an outage or an answer that makes no
// sense must not disconnect an account.
//
// # Words, times and numbers
//
// Errors are worded by Herald and do not change from one call to the next. The
// platform's own words go nowhere, and its code into Error.Code. Each platform's
// folder has one table of the codes that it knows, which docs/platform-errors.md
// shows. A code that is in no row has Error.Unlisted, and is the only one that stands
// in the message: it blames neither text nor file. Times come from a clock in the
// platform's Config. Every number says where it comes from.
package platforms
