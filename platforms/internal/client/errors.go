// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"

	"github.com/herald-social/herald/platforms"
)

// correctConfiguration is the remedy for what people who post cannot mend.
const correctConfiguration = "the administrator has to correct it in Herald's configuration"

// Unanswered says what the absence of an answer means for a call that may be
// repeated.
func (c *Client) Unanswered(err error) *platforms.Error {
	switch {
	case errors.Is(err, errBadBaseURL):
		return platforms.Errorf(platforms.ClassTransient, "the configured address of %s's API is not a URL", c.Name).Advise(correctConfiguration).Because(err)
	case NotSent(err):
		return platforms.Errorf(platforms.ClassTransient, "%s could not be reached", c.Name).Advise("check the network between Herald and " + c.Name).Because(err)
	default:
		return platforms.Errorf(platforms.ClassTransient, "the connection to %s broke before the answer came", c.Name).Because(err)
	}
}

// uploadUnanswered is Unanswered for a call that sends a file: the file may be
// what broke it off. named says that the address was one that the platform named.
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

// Unconfirmed is the failure of a call to an address that the platform named, whatever
// came of it but the platform's own words: no connection, no answer, or one of any
// status that could be another server's. All are worded alike, since who can plant an
// address must not learn from the post what is there. The cause, for the log, tells.
// The class is ClassTransient or ClassUnknown, which a post does not tell apart.
func (c *Client) Unconfirmed(class platforms.Class, cause error) *platforms.Error {
	return platforms.Errorf(class, "%s did not confirm the upload", c.Name).Because(cause)
}

// UploadInDoubt is the result of the call that publishes by an address that the platform
// named, with no answer, or with one that tells nothing of the post.
func (c *Client) UploadInDoubt(cause error) platforms.Result {
	if NotSent(cause) {
		return platforms.Result{Outcome: platforms.NotSent, Err: c.Unconfirmed(platforms.ClassTransient, cause)}
	}
	return platforms.Result{Outcome: platforms.Unknown, Err: c.Unconfirmed(platforms.ClassUnknown, cause)}
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
	return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown,
		"%s answered with HTTP status %d, which does not tell whether it published the post", c.Name, status).Because(cause)}
}

// NoID is the result of the call that publishes, with a success that does not
// tell which post it made.
func (c *Client) NoID() platforms.Result {
	return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, "%s confirmed the post without a readable id", c.Name)}
}

// Nonsense says that an answer is in none of the forms that the platform
// documents.
func (c *Client) Nonsense(status int, cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown, "%s gave an answer that Herald does not understand (HTTP status %d)", c.Name, status).Because(cause)
}

// Busy says that the platform has trouble of its own.
func (c *Client) Busy(cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassTransient, "%s has trouble and did not do what it was asked", c.Name).Because(cause)
}

// NoIdentity says that the platform did not say whose account a token is for.
func (c *Client) NoIdentity(cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown, "%s did not say whose account this is", c.Name).Because(cause)
}

// NoToken says that a success of renewing a token, or of exchanging a code for one,
// brought none.
func (c *Client) NoToken() *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown, "%s reported a success, but gave no access token", c.Name)
}

// BadApp says that the platform does not know Herald's app.
func (c *Client) BadApp(cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassTransient, "%s does not accept Herald's client id or client secret", c.Name).Advise(correctConfiguration).Because(cause)
}

// NoList says that an answer is no list of the account's posts, or not a whole
// one.
func (c *Client) NoList() *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown, "%s did not give the account's posts", c.Name)
}

// TooManyPages says that a list of posts is longer than is read.
func (c *Client) TooManyPages() *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown,
		"the account has published more on %s since than Herald reads, so it cannot tell whether the post is among it", c.Name).Advise("look for the post by hand")
}
