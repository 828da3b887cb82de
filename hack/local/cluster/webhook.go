// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyWebhook applies the webhook configuration of a file as it is, except that its webhooks are served at an address
// instead of by a Service, because there is none here. What others have put into it, the authority to trust, stays.
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

// path is where the manager serves the webhook. Under a Service the manager chooses one below it, which the file leaves to it.
const path = "/validate-post"

func serveAt(config *unstructured.Unstructured, address string) error {
	webhooks, found, err := unstructured.NestedSlice(config.Object, "webhooks")
	if err != nil || !found {
		return fmt.Errorf("%s %s has no webhooks", config.GetKind(), config.GetName())
	}
	for _, webhook := range webhooks {
		fields, ok := webhook.(map[string]any)
		if !ok {
			return fmt.Errorf("a webhook of %s is no object", config.GetName())
		}
		fields["clientConfig"] = map[string]any{"url": address + path}
	}
	return unstructured.SetNestedSlice(config.Object, webhooks, "webhooks")
}
