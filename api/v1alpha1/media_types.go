// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// UploadURLLifetime is how long an address to upload to is valid (the HTTP
// contract: 15 minutes).
const UploadURLLifetime = 15 * time.Minute

// KeyLifetime is how long the Idempotency-Key of a request holds at least: for
// as long, the same request is answered with the same post or media file.
const KeyLifetime = 24 * time.Hour

// The largest files that Herald takes, in bytes (the HTTP contract: 1 GB for a
// video and 20 MB for an image, counted in powers of two). The schema of
// MediaSpec holds the same numbers.
const (
	MaxVideoBytes = 1 << 30
	MaxImageBytes = 20 << 20
)

// MediaSpec describes a file before it is uploaded. What it says of the file
// cannot be changed: the address that the file is uploaded to is signed for
// exactly this description.
//
// +kubebuilder:validation:XValidation:rule="self.fileName == oldSelf.fileName && self.mimeType == oldSelf.mimeType && has(self.sizeBytes) == has(oldSelf.sizeBytes) && (!has(self.sizeBytes) || self.sizeBytes == oldSelf.sizeBytes) && has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source)",message="a media file's description cannot be changed; create another Media instead"
// +kubebuilder:validation:XValidation:rule="!has(self.sizeBytes) || self.sizeBytes <= (self.mimeType.startsWith('video/') ? 1073741824 : 20971520)",message="the file is too large: a video has at most 1 GB (1073741824 bytes), an image 20 MB (20971520 bytes)",fieldPath=".sizeBytes"
// +kubebuilder:validation:XValidation:rule="has(self.sizeBytes) || has(self.source)",message="sizeBytes is required for a file that is uploaded; only with a source may it be left out",fieldPath=".sizeBytes"
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
	// and 20 MB for an image. With a source it may be left out; if it stands
	// there, the file must have exactly this size.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// source is where the manager fetches the file from, once. Without it the
	// file is uploaded, to the address in status.uploadURL.
	// +optional
	Source *MediaSource `json:"source,omitempty"`

	// whenUnused says what becomes of the Media when no post has referred to
	// it for a day (or as long as the manager is told): "delete" removes it
	// and its file, "keep" leaves both until the Media is deleted. If it
	// is left out, a Media with a source is kept, because the tool that declared it
	// would only declare it again, and one that was uploaded is deleted.
	// +optional
	WhenUnused WhenUnused `json:"whenUnused,omitempty"`
}

// MediaSource is a file on a public web server.
type MediaSource struct {
	// url of the file. It must start with https:// and lead to a public
	// address: the manager does not fetch from inside its own network. It is
	// shown to everybody who may read the Media, so it should hold no secret;
	// conditions and events leave out what follows its path.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://[^/?#@\s]+([/?#]\S*)?$`
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="not a valid URL"
	URL string `json:"url"`
}

// WhenUnused says what becomes of a Media that no post refers to.
// +kubebuilder:validation:Enum=delete;keep
type WhenUnused string

// What can become of an unused Media.
const (
	// DeleteWhenUnused removes the Media and its file.
	DeleteWhenUnused WhenUnused = "delete"
	// KeepWhenUnused leaves both.
	KeepWhenUnused WhenUnused = "keep"
)

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
// +kubebuilder:validation:XValidation:rule="has(self.uploadURL) == has(self.uploadURLExpiresAt)",message="uploadURL and uploadURLExpiresAt come together"
type MediaStatus struct {
	// conditions of the media file: Ready, and Reconciling while the file is
	// awaited or fetched, or Stalled when it was refused or never came.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions speak of. It is
	// -1 until Herald has looked at the object.
	// +optional
	// +kubebuilder:validation:Minimum=-1
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

	// frameRateMilliHertz is how many frames a video shows in a thousand seconds, on
	// average.
	// +optional
	// +kubebuilder:validation:Minimum=1
	FrameRateMilliHertz int32 `json:"frameRateMilliHertz,omitempty"`

	// frameRateVaries says that the frames of a video last for different times, as
	// those of phones and of recorded screens do.
	// +optional
	FrameRateVaries bool `json:"frameRateVaries,omitempty"`

	// videoCodec is how the frames of a video are encoded, as ffmpeg names it, such as
	// "h264" or "hevc".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	VideoCodec string `json:"videoCodec,omitempty"`

	// audioCodec is how the sound of a video is encoded, as ffmpeg names it, such as
	// "aac"; absent if it has none.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	AudioCodec string `json:"audioCodec,omitempty"`

	// animated says that an image moves.
	// +optional
	Animated bool `json:"animated,omitempty"`

	// turned says that an image is to be turned or mirrored to be shown, as its metadata
	// says.
	// +optional
	Turned bool `json:"turned,omitempty"`

	// multiPicture says that a JPEG holds further pictures behind the first, such as
	// another view, or the gain map of a picture with a high dynamic range.
	// +optional
	MultiPicture bool `json:"multiPicture,omitempty"`

	// unconvertible says why Herald cannot convert an image for a platform that does
	// not take it as it is, in words that continue "the file"; absent if it can.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Unconvertible string `json:"unconvertible,omitempty"`

	// uploadURL is where to send the file by HTTP PUT, with the header
	// Content-Type set to spec.mimeType. It stands here while the file is
	// awaited, unless the HTTP API handed out an address of its own or there
	// is a source, and is replaced before it ends.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	UploadURL string `json:"uploadURL,omitempty"`

	// uploadURLExpiresAt is when uploadURL ceases to work.
	// +optional
	UploadURLExpiresAt *Time `json:"uploadURLExpiresAt,omitempty"`

	// unusedSince is since when no post refers to the media file, as far as
	// was looked; absent while one does.
	// +optional
	UnusedSince *Time `json:"unusedSince,omitempty"`
}

// Media is an image or a video that posts can refer to.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=media,singular=media,shortName=hmedia,categories=herald
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.mimeType`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.status.sizeBytes`
// +kubebuilder:printcolumn:name="File",type=string,JSONPath=`.spec.fileName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Width",type=integer,priority=1,JSONPath=`.status.width`
// +kubebuilder:printcolumn:name="Height",type=integer,priority=1,JSONPath=`.status.height`
// +kubebuilder:printcolumn:name="Millis",type=integer,priority=1,JSONPath=`.status.durationMillis`
// +kubebuilder:printcolumn:name="Source",type=string,priority=1,JSONPath=`.spec.source.url`
// +kubebuilder:printcolumn:name="Unused Since",type=string,priority=1,JSONPath=`.status.unusedSince`
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
	// +kubebuilder:default={observedGeneration:-1}
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
