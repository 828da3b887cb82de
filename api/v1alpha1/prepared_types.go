// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Prepared refers to hidden content that was created on the platform before the publishing call, such as an upload or a container. The
// manager reuses it after a restart. A prepared post can still be cancelled.
type Prepared struct {
	// contentHash identifies the prepared content: connection, account, text and files.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ContentHash string `json:"contentHash"`

	// checkpoint is the platform's reference to the prepared content. Until complete is set, it refers to the completed part.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Checkpoint string `json:"checkpoint,omitempty"`

	// secret is true if the post's upload Secret holds data that grants access to the prepared content, such as an upload session's
	// URL.
	// +optional
	Secret bool `json:"secret,omitempty"`

	// secretHash is the SHA-256, in hexadecimal, of that data. The data is used only if its hash matches, because more users may write
	// Secrets than post statuses.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SecretHash string `json:"secretHash,omitempty"`

	// madeAt is when the content was prepared or, until complete is set, last changed.
	// +required
	MadeAt Time `json:"madeAt"`

	// complete is true when only the publishing call remains.
	// +optional
	Complete bool `json:"complete,omitempty"`

	// problem is a human-readable explanation of why the preparation failed and how to fix the problem.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`

	// by is the manager that is currently preparing the content. It is absent unless the managers of the installation share
	// the uploads.
	// +optional
	By *PreparedBy `json:"by,omitempty"`
}

// PreparedBy is the manager that is preparing a target. Its only purpose is to keep two managers from uploading the
// same files.
type PreparedBy struct {
	// holder identifies the manager's process.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Holder string `json:"holder"`

	// until is when another manager takes over, unless this one has extended it by then.
	// +required
	Until Time `json:"until"`
}
