// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pacing defines when controllers work: timeouts for reconciliations, the backoff between retries, sweeps, and
// how work on many objects is spread over time.
package pacing
