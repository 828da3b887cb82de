// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

// Ignored returns the paths of up to most members that no reader has requested, in document order. It descends only
// into objects with a requested member: the content of an ignored value is not listed, and neither is that of a value
// that was rejected before its members were read.
func (v Value) Ignored(most int) []string {
	var ignored []string
	for i := 0; i < len(v.doc.nodes) && len(ignored) < most; {
		n := &v.doc.nodes[i]
		switch {
		case n.parent >= 0 && v.doc.nodes[n.parent].entered && !n.used:
			ignored = append(ignored, v.doc.path(i))
			i = n.next
		case n.kind == object && !n.entered:
			i = n.next
		default:
			i++ // continue with its members
		}
	}
	return ignored
}
