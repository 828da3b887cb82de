// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// notifierV2 is a notifier in responses.
type notifierV2 struct {
	Name          string   `json:"name"`
	Format        string   `json:"format"`
	URL           *string  `json:"url"`
	EmailTo       []string `json:"email_to"`
	Events        []string `json:"events"`
	Suspend       bool     `json:"suspend"`
	SigningSecret *string  `json:"signing_secret"`
	State         *string  `json:"state"`
	FailingSince  *string  `json:"failing_since"`
	Version       string   `json:"version"`
}

const (
	failures = `{"name":"failures","url":"https://hooks.example.com/herald","events":["post.failed","connection.broken"]}`
	toSlack  = `{"name":"slack","format":"slack","url":"https://hooks.slack.com/services/T0/B0/secret","events":["post.posted"]}`
	byEmail  = `{"name":"mail","format":"email","email_to":["social@example.com"],"events":["post.failed"]}`
)

// mayNotify permits the team's key to change notifiers, and the apiserver to create Secrets, as the manager does.
func (t *team) mayNotify(ctx context.Context) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	readRole(filepath.Join("web", "team_credentials_role.yaml"), 0, role)
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, role))).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "herald-apiserver-credentials"}, Subjects: apiserverUser,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	})).To(Succeed())
	before := t.key.DeepCopy()
	t.key.Spec.Permissions = []v1alpha1.KeyPermission{v1alpha1.PermissionNotifiers}
	Expect(admin.Patch(ctx, t.key, client.MergeFrom(before))).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(t.callV2(ctx, "POST", "/notifiers", strings.Replace(failures, `"failures"`, `"probe"`, 1)).status).To(Equal(201))
		g.Expect(t.callV2(ctx, "DELETE", "/notifiers/probe", "").status).To(Equal(200))
	}).Should(Succeed())
}

var _ = Describe("Notifiers, by version 2", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.mayNotify(ctx)
	})
	stored := func(ctx context.Context, name string) *v1alpha1.Notifier {
		GinkgoHelper()
		var found v1alpha1.Notifier
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &found)).To(Succeed())
		return &found
	}
	secretOf := func(ctx context.Context, n *v1alpha1.Notifier) map[string]string {
		GinkgoHelper()
		var found corev1.Secret
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: n.Spec.SecretRef.Name}, &found)).To(Succeed())
		Expect(found.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "Notifier"), HaveField("UID", n.UID))), "the notifier owns the Secret")
		data := map[string]string{}
		for key, value := range found.Data {
			data[key] = string(value)
		}
		return data
	}
	create := func(ctx context.Context, body string) notifierV2 {
		GinkgoHelper()
		r := t.callV2(ctx, "POST", "/notifiers", body)
		Expect(r.status).To(Equal(201), r.body)
		return as[struct{ Data notifierV2 }](r).Data
	}

	It("are created with a secret that is shown once, listed, read, changed and deleted", func(ctx context.Context) {
		r := t.callV2(ctx, "POST", "/notifiers", failures)
		Expect(r.status).To(Equal(201), r.body)
		made := as[struct{ Data notifierV2 }](r).Data
		Expect(r.header.Get("Location")).To(Equal(baseV2 + "/notifiers/failures"))
		Expect(r.header.Get("ETag")).To(Equal(`"` + made.Version + `"`))
		encoded, ok := strings.CutPrefix(*made.SigningSecret, "whsec_")
		Expect(ok).To(BeTrue())
		Expect(base64.StdEncoding.DecodeString(encoded)).To(HaveLen(32))
		Expect(secretOf(ctx, stored(ctx, "failures"))).To(Equal(map[string]string{"secret": *made.SigningSecret}))
		Expect(stored(ctx, "failures").Annotations[v1alpha1.LastAuthorAnnotation]).To(Equal("herald:key:default"))

		again := t.callV2(ctx, "POST", "/notifiers", failures)
		Expect(again.status).To(Equal(201), "the name makes it idempotent")
		Expect(again.header.Get("Idempotency-Replayed")).To(Equal("true"))
		Expect(as[struct{ Data notifierV2 }](again).Data.SigningSecret).To(BeNil(), "the API cannot read it")
		t.callV2(ctx, "POST", "/notifiers", strings.Replace(failures, "/herald", "/other", 1)).mustFail(409, "CONFLICT", `already a notifier "failures"`)

		create(ctx, strings.Replace(failures, `"failures"`, `"another"`, 1))
		list := as[struct{ Data []notifierV2 }](t.callV2(ctx, "GET", "/notifiers", "")).Data
		Expect(list).To(HaveExactElements(HaveField("Name", "another"), HaveField("Name", "failures")))
		read := t.callV2(ctx, "GET", "/notifiers/failures", "")
		Expect(as[struct{ Data notifierV2 }](read).Data).To(And(Equal(list[1]), HaveField("SigningSecret", BeNil())))

		r = t.callV2(ctx, "PATCH", "/notifiers/failures", `{"suspend":true,"events":["media.rejected"],"other":1}`, "If-Match", read.header.Get("ETag"))
		Expect(r.status).To(Equal(200), r.body)
		Expect(r.header.Get("Herald-Ignored")).To(Equal("other"))
		changed := as[struct{ Data notifierV2 }](r).Data
		Expect(changed.Suspend).To(BeTrue())
		Expect(*changed.URL).To(Equal("https://hooks.example.com/herald"), "omitted fields stay")
		t.callV2(ctx, "PATCH", "/notifiers/failures", `{"suspend":false}`, "If-Match", read.header.Get("ETag")).mustFail(412, "PRECONDITION_FAILED", "has changed since")
		t.callV2(ctx, "PATCH", "/notifiers/failures", `{"suspend":false}`).mustFail(428, "PRECONDITION_REQUIRED", "read the notifier")
		Expect(t.callV2(ctx, "PATCH", "/notifiers/failures", `{"suspend":false}`, "If-Match", "*").status).To(Equal(200))
		t.callV2(ctx, "PATCH", "/notifiers/failures", `{"format":"slack"}`, "If-Match", "*").mustFail(400, "VALIDATION_ERROR", "format: cannot be changed")

		Expect(t.callV2(ctx, "DELETE", "/notifiers/failures", "").body).To(MatchJSON(`{"data":{"name":"failures","deleted":true}}`))
		for _, method := range []string{"GET", "DELETE"} {
			t.callV2(ctx, method, "/notifiers/failures", "").mustFail(404, "NOT_FOUND", `no notifier "failures"`)
		}
	})

	It("get a new secret on request, a limited number of times", func(ctx context.Context) {
		first := create(ctx, failures)
		before := stored(ctx, "failures")
		r := t.callV2(ctx, "POST", "/notifiers/failures/secret", "")
		Expect(r.status).To(Equal(200), r.body)
		second := as[struct{ Data notifierV2 }](r).Data
		Expect(*second.SigningSecret).NotTo(Equal(*first.SigningSecret))
		after := stored(ctx, "failures")
		Expect(after.Spec.SecretRef.Name).NotTo(Equal(before.Spec.SecretRef.Name))
		Expect(secretOf(ctx, after)).To(Equal(map[string]string{"secret": *second.SigningSecret}))
		for range 18 {
			Expect(t.callV2(ctx, "POST", "/notifiers/failures/secret", "").status).To(Equal(200))
		}
		t.callV2(ctx, "POST", "/notifiers/failures/secret", "").mustFail(409, "CONFLICT", "20 secrets, which is the limit")
		create(ctx, byEmail)
		t.callV2(ctx, "POST", "/notifiers/mail/secret", "").mustFail(409, "CONFLICT", "not signed")
	})

	It("keep an address of Slack in a Secret, and never show it", func(ctx context.Context) {
		r := t.callV2(ctx, "POST", "/notifiers", toSlack)
		Expect(r.status).To(Equal(201), r.body)
		Expect(r.body).NotTo(ContainSubstring("hooks.slack.com"))
		n := stored(ctx, "slack")
		Expect(n.Spec.URL).To(BeEmpty())
		Expect(secretOf(ctx, n)).To(Equal(map[string]string{"url": "https://hooks.slack.com/services/T0/B0/secret"}))
		t.callV2(ctx, "POST", "/notifiers", toSlack).mustFail(409, "CONFLICT", "already a notifier")

		Expect(t.callV2(ctx, "PATCH", "/notifiers/slack", `{"events":["post.failed"]}`, "If-Match", "*").status).To(Equal(200))
		Expect(stored(ctx, "slack").Spec.SecretRef).To(Equal(n.Spec.SecretRef), "the address stays")
		r = t.callV2(ctx, "PATCH", "/notifiers/slack", `{"url":"https://hooks.slack.com/services/T0/B0/other"}`, "If-Match", "*")
		Expect(r.status).To(Equal(200), r.body)
		Expect(r.body).NotTo(ContainSubstring("hooks.slack.com"))
		Expect(secretOf(ctx, stored(ctx, "slack"))).To(Equal(map[string]string{"url": "https://hooks.slack.com/services/T0/B0/other"}))
	})

	DescribeTable("are refused with the field and the remedy", func(ctx context.Context, body string, edit [2]string, words string) {
		Expect(body).To(ContainSubstring(edit[0]))
		t.callV2(ctx, "POST", "/notifiers", strings.Replace(body, edit[0], edit[1], 1)).mustFail(400, "VALIDATION_ERROR", words)
	},
		Entry("no event, which would report nothing", failures, [2]string{`["post.failed","connection.broken"]`, `[]`}, "events: must have at least 1 item"),
		Entry("an unknown event", failures, [2]string{"post.failed", "post.liked"}, "events[0]: must be one of"),
		Entry("an event twice", failures, [2]string{"connection.broken", "post.failed"}, "events[1]: is listed twice"),
		Entry("no address", failures, [2]string{`"url":"https://hooks.example.com/herald",`, ""}, "url: is missing"),
		Entry("an address without encryption", failures, [2]string{"https://", "http://"}, "url: must start with https://"),
		Entry("a private address", failures, [2]string{"hooks.example.com", "10.0.0.1"}, "url: must resolve to a public address"),
		Entry("this host", failures, [2]string{"hooks.example.com", "localhost:8443"}, "url: must resolve to a public address"),
		Entry("an address with a password, which logs would show", failures, [2]string{"hooks.example.com", "ada:b@hooks.example.com"}, "url: must not contain a user"),
		Entry("recipients without email", failures, [2]string{`"events"`, `"email_to":["a@example.com"],"events"`}, "email_to: is only for format email"),
		Entry("a name that Kubernetes rejects", failures, [2]string{`"failures"`, `"Failures"`}, "name: must consist of lower-case letters"),
		Entry("no recipient", byEmail, [2]string{`["social@example.com"]`, `[]`}, "email_to: must have at least 1 item"),
		Entry("an invalid recipient", byEmail, [2]string{"social@example.com", "social"}, "email_to[0]: is not an email address"),
		Entry("a header in a recipient", byEmail, [2]string{"social@example.com", `a@example.com\r\nBcc: b@example.com`}, "email_to[0]: is not an email address"),
		Entry("an address with email", byEmail, [2]string{`"events"`, `"url":"https://hooks.example.com/","events"`}, "url: has no effect for format email"),
	)

	It("list their deliveries, and send one again", func(ctx context.Context) {
		create(ctx, failures)
		n := stored(ctx, "failures")
		at := v1alpha1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Millisecond))
		n.Status.Deliveries = []v1alpha1.NotifierDelivery{{
			ID: "msg_1", Event: v1alpha1.EventPostFailed, Kind: "Post", Name: "launch", UID: "u", OccurredAt: at, State: v1alpha1.DeliveryFailed, Attempts: 41, LastAttemptAt: &at, Message: "it answers 503",
		}}
		Expect(admin.Status().Update(ctx, n)).To(Succeed())
		const shown = `{"id":"msg_1","event":"post.failed","object":"post","object_id":"launch","occurred_at":%[1]q,"state":"failed","attempts":41,"last_attempt_at":%[1]q,"message":"it answers 503","resend_requested":%[2]t}`
		when := at.UTC().Format("2006-01-02T15:04:05.000Z")
		Expect(t.callV2(ctx, "GET", "/notifiers/failures/deliveries", "").body).To(MatchJSON(`{"data":[` + fmt.Sprintf(shown, when, false) + `]}`))
		for range 2 {
			r := t.callV2(ctx, "POST", "/notifiers/failures/resend", `{"delivery_id":"msg_1"}`)
			Expect(r.status).To(Equal(200), r.body)
			Expect(r.body).To(MatchJSON(`{"data":` + fmt.Sprintf(shown, when, true) + `}`))
			request := stored(ctx, "failures").Annotations[v1alpha1.ResendAnnotation]
			Expect(request).To(MatchRegexp("^msg_1 [a-z2-7]{8}$"))
			n = stored(ctx, "failures")
			n.Status.LastHandledResend = request
			Expect(admin.Status().Update(ctx, n)).To(Succeed())
			Expect(t.callV2(ctx, "GET", "/notifiers/failures/deliveries", "").body).To(ContainSubstring(`"resend_requested":false`))
		}
		t.callV2(ctx, "POST", "/notifiers/failures/resend", `{"delivery_id":"msg_2"}`).mustFail(404, "NOT_FOUND", `no longer has notification "msg_2"`)
		t.callV2(ctx, "POST", "/notifiers/failures/resend", `{}`).mustFail(400, "VALIDATION_ERROR", "delivery_id: is missing")
		t.callV2(ctx, "GET", "/notifiers/nothing/deliveries", "").mustFail(404, "NOT_FOUND", `no notifier "nothing"`)
	})

	It("are in the reach of agents whose key has the permission", func(ctx context.Context) {
		session := t.agentAt(ctx, instance.site+"/mcp/v2")
		made, result := use(ctx, session, "create_notifier", failures)
		Expect(result.IsError).To(BeFalse(), made.body)
		Expect(made.body).To(ContainSubstring("whsec_"))
		list, _ := use(ctx, session, "list_notifiers", `{}`)
		Expect(list.body).To(MatchJSON(t.callV2(ctx, "GET", "/notifiers", "").body))
		version := as[struct{ Data notifierV2 }](made).Data.Version
		changed, result := use(ctx, session, "update_notifier", fmt.Sprintf(`{"id":"failures","version":%q,"suspend":true}`, version))
		Expect(result.IsError).To(BeFalse(), changed.body)
		Expect(stored(ctx, "failures").Spec.Suspend).To(BeTrue())
		replaced, result := use(ctx, session, "replace_secret", `{"id":"failures"}`)
		Expect(result.IsError).To(BeFalse(), replaced.body)
		deliveries, _ := use(ctx, session, "list_deliveries", `{"id":"failures"}`)
		Expect(deliveries.body).To(MatchJSON(`{"data":[]}`))
		missing, result := use(ctx, session, "resend_delivery", `{"id":"failures","delivery_id":"msg_1"}`)
		Expect(result.IsError).To(BeTrue())
		Expect(missing.body).To(ContainSubstring("NOT_FOUND"))
		deleted, result := use(ctx, session, "delete_notifier", `{"id":"failures"}`)
		Expect(result.IsError).To(BeFalse(), deleted.body)
	})
})

var _ = Describe("An attacker with an API key", func() {
	It("changes no notifier without the permission", func(ctx context.Context) {
		t := newTeam(ctx)
		Expect(admin.Create(ctx, &v1alpha1.Notifier{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "ours"},
			Spec: v1alpha1.NotifierSpec{
				URL: "https://hooks.example.com/", SecretRef: &v1alpha1.LocalReference{Name: "ours"}, Events: []v1alpha1.NotifierEvent{v1alpha1.EventPostFailed},
			},
		})).To(Succeed())
		Expect(t.callV2(ctx, "GET", "/notifiers/ours", "").status).To(Equal(200), "reading needs no permission")
		for _, call := range [][3]string{
			{"POST", "/notifiers", failures},
			{"PATCH", "/notifiers/ours", `{"suspend":true}`},
			{"DELETE", "/notifiers/ours", ""},
			{"POST", "/notifiers/ours/secret", ""},
			{"POST", "/notifiers/ours/resend", `{"delivery_id":"msg_1"}`},
		} {
			t.callV2(ctx, call[0], call[1], call[2], "If-Match", "*").mustFail(403, "INSUFFICIENT_SCOPE", "a key with the permission notifiers")
		}
		Expect(t.call(ctx, "GET", "/notifiers", "").status).To(Equal(404), "version 1 has none")
	})

	It("reaches no other Secret", func(ctx context.Context) {
		t := newTeam(ctx)
		t.mayNotify(ctx)
		other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "database"}, Data: map[string][]byte{"secret": []byte("whsec_b3Vycw=="), "url": []byte("https://database.example.com/")}}
		Expect(admin.Create(ctx, other)).To(Succeed())
		before := other.DeepCopy()

		By("naming it in every field that might be read")
		for _, field := range []string{`"secretRef":{"name":"database"}`, `"secret_ref":"database"`, `"secret_name":"database"`, `"signing_secret":"whsec_YXR0YWNrZXI="`, `"secret":"database"`} {
			name := fmt.Sprintf("n%d", time.Now().UnixNano())
			r := t.callV2(ctx, "POST", "/notifiers", fmt.Sprintf(`{"name":%q,"url":"https://hooks.example.com/","events":["post.failed"],%s}`, name, field))
			Expect(r.status).To(Equal(201), r.body)
			Expect(r.header.Get("Herald-Ignored")).NotTo(BeEmpty(), "%s has no effect, and the client learns it", field)
			Expect(t.callV2(ctx, "PATCH", "/notifiers/"+name, "{"+field+"}", "If-Match", "*").status).To(Equal(200))
			var n v1alpha1.Notifier
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &n)).To(Succeed())
			Expect(n.Spec.SecretRef.Name).To(MatchRegexp("^notifier-[a-z2-7]{16}-[a-z2-7]{10}$"))
			Expect(n.Labels).To(BeEmpty())
		}

		By("naming the notifier, or the notifier to change, like the Secret")
		r := t.callV2(ctx, "POST", "/notifiers", strings.Replace(failures, `"failures"`, `"database"`, 1))
		Expect(r.status).To(Equal(201), r.body)
		for _, path := range []string{"/notifiers/..%2Fsecrets%2Fdatabase", "/notifiers/database%2F..%2F..%2Fsecrets%2Fdatabase", "/notifiers/%2e%2e/secret"} {
			Expect(t.callV2(ctx, "GET", path, "").status).To(Or(Equal(404), Equal(405)), path)
		}

		By("using a notifier that an administrator applied with the Secret")
		Expect(admin.Create(ctx, &v1alpha1.Notifier{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "applied"},
			Spec: v1alpha1.NotifierSpec{
				URL: "https://hooks.example.com/", SecretRef: &v1alpha1.LocalReference{Name: "database"}, Events: []v1alpha1.NotifierEvent{v1alpha1.EventPostFailed},
			},
		})).To(Succeed())
		for _, r := range []reply{
			t.callV2(ctx, "GET", "/notifiers", ""), t.callV2(ctx, "GET", "/notifiers/applied", ""), t.callV2(ctx, "POST", "/notifiers/applied/secret", ""),
			t.callV2(ctx, "DELETE", "/notifiers/applied", ""),
		} {
			Expect(r.status).To(Equal(200), r.body)
			Expect(r.body).NotTo(Or(ContainSubstring("b3Vycw"), ContainSubstring("database.example.com")))
		}
		Expect(admin.Get(ctx, clientKey(other), other)).To(Succeed())
		Expect(other.Data).To(Equal(before.Data))
		Expect(other.ResourceVersion).To(Equal(before.ResourceVersion))
		Expect(other.OwnerReferences).To(BeEmpty())
	})
})
