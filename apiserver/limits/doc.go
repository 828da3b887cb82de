// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits bounds what clients can use of a server: connections, the memory of request bodies, requests per
// minute and their cost, and the requests and log lines of unauthenticated clients.
package limits
