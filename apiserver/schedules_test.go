// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// scheduleV2 is a schedule in responses.
type scheduleV2 struct {
	Name     string   `json:"name"`
	Schedule string   `json:"schedule"`
	TimeZone *string  `json:"time_zone"`
	Suspend  bool     `json:"suspend"`
	Texts    []string `json:"texts"`
	Targets  []struct {
		ConnectionID string  `json:"connection_id"`
		Caption      *string `json:"caption"`
	} `json:"targets"`
	Warning  *string  `json:"warning"`
	Upcoming []string `json:"upcoming"`
	Version  string   `json:"version"`
}

const mondays = `{"name":"monday","schedule":"0 9 * * 1","time_zone":"Europe/Berlin","category":"text","texts":["Good morning","A new week"],"targets":[{"connection_id":"acme-x"}]}`

var _ = Describe("Schedules, by version 2", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
	})
	stored := func(ctx context.Context, name string) *v1alpha1.PostSchedule {
		GinkgoHelper()
		var found v1alpha1.PostSchedule
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &found)).To(Succeed())
		return &found
	}
	create := func(ctx context.Context, body string) scheduleV2 {
		GinkgoHelper()
		r := t.callV2(ctx, "POST", "/schedules", body)
		Expect(r.status).To(Equal(201), r.body)
		return as[struct{ Data scheduleV2 }](r).Data
	}

	It("are created, listed, read, changed and deleted", func(ctx context.Context) {
		r := t.callV2(ctx, "POST", "/schedules", mondays)
		Expect(r.status).To(Equal(201), r.body)
		made := as[struct{ Data scheduleV2 }](r).Data
		Expect(r.header.Get("Location")).To(Equal(baseV2 + "/schedules/monday"))
		Expect(r.header.Get("ETag")).To(Equal(`"` + made.Version + `"`))
		Expect(made.Upcoming).To(HaveLen(5))
		Expect(made.Warning).To(BeNil())
		Expect(stored(ctx, "monday").Spec.Texts).To(Equal([]string{"Good morning", "A new week"}))

		again := t.callV2(ctx, "POST", "/schedules", mondays)
		Expect(again.status).To(Equal(201), "the name makes it idempotent")
		Expect(again.header.Get("Idempotency-Replayed")).To(Equal("true"))
		t.callV2(ctx, "POST", "/schedules", strings.Replace(mondays, "0 9", "0 8", 1)).mustFail(409, "CONFLICT", `already a schedule "monday"`)

		create(ctx, strings.Replace(mondays, `"monday"`, `"another"`, 1))
		list := as[struct{ Data []scheduleV2 }](t.callV2(ctx, "GET", "/schedules", "")).Data
		Expect(list).To(HaveExactElements(HaveField("Name", "another"), HaveField("Name", "monday")))
		read := t.callV2(ctx, "GET", "/schedules/monday", "")
		Expect(as[struct{ Data scheduleV2 }](read).Data).To(Equal(list[1]))

		r = t.callV2(ctx, "PATCH", "/schedules/monday", `{"suspend":true,"texts":["Good morning"],"other":1}`, "If-Match", read.header.Get("ETag"))
		Expect(r.status).To(Equal(200), r.body)
		Expect(r.header.Get("Herald-Ignored")).To(Equal("other"))
		changed := as[struct{ Data scheduleV2 }](r).Data
		Expect(changed.Suspend).To(BeTrue())
		Expect(*changed.Warning).To(ContainSubstring("X may reject posts whose text repeats"))
		Expect(changed.Schedule).To(Equal("0 9 * * 1"), "omitted fields remain unchanged")
		t.callV2(ctx, "PATCH", "/schedules/monday", `{"suspend":false}`, "If-Match", read.header.Get("ETag")).mustFail(412, "PRECONDITION_FAILED", "has changed since")
		t.callV2(ctx, "PATCH", "/schedules/monday", `{"suspend":false}`).mustFail(428, "PRECONDITION_REQUIRED", "read the schedule")
		Expect(t.callV2(ctx, "PATCH", "/schedules/monday", `{"time_zone":null}`, "If-Match", "*").status).To(Equal(200))
		Expect(stored(ctx, "monday").Spec.TimeZone).To(BeEmpty())

		Expect(t.callV2(ctx, "DELETE", "/schedules/monday", "").body).To(MatchJSON(`{"data":{"name":"monday","deleted":true}}`))
		for _, method := range []string{"GET", "DELETE"} {
			t.callV2(ctx, method, "/schedules/monday", "").mustFail(404, "NOT_FOUND", `no schedule "monday"`)
		}
	})

	DescribeTable("are refused with the field and the remedy", func(ctx context.Context, edit [2]string, words string) {
		Expect(mondays).To(ContainSubstring(edit[0]))
		t.callV2(ctx, "POST", "/schedules", strings.Replace(mondays, edit[0], edit[1], 1)).mustFail(400, "VALIDATION_ERROR", words)
	},
		Entry("an invalid expression", [2]string{"0 9 * * 1", "at nine"}, "schedule: is not a cron expression"),
		Entry("too often", [2]string{"0 9 * * 1", "* * * * *"}, "at least 5m0s are required"),
		Entry("an unknown zone", [2]string{"Europe/Berlin", "Berlin"}, "time_zone: is not the IANA name"),
		Entry("an unknown account", [2]string{"acme-x", "nowhere"}, "targets[0].connection_id"),
		Entry("a text that is too long, by its number", [2]string{"A new week", strings.Repeat("b", 300)}, "texts[1]: "),
		Entry("a tree", [2]string{`"category":"text"`, `"category":"tree"`}, "category: must be one of image, text, video"),
		Entry("an invalid object name", [2]string{`"monday"`, `"Monday"`}, "name: must consist of lower-case letters"),
		Entry("no accounts", [2]string{`[{"connection_id":"acme-x"}]`, `[]`}, "targets: must have at least 1 item"),
		Entry("no text", [2]string{`"texts":["Good morning","A new week"],`, ""}, "caption"),
		Entry("an end before the start", [2]string{`"category"`, `"start_at":"2030-02-01T00:00:00Z","end_at":"2030-01-01T00:00:00Z","category"`}, "end_at: is before the start"),
	)

	It("belong to the key's team", func(ctx context.Context) {
		create(ctx, mondays)
		other := newTeam(ctx)
		Expect(as[struct{ Data []scheduleV2 }](other.callV2(ctx, "GET", "/schedules", "")).Data).To(BeEmpty())
		other.callV2(ctx, "DELETE", "/schedules/monday", "").mustFail(404, "NOT_FOUND", `no schedule "monday"`)
		Expect(t.call(ctx, "GET", "/schedules", "").status).To(Equal(404), "version 1 has no schedules")
	})

	It("are in the reach of agents that may publish", func(ctx context.Context) {
		session := t.agentAt(ctx, instance.site+"/mcp/v2")
		made, result := use(ctx, session, "create_schedule", mondays)
		Expect(result.IsError).To(BeFalse(), made.body)
		list, _ := use(ctx, session, "list_schedules", `{}`)
		Expect(list.body).To(MatchJSON(t.callV2(ctx, "GET", "/schedules", "").body))
		version := as[struct{ Data scheduleV2 }](made).Data.Version
		changed, result := use(ctx, session, "update_schedule", fmt.Sprintf(`{"id":"monday","version":%q,"suspend":true}`, version))
		Expect(result.IsError).To(BeFalse(), changed.body)
		Expect(stored(ctx, "monday").Spec.Suspend).To(BeTrue())

		Expect(admin.Get(ctx, clientKey(t.resource), t.resource)).To(Succeed())
		t.resource.Spec.Agents.Publishing = v1alpha1.AgentsDraft
		Expect(admin.Update(ctx, t.resource)).To(Succeed())
		Eventually(func(g Gomega) {
			refused, result := use(ctx, session, "delete_schedule", `{"id":"monday"}`)
			g.Expect(result.IsError).To(BeTrue())
			g.Expect(refused.body).To(And(ContainSubstring("INSUFFICIENT_SCOPE"), ContainSubstring("a user creates and changes schedules")))
		}).Should(Succeed())
	})
})
