// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/internal/webhookcert"
)

// webhookServed returns the metric that reports the result of check: whether the webhook responds.
func webhookServed(check func() error) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "herald_webhook_served", Help: "1 if this process's admission webhook responds, else 0.",
	}, func() float64 {
		if check() != nil {
			return 0
		}
		return 1
	})
}

// trustTimeout is the timeout for a scrape that reads the certificate and the configuration.
const trustTimeout = 2 * time.Second

var (
	webhookTrusted = prometheus.NewDesc("herald_webhook_trusted",
		"1 if the Kubernetes API accepts the certificate of this process's admission webhook, else 0; absent while the API does not respond.", nil, nil)
	webhookExpiry = prometheus.NewDesc("herald_webhook_certificate_expiry_seconds",
		"Seconds until the certificate of this process's admission webhook expires; absent without a certificate.", nil, nil)
)

// webhookTrust collects whether the API server trusts the served certificate. A webhook may respond and still never be
// called, because its certificate has expired or its configuration has another CA. It checks at each scrape, and logs
// changes to the result.
type webhookTrust struct {
	// address is the webhook's address, and configuration is the name of its configuration.
	address, configuration string
	reader                 client.Reader
	clock                  clock.PassiveClock
	log                    logr.Logger

	mu sync.Mutex
	// uncalled is true while there is a problem, which has been logged.
	uncalled bool
}

var _ prometheus.Collector = (*webhookTrust)(nil)

func (w *webhookTrust) Describe(out chan<- *prometheus.Desc) {
	out <- webhookTrusted
	out <- webhookExpiry
}

func (w *webhookTrust) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), trustTimeout)
	defer cancel()
	now := w.clock.Now()
	served, unserved := webhookcert.Served(ctx, w.address)
	if unserved == nil {
		out <- prometheus.MustNewConstMetric(webhookExpiry, prometheus.GaugeValue, served[0].NotAfter.Sub(now).Seconds())
	}
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := w.reader.Get(ctx, types.NamespacedName{Name: w.configuration}, config)
	switch {
	case apierrors.IsNotFound(err): // A certificate is only created for an existing configuration.
		err = errors.New("there is no ValidatingWebhookConfiguration " + w.configuration + ", so the Kubernetes API does not call the webhook")
	case unserved != nil:
		err = unserved
	case err == nil:
		err = webhookcert.Untrusted(config, served, now)
	case !apierrors.IsForbidden(err):
		return // the API has another, transient problem
	default:
		err = fmt.Errorf("cannot read ValidatingWebhookConfiguration %s: %w", w.configuration, err)
	}
	value := 1.0
	if err != nil {
		value = 0
	}
	out <- prometheus.MustNewConstMetric(webhookTrusted, prometheus.GaugeValue, value)
	w.logChange(err)
}

// logChange logs when the webhook is no longer called, and when it is called again.
func (w *webhookTrust) logChange(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case (err != nil) == w.uncalled:
	case err == nil:
		w.log.Info("the Kubernetes API accepts the webhook's certificate again")
	default:
		w.log.Info("the webhook is not called; only the reconciler validates posts", "problem", err.Error())
	}
	w.uncalled = err != nil
}
