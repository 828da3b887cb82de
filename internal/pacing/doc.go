// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pacing defines when controllers work: the timeout of a reconciliation, the backoff of retries, sweeps, and
// the spread of many objects over time.
package pacing
