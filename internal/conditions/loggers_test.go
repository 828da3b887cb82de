// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/test/logtest"
)

func TestLines(t *testing.T) {
	request := func(namespace, name string) *reconcile.Request {
		return &reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	controller := func(r *reconcile.Request) func(logr.Logger) logr.Logger {
		return func(base logr.Logger) logr.Logger { return conditions.ControllerLogConstructor(base, "post")(r) }
	}
	asked := &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "1-2", Namespace: "team-acme", Name: "launch"}}
	for name, tc := range map[string]struct {
		reason string
		log    func(logr.Logger) logr.Logger
		err    error
		want   []logtest.Line
	}{
		"a post":                {"an operator filters by namespace and name", controller(request("team-acme", "launch")), nil, []logtest.Line{{"level": "INFO", "msg": "said", "controller": "post", "namespace": "team-acme", "name": "launch"}}},
		"a Team":                {"a Team has no namespace", controller(request("", "acme")), nil, []logtest.Line{{"level": "INFO", "msg": "said", "controller": "post", "name": "acme"}}},
		"the start":             {"thirty lines at startup are of no use at night", controller(nil), nil, nil},
		"a start that fails":    {"an administrator has to correct it", controller(nil), errors.New("broken"), []logtest.Line{{"level": "ERROR", "msg": "said", "controller": "post", "err": "broken"}}},
		"a request":             {"the audit log has the id, too", func(base logr.Logger) logr.Logger { return conditions.WebhookLogger(base, asked) }, nil, []logtest.Line{{"level": "INFO", "msg": "said", "namespace": "team-acme", "name": "launch", "requestID": "1-2"}}},
		"an unreadable request": {"the object's name is unknown", func(base logr.Logger) logr.Logger { return conditions.WebhookLogger(base, nil) }, nil, []logtest.Line{{"level": "INFO", "msg": "said"}}},
	} {
		var out logtest.Log
		log := tc.log(logr.FromSlogHandler(slog.NewJSONHandler(&out, nil)))
		if tc.err != nil {
			log.Error(tc.err, "said")
		} else {
			log.Info("said")
		}
		lines, err := out.Lines()
		for _, line := range lines {
			delete(line, slog.TimeKey)
		}
		if diff := cmp.Diff(tc.want, lines); diff != "" || err != nil {
			t.Errorf("%s: %s: %v\n%s", name, tc.reason, err, diff)
		}
	}
}
