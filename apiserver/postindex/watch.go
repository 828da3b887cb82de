// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

// Watch is one watch that feeds an index, from all namespaces or from a single one. Watches progress independently, so
// each has its own resourceVersion and relists only its own namespace.
type Watch struct {
	index *Index
	// namespace is empty for the watch of all namespaces.
	namespace string
	// seen is the last resourceVersion that the watch has reported completely.
	seen uint64
	// round is the number of the current relist. restored is true if it, or an aborted predecessor, is of a store that
	// was restored from a backup.
	round    uint32
	restored bool
}

// Watch returns the watch of a namespace, or of all namespaces if the name is empty. An index is fed either by the
// watch of all namespaces or by watches of single ones, never by both.
func (x *Index) Watch(namespace string) *Watch {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.watches[namespace]
	if w == nil {
		w = &Watch{index: x, namespace: namespace}
		x.watches[namespace] = w
	}
	return w
}

func (x *Index) seen(namespace string) uint64 {
	for _, of := range [...]string{namespace, ""} {
		if w := x.watches[of]; w != nil {
			return w.seen
		}
	}
	return 0
}

// Progress records that the watch has reported everything up to a resourceVersion.
func (w *Watch) Progress(version uint64) {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	w.seen = max(w.seen, version)
}

func (w *Watch) covers(namespace string) bool {
	return w.namespace == "" || w.namespace == namespace
}
