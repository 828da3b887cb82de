// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platforms defines the contract of a social platform: the interfaces that each platform package implements,
// the capabilities that it declares, and the types for results and errors. It depends on no platform and on no
// Kubernetes client.
//
// The following rules prevent duplicate and lost posts.
//
// # Publishing
//
// Exactly one call makes a post visible, and Publish makes it once. NotSent is the only transport failure with a
// certain outcome. A refusal requires the platform's own error body: a bare 400 or 403 may come from a proxy in front
// of the platform. A success with an unreadable id is Unknown. Reads after the call, such as the permalink, and steps
// that follow it, such as a thumbnail, never change the outcome; Result.Note reports their problems to users.
// Idempotency keys are not used: net/http would repeat a call that has the header, so package transport refuses it.
//
// A platform that processes the call asynchronously returns Accepted with Result.OperationID. If only the answer
// contains that id, Publish returns at once: a crash before the id is stored would lose it. If Job.Checkpoint is that
// id, Publish may wait briefly for the outcome.
//
// # Lookup
//
// Lookup reports absence only after it has read the listing to its last page. An unreadable page, an entry without an
// id, and an error next to the data are errors, and Herald retries the lookup. An uncertain match counts as a match: a
// false match asks a person, a false absence publishes twice. The platform's state of the checkpoint itself is stronger
// evidence than a listing: LookupResult.Proof, or Refused if the platform gave up. While the platform is still
// processing, the error is ClassTransient.
//
// # Preparing
//
// Some platforms return the same error for a file that is already used in a post and for a file that has expired.
// Prepare then searches the listing before it uploads a file again: a post is identified by its files, and new file ids
// would not find it. Values that grant access, such as the address of an upload session, are stored as the secret
// before the first byte is sent. They are never part of a checkpoint, which everyone with read access to the post can
// see.
//
// # Accounts
//
// Refresh returns ClassReconnect only if connecting the account again helps. A wrong client secret, an outage or a
// malformed answer must not disconnect an account.
//
// # Errors, times and numbers
//
// Error messages are Herald's own and are identical for repeated calls. The platform's message text is discarded; its
// code is stored in Error.Code. Each platform package has one table of known codes, which docs/platform-errors.md
// shows. A code without a row sets Error.Unlisted. Only such a code appears in the message, which blames neither the
// text nor a file. Times come from the clock in the platform's Config. Every number has a comment with its source.
package platforms
