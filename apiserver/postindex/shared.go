// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

// shared numbers the distinct values that many entries have in common, so an entry holds a number instead of pointers.
type shared[K comparable, V any] struct {
	numbers map[K]uint32
	list    []sharedValue[K, V]
	free    []uint32
}

type sharedValue[K comparable, V any] struct {
	key   K
	value V
	// users is the number of entries with this value; zero in an unused place.
	users int
}

func newShared[K comparable, V any]() *shared[K, V] { return &shared[K, V]{numbers: map[K]uint32{}} }

// acquire adds a reference to the value of a key, and returns its number. fresh returns a new value, with the key to
// keep.
func (s *shared[K, V]) acquire(key K, fresh func() (K, V)) uint32 {
	number, known := s.numbers[key]
	if !known {
		key, value := fresh()
		added := sharedValue[K, V]{key: key, value: value}
		if last := len(s.free) - 1; last >= 0 {
			number, s.free = s.free[last], s.free[:last]
			s.list[number] = added
		} else {
			number, s.list = uint32(len(s.list)), append(s.list, added) //nolint:gosec // at most one per post
		}
		s.numbers[key] = number
	}
	s.list[number].users++
	return number
}

// release removes a reference to a value. A value without references is deleted.
func (s *shared[K, V]) release(number uint32) {
	of := &s.list[number]
	of.users--
	if of.users > 0 {
		return
	}
	delete(s.numbers, of.key)
	*of = sharedValue[K, V]{}
	s.free = append(s.free, number)
}

func (s *shared[K, V]) at(number uint32) *V { return &s.list[number].value }
