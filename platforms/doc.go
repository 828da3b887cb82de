// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platforms defines the contract of a social platform: the interfaces that each platform package implements,
// the capabilities that it declares, and the types of results and errors. It does not depend on any platform or on a
// Kubernetes client.
//
// The following rules prevent duplicate and lost posts.
//
// # Publishing
//
// Exactly one call makes a post visible, and Publish makes it once. NotSent is the only transport failure with a
// certain outcome. A refusal requires the platform's own error body, because a bare 400 or 403 may come from a proxy in
// front of the platform. A success with an unreadable id is Unknown. Reads that follow the call, such as for the
// permalink, and later steps, such as setting a thumbnail, never change the outcome; Result.Note reports their problems
// to users. An Idempotency-Key is set through client.Call, so that net/http does not repeat the call. Such a key
// prevents a second post if a lookup is wrong, but proves nothing by itself, because servers forget it. A platform that
// lets the client choose the post's id derives it from Job.Key and declares Capabilities.Idempotent: repeating the call
// is harmless, and reading that id once settles the outcome of a lost response.
//
// A platform that processes the call asynchronously returns Accepted with Result.OperationID. If only the response
// contains that id, Publish returns immediately, because a crash before the id is stored would lose it. If
// Job.Checkpoint is that id, Publish may briefly wait for the outcome.
//
// # Lookup
//
// Lookup reports absence only after it has read the listing to its last page. An unreadable page, an entry without an
// id, or an error alongside the data is an error, and Herald retries the lookup. An uncertain match counts as a match:
// a false match makes a user check the account, but a false absence publishes twice. The state that the platform
// returns for a checkpoint is stronger evidence than a listing: it sets LookupResult.Proof, or Refused if the platform
// gave up. While the platform is still processing, the error is ClassTransient.
//
// # Preparing
//
// Some platforms return the same error for a file that is already used in a post and for one that has expired. In that
// case Prepare searches the listing before it uploads the file again: a post is identified by its files, and new file
// ids would not find it. Values that grant access, such as the URL of an upload session, are stored as the secret
// before the first byte is sent. They are never part of a checkpoint, which everyone with read access to the post can
// see.
//
// # Accounts
//
// Refresh returns ClassReconnect only if connecting the account again helps. A wrong client secret, an outage or a
// malformed response must not cause an account to be disconnected.
//
// # Errors, times and numbers
//
// Error messages are Herald's own and do not vary between calls. The platform's message is discarded; its code is
// stored in Error.Code. Each platform package has one table of known codes, which docs/platform-errors.md shows. A code
// without a row sets Error.Unlisted. Only then does the message contain the code, and it blames neither the text nor a
// file. Times come from the clock in the platform's Config. Every number has a comment with its source.
package platforms
