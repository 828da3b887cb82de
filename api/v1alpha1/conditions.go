// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types. Every kind sets Ready, which follows the kstatus convention, so that
// `kubectl wait --for=condition=Ready` and GitOps tools understand it.
const (
	// ConditionReady is True when the object has reached the desired state: a Post is
	// published everywhere, scheduled, or kept as a draft; a Connection can be published
	// to; a Team's namespace exists; an APIKey can be used.
	ConditionReady = "Ready"

	// ConditionAccepted is True if a Post passed every rule. A Post that did not is not
	// delivered. It can be corrected until it fails.
	ConditionAccepted = "Accepted"
	// ConditionPublished is True when the whole Post is published. While it is False, its
	// reason is Draft, Scheduled, Processing, the reason for waiting, or the reason for the
	// failure.
	ConditionPublished = "Published"

	// ConditionPrepared is True when everything that can be prepared before the scheduled
	// time is done. It is absent while no preparation is in progress, and from the first
	// call on. False does not make the Post fail: the preparation is retried when the Post
	// is due.
	ConditionPrepared = "Prepared"

	// ConditionReconciling is True while the manager works towards Ready (kstatus
	// "InProgress"); it is absent otherwise.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when the object makes no progress until a person acts
	// (kstatus "Failed"); it is absent otherwise.
	ConditionStalled = "Stalled"

	// ConditionOutcomeUnknown is True while a person has to find out whether a target of a
	// Post was published; its message holds the commands for the answer. It is absent
	// otherwise.
	ConditionOutcomeUnknown = "OutcomeUnknown"

	// ConditionAdopted is True when targets of a Post adopted the outcome of an earlier
	// post of its name, and are not published again; its message explains how to publish
	// them anyway. It is absent otherwise.
	ConditionAdopted = "Adopted"

	// ConditionSuspended is True while publishing is suspended for a Team, by its own spec
	// or by the manager's configuration; it is absent otherwise.
	ConditionSuspended = "Suspended"

	// ConditionPublishingRefused is True while a platform refuses posts of a Connection,
	// according to its latest answer to a post, although it still answers queries: a
	// permission may be missing (Refused), or the account may be locked
	// (AccountRestricted). It is absent otherwise.
	ConditionPublishingRefused = "PublishingRefused"

	// ConditionRateLimited is True while the platform of a Connection accepts no calls for
	// the account; its message has the end of the limit. It is absent otherwise. The
	// account itself is in order, so Ready does not change.
	ConditionRateLimited = "RateLimited"

	// ConditionCredentialsSuperseded is True while the Secret of a Connection holds tokens
	// that were used before and have been replaced since, for instance because a tool
	// applied an old version again. They are ignored. It is absent otherwise.
	ConditionCredentialsSuperseded = "CredentialsSuperseded"

	// ConditionCredentialsRefused is True while the Secret of a Connection holds new tokens
	// that are not used, because the platform has not confirmed that they belong to the
	// account. Its reason is one of the reasons of Ready. The account continues with its
	// current tokens. It is absent otherwise.
	ConditionCredentialsRefused = "CredentialsRefused"
)

// Reasons of a Post's Accepted condition.
const (
	ReasonAccepted           = "Accepted"
	ReasonInvalid            = "Invalid"
	ReasonConnectionNotFound = "ConnectionNotFound"
	ReasonMediaNotFound      = "MediaNotFound"
	ReasonMediaNotReady      = "MediaNotReady"
)

// ReasonThumbnailNotSet is the reason of an event of a Post that was published without the
// chosen thumbnail.
const ReasonThumbnailNotSet = "ThumbnailNotSet"

// ReasonPictureBlank is the reason of an event of a Post that was published with a blank
// image: the image is white on a transparent background, and the platform does not support
// transparency.
const ReasonPictureBlank = "PictureBlank"

// Reasons of a Post's Prepared condition.
const (
	ReasonPrepared          = "Prepared"
	ReasonPreparing         = "Preparing"
	ReasonPreparationFailed = "PreparationFailed"
)

// ReasonAlreadyPublished is the reason of a Post's Adopted condition, and of the event
// about it.
const ReasonAlreadyPublished = "AlreadyPublished"

// Reasons of a Post's Ready condition and of its targets.
const (
	ReasonDraft              = "Draft"
	ReasonScheduled          = "Scheduled"
	ReasonProcessing         = "Processing"
	ReasonPosted             = "Posted"
	ReasonCancelled          = "Cancelled"
	ReasonMissedSchedule     = "MissedSchedule"
	ReasonRefused            = "Refused"
	ReasonUnsupported        = "Unsupported"
	ReasonOutcomeUnknown     = "OutcomeUnknown"
	ReasonSettling           = "Settling"
	ReasonRateLimited        = "RateLimited"
	ReasonPlatformBusy       = "PlatformUnavailable"
	ReasonConnectionNotReady = "ConnectionNotReady"
	ReasonTargetsFailed      = "TargetsFailed"
	// ReasonAccountRestricted: the platform blocks posts of the account until its owner
	// acts there. The conditions of Connections use it too: PublishingRefused after the
	// answer to a post, and Ready after the answer to a probe.
	ReasonAccountRestricted = "AccountRestricted"
	// ReasonRecordUnavailable: Herald cannot look up whether an earlier post of this name
	// was published.
	ReasonRecordUnavailable = "RecordUnavailable"

	// ReasonSuspended: the team is suspended.
	ReasonSuspended = "Suspended"
	// ReasonUsageUnavailable: the usage of the team's plan limits cannot be counted.
	ReasonUsageUnavailable = "UsageUnavailable"
	// ReasonDraftLimit: TikTok's inbox accepts no more drafts at the moment.
	ReasonDraftLimit = "DraftLimit"
	// ReasonPlanLimit: the team's plan does not allow it. Connections use it too.
	ReasonPlanLimit = "PlanLimit"
)

// Reasons of a Connection's Ready condition.
const (
	ReasonConnected              = "Connected"
	ReasonDisabled               = "Disabled"
	ReasonTokenExpired           = "TokenExpired"
	ReasonRevoked                = "Revoked"
	ReasonPlatformUnavailable    = "PlatformUnavailable"
	ReasonPlatformNotSupported   = "PlatformNotSupported"
	ReasonCredentialsNotFound    = "CredentialsNotFound"
	ReasonCredentialsInvalid     = "CredentialsInvalid"
	ReasonAccountMismatch        = "AccountMismatch"
	ReasonCredentialsUnavailable = "CredentialsUnavailable"
	ReasonCredentialsReplaced    = "Replaced"
)

// Reasons of a Connection's RateLimited condition, in addition to AccountRestricted.
const (
	// ReasonAccountLimited: the account has made too many calls.
	ReasonAccountLimited = "AccountLimited"
	// ReasonAppLimited: all accounts of the installation's app together have made too many
	// calls.
	ReasonAppLimited = "AppLimited"
	// ReasonQuotaUsedUp: the account's posting quota is used up.
	ReasonQuotaUsedUp = "QuotaUsedUp"
)

// ReasonRateLimitEnded is the reason of the event about the end of a rate limit.
const ReasonRateLimitEnded = "RateLimitEnded"

// ReasonNoTeam means that no Team owns the namespace, so Herald does not process the
// objects in it. Connections, Media, APIKeys and Posts that are not accepted have it.
const ReasonNoTeam = "NoTeam"

// Reasons of the events about incomplete deletions.
const (
	// ReasonOutcomeAbandoned: a Post was deleted, and the outcome of its last call cannot
	// be determined.
	ReasonOutcomeAbandoned = "OutcomeAbandoned"
	// ReasonRecordAbandoned: a Post was deleted, and its record could not be stored, so a
	// new Post of its name is published again.
	ReasonRecordAbandoned = "RecordAbandoned"
	// ReasonFileAbandoned: a Media was deleted, and its file may still be in the store.
	ReasonFileAbandoned = "FileAbandoned"
	// ReasonRecordsAbandoned: a Team was deleted, and the records of its posts may still be
	// in the store.
	ReasonRecordsAbandoned = "RecordsAbandoned"
)

// Reasons of a Team's Ready condition.
const (
	ReasonNamespaceReady   = "NamespaceReady"
	ReasonNamespaceRefused = "NamespaceRefused"
	ReasonNamespaceTaken   = "NamespaceTaken"
)

// Reasons of a Team's Suspended condition, and of the event when it ends.
const (
	ReasonSuspendedBySpec          = "SuspendedBySpec"
	ReasonSuspendedByConfiguration = "SuspendedByConfiguration"
	ReasonResumed                  = "Resumed"
)

// Reasons of an APIKey's Ready condition.
const (
	ReasonActive        = "Active"
	ReasonKeyExpired    = "Expired"
	ReasonKeyRevoked    = "Revoked"
	ReasonSecretRefused = "SecretRefused"
)

// Reasons of a Media's Ready condition. A file that failed its verification has the reason
// that the verification returned.
const (
	ReasonUploaded       = "Uploaded"
	ReasonAwaitingUpload = "AwaitingUpload"
	ReasonUploadExpired  = "UploadExpired"
	// ReasonBudgetLimit: the number or the size of the pending files has reached the team's
	// budget.
	ReasonBudgetLimit      = "BudgetLimit"
	ReasonFetching         = "Fetching"
	ReasonFetchFailed      = "FetchFailed"
	ReasonSourceRefused    = "SourceRefused"
	ReasonBeingOverwritten = "BeingOverwritten"
	ReasonFileChanged      = "FileChanged"
	ReasonFileMissing      = "FileMissing"
	ReasonStoreUnavailable = "StoreUnavailable"
	ReasonWrongType        = "WrongType"
	ReasonWrongSize        = "WrongSize"
	ReasonDamaged          = "Damaged"
)

// GetConditions returns the conditions.
func (s *APIKeyStatus) GetConditions() []metav1.Condition { return s.Conditions }

// GetConditions returns the conditions.
func (s *ConnectionStatus) GetConditions() []metav1.Condition { return s.Conditions }

// GetConditions returns the conditions.
func (s *MediaStatus) GetConditions() []metav1.Condition { return s.Conditions }

// GetConditions returns the conditions.
func (s *TeamStatus) GetConditions() []metav1.Condition { return s.Conditions }
