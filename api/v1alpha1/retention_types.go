// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// TeamRetention is how long a team's finished posts are kept, first as resources in the cluster and then in the archive. The HTTP API and
// the web application read both. Both retention times start at status.finishedAt.
type TeamRetention struct {
	// inCluster is how long a finished post remains in the cluster as a resource, such as "7d", "36h30m" or "90s". "0s" removes it
	// immediately. The installation may set a minimum. Defaults to the installation's value, seven days by default.
	// +optional
	InCluster *Duration `json:"inCluster,omitempty"`

	// archived is how long a post's outcome remains readable, in lists and by its ID, such as "90d". It counts from the post's completion,
	// not from its removal from the cluster. The archive keeps a post at least as long as the cluster does. Without an archived record,
	// Herald does not recognize that the post was published, and a post applied under the same name is published again. Defaults to the
	// installation's value, ninety days by default.
	// +optional
	Archived *Duration `json:"archived,omitempty"`

	// applied also removes applied posts from the cluster, for instance posts from Git. The default, false, keeps them until their owner
	// deletes them, because a GitOps tool would apply them again. A post that is applied again is not published again while it is archived.
	// +optional
	Applied bool `json:"applied,omitempty"`
}
