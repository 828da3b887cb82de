// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import "github.com/herald-social/herald/platforms"

// errorRow is one error code of YouTube and Herald's reaction to it. docs/platform-errors.md shows the rows.
type errorRow struct {
	// code is an error's reason, or the result of YouTube's processing of a video.
	code string
	// kind is a short description of the code.
	kind string
	// err is the classifier's result. Its messages do not vary between calls.
	err platforms.Error
	// also is a reaction in addition to the one for the class; instead replaces the class's reaction.
	also, instead string
	// source is the documentation of the code, or the client that observed it.
	source string
}

const (
	sourceErrors    = `YouTube Data API, "Errors"`
	sourceInsert    = `YouTube Data API, "Videos: insert"`
	sourceThumbnail = `YouTube Data API, "Thumbnails: set"`
	sourceGoogle    = `Google APIs, "Standard Error Responses"`
	sourceOAuth     = `Google Identity, "Using OAuth 2.0 for Web Server Applications"`
	sourceRejection = `YouTube Data API, "Videos", status.rejectionReason`
	sourceFailure   = `YouTube Data API, "Videos", status.failureReason`
	sourceWork      = `YouTube Data API, "Videos", processingDetails.processingFailureReason`
)

const (
	codeForbidden   = "forbidden"
	codeNotEnabled  = "accessNotConfigured"
	codeBackend     = "backendError"
	codeBadRequest  = "badRequest"
	codeUploadLimit = "uploadLimitExceeded"
	codeQuota       = "quotaExceeded"
	codeNoChannel   = "youtubeSignupRequired"
	codeDeadRefresh = "invalid_grant"
	codeDeleted     = "uploadStatus/deleted"
)

var (
	refresh = platforms.Error{Class: platforms.ClassRefresh, Problem: "YouTube does not accept the access token: it has expired or was revoked"}
	closed  = platforms.NewError(platforms.ClassRestricted, platforms.SubjectAccount,
		"YouTube has closed or suspended this channel", "check the status of the channel in YouTube Studio, and appeal there")
	quota = platforms.Error{
		Class: platforms.ClassQuota, Subject: platforms.SubjectApp, AppWide: true,
		Problem: "the quota of Herald's Google project is used up until midnight Pacific time",
	}
	rateLimit = platforms.Error{Class: platforms.ClassRateLimited, Problem: "YouTube's rate limit is reached"}
	trouble   = platforms.Error{Class: platforms.ClassTransient, Problem: "YouTube is having problems and did not process the request"}
	// unset is the error for a property that Herald never sets. Changing the post would not help.
	unset = platforms.NewError(platforms.ClassPermanent, "",
		"YouTube refused a property of the video that Herald does not set", "check the upload defaults of the channel in YouTube Studio")
	badPicture = platforms.Error{Class: platforms.ClassPermanent, Subject: platforms.SubjectFile, Problem: "YouTube refused the image", Remedy: "set a thumbnail in YouTube Studio"}
)

// onlyNoted is the reaction to a thumbnail error.
const onlyNoted = "keeps the video as posted and reports the thumbnail in a warning event"

// errorTable lists YouTube's known errors.
var errorTable = concat(callErrors, videoErrors, rejectionRows)

// callErrors are errors about tokens, channels, the project and its limits.
var callErrors = []errorRow{
	{code: "authError", kind: "the access token has expired", err: refresh, source: sourceGoogle},
	{code: "authorizationRequired", kind: "the access token has expired", err: refresh, source: sourceErrors},
	{code: codeDeadRefresh, kind: "the refresh token is no longer valid", source: sourceOAuth, err: platforms.Error{
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "Google no longer accepts the refresh token: access was withdrawn, or it was not used for six months", Remedy: "connect the channel again",
	}},
	{code: codeNoChannel, kind: "the account has no channel", source: sourceErrors, err: platforms.Error{
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "this Google account has no YouTube channel", Remedy: "create one, then connect the account again",
	}},
	{code: "insufficientPermissions", kind: "a permission is missing", source: sourceErrors, err: platforms.Error{
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "YouTube denies Herald access to this channel because a permission is missing", Remedy: "connect the channel again and grant all permissions",
	}},
	{code: "authenticatedUserAccountClosed", kind: "the channel is closed", err: closed, source: sourceErrors},
	{code: "authenticatedUserAccountSuspended", kind: "the channel is suspended", err: closed, source: sourceErrors},
	{code: "channelClosed", kind: "the channel is closed", err: closed, source: sourceErrors},
	{code: "channelSuspended", kind: "the channel is suspended", err: closed, source: sourceErrors},
	{code: codeForbidden, kind: "the action is not allowed, for an unspecified reason", source: sourceErrors, err: platforms.Error{
		Class: platforms.ClassPermanent, Problem: "YouTube does not allow this and gives no reason (forbidden)", Remedy: "check the status of the channel in YouTube Studio",
	}, also: "for a thumbnail, keeps the video as posted and emits a warning event that asks for verification by phone"},
	{code: codeNotEnabled, kind: "the API is not enabled", source: sourceGoogle, err: platforms.Error{
		Class: platforms.ClassPermanent, Subject: platforms.SubjectApp,
		Problem: "the YouTube Data API is not enabled for Herald's Google project", Remedy: "the administrator must enable it in the Google Cloud console",
	}},
	{code: codeQuota, kind: "the project's quota is used up", err: quota, source: sourceErrors},
	{code: "dailyLimitExceeded", kind: "the project's quota is used up", err: quota, source: sourceGoogle},
	{code: codeUploadLimit, kind: "the channel's daily upload limit is reached", source: sourceInsert, err: platforms.Error{
		Class: platforms.ClassQuota, Subject: platforms.SubjectAccount,
		Problem: "the channel has reached YouTube's daily upload limit",
	}},
	{
		code: "rateLimitExceeded", kind: "the rate limit is reached", err: rateLimit, source: sourceGoogle + "; googleapis/google-api-python-client#2753",
		also: `if the message contains "per day", responds as to ` + codeQuota,
	},
	{code: "userRateLimitExceeded", kind: "the rate limit is reached", err: rateLimit, source: sourceGoogle},
	{code: codeBadRequest, kind: "the request is invalid, for an unspecified reason", source: sourceErrors, err: platforms.Error{
		Class: platforms.ClassPermanent, Problem: "YouTube found the request invalid and gives no reason (badRequest)", Remedy: "check the channel in YouTube Studio, then post again",
	}, also: "for a part of an upload, asks the session for its progress"},
	{code: "internalError", kind: "internal YouTube error", err: trouble, source: sourceGoogle},
	{code: codeBackend, kind: "internal YouTube error", err: trouble, source: sourceGoogle, also: "after the last part of an upload, looks up the post first"},
}

// videoErrors are errors about the post's content.
var videoErrors = []errorRow{
	{code: "invalidTitle", kind: "the title is invalid", source: sourceInsert, err: platforms.Error{
		Class: platforms.ClassPermanent, Subject: platforms.SubjectText, Problem: "YouTube refused the title", Remedy: "change it",
	}},
	{code: "invalidDescription", kind: "the description is invalid", source: sourceInsert, err: platforms.Error{
		Class: platforms.ClassPermanent, Subject: platforms.SubjectText, Problem: "YouTube refused the caption as a description", Remedy: "change it",
	}},
	{code: "invalidVideoMetadata", kind: "the title, the description or a setting is invalid", source: sourceInsert, err: platforms.Error{
		Class: platforms.ClassPermanent, Problem: "YouTube refused the metadata of the video without identifying the part", Remedy: "check its title and its caption",
	}},
	{code: "forbiddenPrivacySetting", kind: "the channel's settings do not allow a public video", source: sourceInsert, err: platforms.Error{
		Class: platforms.ClassPermanent, Subject: platforms.SubjectAccount,
		Problem: "the settings of the channel do not allow a public video", Remedy: "change them in YouTube Studio",
	}},
	{code: "invalidTags", kind: "a property that Herald does not set is invalid", err: unset, source: sourceInsert},
	{code: "invalidCategoryId", kind: "a property that Herald does not set is invalid", err: unset, source: sourceInsert},
	{code: "invalidPublishAt", kind: "a property that Herald does not set is invalid", err: unset, source: sourceInsert},
	{code: "invalidRecordingDetails", kind: "a property that Herald does not set is invalid", err: unset, source: sourceInsert},
	{code: "invalidFilename", kind: "a property that Herald does not set is invalid", err: unset, source: sourceInsert},
	{code: "defaultLanguageNotSet", kind: "a property that Herald does not set is invalid", err: unset, source: sourceInsert},
	{code: "forbiddenLicenseSetting", kind: "a property that Herald does not set is invalid", err: unset, source: sourceInsert},
	{code: "badContent", kind: "the file type is not supported", source: sourceGoogle, err: platforms.Error{
		Class: platforms.ClassPermanent, Subject: platforms.SubjectFile, Problem: "YouTube does not accept files of this type", Remedy: "convert the video to H.264 and AAC in an MP4 file",
	}},
	{code: "mediaBodyRequired", kind: "the upload has no file", source: sourceInsert, err: platforms.Error{
		Class: platforms.ClassPermanent, Subject: platforms.SubjectFile, Problem: "YouTube found no file in the upload", Remedy: "upload the file again",
	}},
	{code: "uploadRateLimitExceeded", kind: "too many thumbnails were uploaded", err: rateLimit, instead: onlyNoted, source: sourceThumbnail},
	{code: "invalidImage", kind: "the thumbnail is not a valid image", err: badPicture, instead: onlyNoted, source: sourceThumbnail},
	{code: "imageFormatUnsupported", kind: "the image format of the thumbnail is not supported", err: badPicture, instead: onlyNoted, source: sourceThumbnail},
	{code: "imageTooTall", kind: "the thumbnail is too tall", err: badPicture, instead: onlyNoted, source: sourceThumbnail},
	{code: "imageTooWide", kind: "the thumbnail is too wide", err: badPicture, instead: onlyNoted, source: sourceThumbnail},
	{code: "videoNotFound", kind: "the video for the thumbnail was not found", source: sourceThumbnail, instead: onlyNoted, err: platforms.Error{
		Class: platforms.ClassPermanent, Problem: "YouTube no longer has the video", Remedy: "look for it in YouTube Studio",
	}},
}

func concat(parts ...[]errorRow) (rows []errorRow) {
	for _, part := range parts {
		rows = append(rows, part...)
	}
	return rows
}

func lookupError(code string) (platforms.Error, bool) {
	err, ok := errorsByCode[code]
	err.Code = code
	return err, ok
}

var errorsByCode = func() map[string]platforms.Error {
	byCode := map[string]platforms.Error{}
	for i := range errorTable {
		byCode[errorTable[i].code] = errorTable[i].err
	}
	return byCode
}()
