// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

// Files returns the number of the view's files: those in use, and those that readers may still use.
func (v *View) Files() int {
	n := len(v.manifest.ids()) + len(v.manifest.obsolete)
	if v.index.manifest != (ID{}) {
		n++
	}
	return n + 1
}

// Gathered returns the number of a team's posts that are waiting for the next write.
func (w *Writer) Gathered(of Team) int {
	t := w.team(of)
	t.gathering.Lock()
	defer t.gathering.Unlock()
	if t.next == nil {
		return 0
	}
	return len(t.next.rows)
}
