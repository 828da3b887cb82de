// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/config/crd"
	"github.com/herald-social/herald/test/must"
)

// TestCheck checks servers that respond like various versions of the Kubernetes API.
func TestCheck(t *testing.T) {
	t.Parallel()
	version := func(c *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
		return &c.Spec.Versions[0]
	}
	drop := func(schema *apiextensionsv1.JSONSchemaProps, path ...string) {
		for _, name := range path[:len(path)-1] {
			next := schema.Properties[name]
			if next.Items != nil {
				schema = next.Items.Schema
				continue
			}
			schema = &next
		}
		delete(schema.Properties, path[len(path)-1])
	}
	for name, tt := range map[string]struct {
		reason string
		server string
		change func(c *apiextensionsv1.CustomResourceDefinition)
		status int
		// unserved is true if the defined resources are not served.
		unserved bool
		want     string
	}{
		"this version": {"this version has no problems", "v1.37.1", nil, 0, false, ""},
		"the oldest":   {"the oldest supported version", "v1.32.0", nil, 0, false, ""},
		"a provider's": {"suffixes are ignored", "v1.34.2-gke.100", nil, 0, false, ""},
		"too old":      {"the API server drops selectable fields silently", "v1.31.9", nil, 0, false, "Kubernetes, v1.31.9, is too old: Herald needs 1.32 or newer"},
		"no version":   {"the answer is not a Kubernetes version", "latest", nil, 0, false, `"latest", which is not a version`},
		"not applied":  {"CRDs are applied first", "v1.37.1", nil, http.StatusNotFound, false, "does not serve apikeys.social.herald.dev; apply the resource definitions"},
		"not readable": {"the permission is missing", "v1.37.1", nil, http.StatusForbidden, false, "may not read apikeys.social.herald.dev; grant it the right"},
		"not served":   {"a starting API server serves CRDs last", "v1.37.1", nil, 0, true, "does not answer yet under"},
		"neither":      {"without the permission to read the CRDs, it waits as well", "v1.37.1", nil, http.StatusForbidden, true, "does not answer yet under"},
		"a field of the spec": {"values in the field would be lost", "v1.37.1", func(c *apiextensionsv1.CustomResourceDefinition) {
			drop(version(c).Schema.OpenAPIV3Schema, "spec", "onUnknownOutcome")
		}, 0, false, "older than this program: it lacks spec.onUnknownOutcome; apply"},
		"a field of a list": {"records in the field would be lost", "v1.37.1", func(c *apiextensionsv1.CustomResourceDefinition) {
			drop(version(c).Schema.OpenAPIV3Schema, "status", "targets", "state")
		}, 0, false, "it lacks status.targets[].state"},
		"a selectable field": {"the manager could not select by the field", "v1.37.1", func(c *apiextensionsv1.CustomResourceDefinition) {
			version(c).SelectableFields = nil
		}, 0, false, "the selectable field ."},
		"another version": {"the binary supports only its own version", "v1.37.1", func(c *apiextensionsv1.CustomResourceDefinition) {
			version(c).Name = "v1alpha0"
		}, 0, false, "it lacks version v1alpha1"},
		"a version that is not served": {"the version cannot be used", "v1.37.1", func(c *apiextensionsv1.CustomResourceDefinition) {
			version(c).Served = false
		}, 0, false, "it lacks version v1alpha1"},
		"newer": {"additional fields do not matter", "v1.37.1", func(c *apiextensionsv1.CustomResourceDefinition) {
			version(c).Schema.OpenAPIV3Schema.Properties["later"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}, 0, false, ""},
		"much older": {"messages are limited in length", "v1.37.1", func(c *apiextensionsv1.CustomResourceDefinition) {
			version(c).Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
		}, 0, false, "more; apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			definitions, err := read(crd.Definitions)
			if err != nil || len(definitions) == 0 {
				t.Fatalf("%d definitions: %v", len(definitions), err)
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path == "/version" {
					_ = json.NewEncoder(w).Encode(map[string]string{"gitVersion": tt.server})
					return
				}
				if strings.HasPrefix(r.URL.Path, "/apis/social.herald.dev/") {
					if tt.unserved {
						w.WriteHeader(http.StatusNotFound)
						return
					}
					_ = json.NewEncoder(w).Encode(resourcesOf(definitions))
					return
				}
				if tt.status != 0 {
					w.WriteHeader(tt.status)
					return
				}
				for _, c := range definitions {
					if strings.HasSuffix(r.URL.Path, "/"+c.Name) {
						served := c.DeepCopy()
						if tt.change != nil && served.Spec.Names.Kind == "Post" {
							tt.change(served)
						}
						_ = json.NewEncoder(w).Encode(served)
					}
				}
			}))
			defer server.Close()
			err = Check(t.Context(), &rest.Config{Host: server.URL}, crd.Definitions)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (tt.want == "") != (err == nil) || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q (%s)", got, tt.want, tt.reason)
			}
			if errors.Is(err, ErrUnread) != (tt.status == http.StatusForbidden && !tt.unserved) {
				t.Errorf("%v must wrap ErrUnread if the CRDs could not be read", err)
			}
			if errors.Is(err, ErrUnavailable) != tt.unserved {
				t.Errorf("%v must wrap ErrUnavailable if the process should wait", err)
			}
		})
	}
}

// TestServed checks an API that has the CRDs but serves none or only some of their resources.
func TestServed(t *testing.T) {
	definitions, err := read(crd.Definitions)
	if err != nil || len(definitions) < 2 {
		t.Fatalf("%d definitions: %v", len(definitions), err)
	}
	all := resourcesOf(definitions)
	one := resourcesOf(definitions)
	one.APIResources = one.APIResources[1:]
	for name, tt := range map[string]struct {
		reason string
		status int
		served *metav1.APIResourceList
		away   bool
		want   string
	}{
		"all":            {"every resource is served", http.StatusOK, all, false, ""},
		"none":           {"a starting API server serves all other kinds first", http.StatusNotFound, nil, true, "does not answer yet under /apis/social.herald.dev/v1alpha1/apikeys"},
		"not one":        {"a definition was applied a moment ago, or its name is another's", http.StatusOK, one, true, "see the conditions of: kubectl describe crd apikeys.social.herald.dev"},
		"unavailable":    {"the API server is starting", http.StatusServiceUnavailable, nil, true, "the Kubernetes API serves under /apis/social.herald.dev/v1alpha1"},
		"no Retry-After": {"without the permission, the first request shows it", http.StatusForbidden, nil, false, ""},
		"no such lists":  {"the server is not a Kubernetes API", http.StatusOK, nil, false, "parse the resources that the Kubernetes API serves"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tt.status)
				if tt.served == nil {
					_, _ = w.Write([]byte("trouble"))
					return
				}
				_ = json.NewEncoder(w).Encode(tt.served)
			}))
			defer server.Close()
			client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			must.Succeed(t, err)
			err = checkServed(t.Context(), client.RESTClient(), definitions)
			if got := fmt.Sprint(err); (tt.want == "") != (err == nil) || !strings.Contains(got, tt.want) || errors.Is(err, ErrUnavailable) != tt.away {
				t.Errorf("%s: got %v", tt.reason, err)
			}
		})
	}
}

// resourcesOf returns the API's list of served resources for the given CRDs.
func resourcesOf(definitions []*apiextensionsv1.CustomResourceDefinition) *metav1.APIResourceList {
	list := &metav1.APIResourceList{}
	for _, d := range definitions {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: d.Spec.Names.Plural}, metav1.APIResource{Name: d.Spec.Names.Plural + "/status"})
	}
	return list
}

// TestUnavailable distinguishes transient errors from others.
func TestUnavailable(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		status int
		away   bool
	}{
		"no listener":       {"the control plane is being restarted", 0, true},
		"not available":     {"a load balancer without a backend", http.StatusServiceUnavailable, true},
		"too many requests": {"the API server is busy", http.StatusTooManyRequests, true},
		"internal":          {"etcd is unavailable", http.StatusInternalServerError, true},
		"gateway":           {"a proxy in between", http.StatusBadGateway, true},
		"unauthorized":      {"an invalid token stays invalid", http.StatusUnauthorized, false},
		"forbidden":         {"a right is missing", http.StatusForbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, "trouble", tt.status)
			}))
			defer server.Close()
			if tt.status == 0 {
				server.Close()
			}
			if err := Check(t.Context(), &rest.Config{Host: server.URL}, crd.Definitions); errors.Is(err, ErrUnavailable) != tt.away {
				t.Errorf("%s: got %v", tt.reason, err)
			}
		})
	}
}
