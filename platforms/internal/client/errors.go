// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"

	"github.com/herald-social/herald/platforms"
)

// Unanswered says what the absence of an answer means for a call that may be
// repeated.
func (c *Client) Unanswered(err error) *platforms.Error {
	switch {
	case errors.Is(err, errBadBaseURL):
		return c.failure(platforms.ClassTransient, err, "the configured address of %s's API is not a URL; the administrator has to correct it in Herald's configuration")
	case NotSent(err):
		return c.failure(platforms.ClassTransient, err, "%[1]s could not be reached; check the network between Herald and %[1]s")
	default:
		return c.failure(platforms.ClassTransient, err, "the connection to %s broke before the answer came")
	}
}

// UploadUnanswered is Unanswered for a call that sends a file: the file may be
// what broke it off.
func (c *Client) UploadUnanswered(file *platforms.File, err error) *platforms.Error {
	if errors.Is(err, platforms.ErrFileChanged) {
		return file.Unreadable(err)
	}
	return c.Unanswered(err)
}

// PublishUnanswered is the result of the call that publishes, without an answer.
func (c *Client) PublishUnanswered(err error) platforms.Result {
	failure := c.Unanswered(err)
	if NotSent(err) {
		return platforms.Result{Outcome: platforms.NotSent, Err: failure}
	}
	failure.Class = platforms.ClassUnknown
	return platforms.Result{Outcome: platforms.Unknown, Err: failure}
}

// InDoubt is the result of the call that publishes, with an answer that tells
// nothing of the post: it may come from something between the platform and us,
// after the platform did its part.
func (c *Client) InDoubt(status int, cause error) platforms.Result {
	return platforms.Result{Outcome: platforms.Unknown, Err: c.failure(
		platforms.ClassUnknown, cause, "%s answered with HTTP status %d, which does not tell whether it published the post; Herald looks for it", status)}
}

// NoID is the result of the call that publishes, with a success that does not
// tell which post it made.
func (c *Client) NoID() platforms.Result {
	return platforms.Result{Outcome: platforms.Unknown, Err: c.failure(
		platforms.ClassUnknown, nil, "%s confirmed the post without a readable id; Herald looks for it")}
}

// Nonsense says that an answer is in none of the forms that the platform
// documents.
func (c *Client) Nonsense(status int, cause error) *platforms.Error {
	return c.failure(platforms.ClassUnknown, cause, "%s gave an answer that Herald does not understand (HTTP status %d)", status)
}

// Busy says that the platform has trouble of its own.
func (c *Client) Busy(cause error) *platforms.Error {
	return c.failure(platforms.ClassTransient, cause, "%s has trouble and did not do what it was asked; try again later")
}

// NoIdentity says that the platform did not say whose account a token is for.
func (c *Client) NoIdentity(cause error) *platforms.Error {
	return c.failure(platforms.ClassUnknown, cause, "%s did not say whose account this is")
}

// NoToken says that the platform claims to have renewed a token.
func (c *Client) NoToken() *platforms.Error {
	return c.failure(platforms.ClassUnknown, nil, "%s said that it renewed the access token, but gave none")
}

// BadApp says that the platform does not know Herald's app.
func (c *Client) BadApp(cause error) *platforms.Error {
	return c.failure(platforms.ClassTransient, cause, "%s does not accept Herald's client id or client secret; the administrator has to correct them in Herald's configuration")
}

// NoList says that an answer is no list of the account's posts, or not a whole
// one.
func (c *Client) NoList(cause error) *platforms.Error {
	return c.failure(platforms.ClassUnknown, cause, "%s did not give the account's posts")
}

// TooManyPages says that a list of posts is longer than is read.
func (c *Client) TooManyPages() *platforms.Error {
	return c.failure(platforms.ClassUnknown, nil,
		"the account has published more on %s since than Herald reads, so it cannot tell whether the post is among it; look for the post by hand")
}

// failure makes an error whose text begins with the name of the platform.
func (c *Client) failure(class platforms.Class, cause error, format string, args ...any) *platforms.Error {
	return &platforms.Error{Class: class, Problem: fmt.Sprintf(format, append([]any{c.Name}, args...)...), Err: cause}
}
