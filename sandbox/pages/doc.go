// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages shows people what the simulated platforms hold: the accounts, a feed per account, each post under its
// public address, and the question that a connect flow asks.
//
// Everything is rendered on the server and works without JavaScript; the few lines of script only bring a page up to
// date while it is open.
package pages
