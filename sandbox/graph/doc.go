// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package graph holds what Meta's Graph APIs have in common, for the simulators of Threads, Instagram and Facebook: how
// they take parameters and tokens, name versions, pick fields, list by pages, word errors and announce limits.
//
// The real APIs overlook a parameter that they do not know, and so does this one when the sandbox is lenient. Otherwise it
// refuses the parameter, so that a misspelt one shows.
//
// Sources: Meta's references of the Graph API ("Versioning", "Paginated Results"), and what Meta's own
// facebook-nodejs-business-sdk and huandu/facebook send and expect: format=json with every call, the id of the node in the
// body, versions from v19.0 on, and a paging.next that is followed as it stands.
package graph
