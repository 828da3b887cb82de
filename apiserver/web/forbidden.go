// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

// abilities are rights as people say them. Other rights are shown in the words of Kubernetes.
var abilities = map[right]string{
	seePosts: "look at the posts", createPosts: "write posts", updatePosts: "change the posts", {"create", "media"}: "upload files",
	seeConnections: "look at the accounts", createConnection: "connect accounts", {"update", "connections"}: "connect accounts again",
	deleteConnection: "disconnect accounts",
	seeKeys:          "look at the API keys", createKeys: "make API keys", updateKeys: "change the API keys",
}

// inWords is what a person does who uses the right: "look at the API keys".
func (r right) inWords() string {
	if words, ok := abilities[r]; ok {
		return words
	}
	return r.verb + " " + r.resource
}
