// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages renders web pages of the simulated platforms: the accounts, a feed per account, each post under its
// public address, and the consent page of a connect flow.
//
// All pages are rendered on the server and work without JavaScript; a short script only refreshes an open page.
package pages
