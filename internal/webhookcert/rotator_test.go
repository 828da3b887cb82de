// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookcert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestCallAt(t *testing.T) {
	service := func(path *string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "a", Namespace: "b", Path: path}}
	}
	for name, tc := range map[string]struct {
		reason string
		config admissionregistrationv1.WebhookClientConfig
		want   []operation
	}{
		"applied":             {"the applied configuration has no path, so tools do not revert it", service(nil), []operation{{"add", "/c/service/path", "/p/w"}}},
		"of an older release": {"the older release had a fixed path", service(new("/p")), []operation{{"add", "/c/service/path", "/p/w"}}},
		"correct":             {"an equal configuration is not written", service(new("/p/w")), nil},
		"at an address": {
			"the API server runs outside of the cluster",
			admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:9443/p")},
			[]operation{{"replace", "/c/url", "https://127.0.0.1:9443/p/w"}},
		},
		"at the right address": {"the API server may run outside of the cluster, and the address is right", admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:9443/p/w")}, nil},
		"nowhere":              {"the API server does not call the webhook either", admissionregistrationv1.WebhookClientConfig{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, pathPatch(&tc.config, "/c", "/p/w")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
