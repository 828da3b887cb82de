// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MimeType is a media file type.
// +kubebuilder:validation:Enum=video/mp4;video/quicktime;image/jpeg;image/png;image/webp
type MimeType string

// The supported media file types.
const (
	MimeMP4       MimeType = "video/mp4"
	MimeQuickTime MimeType = "video/quicktime"
	MimeJPEG      MimeType = "image/jpeg"
	MimePNG       MimeType = "image/png"
	MimeWebP      MimeType = "image/webp"
)

// UploadURLLifetime is the validity period of an upload URL (15 minutes in the HTTP contract).
const UploadURLLifetime = 15 * time.Minute

// KeyLifetime is the minimum lifetime of an Idempotency-Key. During it, a repeated request returns the same post or media file.
const KeyLifetime = 24 * time.Hour

// Maximum file sizes in bytes (in the HTTP contract: 1 GB for videos and 20 MB for images, as powers of two). The schema of MediaSpec
// contains the same numbers.
const (
	MaxVideoBytes = 1 << 30
	MaxImageBytes = 20 << 20
)

// MediaSpec describes a file before its upload. The description is immutable, because the upload URL's signature covers it, and posts that
// refer to the Media send its alt text.
//
// +kubebuilder:validation:XValidation:rule="self.fileName == oldSelf.fileName && self.mimeType == oldSelf.mimeType && has(self.sizeBytes) == has(oldSelf.sizeBytes) && (!has(self.sizeBytes) || self.sizeBytes == oldSelf.sizeBytes) && has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source) && has(self.altText) == has(oldSelf.altText) && (!has(self.altText) || self.altText == oldSelf.altText)",message="a media file's description cannot be changed; create another Media instead"
// +kubebuilder:validation:XValidation:rule="!has(self.sizeBytes) || self.sizeBytes <= (self.mimeType.startsWith('video/') ? 1073741824 : 20971520)",message="the file is too large: the maximum for a video is 1 GB (1073741824 bytes), for an image 20 MB (20971520 bytes)",fieldPath=".sizeBytes"
// +kubebuilder:validation:XValidation:rule="has(self.sizeBytes) || has(self.source)",message="sizeBytes is required for an uploaded file; it can only be omitted with a source",fieldPath=".sizeBytes"
type MediaSpec struct {
	// fileName is the human-readable file name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	FileName string `json:"fileName"`

	// mimeType of the file. Uploads of other types are rejected.
	// +required
	MimeType MimeType `json:"mimeType"`

	// sizeBytes is the file size in bytes: at most 1 GB for a video and 20 MB for an image. It is optional with a source. If set, the file
	// must have exactly this size.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// source is where the manager fetches the file from. The file is fetched only once. Without a source, the file must be
	// uploaded to status.uploadURL.
	// +optional
	Source *MediaSource `json:"source,omitempty"`

	// altText describes the image or video for people who cannot see it, in at most 1,000 characters. It is the default for every post that
	// uses the Media; a post's mediaRefs can replace it. It is immutable, so the content of a post does not change after the post was
	// written.
	// +optional
	// +kubebuilder:validation:MaxLength=1000
	AltText string `json:"altText,omitempty"`

	// whenUnused determines the action for a Media that no post has referred to for a day (or the manager's retention.unusedMedia):
	// "delete" removes the Media and its file, "keep" keeps both until the Media is deleted. Defaults to "keep" for a Media with a source,
	// because the tool that declares it would only create it again, and to "delete" for an uploaded Media.
	// +optional
	WhenUnused WhenUnused `json:"whenUnused,omitempty"`
}

// MediaSource is a file on a public web server.
type MediaSource struct {
	// url of the file. It must start with https:// and resolve to a public address, because the manager does not fetch from its own network.
	// Users who can read the Media can see it, so it must not contain a secret. Conditions and events omit everything after its path.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://[^/?#@\s]+([/?#]\S*)?$`
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="not a valid URL"
	URL string `json:"url"`
}

// WhenUnused determines the action for a Media without references from posts.
// +kubebuilder:validation:Enum=delete;keep
type WhenUnused string

// The actions for an unused Media.
const (
	// DeleteWhenUnused removes the Media and its file.
	DeleteWhenUnused WhenUnused = "delete"
	// KeepWhenUnused keeps both.
	KeepWhenUnused WhenUnused = "keep"
)

// MediaPhase is the stage of a media file.
// +kubebuilder:validation:Enum=pending;uploaded;rejected;expired
type MediaPhase string

// The media file phases. Their order is final.
const (
	// MediaPending: the file has not been received.
	MediaPending MediaPhase = "pending"
	// MediaUploaded: the file is in the store and verified, and posts can use it.
	MediaUploaded MediaPhase = "uploaded"
	// MediaRejected: the file does not match its description, or changed after verification.
	MediaRejected MediaPhase = "rejected"
	// MediaExpired: the file was never received, or was removed after its retention time.
	MediaExpired MediaPhase = "expired"
)

// MediaStatus is the observed state of the file in the store.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.phase) || oldSelf.phase == 'pending' || (has(self.phase) && (self.phase == oldSelf.phase || self.phase == 'expired' || (oldSelf.phase == 'uploaded' && self.phase == 'rejected')))",message="a media file's phase only goes forward"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.etag) || (has(self.etag) && self.etag == oldSelf.etag)",message="etag never changes once set"
// +kubebuilder:validation:XValidation:rule="!has(self.phase) || self.phase != 'uploaded' || has(self.etag)",message="an uploaded file must have an etag"
// +kubebuilder:validation:XValidation:rule="has(self.uploadURL) == has(self.uploadURLExpiresAt)",message="uploadURL and uploadURLExpiresAt must be set together"
type MediaStatus struct {
	// conditions of the media file: Ready; Reconciling while the file is awaited or fetched; Stalled if it was rejected or never received.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions are based on; -1 until Herald has processed the object.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is the stage of the file.
	// +optional
	Phase MediaPhase `json:"phase,omitempty"`

	// sizeBytes is the stored file size in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// etag is the store's ETag of the verified file. Later reads require it, which guarantees the same bytes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ETag string `json:"etag,omitempty"`

	// width of the image or video in pixels, as displayed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Width int32 `json:"width,omitempty"`

	// height of the image or video in pixels, as displayed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Height int32 `json:"height,omitempty"`

	// durationMillis is the duration of a video, in milliseconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DurationMillis int64 `json:"durationMillis,omitempty"`

	// frameRateMilliHertz is the average video frame rate, in frames per 1,000 seconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	FrameRateMilliHertz int32 `json:"frameRateMilliHertz,omitempty"`

	// frameRateVaries is true if the video has a variable frame rate, as phone videos and screen recordings often do.
	// +optional
	FrameRateVaries bool `json:"frameRateVaries,omitempty"`

	// videoCodec is ffmpeg's name of the video codec, such as "h264" or "hevc".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	VideoCodec string `json:"videoCodec,omitempty"`

	// audioCodec is ffmpeg's name of the audio codec, such as "aac"; absent for a silent video.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	AudioCodec string `json:"audioCodec,omitempty"`

	// animated is true if an image is animated.
	// +optional
	Animated bool `json:"animated,omitempty"`

	// turned is true if the image's metadata specifies a rotation or reflection for display.
	// +optional
	Turned bool `json:"turned,omitempty"`

	// multiPicture is true if a JPEG contains additional images after the first, such as another view or a gain map for high dynamic range.
	// +optional
	MultiPicture bool `json:"multiPicture,omitempty"`

	// unconvertible explains why Herald cannot convert an image for a platform that rejects the original. It continues a sentence that
	// starts with "the file". Absent if Herald can convert it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Unconvertible string `json:"unconvertible,omitempty"`

	// uploadURL is the URL for uploading the file by HTTP PUT, with the Content-Type header set to spec.mimeType. It is set while the
	// file is awaited, unless the HTTP API issued a separate URL or the Media has a source, and is replaced before it expires.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	UploadURL string `json:"uploadURL,omitempty"`

	// uploadURLExpiresAt is when uploadURL expires.
	// +optional
	UploadURLExpiresAt *Time `json:"uploadURLExpiresAt,omitempty"`

	// unusedSince is when the manager first found no posts that refer to the media file; absent while a post does.
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

	// spec describes the file.
	// +required
	Spec MediaSpec `json:"spec"`

	// status is the observed state of the file.
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
