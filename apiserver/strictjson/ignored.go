// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

// Ignored returns the paths of the members that no reader has asked for, in the order of the document, at most so many. It
// looks into the objects alone of which a member was asked for: what an ignored value holds is ignored with it, and of what
// was refused before anything in it was read nothing is known.
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
			i++ // its members follow
		}
	}
	return ignored
}
