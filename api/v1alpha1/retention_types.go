// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// TeamRetention is how long finished posts of a team are kept: first as resources in the
// cluster, and then in the archive, from which the HTTP API and the web application read
// them alike. Both times begin when a post is finished (status.finishedAt).
type TeamRetention struct {
	// inCluster is how long a finished post stays in the cluster as a resource, such as
	// "7d", "36h30m" or "90s". "0s" removes it as soon as it is finished. An installation
	// may have a least time. Omitted, it is that of the installation: seven days if that
	// says nothing else.
	// +optional
	InCluster *Duration `json:"inCluster,omitempty"`

	// archived is how long what became of a post can be read, in lists and by its id,
	// such as "90d". It is counted from when the post was finished and not from when it
	// left the cluster. What is archived stays at least as long as the post is
	// in the cluster. After that nothing tells any more that the post was published:
	// one that is applied again under its name goes out again. Omitted, it is that of
	// the installation: ninety days if that says nothing else.
	// +optional
	Archived *Duration `json:"archived,omitempty"`

	// applied has posts leave the cluster too that were applied, and so may stand in
	// Git. False, the default, leaves those to whoever applied them: what is in Git
	// would only come back. One that does come back is not published again while it is
	// archived.
	// +optional
	Applied bool `json:"applied,omitempty"`
}
