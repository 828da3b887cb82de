// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyWebhook applies a webhook configuration from a file, with an address in place of the Service, which does not
// exist here. It keeps the CA bundle that other programs have set.
func ApplyWebhook(ctx context.Context, c client.Client, file, address string) error {
	objects, err := readObjects(file)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := serveAt(object, address); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return applyAll(ctx, c, objects, false)
}

// path is the manager's path for the webhook. With a Service, the file does not set a path and the manager chooses one
// below this.
const path = "/validate-post"

func serveAt(config *unstructured.Unstructured, address string) error {
	webhooks, found, err := unstructured.NestedSlice(config.Object, "webhooks")
	if err != nil || !found {
		return fmt.Errorf("%s %s has no webhooks", config.GetKind(), config.GetName())
	}
	for _, webhook := range webhooks {
		fields, ok := webhook.(map[string]any)
		if !ok {
			return fmt.Errorf("a webhook of %s is not an object", config.GetName())
		}
		fields["clientConfig"] = map[string]any{"url": address + path}
	}
	return unstructured.SetNestedSlice(config.Object, webhooks, "webhooks")
}
