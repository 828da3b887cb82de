// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/controllers/admission"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/webhookcert"
	"github.com/herald-social/herald/platforms"
)

// admissionWebhook is the configured webhook of one installation.
type admissionWebhook struct {
	configv1alpha1.Webhook

	release, namespace string
	clock              *apiclock.Clock
	// keeper maintains the certificate. It is nil if CertDir contains one.
	keeper *webhookcert.Rotator
}

// service returns the name of the webhook's Service, and certificate the name of the Secret.
func (h *admissionWebhook) service() string     { return h.release + "-webhook" }
func (h *admissionWebhook) certificate() string { return h.release + "-webhook-certificate" }

// server returns the manager's webhook server. It listens only if a webhook is registered.
func (h *admissionWebhook) server() (webhook.Server, error) {
	if h.Off() {
		return webhook.NewServer(webhook.Options{Port: -1}), nil
	}
	host, port, err := net.SplitHostPort(h.BindAddress)
	if err != nil {
		return nil, fmt.Errorf("webhook.bindAddress: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("webhook.bindAddress: %w", err)
	}
	options := webhook.Options{Host: host, Port: int(number), CertDir: h.CertDir}
	if h.CertDir == "" {
		options.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return h.keeper.GetCertificate(hello) }
		}}
	}
	return webhook.NewServer(options), nil
}

// register serves the webhook and, unless CertDir contains a certificate, maintains one. Metrics report whether the
// webhook is served, and whether the API server trusts it. Neither affects readiness, because the webhook is optional.
func (h *admissionWebhook) register(ctx context.Context, mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, registry platforms.Registry, teams *quota.Teams) error {
	if h.Off() {
		return nil
	}
	var called func() string
	if h.CertDir == "" {
		hosts, path := h.Hosts, ""
		if len(hosts) == 0 {
			// With custom hosts, the webhook configuration contains an address that its owner maintains.
			path, called = admission.PostPath, func() string { return h.keeper.CallPath() }
			service := h.service() + "." + h.namespace + ".svc"
			hosts = []string{service, service + ".cluster.local"}
		}
		var err error
		h.keeper, err = webhookcert.New(webhookcert.Options{
			Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(),
			Secret:  types.NamespacedName{Namespace: h.namespace, Name: h.certificate()},
			Webhook: h.release, Hosts: hosts, Path: path, Clock: h.clock,
		})
		if err != nil {
			return err
		}
		if err := mgr.Add(h.keeper); err != nil {
			return fmt.Errorf("cannot set up the webhook's certificate: %w", err)
		}
	}
	served := mgr.GetWebhookServer().StartedChecker()
	metrics.Registry.MustRegister(webhookServed(func() error { return served(nil) }), &webhookTrust{
		address: h.BindAddress, configuration: h.release, reader: mgr.GetAPIReader(), clock: h.clock,
		log: mgr.GetLogger().WithName("webhook"),
	})
	tally, err := newTally(ctx, mgr.GetCache(), c)
	if err != nil {
		return err
	}
	budgets := &admission.Budgets{
		Owner: teams.Owner, Unfinished: tally.Unfinished, Quotas: mgr.GetClient(),
		Usage: quota.NewUsageStore(quota.NewAPI(mgr.GetAPIReader(), mgr.GetClient())).Read,
	}
	return admission.SetupWithManager(mgr, admission.Options{
		Budgets: budgets,
		Reader:  mgr.GetClient(), APIReader: mgr.GetAPIReader(), Platforms: registry, StartingDeadline: c.Delivery.StartingDeadline.Duration, Clock: h.clock,
		SecretPath: called, Namespaces: c.Namespaces,
	})
}
