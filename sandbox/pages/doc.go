// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages renders the simulated platforms' web pages: the accounts, a feed per account, each post under its public address, and a
// connect flow's consent page.
//
// All pages are rendered on the server and work without JavaScript; a short script only refreshes an open page.
package pages
