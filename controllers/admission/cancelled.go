// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/herald-social/herald/api/v1alpha1"
)

func cancelledWarning(stored *v1alpha1.Post) string {
	when := "" // The manager has not recorded it yet.
	if at := stored.Status.CancelledAt; at != nil {
		when = " at " + at.String()
	}
	return fmt.Sprintf("this post was cancelled%s%s and remains cancelled: this change has no effect. To publish it, apply it under another name",
		when, cancelledBy(stored))
}

func cancelledBy(stored *v1alpha1.Post) string {
	if !stored.Spec.Cancelled {
		return "" // Another client has since applied another value and owns the field.
	}
	var managers []string
	for _, entry := range stored.ManagedFields {
		if !slices.Contains(managers, entry.Manager) && hasField(entry.FieldsV1, cancelledField) {
			managers = append(managers, entry.Manager)
		}
	}
	if len(managers) == 0 {
		return ""
	}
	by := " by " + strings.Join(managers, " and ")
	if author := stored.Annotations[v1alpha1.LastAuthorAnnotation]; author != "" {
		by += " (last changed through the API by " + author + ")"
	}
	return by
}

var cancelledField = fieldpath.MakePathOrDie("spec", "cancelled")

func hasField(set *metav1.FieldsV1, path fieldpath.Path) bool {
	var fields fieldpath.Set
	return set != nil && fields.FromJSON(set.GetRawReader()) == nil && fields.Has(path)
}
