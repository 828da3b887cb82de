// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

// abilities are the display texts of rights. Other rights are shown under their Kubernetes names.
var abilities = map[right]string{
	seePosts: "look at the posts", createPosts: "write posts", updatePosts: "change the posts", createMedia: "upload files",
	seeConnections: "look at the accounts", createConnection: "connect accounts", patchConnection: "connect accounts again",
	deleteConnection: "disconnect accounts",
	seeKeys:          "look at the API keys", createKeys: "make API keys", updateKeys: "change the API keys",
	seeUsages: "look at what the team uses", seeGrants: "look at the agents", updateGrants: "revoke agents",
}

// inWords returns a right's display text, such as "look at the API keys".
func (r right) inWords() string {
	if words, ok := abilities[r]; ok {
		return words
	}
	return r.verb + " " + r.resource
}
