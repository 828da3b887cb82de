// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/workspace"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/test/perf/internal/measure"
)

// notifiersEach is the number of each team's Notifiers. Each post becomes that many notifications.
const notifiersEach = 5

// receivers lists the kinds of receivers in the order of measurement. The first entry stands for none.
var receivers = []struct {
	kind, what string
	answer     http.HandlerFunc
}{
	{"none", "without Notifiers", nil},
	{"good", "receivers that respond", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
	{"hangs", "receivers that hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	{"fails", "receivers that respond with 500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
	{"redirects", "receivers that redirect to a private address", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://10.0.0.1/", http.StatusTemporaryRedirect)
	}},
}

// beside is the lateness of posts while one kind of receiver is notified: the medians of the rounds, in milliseconds.
type beside struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
	// P50Ratio and P99Ratio are multiples of the lateness without Notifiers in the same round.
	P50Ratio float64 `json:"p50_ratio"`
	P99Ratio float64 `json:"p99_ratio"`
	// Requests is the number of requests that the receivers got in all rounds.
	Requests int64 `json:"requests"`
}

// b10 measures the lateness of posts while receivers are notified.
type b10 struct {
	*session
	server *httptest.Server
	// answer responds to the requests, and got counts them.
	answer http.HandlerFunc
	got    atomic.Int64
}

// runB10 delivers scheduled posts, first without Notifiers, then with each kind of receiver.
func runB10(ctx context.Context, s *session, r *report, id string) (err error) {
	within := *s
	within.b3Minutes = s.b10Minutes
	b := &b10{session: &within}
	b.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The server only detects that the manager has hung up after the body has been read.
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		b.got.Add(1)
		b.answer(w, r)
	}))
	defer b.server.Close()
	defer b.server.CloseClientConnections()
	restore, err := b.trustReceivers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore()) }()
	found := make([]rounds, len(receivers))
	for round := range s.rounds {
		for i := range receivers {
			l, err := b.round(ctx, i)
			if err != nil {
				return fmt.Errorf("%s: %w", receivers[i].what, err)
			}
			found[i].add(l, found[0], b.got.Load())
			s.logf("  %s round %d, %s: p50 %.1f ms, p99 %.1f ms, %d requests", id, round+1, receivers[i].what, l.P50, l.P99, b.got.Load())
		}
	}
	values := map[string]any{"goal_ms": goalB3, "minutes": s.b10Minutes, "notifiers": notifiersEach * len(s.connected)}
	for i := range receivers {
		f := found[i].medians()
		values[receivers[i].kind] = f
		r.limit(id, "schedule lateness, 99th percentile, "+receivers[i].what,
			fmt.Sprintf("%.0f ms, %.2f × (p50 %.2f ×)", f.P99, f.P99Ratio, f.P50Ratio), fmt.Sprintf("≤ %.0f ms", goalB3), f.P99 <= goalB3)
	}
	r.add(id, values)
	return nil
}

// rounds contains the results for one kind of receiver, by round.
type rounds struct {
	p50, p99, longest, p50Ratio, p99Ratio []float64
	requests                              int64
}

// add adds a round. without contains the results without Notifiers, which already include this round.
func (r *rounds) add(l lateness, without rounds, requests int64) {
	r.p50, r.p99, r.longest = append(r.p50, l.P50), append(r.p99, l.P99), append(r.longest, l.Max)
	last := len(r.p50) - 1
	if last >= len(without.p50) { // this is the first kind
		without = *r
	}
	r.p50Ratio = append(r.p50Ratio, l.P50/without.p50[last])
	r.p99Ratio = append(r.p99Ratio, l.P99/without.p99[last])
	r.requests += requests
}

func (r *rounds) medians() beside {
	return beside{
		P50: measure.Median(r.p50), P99: measure.Median(r.p99), Max: measure.Median(r.longest),
		P50Ratio: measure.Rounded(measure.Median(r.p50Ratio), 2), P99Ratio: measure.Rounded(measure.Median(r.p99Ratio), 2), Requests: r.requests,
	}
}

// trustReceivers replaces the manager's program with one that accepts receivers on this machine, and makes it trust the
// server. restore undoes that. The measurement without Notifiers uses the same program.
func (b *b10) trustReceivers() (restore func() error, err error) {
	program, err := os.ReadFile(filepath.Join(b.root, "bin", "herald-crashpoints"))
	if err != nil {
		return nil, fmt.Errorf("%w\nrun `make bench`, which builds it", err)
	}
	herald := filepath.Join(b.stack.Setup.Bin, "herald")
	file, released := filepath.Join(b.stack.Setup.Bin, "receivers.pem"), herald+"-released"
	if err := workspace.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.server.Certificate().Raw}), 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(herald, released); err != nil {
		return nil, err
	}
	restore = func() error { return errors.Join(os.Unsetenv(trusted), os.Rename(released, herald)) }
	if err := errors.Join(workspace.WriteFile(herald, program, 0o700), os.Setenv(trusted, file)); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// trusted is the environment variable with the path of the certificates that the manager trusts.
const trusted = "HERALD_CRASH_RECEIVERS"

// round measures one kind of receiver.
func (b *b10) round(ctx context.Context, kind int) (l lateness, err error) {
	b.answer = receivers[kind].answer
	b.got.Store(0)
	err = b.prepare(ctx, func() error {
		if b.answer != nil {
			if err := b.notify(ctx); err != nil {
				return err
			}
		}
		l, err = (&timely{b.session, b.texts()}).measure(ctx, "B10")
		if err == nil && receivers[kind].kind == "good" {
			err = until(ctx, pollEvery, "every post is reported", func(context.Context) (bool, error) { return b.got.Load() >= int64(l.Posts*notifiersEach), nil })
		}
		return errors.Join(err, b.forget(ctx))
	})
	return l, err
}

// notify creates the teams' Notifiers, and waits until they are ready.
func (b *b10) notify(ctx context.Context) error {
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))
	for _, team := range b.connected {
		signing := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: team.Namespace, Name: "signing"}, StringData: map[string]string{v1alpha1.NotifierSecretKey: secret},
		}
		if err := client.IgnoreAlreadyExists(b.stack.Kubernetes.Create(ctx, signing)); err != nil {
			return err
		}
		for i := range notifiersEach {
			notifier := &v1alpha1.Notifier{
				ObjectMeta: metav1.ObjectMeta{Namespace: team.Namespace, Name: fmt.Sprintf("receiver-%d", i)},
				Spec: v1alpha1.NotifierSpec{
					URL: fmt.Sprintf("%s/%s/%d", b.server.URL, team.Namespace, i), SecretRef: &v1alpha1.LocalReference{Name: signing.Name},
					Events: []v1alpha1.NotifierEvent{v1alpha1.EventPostPosted},
				},
			}
			if err := b.stack.Kubernetes.Create(ctx, notifier); err != nil {
				return err
			}
		}
	}
	return until(ctx, pollEvery, "the Notifiers are ready", func(ctx context.Context) (bool, error) {
		var list v1alpha1.NotifierList
		err := b.stack.Kubernetes.List(ctx, &list)
		ready := 0
		for i := range list.Items {
			if conditions.IsReady(list.Items[i].Status.Conditions) {
				ready++
			}
		}
		return ready == notifiersEach*len(b.connected), err
	})
}

// forget deletes the Notifiers.
func (b *b10) forget(ctx context.Context) error {
	for _, team := range b.connected {
		if err := b.stack.Kubernetes.DeleteAllOf(ctx, &v1alpha1.Notifier{}, client.InNamespace(team.Namespace)); err != nil {
			return err
		}
	}
	return nil
}
