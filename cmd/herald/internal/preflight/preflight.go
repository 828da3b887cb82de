// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight checks at startup whether the Kubernetes API supports this version of Herald. An API that is too
// old silently drops unknown fields.
package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Oldest is the oldest supported version of Kubernetes: the first with stable selectable fields of custom resources,
// which keep finished posts out of the manager's memory (KEP-4358, GA in 1.32).
const Oldest = "1.32"

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get,resourceNames=apikeys.social.herald.dev;connections.social.herald.dev;media.social.herald.dev;notifiers.social.herald.dev;oauthgrants.social.herald.dev;posts.social.herald.dev;postschedules.social.herald.dev;teams.social.herald.dev;usages.social.herald.dev

// definitionsPath is the API path of CRDs.
const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// apply is the remedy for outdated CRDs.
const apply = "kubectl apply --server-side -f config/crd/bases, or the chart with crds.enabled"

// ErrUnread means that the CRDs could not be compared, because this account is not allowed to read them.
var ErrUnread = errors.New("the resource definitions cannot be compared with this version")

// ErrOlder means that a served CRD lacks something that this program needs.
var ErrOlder = errors.New("is older than this program")

// Check returns an error with a remedy if the Kubernetes API or its CRDs are too old, and ErrUnavailable if it does not
// serve the resources yet. definitions are the CRDs that this program was built with.
func Check(ctx context.Context, config *rest.Config, definitions fs.FS) error {
	wanted, err := read(definitions)
	if err != nil {
		return err
	}
	client, err := connect(config)
	if err != nil {
		return err
	}
	compared := compare(ctx, client, wanted)
	if compared != nil && !errors.Is(compared, ErrUnread) {
		return compared
	}
	if err := checkServed(ctx, client.RESTClient(), wanted); err != nil {
		return err
	}
	return compared
}

func connect(config *rest.Config) (*discovery.DiscoveryClient, error) {
	bounded := rest.CopyConfig(config)
	bounded.Timeout = responseTimeout
	client, err := discovery.NewDiscoveryClientForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("reach the Kubernetes API: %w", err)
	}
	return client, nil
}

func compare(ctx context.Context, client *discovery.DiscoveryClient, wanted []*apiextensionsv1.CustomResourceDefinition) error {
	serverVersion, err := client.ServerVersionWithContext(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the Kubernetes API: %w", asUnavailable(err))
	}
	if err := checkVersion(serverVersion.GitVersion); err != nil {
		return err
	}
	for _, want := range wanted {
		served := &apiextensionsv1.CustomResourceDefinition{}
		data, err := client.RESTClient().Get().AbsPath(definitionsPath, want.Name).DoRaw(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the Kubernetes API does not serve %s; apply the resource definitions of this version (%s)", want.Name, apply)
		case apierrors.IsForbidden(err):
			return fmt.Errorf("%w: this account may not read %s; grant it the right (config/rbac)", ErrUnread, want.Name)
		case err != nil:
			return fmt.Errorf("read the resource definition %s: %w", want.Name, asUnavailable(err))
		}
		if err := json.Unmarshal(data, served); err != nil {
			return fmt.Errorf("read the resource definition %s: %w", want.Name, err)
		}
		if lacks := missing(want, served); len(lacks) > 0 {
			return fmt.Errorf("the served resource definition %s %w: it lacks %s; apply this version's definition (%s)",
				want.Name, ErrOlder, strings.Join(lacks, ", "), apply)
		}
	}
	return nil
}

// checkServed returns ErrUnavailable if a defined resource is not served yet. A starting API server serves custom
// resources last, and a new definition takes a moment.
func checkServed(ctx context.Context, client rest.Interface, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	served := map[string][]string{}
	for _, d := range definitions {
		for i := range d.Spec.Versions {
			path := "/apis/" + d.Spec.Group + "/" + d.Spec.Versions[i].Name
			if _, asked := served[path]; !asked {
				names, err := servedUnder(ctx, client, path)
				switch {
				case apierrors.IsForbidden(err):
					return nil // The process will get the same error itself.
				case err != nil:
					return err
				}
				served[path] = names
			}
			if !slices.Contains(served[path], d.Spec.Names.Plural) {
				return fmt.Errorf("%w yet under %s/%s, though it has the resource definition; if that lasts, see the conditions of: kubectl describe crd %s",
					ErrUnavailable, path, d.Spec.Names.Plural, d.Name)
			}
		}
	}
	return nil
}

// servedUnder returns the names of the resources that the Kubernetes API serves under path, or none if it does not know
// the path.
func servedUnder(ctx context.Context, client rest.Interface, path string) (names []string, err error) {
	data, err := client.Get().AbsPath(path).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the resources that the Kubernetes API serves under %s: %w", path, asUnavailable(err))
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("parse the resources that the Kubernetes API serves under %s: %w", path, err)
	}
	for i := range list.APIResources {
		names = append(names, list.APIResources[i].Name)
	}
	return names, nil
}

func checkVersion(served string) error {
	have, err := version.ParseGeneric(served)
	if err != nil {
		return fmt.Errorf("the Kubernetes API reports %q, which is not a version: %w", served, err)
	}
	if have.LessThan(version.MustParseGeneric(Oldest)) {
		return fmt.Errorf("the cluster's Kubernetes, %s, is too old: Herald needs %s or newer, which can select posts by the fields of their status; upgrade the cluster", served, Oldest)
	}
	return nil
}

func read(definitions fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	paths, err := fs.Glob(definitions, "*/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the resource definitions: %w", err)
	}
	for _, path := range paths {
		data, err := fs.ReadFile(definitions, path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		all = append(all, crd)
	}
	return all, nil
}

// maxMissing limits the fields that a message names.
const maxMissing = 5

// missing returns the versions, fields and selectable fields that the served CRD lacks. It ignores additional ones,
// which come from a newer version.
func missing(want, served *apiextensionsv1.CustomResourceDefinition) (lacks []string) {
	for i := range want.Spec.Versions {
		w := &want.Spec.Versions[i]
		at := slices.IndexFunc(served.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == w.Name && v.Served })
		if at < 0 {
			lacks = append(lacks, "version "+w.Name)
			continue
		}
		s := &served.Spec.Versions[at]
		for _, field := range w.SelectableFields {
			if !slices.Contains(s.SelectableFields, field) {
				lacks = append(lacks, "the selectable field "+field.JSONPath)
			}
		}
		var schema *apiextensionsv1.JSONSchemaProps
		if s.Schema != nil {
			schema = s.Schema.OpenAPIV3Schema
		}
		lacks = append(lacks, missingFields(w.Schema.OpenAPIV3Schema, schema, "")...)
	}
	if len(lacks) > maxMissing {
		lacks = append(lacks[:maxMissing], fmt.Sprintf("and %d more", len(lacks)-maxMissing))
	}
	return lacks
}

func missingFields(want, served *apiextensionsv1.JSONSchemaProps, path string) (lacks []string) {
	if served == nil {
		return []string{strings.TrimPrefix(path, ".")}
	}
	names := make([]string, 0, len(want.Properties))
	for name := range want.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w := want.Properties[name]
		s, ok := served.Properties[name]
		if !ok {
			lacks = append(lacks, strings.TrimPrefix(path+"."+name, "."))
			continue
		}
		lacks = append(lacks, missingFields(&w, &s, path+"."+name)...)
	}
	if want.Items != nil && want.Items.Schema != nil {
		var items *apiextensionsv1.JSONSchemaProps
		if served.Items != nil {
			items = served.Items.Schema
		}
		lacks = append(lacks, missingFields(want.Items.Schema, items, path+"[]")...)
	}
	return lacks
}
