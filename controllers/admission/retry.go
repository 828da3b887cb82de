// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/rules"
)

// validateRetry, like the REST API, rejects a retry of a post without retriable targets. A failed post that is missing
// or not finished only causes a warning: a GitOps tool that restores both posts applies them at once, and each adopts
// its record. A target that cannot be retried only causes a warning if others can.
func (p *PostValidator) validateRetry(ctx context.Context, post *v1alpha1.Post, env *rules.Env) (admission.Warnings, field.ErrorList, error) {
	if post.Spec.RetryOf == nil {
		return nil, nil, nil
	}
	name, path := post.Spec.RetryOf.Name, field.NewPath("spec", "retryOf", "name")
	original, err := read(ctx, p.APIReader, post.Namespace, name, &v1alpha1.Post{})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("cannot read post %q: %w", name, err)
	case original == nil:
		return admission.Warnings{fmt.Sprintf("%s: the namespace has no post %q: it was deleted or archived, or does not exist yet; the targets of this post fail", path, name)}, nil, nil
	}
	connections := map[string]*v1alpha1.Connection{}
	for i := range post.Spec.Targets {
		if found := env.Connection(post.Spec.Targets[i].ConnectionRef.Name); found != nil {
			connections[found.Name] = found
		}
	}
	check := delivery.CheckRetry(post, original, connections)
	switch phase := posting.Of(original).Phase(); {
	case check.Undecided != "":
		return nil, field.ErrorList{field.Invalid(path, name, check.Undecided)}, nil
	case check.Waits != "":
		return admission.Warnings{fmt.Sprintf("%s: %s; this post waits for it until its starting deadline", path, check.Waits)}, nil, nil
	case phase != v1alpha1.PhaseFailed:
		return nil, field.ErrorList{field.Invalid(path, name, fmt.Sprintf("the post is %s; only a failed post can be retried", phase))}, nil
	}
	var warnings admission.Warnings
	var refused field.ErrorList
	for i, problem := range check.Refused {
		if problem != "" {
			at := field.NewPath("spec", "targets").Index(i).Child("connectionRef", "name")
			warnings = append(warnings, fmt.Sprintf("%s: %s; this target fails", at, problem))
			refused = append(refused, field.Invalid(at, post.Spec.Targets[i].ConnectionRef.Name, problem))
		}
	}
	if len(refused) == len(post.Spec.Targets) {
		return nil, refused, nil
	}
	return warnings, nil, nil
}
