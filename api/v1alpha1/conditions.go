// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types. Every kind sets Ready, which follows the kstatus convention, so that
// `kubectl wait --for=condition=Ready` and GitOps tools understand it.
const (
	// ConditionReady is True when the object has reached its desired state: a Post is published everywhere, scheduled, or kept as a draft;
	// a Connection accepts posts; a Team's namespace exists; an APIKey is valid.
	ConditionReady = "Ready"

	// ConditionAccepted is True if a Post passed validation. A Post that is not accepted is not delivered, and can be corrected until it
	// fails.
	ConditionAccepted = "Accepted"
	// ConditionPublished is True when the whole Post is published. While it is False, its reason is Draft, Scheduled, Processing, the
	// reason for waiting, or the reason for the failure.
	ConditionPublished = "Published"

	// ConditionPrepared is True when all preparation before the scheduled time is done. It is absent while no preparation is in progress,
	// and after the first call. False does not make the Post fail: the preparation is retried when the Post is due.
	ConditionPrepared = "Prepared"

	// ConditionReconciling is True while the manager works towards Ready (kstatus
	// "InProgress"); it is absent otherwise.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when the object makes no progress without user action (kstatus "Failed"); it is absent otherwise.
	ConditionStalled = "Stalled"

	// ConditionOutcomeUnknown is True while a user has to determine whether a target of a Post was published. Its message holds the
	// commands for the answer. It is absent otherwise.
	ConditionOutcomeUnknown = "OutcomeUnknown"

	// ConditionAdopted is True when targets of a Post adopted the outcome of an earlier post with the same name, and are not published
	// again. Its message explains how to publish them anyway. It is absent otherwise.
	ConditionAdopted = "Adopted"

	// ConditionRetryOf is True when a Post with spec.retryOf has reserved targets of that failed post. Its message names them. It is absent
	// otherwise.
	ConditionRetryOf = "RetryOf"

	// ConditionRetried is True when another Post retries targets of this failed Post. Its message names that post. It is absent otherwise.
	ConditionRetried = "Retried"

	// ConditionSuspended is True while publishing is suspended for a Team, by its own spec
	// or by the manager's configuration; it is absent otherwise.
	ConditionSuspended = "Suspended"

	// ConditionPublishingRefused is True while a platform rejects posts of a Connection but still answers queries, according to its latest
	// response to a post: a permission may be missing (Refused), or the account may be locked (AccountRestricted). It is absent otherwise.
	ConditionPublishingRefused = "PublishingRefused"

	// ConditionRateLimited is True while the platform accepts no calls for a Connection's account. Its message contains the end of the
	// limit. It is absent otherwise. Ready does not change, because the account itself is healthy.
	ConditionRateLimited = "RateLimited"

	// ConditionCredentialsSuperseded is True while a Connection's Secret holds previously used tokens that have been replaced since, for
	// instance because a tool applied an old version again. They are ignored. It is absent otherwise.
	ConditionCredentialsSuperseded = "CredentialsSuperseded"

	// ConditionCredentialsRefused is True while a Connection's Secret holds new tokens that the platform has not confirmed for the account.
	// They are not used, and the account continues with its current tokens. The reason is one of Ready's reasons. It is absent otherwise.
	ConditionCredentialsRefused = "CredentialsRefused"

	// ConditionTextRepeats is True while a PostSchedule publishes the same text to X each time, which X rejects. It is absent otherwise.
	ConditionTextRepeats = "TextRepeats"

	// ConditionFailing is True while the receiver of a Notifier does not accept notifications. Its message is the last error. It is absent
	// otherwise.
	ConditionFailing = "Failing"
)

// Reasons for a Post's Accepted condition.
const (
	ReasonAccepted           = "Accepted"
	ReasonInvalid            = "Invalid"
	ReasonConnectionNotFound = "ConnectionNotFound"
	ReasonMediaNotFound      = "MediaNotFound"
	ReasonMediaNotReady      = "MediaNotReady"
)

// ReasonThumbnailNotSet is the reason for an event about a Post published without the chosen thumbnail.
const ReasonThumbnailNotSet = "ThumbnailNotSet"

// ReasonPictureBlank is the reason for an event about a Post published with a blank image: a white image on a transparent background, on
// a platform without transparency.
const ReasonPictureBlank = "PictureBlank"

// Reasons for a Post's Prepared condition.
const (
	ReasonPrepared          = "Prepared"
	ReasonPreparing         = "Preparing"
	ReasonPreparationFailed = "PreparationFailed"
)

// ReasonRetry is the reason for a Post's RetryOf condition. ReasonRetried is the reason for its Retried condition, and for a target that an
// earlier object of the post left to another post.
const (
	ReasonRetry   = "Retry"
	ReasonRetried = "Retried"
)

// ReasonAlreadyPublished is the reason for a Post's Adopted condition and for its event.
const ReasonAlreadyPublished = "AlreadyPublished"

// Reasons for the Ready condition of Posts and their targets.
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
	// ReasonAccountRestricted: the platform blocks the account's posts until its owner acts there. Connections also use it:
	// PublishingRefused after a response to a post, and Ready after a response to a probe.
	ReasonAccountRestricted = "AccountRestricted"
	// ReasonRetryRefused: the post in spec.retryOf, or its target, cannot be retried.
	ReasonRetryRefused = "RetryRefused"
	// ReasonRecordUnavailable: the record of an earlier post of this name cannot be read.
	ReasonRecordUnavailable = "RecordUnavailable"

	// ReasonSuspended: the team is suspended.
	ReasonSuspended = "Suspended"
	// ReasonUsageUnavailable: the team's plan usage cannot be counted.
	ReasonUsageUnavailable = "UsageUnavailable"
	// ReasonDraftLimit: TikTok's inbox currently accepts no more drafts.
	ReasonDraftLimit = "DraftLimit"
	// ReasonPlanLimit: the team's plan does not allow it. Connections also use it.
	ReasonPlanLimit = "PlanLimit"
)

// Reasons for a Connection's Ready condition.
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

// Reasons for a Connection's RateLimited condition, in addition to AccountRestricted.
const (
	// ReasonAccountLimited: the account has made too many calls.
	ReasonAccountLimited = "AccountLimited"
	// ReasonAppLimited: the accounts of the installation's app have made too many calls in total.
	ReasonAppLimited = "AppLimited"
	// ReasonQuotaUsedUp: the account's posting quota is exhausted.
	ReasonQuotaUsedUp = "QuotaUsedUp"
)

// ReasonRateLimitEnded is the reason for the event at the end of a rate limit.
const ReasonRateLimitEnded = "RateLimitEnded"

// ReasonNoTeam means that no Team owns the namespace, so Herald does not process its objects. Connections, Media, APIKeys and unaccepted
// Posts have it.
const ReasonNoTeam = "NoTeam"

// Reasons for events about incomplete deletions.
const (
	// ReasonOutcomeAbandoned: a Post was deleted while the outcome of its last call was undetermined.
	ReasonOutcomeAbandoned = "OutcomeAbandoned"
	// ReasonRecordAbandoned: a Post was deleted before its record was stored, so a new Post of its name would be published again.
	ReasonRecordAbandoned = "RecordAbandoned"
	// ReasonFileAbandoned: a Media was deleted while its file may still be in the store.
	ReasonFileAbandoned = "FileAbandoned"
	// ReasonRecordsAbandoned: a Team was deleted while its post records may still be in the store.
	ReasonRecordsAbandoned = "RecordsAbandoned"
)

// Reasons for a Team's Ready condition.
const (
	ReasonNamespaceReady   = "NamespaceReady"
	ReasonNamespaceRefused = "NamespaceRefused"
	ReasonNamespaceTaken   = "NamespaceTaken"
)

// Reasons for a Team's Suspended condition, and for the event at its end.
const (
	ReasonSuspendedBySpec          = "SuspendedBySpec"
	ReasonSuspendedByConfiguration = "SuspendedByConfiguration"
	// ReasonSuspendedByMove: the team is being moved to another shard, which takes seconds.
	ReasonSuspendedByMove = "SuspendedByMove"
	ReasonResumed         = "Resumed"
)

// Reasons for an APIKey's Ready condition.
const (
	ReasonActive        = "Active"
	ReasonKeyExpired    = "Expired"
	ReasonKeyRevoked    = "Revoked"
	ReasonSecretRefused = "SecretRefused"
)

// Reasons for a PostSchedule's Ready condition, besides Scheduled, Suspended, Invalid, BudgetLimit and NoTeam.
const (
	// ReasonComplete: the last post was created, by spec.count or spec.endAt.
	ReasonComplete = "Complete"
	// ReasonAwaitingDeletion: the next post's name belongs to a post of a deleted schedule that is being deleted.
	ReasonAwaitingDeletion = "AwaitingDeletion"
)

// ReasonSameText is the reason for a PostSchedule's TextRepeats condition and its event.
const ReasonSameText = "SameText"

// ReasonPostCreated is the reason for the event about a post that a PostSchedule created.
const ReasonPostCreated = "PostCreated"

// Reasons for a Notifier's Ready condition, besides Suspended and NoTeam.
const (
	// ReasonDelivering: notifications are sent.
	ReasonDelivering = "Delivering"
	// ReasonReceiverGone: the receiver answered that it no longer exists (410).
	ReasonReceiverGone = "ReceiverGone"
	// ReasonSecretNotFound: the Secret of spec.secretRef does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretInvalid: the Secret of spec.secretRef lacks the key, or its value is invalid.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonEmailNotConfigured: the installation has no mail server.
	ReasonEmailNotConfigured = "EmailNotConfigured"
)

// ReasonDeliveryFailed is the reason for a Notifier's Failing condition.
const ReasonDeliveryFailed = "DeliveryFailed"

// Reasons for a Media's Ready condition. A file that failed verification has the verification's reason.
const (
	ReasonUploaded       = "Uploaded"
	ReasonAwaitingUpload = "AwaitingUpload"
	ReasonUploadExpired  = "UploadExpired"
	// ReasonBudgetLimit: the number or total size of the pending files has reached the team's budget.
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
