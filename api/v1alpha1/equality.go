// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
)

// equalities compares what Kubernetes compares by meaning, and this package's
// times by the instant they stand for.
var equalities = func() conversion.Equalities {
	e := equality.Semantic.Copy()
	if err := e.AddFunc(func(a, b Time) bool { return a.Time.Equal(b.Time) }); err != nil {
		panic(err)
	}
	return e
}()

// SemanticEqual reports whether two values mean the same: nil and empty lists
// do, and times in different zones may.
func SemanticEqual(a, b any) bool { return equalities.DeepEqual(a, b) }
