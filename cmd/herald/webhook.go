// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/herald-social/herald/controllers/admission"
	"github.com/herald-social/herald/internal/webhookcert"
	"github.com/herald-social/herald/platforms"
)

// Names of what config/webhook and config/rbac hold.
const (
	webhookConfiguration = "herald"
	webhookService       = "herald-webhook"
	webhookSecret        = "herald-webhook-certificate"
)

// webhookFlags are the flags of the admission webhook.
type webhookFlags struct {
	address string
	hosts   string
	certDir string
	// keeper maintains the certificate; nil if certDir holds one.
	keeper *webhookcert.Keeper
}

func (f *webhookFlags) add(flags *flag.FlagSet) {
	flags.StringVar(&f.address, "webhook-bind-address", ":9443", "address of the admission webhook; 0 for none")
	flags.StringVar(&f.hosts, "webhook-hosts", "", "comma-separated names and addresses under which the API server calls the webhook; empty takes those of Service "+webhookService)
	flags.StringVar(&f.certDir, "webhook-cert-dir", "", "folder with tls.crt and tls.key, and caBundle is yours to set (cert-manager does both); empty makes a certificate and sets caBundle")
}

func (f *webhookFlags) off() bool { return f.address == "0" || f.address == "" }

// server is the manager's webhook server. It listens only if a webhook is
// registered with it.
func (f *webhookFlags) server() (webhook.Server, error) {
	if f.off() {
		return webhook.NewServer(webhook.Options{Port: -1}), nil
	}
	host, port, err := net.SplitHostPort(f.address)
	if err != nil {
		return nil, usageError{fmt.Errorf("--webhook-bind-address=%s: want HOST:PORT or :PORT", f.address)}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return nil, usageError{fmt.Errorf("--webhook-bind-address=%s: want a port from 1 to 65535", f.address)}
	}
	options := webhook.Options{Host: host, Port: int(number), CertDir: f.certDir}
	if f.certDir == "" {
		options.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return f.keeper.GetCertificate(hello) }
		}}
	}
	return webhook.NewServer(options), nil
}

// setup serves the webhook and, unless certDir holds one, maintains its certificate.
func (f *webhookFlags) setup(mgr ctrl.Manager, namespace string, startingDeadline time.Duration, registry platforms.Registry) error {
	if f.off() {
		return nil
	}
	if f.certDir == "" {
		hosts := []string{webhookService + "." + namespace + ".svc", webhookService + "." + namespace + ".svc.cluster.local"}
		if f.hosts != "" {
			hosts = strings.Split(f.hosts, ",")
		}
		var err error
		f.keeper, err = webhookcert.New(webhookcert.Options{
			Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(),
			Secret:  types.NamespacedName{Namespace: namespace, Name: webhookSecret},
			Webhook: webhookConfiguration, Hosts: hosts, Clock: clock.RealClock{},
		})
		if err != nil {
			return err
		}
		if err := mgr.Add(f.keeper); err != nil {
			return fmt.Errorf("cannot set up the webhook's certificate: %w", err)
		}
	}
	// Only then does a Service send it requests.
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("cannot add the readiness check of the webhook: %w", err)
	}
	return admission.SetupWithManager(mgr, admission.Options{
		Reader: mgr.GetClient(), Platforms: registry, StartingDeadline: startingDeadline, Clock: clock.RealClock{},
	})
}
