// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types. Every kind sets Ready; it follows the kstatus convention,
// so that `kubectl wait --for=condition=Ready` and GitOps tools understand it.
const (
	// ConditionReady is True when the object reached what its spec asks for:
	// a Post is published everywhere, waits for its time, or is kept as a draft; a
	// Connection can be published to, a Team's namespace exists, an APIKey can be
	// used.
	ConditionReady = "Ready"

	// ConditionAccepted tells whether a Post passed every rule. A Post that did
	// not is not delivered. It can be mended until it fails.
	ConditionAccepted = "Accepted"
	// ConditionPublished tells whether everything of a Post is out. While it is
	// False, its reason says why: Draft, Scheduled, Processing, what the post waits
	// for, or why it failed.
	ConditionPublished = "Published"

	// ConditionPrepared tells whether what can be done ahead of a scheduled Post's
	// time is done. It is absent while nothing is under way, and from the first
	// call on. False does not make the Post fail: at its time it is tried again.
	ConditionPrepared = "Prepared"

	// ConditionReconciling is True while the manager works towards Ready
	// (kstatus "InProgress"); it is absent otherwise.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when nothing more will happen without a
	// person (kstatus "Failed"); it is absent otherwise.
	ConditionStalled = "Stalled"

	// ConditionOutcomeUnknown is True while a person has to find out whether a
	// target of a Post was published; its message holds the commands that say
	// so. It is absent otherwise.
	ConditionOutcomeUnknown = "OutcomeUnknown"

	// ConditionAdopted is True when targets of a Post read what became of an earlier one of
	// its name, and are not published again; its message says how to. It is absent otherwise.
	ConditionAdopted = "Adopted"

	// ConditionSuspended is True while nothing of a Team is published, by its own
	// spec or by the manager's configuration; it is absent otherwise.
	ConditionSuspended = "Suspended"

	// ConditionPublishingRefused is True while a platform does not let a
	// Connection publish, by its latest answer to a post, although it still
	// answers questions: a permission may be missing (Refused), or the account be
	// locked (AccountRestricted). It is absent otherwise.
	ConditionPublishingRefused = "PublishingRefused"

	// ConditionRateLimited is True while the platform of a Connection takes no calls
	// for the account; its message says until when. It is absent otherwise. It says
	// nothing against the account, so that Ready stays as it is.
	ConditionRateLimited = "RateLimited"

	// ConditionCredentialsSuperseded is True while the Secret of a Connection holds
	// tokens that were used before and replaced since, as a tool puts back that applies
	// an old version. They are ignored. It is absent otherwise.
	ConditionCredentialsSuperseded = "CredentialsSuperseded"

	// ConditionCredentialsRefused is True while the Secret of a Connection holds new
	// tokens that are not used, because the platform has not confirmed that they are the
	// account's. Its reason is one of Ready. The account goes on with the tokens that it
	// has. It is absent otherwise.
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

// ReasonThumbnailNotSet is the reason of an event of a Post: it is published, but
// without the chosen thumbnail.
const ReasonThumbnailNotSet = "ThumbnailNotSet"

// ReasonPictureBlank is the reason of an event of a Post: it is published, and an image of
// it, white on a transparent ground, shows nothing where the platform takes no transparency.
const ReasonPictureBlank = "PictureBlank"

// Reasons of a Post's Prepared condition.
const (
	ReasonPrepared          = "Prepared"
	ReasonPreparing         = "Preparing"
	ReasonPreparationFailed = "PreparationFailed"
)

// ReasonAlreadyPublished is the reason of a Post's Adopted condition, and of the event that
// tells it.
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
	// ReasonAccountRestricted: the platform keeps the account from posting until its
	// owner acts there. The conditions PublishingRefused and Ready of Connections have
	// it as well: the one if the answer to a post says so, the other if the answer to a
	// probe does.
	ReasonAccountRestricted = "AccountRestricted"
	// ReasonRecordUnavailable: it cannot be looked up whether an earlier post of this name
	// was published.
	ReasonRecordUnavailable = "RecordUnavailable"

	// ReasonSuspended: the team is suspended.
	ReasonSuspended = "Suspended"
	// ReasonUsageUnavailable: what the team's plan limits cannot be counted.
	ReasonUsageUnavailable = "UsageUnavailable"
	// ReasonDraftLimit: TikTok's inbox takes no more drafts for now.
	ReasonDraftLimit = "DraftLimit"
	// ReasonPlanLimit: the team's plan does not allow it. Connections have it
	// too.
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

// Reasons of a Connection's RateLimited condition, beside AccountRestricted.
const (
	// ReasonAccountLimited: the account has made too many calls.
	ReasonAccountLimited = "AccountLimited"
	// ReasonAppLimited: the accounts of the installation's app have, all together.
	ReasonAppLimited = "AppLimited"
	// ReasonQuotaUsedUp: nothing remains of how much the account may post.
	ReasonQuotaUsedUp = "QuotaUsedUp"
)

// ReasonRateLimitEnded is the reason of the event about the end of a limit.
const ReasonRateLimitEnded = "RateLimitEnded"

// ReasonNoTeam says that no Team owns the namespace, so Herald does nothing for what is in it. A
// Connection, a Media, an APIKey and a Post that is not accepted have it.
const ReasonNoTeam = "NoTeam"

// Reasons of the events that tell how the deletion of an object ended.
const (
	// ReasonOutcomeAbandoned: a Post went, and it cannot be found out whether its last call
	// published.
	ReasonOutcomeAbandoned = "OutcomeAbandoned"
	// ReasonRecordAbandoned: a Post went, and its record could not be kept, so that it is
	// published again if it is created again.
	ReasonRecordAbandoned = "RecordAbandoned"
	// ReasonFileAbandoned: a Media went, and its file may be in the store still.
	ReasonFileAbandoned = "FileAbandoned"
	// ReasonRecordsAbandoned: a Team went, and the records of its posts may be in the store
	// still.
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

// Reasons of a Media's Ready condition. A file that was examined and refused
// has the reason that the examination gave.
const (
	ReasonUploaded       = "Uploaded"
	ReasonAwaitingUpload = "AwaitingUpload"
	ReasonUploadExpired  = "UploadExpired"
	// ReasonBudgetLimit: as many files are waited for as the team's budget allows.
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
