// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package graph holds the common parts of Meta's Graph APIs, for the simulators of Threads, Instagram and Facebook: parameters and tokens,
// versions, fields, paging, errors and rate limits.
//
// The real APIs ignore unknown parameters, and so does a lenient sandbox. Otherwise the sandbox rejects them, which detects misspelled
// ones.
//
// Sources: Meta's Graph API reference ("Versioning", "Paginated Results"), and the requests and expectations of Meta's own
// facebook-nodejs-business-sdk and of huandu/facebook: format=json with every call, the node's ID in the body, versions from v19.0 on, and
// a paging.next that clients follow unchanged.
package graph
