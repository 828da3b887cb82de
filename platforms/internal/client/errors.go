// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"

	"github.com/herald-social/herald/platforms"
)

// correctConfiguration is the remedy for errors that only an administrator can fix.
const correctConfiguration = "the administrator has to correct it in Herald's configuration"

// Unanswered returns the error for a call that can be repeated, if there was no response.
func (c *Client) Unanswered(err error) *platforms.Error {
	switch {
	case errors.Is(err, errBadBaseURL):
		return platforms.Errorf(platforms.ClassTransient, "the configured address of %s's API is not a URL", c.Name).Advise(correctConfiguration).Because(err)
	case NotSent(err):
		return platforms.Errorf(platforms.ClassTransient, "%s could not be reached", c.Name).Advise("check the network between Herald and " + c.Name).Because(err)
	default:
		return platforms.Errorf(platforms.ClassTransient, "the connection to %s broke before the response arrived", c.Name).Because(err)
	}
}

// uploadUnanswered is like Unanswered, for a call that sends a file, which may have changed in the meantime. named
// reports whether the URL came from the platform's response.
func (c *Client) uploadUnanswered(file *platforms.File, err error, named bool) *platforms.Error {
	switch {
	case errors.Is(err, platforms.ErrFileChanged):
		return file.Unreadable(err)
	case named:
		return c.Unconfirmed(platforms.ClassTransient, err)
	default:
		return c.Unanswered(err)
	}
}

// Unconfirmed returns the error for calls to a URL from a platform's response. It covers every failure except errors
// from the platform itself: no connection, no response, or a status that could come from another server. The message is
// always the same, because a user who can plant a URL must not be able to probe its host through the post's status. The
// cause is only logged. The class is ClassTransient or ClassUnknown, which a post's status does not show.
func (c *Client) Unconfirmed(class platforms.Class, cause error) *platforms.Error {
	return platforms.Errorf(class, "%s did not confirm the upload", c.Name).Because(cause)
}

// UploadInDoubt returns the result of a publishing call to a URL from the platform's response if no response settles
// the outcome.
func (c *Client) UploadInDoubt(cause error) platforms.Result {
	if NotSent(cause) {
		return platforms.Result{Outcome: platforms.NotSent, Err: c.Unconfirmed(platforms.ClassTransient, cause)}
	}
	return platforms.Result{Outcome: platforms.Unknown, Err: c.Unconfirmed(platforms.ClassUnknown, cause)}
}

// PublishUnanswered returns the result of a publishing call without a response.
func (c *Client) PublishUnanswered(err error) platforms.Result {
	failure := c.Unanswered(err)
	if NotSent(err) {
		return platforms.Result{Outcome: platforms.NotSent, Err: failure}
	}
	failure.Class = platforms.ClassUnknown
	return platforms.Result{Outcome: platforms.Unknown, Err: failure}
}

// InDoubt returns the result of a publishing call whose response does not settle the outcome: a proxy in front of the
// platform may have sent it after the platform processed the call.
func (c *Client) InDoubt(status int, cause error) platforms.Result {
	return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown,
		"%s answered with HTTP status %d, which does not show whether it published the post", c.Name, status).Because(cause)}
}

// NotPosted returns the result of a publishing call that did not succeed, given the platform's classification of the
// response. Unless the platform has refused the post, the outcome is unknown. A duplicate may be this very post,
// published by a call whose response was lost.
func (c *Client) NotPosted(status int, failure *platforms.Error, refused bool) platforms.Result {
	switch {
	case !refused:
		result := c.InDoubt(status, failure.Err)
		result.Err.RetryAt, result.Err.AppWide = failure.RetryAt, failure.AppWide
		result.Err.Code, result.Err.Unlisted = failure.Code, failure.Unlisted
		return result
	case failure.Class == platforms.ClassDuplicate:
		return platforms.Result{Outcome: platforms.Unknown, Err: failure}
	default:
		return platforms.Result{Outcome: platforms.Refused, Err: failure}
	}
}

// NoID returns the result of a publishing call that succeeded without returning a readable id.
func (c *Client) NoID() platforms.Result {
	return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, "%s confirmed the post without a readable id", c.Name)}
}

// Nonsense returns the error for a response in an undocumented format.
func (c *Client) Nonsense(status int, cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown, "%s returned a response that Herald does not understand (HTTP status %d)", c.Name, status).Because(cause)
}

// Busy returns the error for a platform outage.
func (c *Client) Busy(cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassTransient, "%s is having problems and did not process the request", c.Name).Because(cause)
}

// NoIdentity returns the error for a response that does not identify the token's account.
func (c *Client) NoIdentity(cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown, "%s did not identify the account", c.Name).Because(cause)
}

// NoToken returns the error for a successful renewal or code exchange that does not return an access token.
func (c *Client) NoToken() *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown, "%s reported success but did not return an access token", c.Name)
}

// BadApp returns the error for an app that the platform does not accept.
func (c *Client) BadApp(cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassTransient, "%s does not accept Herald's client id or client secret", c.Name).Advise(correctConfiguration).Because(cause)
}

// NoList returns the error for a response that is not a complete listing of the account's posts.
func (c *Client) NoList() *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown, "%s did not give the account's posts", c.Name)
}

// TooManyPages returns the error for a listing that exceeds the page limit.
func (c *Client) TooManyPages() *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown,
		"the account has since published more on %s than Herald reads, so Herald cannot find out whether the post is among it", c.Name).Advise("look for the post manually")
}
