// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tiktok simulates the accounts of TikTok's API: who a token belongs to, what its creator may post, and rotating
// refresh tokens. Publishing needs media and is not simulated.
//
// It is written from the platform's documentation.
package tiktok
