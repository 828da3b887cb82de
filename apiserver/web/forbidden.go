// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

// abilities are the display names of permissions. Other permissions are shown under their Kubernetes names.
var abilities = map[right]string{
	seePosts: "view the posts", createPosts: "write posts", updatePosts: "change the posts", createMedia: "upload files", seeMedia: "view the files",
	seeConnections: "view the accounts", createConnection: "connect accounts", patchConnection: "connect accounts again",
	deleteConnection: "disconnect accounts",
	seeKeys:          "view the API keys", createKeys: "create API keys", updateKeys: "change the API keys",
	seeUsages: "view the team's usage", seeGrants: "view the agents", updateGrants: "revoke agents",
	seeBindings:  "view the members",
	seeNotifiers: "view the notifications", createNotifiers: "create notifications", updateNotifiers: "change the notifications", deleteNotifiers: "delete notifications",
	seeSchedules: "view the schedules", createSchedules: "create schedules", updateSchedules: "change the schedules", deleteSchedules: "delete schedules",
}

// inWords returns a permission's display text, such as "view the API keys".
func (r right) inWords() string {
	if words, ok := abilities[r]; ok {
		return words
	}
	return r.verb + " " + r.resource
}
