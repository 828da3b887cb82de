// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/notify"
)

// trustReceivers makes every manager accept the receivers of this suite, which all have httptest's certificate.
func trustReceivers() {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file := inFolder("receivers.pem")
	Expect(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600)).To(Succeed())
	GinkgoT().Setenv("HERALD_CRASH_RECEIVERS", file)
}

// notification is an accepted notification.
type notification struct {
	id    string
	event v1alpha1.NotifierEvent
	team  string
	name  string
}

// webhooks is a Notifier and its receiver, which accepts requests signed according to Standard Webhooks.
type webhooks struct {
	*httptest.Server

	name   string
	team   *team
	verify *standardwebhooks.Webhook

	mu  sync.Mutex
	got []notification
	// wrong describes the requests that no receiver would accept.
	wrong []string
	// misbehave responds to the next requests without accepting them; bad is their number.
	misbehave http.HandlerFunc
	bad       int
	// act is called before the response to the request that reduces countdown to zero.
	act       func()
	countdown int
}

// notified creates a Notifier for all post events. Its receiver misbehaves for the first bad requests.
func (t *team) notified(ctx context.Context, name string, bad int, misbehave http.HandlerFunc) *webhooks {
	GinkgoHelper()
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(name[:1], 32)))
	verify, err := standardwebhooks.NewWebhook(secret)
	Expect(err).NotTo(HaveOccurred())
	w := &webhooks{name: name, team: t, verify: verify, bad: bad, misbehave: misbehave}
	w.Server = httptest.NewTLSServer(w)
	DeferCleanup(func() {
		w.CloseClientConnections()
		w.Close()
	})
	meta := metav1.ObjectMeta{Namespace: t.namespace, Name: name}
	create(ctx, &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{v1alpha1.NotifierSecretKey: secret}})
	createNotifier(ctx, &v1alpha1.Notifier{ObjectMeta: meta, Spec: v1alpha1.NotifierSpec{
		URL: w.URL, SecretRef: &v1alpha1.LocalReference{Name: name},
		Events: []v1alpha1.NotifierEvent{v1alpha1.EventPostPosted, v1alpha1.EventPostFailed, v1alpha1.EventPostNeedsAttention},
	}})
	return w
}

// createNotifier creates a Notifier, which is deleted after the spec.
func createNotifier(ctx context.Context, n *v1alpha1.Notifier) {
	GinkgoHelper()
	create(ctx, n)
	//nolint:contextcheck // a cleanup has a context of its own
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, n))).To(Succeed()) })
}

// ServeHTTP implements http.Handler.
func (w *webhooks) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the manager was killed while it sent the request
	}
	var p notify.Payload
	// Verify also checks that the request's time is within five minutes of the clock.
	err = w.verify.Verify(body, r.Header)
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	act, refuse := w.enter(err, notification{r.Header.Get("webhook-id"), p.Type, p.Data.Team, p.Data.ID})
	if act != nil {
		act()
	}
	switch {
	case err != nil:
		answer.WriteHeader(http.StatusUnauthorized)
	case refuse:
		w.misbehave(answer, r)
	default:
		answer.WriteHeader(http.StatusNoContent)
	}
}

func (w *webhooks) enter(err error, n notification) (act func(), refuse bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.countdown--
	if w.countdown == 0 {
		act = w.act
	}
	switch {
	case err != nil:
		w.wrong = append(w.wrong, err.Error())
	case w.bad > 0:
		w.bad--
		return act, true
	default:
		w.got = append(w.got, n)
	}
	return act, false
}

// before calls act before the response to the nth request from now, and returns a channel that is closed afterwards.
func (w *webhooks) before(nth int, act func()) (done chan struct{}) {
	done = make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.countdown, w.act = nth, func() {
		defer close(done)
		act()
	}
	return done
}

// accepted returns a post's accepted notifications, oldest first.
func (w *webhooks) accepted(post string) (events []v1alpha1.NotifierEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.got {
		if n.name == post {
			events = append(events, n.event)
		}
	}
	return events
}

// missing returns the notifications that were not accepted. want are the events of each post.
func (w *webhooks) missing(want map[string][]v1alpha1.NotifierEvent) (missing []string) {
	for post, events := range want {
		got := w.accepted(post)
		for _, event := range events {
			if !slices.Contains(got, event) {
				missing = append(missing, fmt.Sprintf("%s of %s", event, post))
			}
		}
	}
	return missing
}

// verifyAll expects that every event arrived, in order for each post and with one id for each event, and that no other
// team's event did. It returns the number of events and the number of repeated arrivals.
func (w *webhooks) verifyAll(want map[string][]v1alpha1.NotifierEvent) (events, again int) {
	GinkgoHelper()
	Expect(w.missing(want)).To(BeEmpty(), "%s: lost", w.name)
	for post, order := range want {
		got := w.accepted(post)
		first := slices.Clone(order)
		slices.SortStableFunc(first, func(a, b v1alpha1.NotifierEvent) int { return slices.Index(got, a) - slices.Index(got, b) })
		Expect(first).To(Equal(order), "%s: the order of %s: %v", w.name, post, got)
		Expect(got[len(got)-1]).To(Equal(order[len(order)-1]), "%s: the latest of %s: %v", w.name, post, got)
		events += len(order)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	Expect(w.wrong).To(BeEmpty(), "%s: requests without a valid signature", w.name)
	ids, of := map[string]string{}, map[string]string{}
	for _, n := range w.got {
		Expect(n.team).To(Equal(w.team.namespace), "%s: %+v belongs to another team", w.name, n)
		Expect(want).To(HaveKey(n.name), "%s: %+v names no post of the team", w.name, n)
		event := n.name + " " + string(n.event)
		if ids[event] == "" {
			ids[event] = n.id
		}
		Expect(ids[event]).To(Equal(n.id), "%s: the id of %s changed", w.name, event)
		if of[n.id] == "" {
			of[n.id] = event
		}
		Expect(of[n.id]).To(Equal(event), "%s: two events have one id", w.name)
	}
	return events, len(w.got) - events
}

func failsWith500(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusInternalServerError)
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// hidden is a server at a private address to redirect requests to.
type hidden struct {
	*httptest.Server

	requests atomic.Int32
}

func newHidden() *hidden {
	GinkgoHelper()
	h := &hidden{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { h.requests.Add(1) }))
	Expect(h.Listener.Close()).To(Succeed())
	var err error
	h.Listener, err = net.Listen("tcp", "127.0.0.2:0")
	Expect(err).NotTo(HaveOccurred())
	h.StartTLS()
	DeferCleanup(h.Close)
	return h
}

func (h *hidden) redirects(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, h.URL, http.StatusTemporaryRedirect)
}
