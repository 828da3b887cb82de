// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// Problem is why a file cannot be had. Its message is stable and safe to show
// to whoever chose the URL: it tells nothing of the network that Herald runs
// in.
type Problem struct {
	// Message completes a sentence about the source.
	Message string
	// Final is true if trying again would not help.
	Final bool

	cause error
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// Unwrap returns what lies behind a problem, for the log.
func (p *Problem) Unwrap() error { return p.cause }

func final(format string, args ...any) *Problem {
	return &Problem{Message: fmt.Sprintf(format, args...), Final: true}
}

func passing(cause error, format string, args ...any) *Problem {
	return &Problem{Message: fmt.Sprintf(format, args...), cause: cause}
}

// explain puts what went wrong on the way into words.
func explain(err error) error {
	var (
		problem *Problem
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		timeout net.Error
	)
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &dns) && dns.IsNotFound:
		return passing(err, "there is no server of that name")
	case errors.As(err, &dns):
		return passing(err, "the name of the server could not be resolved")
	case errors.As(err, &cert):
		return passing(err, "the certificate of the server is not trusted")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return passing(err, "the server took too long")
	default:
		return passing(err, "the connection to the server failed")
	}
}
