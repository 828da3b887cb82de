// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// Problem is why a file cannot be downloaded. Its message is stable and safe to show
// to the user who chose the URL: it says nothing about Herald's network.
type Problem struct {
	// Message completes a sentence about the source.
	Message string
	// Final is true if trying again would not help.
	Final bool

	cause error
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// Unwrap returns the cause, for the log.
func (p *Problem) Unwrap() error { return p.cause }

func final(format string, args ...any) *Problem {
	return &Problem{Message: fmt.Sprintf(format, args...), Final: true}
}

func passing(cause error, format string, args ...any) *Problem {
	return &Problem{Message: fmt.Sprintf(format, args...), cause: cause}
}

// nowhere is the one answer to a name that has no address and to one that leads
// inside: two answers would tell the user who chose the URL which names exist in
// the cluster. It is not final, since a name may be created later.
func nowhere(cause error) *Problem { return passing(cause, "it leads to no public server") }

// explain describes what went wrong on the way.
func explain(err error) error {
	var (
		problem *Problem
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		timeout net.Error
		request *url.Error
	)
	if errors.As(err, &request) {
		err = request.Err // It goes to the log without the URL, which may hold a secret.
	}
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &dns):
		return nowhere(err)
	case errors.As(err, &cert):
		return passing(err, "the certificate of the server is not trusted")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return passing(err, "the server took too long")
	default:
		return passing(err, "the connection to the server failed")
	}
}
