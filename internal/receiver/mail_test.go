// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"mime"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// mailServer is a real SMTP server with STARTTLS. It requires authentication, and refuses recipients at
// refused.example.
type mailServer struct {
	mu       sync.Mutex
	received []string
	to       []string
}

func (s *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }

type session struct {
	server          *mailServer
	isAuthenticated bool
}

func (*session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username != "herald" || password != "hunter2" {
			return smtp.ErrAuthFailed
		}
		s.isAuthenticated = true
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	if !s.isAuthenticated {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasSuffix(to, "@refused.example") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user at 10.1.2.3"}
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.to = append(s.server.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.received = append(s.server.received, string(data))
	return err
}

func (*session) Reset()        {}
func (*session) Logout() error { return nil }

// serveMail starts the server, and returns its options.
func serveMail(t *testing.T) (*mailServer, MailOptions) {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil) // its certificate is for example.com and 127.0.0.1
	certified.StartTLS()
	defer certified.Close()
	backend := &mailServer{}
	s := smtp.NewServer(backend)
	s.Domain, s.TLSConfig = "mail.example.com", &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(listener) // it fails when it is closed
	}()
	t.Cleanup(func() {
		_ = s.Close()
		_ = listener.Close() // Close does not know it before Serve does
		<-done
	})
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	address, _ := listener.Addr().(*net.TCPAddr)
	return backend, MailOptions{
		Host: "127.0.0.1", Port: address.Port, From: "Herald <herald@example.com>", Username: "herald", Password: func() string { return "hunter2" },
		Roots: roots, Clock: clocktesting.NewFakePassiveClock(noon),
	}
}

func TestSendMail(t *testing.T) {
	server, options := serveMail(t)
	mailer, err := NewMailer(options)
	if err != nil {
		t.Fatal(err)
	}
	subject := "Published: Grüße\r\nBcc: victim@example.com"
	for range 2 {
		if err := mailer.Send(t.Context(), "msg_1", []string{"ada@example.com", "bob@example.com"}, subject, "line one\n.\nline two\n"); err != nil {
			t.Fatal(err)
		}
	}
	if len(server.received) != 2 || strings.Join(server.to, " ") != "ada@example.com bob@example.com ada@example.com bob@example.com" {
		t.Fatalf("received %d emails for %v, want one for each recipient", len(server.received), server.to)
	}
	message, err := netmail.ReadMessage(strings.NewReader(server.received[0]))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject"))
	if err != nil || !strings.HasPrefix(decoded, "Published: Grüße") || message.Header.Get("Bcc") != "" {
		t.Errorf("subject %q, Bcc %q, %v: a text must not add a header", decoded, message.Header.Get("Bcc"), err)
	}
	for header, want := range map[string]string{
		"Message-Id": "<msg_1@example.com>", "Auto-Submitted": "auto-generated", "From": `"Herald" <herald@example.com>`, "Date": "Tue, 01 Dec 2026 12:00:00 +0000",
	} {
		if got := message.Header.Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
	body, err := io.ReadAll(message.Body)
	if err != nil || !strings.Contains(string(body), "line two") {
		t.Errorf("the body ends early: %q, %v", body, err)
	}
}

func TestMailFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*MailOptions)
		to   string
		want string
	}{
		"an unknown recipient": {func(*MailOptions) {}, "a@refused.example", "the mail server refused a recipient"},
		"a wrong password": {
			func(o *MailOptions) { o.Password = func() string { return "wrong" } }, "a@example.com", "the mail server cannot be reached, or refused the connection",
		},
		"a certificate of another authority": {
			func(o *MailOptions) { o.Roots = x509.NewCertPool() }, "a@example.com", "the mail server cannot be reached, or refused the connection",
		},
		"no authentication": {func(o *MailOptions) { o.Username = "" }, "a@example.com", "the mail server refused the sender"},
		"no server listens": {func(o *MailOptions) { o.Port = 1 }, "a@example.com", "the mail server cannot be reached, or refused the connection"},
		"TLS that the server does not offer from the start": {
			func(o *MailOptions) { o.TLS = configv1alpha1.SMTPTLSImplicit }, "a@example.com", "the mail server cannot be reached, or refused the connection",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, options := serveMail(t)
			tc.edit(&options)
			mailer, err := NewMailer(options)
			if err != nil {
				t.Fatal(err)
			}
			err = mailer.Send(t.Context(), "msg_1", []string{tc.to}, "a", "b")
			var refused *Error
			if !errors.As(err, &refused) || refused.Message != tc.want {
				t.Errorf("got %v, want %q: the message must not show the installation's server", err, tc.want)
			}
		})
	}
	t.Run("a shutdown is no failure of the server", func(t *testing.T) {
		_, options := serveMail(t)
		mailer, err := NewMailer(options)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		if err := mailer.Send(ctx, "msg_1", []string{"a@example.com"}, "a", "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
