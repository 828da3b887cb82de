// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// TestLabelAll labels posts while an admission webhook of a third party rejects or changes some of the updates.
func TestLabelAll(t *testing.T) {
	denied := errors.New(`admission webhook "names.example.com" denied the request`)
	reject := func(context.Context, client.Object) error { return denied }
	replace := func(_ context.Context, post client.Object) error {
		post.SetLabels(map[string]string{v1alpha1.ShardLabel: "00"})
		return nil
	}
	for name, tc := range map[string]struct {
		reason string
		posts  int
		// patch handles the patches of the first posts, up to the given number.
		first    int
		patch    func(ctx context.Context, post client.Object) error
		labelled int
		// patches is the number of patches that are sent.
		patches int
		errors  []string
	}{
		"no posts":           {reason: "nothing needs a label"},
		"all are accepted":   {reason: "each is patched once", posts: 3, labelled: 3, patches: 3},
		"the first rejected": {reason: "the others do not wait for it; it is tried again in the pass that finds no others", posts: 3, first: 1, patch: reject, labelled: 2, patches: 4, errors: []string{"with shard 01: p00; the first", denied.Error()}},
		"all rejected":       {reason: "a pass that labels nothing is the last one", posts: 3, first: 3, patch: reject, patches: 3, errors: []string{"with shard 01: p00, p01, p02; the first", denied.Error()}},
		"many rejected":      {reason: "a message for each of thousands would fill the log", posts: 30, first: 30, patch: reject, patches: 30, errors: []string{"p09, and 20 more; the first"}},
		"a replaced label":   {reason: "a webhook may restore the label without an error, and would never stop", posts: 2, first: 1, patch: replace, labelled: 1, patches: 3, errors: []string{"with shard 01: p00; the first", `"00"`}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			must.Succeed(t, v1alpha1.AddToScheme(scheme))
			posts := fake.NewClientBuilder().WithScheme(scheme)
			for i := range tc.posts {
				posts.WithObjects(&v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{
					Namespace: "acme", Name: fmt.Sprintf("p%02d", i), Labels: map[string]string{v1alpha1.ShardLabel: "00"},
				}})
			}
			patches := 0
			k8s := posts.WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					var o client.ListOptions
					o.ApplyOptions(options)
					return c.List(ctx, list, &client.ListOptions{Namespace: o.Namespace, LabelSelector: o.LabelSelector}) // it knows no other selectors
				},
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
					patches++
					if patches > 100 {
						t.Fatalf("%s: the posts are patched for ever", tc.reason)
					}
					if obj.GetName() < fmt.Sprintf("p%02d", tc.first) {
						return tc.patch(ctx, obj)
					}
					return c.Patch(ctx, obj, patch, options...)
				},
			}).Build()
			r := &Reconciler{Options{Client: k8s, APIReader: k8s}}

			err := r.labelAll(t.Context(), "acme", "01", selection.NotEquals, "01")
			if (err != nil) != (tc.errors != nil) {
				t.Errorf("%s: got the error %v", tc.reason, err)
			}
			for _, want := range tc.errors {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the error is %q, want %q in it", tc.reason, err, want)
				}
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("%s: the error has %d bytes", tc.reason, len(err.Error()))
			}
			var labelled v1alpha1.PostList
			must.Succeed(t, k8s.List(t.Context(), &labelled, client.MatchingLabels{v1alpha1.ShardLabel: "01"}))
			if len(labelled.Items) != tc.labelled || patches != tc.patches {
				t.Errorf("%s: %d posts are labelled after %d patches, want %d after %d", tc.reason, len(labelled.Items), patches, tc.labelled, tc.patches)
			}
		})
	}
}

// TestLabelAllStops ends the context during the first patch: the other posts are not tried.
func TestLabelAllStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	patches := 0
	k8s := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if page, ok := list.(*metav1.PartialObjectMetadataList); ok {
				page.Items = make([]metav1.PartialObjectMetadata, 9)
			}
			return nil
		},
		Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
			patches++
			cancel()
			return ctx.Err()
		},
	}).Build()
	r := &Reconciler{Options{Client: k8s, APIReader: k8s}}
	if err := r.labelAll(ctx, "acme", "01", selection.NotEquals, "01"); !errors.Is(err, context.Canceled) || patches != 1 {
		t.Errorf("got %v after %d patches, want the context's error after one", err, patches)
	}
}
