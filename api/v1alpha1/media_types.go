// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MimeType is the kind of a media file.
// +kubebuilder:validation:Enum=video/mp4;video/quicktime;image/jpeg;image/png;image/webp
type MimeType string

// The kinds of media files that Herald takes.
const (
	MimeMP4       MimeType = "video/mp4"
	MimeQuickTime MimeType = "video/quicktime"
	MimeJPEG      MimeType = "image/jpeg"
	MimePNG       MimeType = "image/png"
	MimeWebP      MimeType = "image/webp"
)

// The largest files that Herald takes, in bytes (the HTTP contract: 1 GB for a
// video and 20 MB for an image, counted in powers of two). The schema of
// MediaSpec holds the same numbers.
const (
	MaxVideoBytes = 1 << 30
	MaxImageBytes = 20 << 20
)

// MediaSpec describes a file before it is uploaded. It cannot be changed: the
// address that the file is uploaded to is signed for exactly this description.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a media file's description cannot be changed; create another Media instead"
// +kubebuilder:validation:XValidation:rule="self.sizeBytes <= (self.mimeType.startsWith('video/') ? 1073741824 : 20971520)",message="the file is too large: a video has at most 1 GB (1073741824 bytes), an image 20 MB (20971520 bytes)",fieldPath=".sizeBytes"
type MediaSpec struct {
	// fileName is how the file is called, for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	FileName string `json:"fileName"`

	// mimeType of the file. What is uploaded under another type is refused.
	// +required
	MimeType MimeType `json:"mimeType"`

	// sizeBytes is how large the file is, in bytes: at most 1 GB for a video
	// and 20 MB for an image.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	SizeBytes int64 `json:"sizeBytes"`
}

// MediaPhase tells how far a media file has come.
// +kubebuilder:validation:Enum=pending;uploaded;rejected;expired
type MediaPhase string

// The phases of a media file. They only go forward.
const (
	// MediaPending: the file has not arrived.
	MediaPending MediaPhase = "pending"
	// MediaUploaded: the file is in the store, was verified and can be posted.
	MediaUploaded MediaPhase = "uploaded"
	// MediaRejected: the file is not what was described, or was changed after
	// it had been verified.
	MediaRejected MediaPhase = "rejected"
	// MediaExpired: the file never arrived, or has been removed after its time.
	MediaExpired MediaPhase = "expired"
)

// MediaStatus is what is known of the file in the store.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.phase) || oldSelf.phase == 'pending' || (has(self.phase) && (self.phase == oldSelf.phase || self.phase == 'expired' || (oldSelf.phase == 'uploaded' && self.phase == 'rejected')))",message="a media file's phase only goes forward"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.etag) || (has(self.etag) && self.etag == oldSelf.etag)",message="etag never changes once set"
// +kubebuilder:validation:XValidation:rule="!has(self.phase) || self.phase != 'uploaded' || has(self.etag)",message="an uploaded file has an etag"
type MediaStatus struct {
	// conditions of the media file: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions speak of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase tells how far the file has come.
	// +optional
	Phase MediaPhase `json:"phase,omitempty"`

	// sizeBytes is how large the file in the store is, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// etag is the store's mark of the bytes that were verified. Every later
	// read asks for exactly these.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ETag string `json:"etag,omitempty"`

	// width of the picture, in pixels, as it is shown.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Width int32 `json:"width,omitempty"`

	// height of the picture, in pixels, as it is shown.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Height int32 `json:"height,omitempty"`

	// durationMillis is how long a video plays, in milliseconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DurationMillis int64 `json:"durationMillis,omitempty"`
}

// Media is an image or a video that posts can refer to.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=media,singular=media,shortName=hmedia,categories=herald
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.mimeType`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.spec.sizeBytes`
// +kubebuilder:printcolumn:name="File",type=string,JSONPath=`.spec.fileName`
// +kubebuilder:printcolumn:name="Width",type=integer,priority=1,JSONPath=`.status.width`
// +kubebuilder:printcolumn:name="Height",type=integer,priority=1,JSONPath=`.status.height`
// +kubebuilder:printcolumn:name="Millis",type=integer,priority=1,JSONPath=`.status.durationMillis`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Media struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is to be uploaded.
	// +required
	Spec MediaSpec `json:"spec"`

	// status is what is.
	// +optional
	Status MediaStatus `json:"status,omitzero"`
}

// MediaList is a list of media files.
//
// +kubebuilder:object:root=true
type MediaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Media `json:"items"`
}
