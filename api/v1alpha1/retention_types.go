// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// TeamRetention is how long finished posts of a team are kept: first as resources in the
// cluster, and then in the archive. The HTTP API and the web application read both. Both
// times start when a post is finished (status.finishedAt).
type TeamRetention struct {
	// inCluster is how long a finished post stays in the cluster as a resource, such as
	// "7d", "36h30m" or "90s". "0s" removes it as soon as it is finished. The installation
	// may set a minimum. Defaults to the installation's value, which is seven days by
	// default.
	// +optional
	InCluster *Duration `json:"inCluster,omitempty"`

	// archived is how long the outcome of a post can be read, in lists and by its id, such
	// as "90d". It counts from when the post was finished, not from when it left the
	// cluster. The archive keeps a post at least as long as the cluster does. After that,
	// Herald has no record that the post was published: a post that is applied under the
	// same name is published again. Defaults to the installation's value, which is ninety
	// days by default.
	// +optional
	Archived *Duration `json:"archived,omitempty"`

	// applied also removes posts from the cluster that were applied, for instance from Git.
	// The default, false, keeps them until their owner deletes them, because a GitOps tool
	// would only apply them again. A post that is applied again is not published again
	// while it is archived.
	// +optional
	Applied bool `json:"applied,omitempty"`
}
