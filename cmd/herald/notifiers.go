// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/controllers/notifier"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/receiver"
)

func newNotifiers(mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, teams *quota.Teams, now *apiclock.Clock) (*notifier.Reconciler, error) {
	// The watches share the caches' connection.
	watcher, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the client of notifiers: %w", err)
	}
	mailer, err := newMailer(c, slog.New(logr.ToSlogHandler(mgr.GetLogger())), now)
	if err != nil {
		return nil, err
	}
	receivers := process.Receivers()
	receivers.Clock = now
	return notifier.New(notifier.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Watcher: watcher, Cache: mgr.GetCache(), Clock: now, Events: mgr.GetEventRecorder("herald-notifier"),
		Owned: teams.Owned, Namespaces: c.Namespaces, Sender: receiver.New(receivers), Mailer: mailer, SiteURL: strings.TrimSuffix(c.SiteURL, "/"),
		Metrics: notifier.NewMetrics(metrics.Registry),
	})
}

// newMailer returns the client of the mail server, or nil without one.
func newMailer(c *configv1alpha1.ManagerConfiguration, log *slog.Logger, now *apiclock.Clock) (notifier.Mailer, error) {
	s := c.Notifications.SMTP
	if s == nil {
		return nil, nil //nolint:nilnil // an installation need not have a mail server
	}
	roots, err := config.RootCAs("egress.caBundle", c.Egress.CABundle)
	if err != nil {
		return nil, err
	}
	password := func() string { return "" }
	if s.PasswordFile != "" {
		if password, err = config.SecretReader("notifications.smtp.passwordFile", s.PasswordFile, log); err != nil {
			return nil, err
		}
	}
	return receiver.NewMailer(receiver.MailOptions{
		Host: s.Host, Port: cmp.Or(s.Port, s.DefaultPort()), From: s.From, TLS: s.TLS, Username: s.Username, Password: password, Roots: roots, Clock: now,
	})
}
