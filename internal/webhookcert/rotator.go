// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhookcert issues an admission webhook's certificate, stores it in a Secret that all replicas share, renews
// it before it expires, and puts its authority into the webhook's configuration. It does not need another program or a
// file: a new certificate is served starting with the next connection.
//
// open-policy-agent/cert-controller does less: it replaces the authority immediately, while other replicas still serve
// with certificates from the old one, and it needs a mounted Secret and permission to watch all webhook configurations.
package webhookcert

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// The keys of the Secret. The first three are used by cert-manager.
const (
	keyAuthority   = "ca.crt"
	keyCertificate = corev1.TLSCertKey
	keyPrivate     = corev1.TLSPrivateKeyKey
	// keyPathToken holds the last segment of the webhook's path.
	keyPathToken = "word"
)

const (
	// checkEvery is how often the Secret and the webhook's configuration are checked. Reapplying the configuration removes
	// the authority.
	checkEvery = time.Minute
	// retryAfter is the pause after an error, and between the first checks, while the installer may be at work.
	retryAfter = 5 * time.Second
	// firstChecks is the number of checks after startup that are only retryAfter apart.
	firstChecks = 12
	// pathTokenLength is the minimum length of the path's last segment, of 5 bits each: rand.Text has at least 128 bits.
	pathTokenLength = 26
	// conflicts limits how often a write is attempted because of conflicts with other replicas.
	conflicts = 5
)

// Options configure a Rotator. Every field but Path is required.
type Options struct {
	// Reader and Writer do not use a cache.
	Reader client.Reader
	Writer client.Writer
	// Secret holds the certificate.
	Secret types.NamespacedName
	// Webhook is the name of the ValidatingWebhookConfiguration.
	Webhook string
	// Hosts are the names and addresses that the API server uses to call the webhook.
	Hosts []string
	// Path is where the webhook is served. If it is not empty, the API server calls a random path below it (CallPath),
	// which identifies the caller: the API server has no other credential.
	Path  string
	Clock clock.Clock
}

// Rotator maintains one certificate.
type Rotator struct {
	Options
	current   atomic.Pointer[tls.Certificate]
	pathToken atomic.Pointer[string]
}

// New returns a Rotator. It does nothing until Start is called.
func New(o Options) (*Rotator, error) {
	if o.Reader == nil || o.Writer == nil || o.Clock == nil || o.Secret.Name == "" || o.Webhook == "" || len(o.Hosts) == 0 {
		return nil, errors.New("the webhook's certificate needs Reader, Writer, Clock, Secret, Webhook and Hosts")
	}
	return &Rotator{Options: o}, nil
}

// GetCertificate returns the current certificate, for a tls.Config.
func (k *Rotator) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.current.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("the webhook's certificate is not made yet")
}

// CallPath returns the path that only the API server calls. It is empty while there is none.
func (k *Rotator) CallPath() string {
	if word := k.pathToken.Load(); word != nil {
		return k.pathFor(*word)
	}
	return ""
}

func (k *Rotator) pathFor(word string) string { return k.Path + "/" + word }

// NeedLeaderElection returns false: every replica serves.
func (k *Rotator) NeedLeaderElection() bool { return false }

// Start maintains the certificate until ctx is done. Errors do not stop it: the reconciler also validates posts.
func (k *Rotator) Start(ctx context.Context) error {
	log := ctrllog.FromContext(ctx).WithName("webhook-certificate")
	for n := 0; ; n++ {
		pause := checkEvery
		if n < firstChecks {
			pause = retryAfter
		}
		if err := k.Check(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "the webhook is not reachable; only the reconciler validates posts")
			pause = retryAfter
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.Clock.After(pause):
		}
	}
}

// Check reconciles the Secret, the served certificate and the webhook's configuration once.
func (k *Rotator) Check(ctx context.Context) error {
	var err error
	for range conflicts {
		var secret *corev1.Secret
		secret, err = k.ensure(ctx)
		if err == nil && secret == nil {
			return nil
		}
		if err == nil {
			return k.apply(ctx, secret)
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

// ensure returns a Secret with a certificate that is valid for long enough. If several replicas issue one at the same
// time, one wins and the others use its certificate. It returns nil if neither the Secret nor the webhook's
// configuration exists: then Herald is being installed or uninstalled, the API server does not call the webhook, and a
// Secret without the configuration would be left behind.
func (k *Rotator) ensure(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.Reader.Get(ctx, k.Secret, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("cannot read Secret %s: %w", k.Secret, err)
	}
	var owners []metav1.OwnerReference
	if missing {
		if owners, err = k.owners(ctx); err != nil || len(owners) == 0 {
			return nil, err
		}
	}
	now := k.Clock.Now()
	named := len(secret.Data[keyPathToken]) >= pathTokenLength
	switch {
	case missing, !coversHosts(secret.Data, k.Hosts, now):
		data, err := issue(secret.Data[keyAuthority], hostsFor(secret.Data, k.Hosts, now), now)
		if err != nil {
			return nil, fmt.Errorf("cannot issue a certificate: %w", err)
		}
		data[keyPathToken] = secret.Data[keyPathToken]
		secret.Data = data
	case named:
		return secret, nil
	}
	if !named {
		secret.Data[keyPathToken] = []byte(strings.ToLower(rand.Text()))
	}
	if missing {
		secret.ObjectMeta = metav1.ObjectMeta{
			Namespace: k.Secret.Namespace, Name: k.Secret.Name, Labels: map[string]string{"app.kubernetes.io/name": "herald"},
			OwnerReferences: owners,
		}
		secret.Type = corev1.SecretTypeTLS
		err = k.Writer.Create(ctx, secret)
	} else {
		err = k.Writer.Update(ctx, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot store the certificate in Secret %s: %w", k.Secret, err)
	}
	return secret, nil
}

// owners returns the webhook's configuration as the Secret's owner, so that an uninstallation deletes the Secret.
func (k *Rotator) owners(ctx context.Context) ([]metav1.OwnerReference, error) {
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := k.Reader.Get(ctx, types.NamespacedName{Name: k.Webhook}, config)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read ValidatingWebhookConfiguration %s: %w", k.Webhook, err)
	}
	return []metav1.OwnerReference{{
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: config.Name, UID: config.UID,
	}}, nil
}

// apply makes the API server trust the Secret's authority before it serves the certificate, so that no request fails.
func (k *Rotator) apply(ctx context.Context, secret *corev1.Secret) error {
	pair, err := tls.X509KeyPair(secret.Data[keyCertificate], secret.Data[keyPrivate])
	if err != nil {
		return fmt.Errorf("cannot use the certificate of Secret %s: %w", k.Secret, err)
	}
	word := string(secret.Data[keyPathToken])
	if k.Path != "" {
		k.pathToken.Store(&word)
	}
	err = k.patchWebhook(ctx, secret.Data[keyAuthority], word)
	if err != nil && k.current.Load() != nil {
		return err
	}
	k.current.Store(&pair)
	return err
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

func pathPatch(c *admissionregistrationv1.WebhookClientConfig, at, path string) []operation {
	if c.Service != nil {
		if c.Service.Path != nil && *c.Service.Path == path {
			return nil
		}
		return []operation{{"add", at + "/service/path", path}}
	}
	if c.URL == nil {
		return nil
	}
	address, err := url.Parse(*c.URL)
	if err != nil || address.Path == path {
		return nil
	}
	address.Path = path
	return []operation{{"replace", at + "/url", address.String()}}
}

// patchWebhook puts the authority and the call path into the webhook's configuration, if they are missing. It does
// nothing if the configuration does not exist.
func (k *Rotator) patchWebhook(ctx context.Context, authority []byte, word string) error {
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := k.Reader.Get(ctx, types.NamespacedName{Name: k.Webhook}, config)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read ValidatingWebhookConfiguration %s: %w", k.Webhook, err)
	}
	var patch []operation
	for i := range config.Webhooks {
		webhook := &config.Webhooks[i]
		path := fmt.Sprintf("/webhooks/%d", i)
		var changes []operation
		if !bytes.Equal(webhook.ClientConfig.CABundle, authority) {
			changes = append(changes, operation{"add", path + "/clientConfig/caBundle", base64.StdEncoding.EncodeToString(authority)})
		}
		if k.Path != "" {
			changes = append(changes, pathPatch(&webhook.ClientConfig, path+"/clientConfig", k.pathFor(word))...)
		}
		if len(changes) > 0 {
			// If a client has changed the list in the meantime, the client wins.
			patch = append(append(patch, operation{"test", path + "/name", webhook.Name}), changes...)
		}
	}
	if len(patch) == 0 {
		return nil
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("cannot encode a patch: %w", err)
	}
	if err := k.Writer.Patch(ctx, config, client.RawPatch(types.JSONPatchType, body)); err != nil {
		return fmt.Errorf("cannot put the authority into ValidatingWebhookConfiguration %s: %w", k.Webhook, err)
	}
	return nil
}
