// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults injects faults into a simulated platform, and counts requests.
//
// A Gate wraps each operation of each platform. It counts the request, reads its body, and consumes the Board's matching faults. Depending
// on the fault it runs the operation, skips it, or runs it and hides the response.
//
// Faults and counters are in memory: a restart loses them.
package faults
