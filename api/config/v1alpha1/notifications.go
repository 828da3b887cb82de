// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Notifications configures how Notifiers send.
type Notifications struct {
	// SMTP is the mail server for Notifiers of format email. Without it, they send nothing.
	SMTP *SMTP `json:"smtp,omitempty"`
}

// SMTP configures a mail server.
type SMTP struct {
	// Host is the name of the server.
	Host string `json:"host"`
	// Port is the server's port (587, or 465 with tls: implicit).
	Port int `json:"port,omitempty"`
	// From is the sender's address, such as Herald <herald@example.com>.
	From string `json:"from"`
	// TLS is "required" for STARTTLS, the default, "implicit" for TLS from the start, or "none" for a relay on the same machine.
	TLS SMTPTLS `json:"tls,omitempty"`
	// Username and PasswordFile authenticate Herald; empty for no authentication. The file is read for each email.
	Username     string `json:"username,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
}

// SMTPTLS determines how connections to a mail server are encrypted.
type SMTPTLS string

// The values of SMTPTLS.
const (
	SMTPTLSRequired SMTPTLS = "required"
	SMTPTLSImplicit SMTPTLS = "implicit"
	SMTPTLSNone     SMTPTLS = "none"
)

// DefaultPort returns the port to use if none is configured.
func (s *SMTP) DefaultPort() int {
	if s.TLS == SMTPTLSImplicit {
		return 465
	}
	return 587
}
