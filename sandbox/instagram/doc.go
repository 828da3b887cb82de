// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instagram simulates the accounts of the Instagram API with Instagram Login: who a token belongs to, and its
// renewal. Publishing needs media and is not simulated.
//
// It is written from the platform's documentation.
package instagram
