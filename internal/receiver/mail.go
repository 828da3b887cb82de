// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// mailTimeout is the timeout for sending an email, including connecting.
const mailTimeout = 30 * time.Second

// MailOptions configure a Mailer. Host, Port and From are required.
type MailOptions struct {
	Host string
	Port int
	// From is the sender's address, with or without a name.
	From string
	// TLS defaults to SMTPTLSRequired.
	TLS configv1alpha1.SMTPTLS
	// Username and Password authenticate the client; an empty Username means no authentication. Password is called for
	// each email, so that a new password needs no restart.
	Username string
	Password func() string
	// Roots are the trusted certificate authorities. They default to the system roots.
	Roots *x509.CertPool
	Clock clock.PassiveClock
}

// Mailer sends emails through a mail server of the installation. It is safe for concurrent use.
type Mailer struct {
	options MailOptions
	from    netmail.Address
	domain  string
}

// NewMailer returns a Mailer.
func NewMailer(o MailOptions) (*Mailer, error) {
	from, err := netmail.ParseAddress(o.From)
	if err != nil {
		return nil, fmt.Errorf("the sender's address is invalid: %w", err)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Mailer{options: o, from: *from, domain: from.Address[strings.LastIndexByte(from.Address, '@')+1:]}, nil
}

// Send sends an email in plain text. Its Message-ID derives from id, so mail programs recognize a repeated one. All
// recipients must be accepted. The error is an *Error unless ctx is done. Its message does not contain the server's
// name or response, which belong to the installation.
func (m *Mailer) Send(ctx context.Context, id string, to []string, subject, body string) error {
	message := mail.NewMsg()
	message.FromMailAddress(&m.from)
	if err := message.To(to...); err != nil {
		return &Error{Message: "an address of a recipient is invalid", cause: err}
	}
	message.Subject(subject)
	message.SetMessageIDWithValue(id + "@" + m.domain)
	message.SetDateWithValue(m.options.Clock.Now())
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: out-of-office programs do not answer
	message.SetBodyString(mail.TypeTextPlain, body)
	client, err := m.client()
	if err != nil {
		return &Error{Message: "the mail server's configuration is invalid", cause: err}
	}
	within, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	if err := client.DialAndSendWithContext(within, message); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return explainMail(err)
	}
	return nil
}

func (m *Mailer) client() (*mail.Client, error) {
	o := &m.options
	options := []mail.Option{
		mail.WithPort(o.Port), mail.WithTimeout(mailTimeout), mail.WithHELO("herald." + m.domain),
		mail.WithTLSConfig(&tls.Config{ServerName: o.Host, RootCAs: o.Roots, MinVersion: tls.VersionTLS12}),
	}
	switch o.TLS {
	case configv1alpha1.SMTPTLSImplicit:
		options = append(options, mail.WithSSL())
	case configv1alpha1.SMTPTLSNone:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	case configv1alpha1.SMTPTLSRequired, "":
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if o.Username != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(o.Username), mail.WithPassword(o.Password()))
	}
	client, err := mail.NewClient(o.Host, options...)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the mail client: %w", err)
	}
	return client, nil
}

func explainMail(err error) error {
	if sent, ok := errors.AsType[*mail.SendError](err); ok {
		switch sent.Reason {
		case mail.ErrSMTPRcptTo:
			return &Error{Message: "the mail server refused a recipient", cause: err}
		case mail.ErrSMTPMailFrom:
			return &Error{Message: "the mail server refused the sender", cause: err}
		default:
			return &Error{Message: "the mail server refused the email", cause: err}
		}
	}
	return &Error{Message: "the mail server cannot be reached, or refused the connection", cause: err}
}
