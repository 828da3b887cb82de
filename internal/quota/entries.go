// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota counts what a team may do only so often. Each counter is a
// ConfigMap, which every apiserver replica and the manager write under optimistic
// concurrency: the limit holds however they race. All counters are in one
// namespace of their own, since users of a team's namespace may be allowed to
// change the ConfigMaps there.
//
// A counter has an entry for each post, by the name of the post: the same post
// never counts twice, and what a post took and did not use can be given back.
// Teams without limits have no counters.
package quota

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Limit is how much may be taken of a counter.
type Limit struct {
	// Most is how many.
	Most int
	// Within is the length of the sliding window that Most holds for; zero means
	// that everything in the counter counts.
	Within time.Duration
}

// Item is what one target of a post takes.
type Item struct {
	// Target is its index in the post.
	Target int `json:"target"`
	// Count is how much it takes; never zero.
	Count int `json:"count"`
	// At is when the target is to be published.
	At time.Time `json:"at"`
}

// Entry is what the posts of one name have taken.
type Entry struct {
	// UID is that of the post whose delivery took the items. It is empty while
	// they are only reserved: before the post is created, or before its time.
	UID types.UID `json:"uid,omitempty"`
	// Since is when the entry, or its latest reservation, was made.
	Since time.Time `json:"since"`
	// By is the latest request that reserved the items. Only that request may
	// undo its reservation, since a later one may rely on it.
	By string `json:"by,omitempty"`
	// Settled says that the items of the post do not change any more.
	Settled bool `json:"settled,omitempty"`
	// Items are those of the post, one for each target. While they are only
	// reserved, a counter with a window has one for each time that was asked for.
	Items []Item `json:"shares,omitempty"`
	// Earlier are the items of deleted posts of the same name.
	Earlier []Item `json:"earlier,omitempty"`
}

func (e *Entry) clone() *Entry {
	c := *e
	c.Items, c.Earlier = slices.Clone(e.Items), slices.Clone(e.Earlier)
	return &c
}

// empty reports whether an entry holds no items.
func (e *Entry) empty() bool { return len(e.Items) == 0 && len(e.Earlier) == 0 }

// Reduce lowers what the targets of an entry take to what keep returns, where
// that is less. It reports whether anything changed.
func (e *Entry) Reduce(keep func(target int) int) (changed bool) {
	items := e.Items[:0:0]
	for _, item := range e.Items {
		if kept := max(keep(item.Target), 0); kept < item.Count {
			item.Count = kept
			changed = true
		}
		if item.Count > 0 {
			items = append(items, item)
		}
	}
	e.Items = items
	return changed
}

// Entries is the content of a counter, by the name of the post.
type Entries map[string]*Entry

// Used returns how much is taken in all.
func (p Entries) Used() int {
	used := 0
	for _, e := range p {
		for _, item := range slices.Concat(e.Items, e.Earlier) {
			used += item.Count
		}
	}
	return used
}

// Forget drops the items that were to be published before a time.
func (p Entries) Forget(before time.Time) (changed bool) {
	past := func(item Item) bool { return item.At.Before(before) }
	for name, e := range p {
		n := len(e.Items) + len(e.Earlier)
		e.Items, e.Earlier = slices.DeleteFunc(e.Items, past), slices.DeleteFunc(e.Earlier, past)
		changed = changed || len(e.Items)+len(e.Earlier) < n
		if e.empty() {
			delete(p, name)
		}
	}
	return changed
}

// Reservation is what a post wants to take of a counter.
type Reservation struct {
	// Post is its name.
	Post string
	// UID is set when the post is about to be delivered: from then on its items
	// count whatever becomes of the object.
	UID types.UID
	// By identifies the request that reserves, so that it does not undo what
	// another request for the same post relies on. A sole request may leave it
	// empty.
	By string
	// Gone is the UID of a post of that name that is known to be deleted.
	Gone types.UID
	// Items are what its targets want, one for each target.
	Items []Item
	// Keep, if set, returns how much each target keeps of what it had before. The
	// rest is given back first.
	Keep func(target int) int
	// AllowPartial grants the items for which enough is left; otherwise all are
	// granted or none.
	AllowPartial bool
}

// Answer is what became of a reservation.
type Answer struct {
	// Added are the targets that had no item, or a smaller one, before.
	Added []int
	// Before are the items that the post had before, if any was added.
	Before []Item
	// Refused are the targets for which there is not enough left.
	Refused []int
	// Used is how much of the limit is taken at the time for which the first
	// refused target wanted its item.
	Used int
	// Delivered is the UID of the post of that name whose delivery has taken the
	// entry, if the caller only reserves and does not know that this post is
	// gone. Nothing was taken then: it is the same post, which needs no more, or
	// another one, which still counts.
	Delivered types.UID
}

// take grants a reservation as far as the limit allows. It reports whether the
// entries have to be stored.
func (p Entries) take(w *Reservation, limit Limit, now time.Time) (answer Answer, changed bool) {
	e := &Entry{Since: now.UTC()}
	if known := p[w.Post]; known != nil {
		e = known.clone()
	}
	if e.UID != "" && e.UID != w.UID {
		if w.UID == "" && e.UID != w.Gone {
			return Answer{Delivered: e.UID}, false
		}
		// A post of that name was delivered and has been deleted since.
		e = &Entry{Since: now.UTC(), Earlier: slices.Concat(e.Earlier, e.Items)}
		changed = true
	}
	if w.Keep != nil && e.Reduce(w.Keep) {
		changed = true
	}
	others, before := p.others(w.Post, e), e.Items
	for _, want := range w.Items {
		switch used, decision := e.give(want, others, limit, w.UID != ""); decision {
		case given:
			answer.Added, answer.Before = append(answer.Added, want.Target), before
			changed = true
		case refused:
			if len(answer.Refused) == 0 {
				answer.Used = used
			}
			answer.Refused = append(answer.Refused, want.Target)
		case held:
			changed = changed || len(e.Items) < len(before)
		}
	}
	if len(answer.Refused) > 0 && !w.AllowPartial {
		first := w.Items[slices.IndexFunc(w.Items, func(s Item) bool { return s.Target == answer.Refused[0] })]
		return Answer{Refused: answer.Refused, Used: busiest(slices.Concat(others, before), first.At, limit.Within)}, false
	}
	if e.setOwner(w, now) {
		changed = true
	}
	p.set(w.Post, e)
	return answer, changed
}

// setOwner records who holds the items of an entry now.
func (e *Entry) setOwner(w *Reservation, now time.Time) (changed bool) {
	switch {
	case len(e.Items) == 0:
		return false
	case w.UID != "":
		changed = e.UID != w.UID || e.Settled || e.By != ""
		e.UID, e.Settled, e.By = w.UID, false, ""
	case e.By != w.By:
		changed = true
		// This request may take a while to create the post.
		e.By, e.Since = w.By, now.UTC()
	}
	return changed
}

// undo restores what a post had before a reservation, unless another request has
// reserved for the same post since, or its delivery has begun.
func (p Entries) undo(w *Reservation, granted Answer, limit Limit) (changed bool) {
	if p[w.Post] == nil || p[w.Post].UID != "" || p[w.Post].By != w.By {
		return false
	}
	e := p[w.Post].clone()
	e.Items = nil
	for _, item := range p[w.Post].Items {
		added := slices.Contains(granted.Added, item.Target) &&
			slices.ContainsFunc(w.Items, func(s Item) bool { return s.Target == item.Target && s.At.Equal(item.At) })
		if added {
			former := 0
			if had := slices.IndexFunc(granted.Before, limit.stands(item, false)); had >= 0 {
				former = granted.Before[had].Count
			}
			changed = changed || former < item.Count
			item.Count = min(item.Count, former)
		}
		if item.Count > 0 {
			e.Items = append(e.Items, item)
		}
	}
	p.set(w.Post, e)
	return changed
}

func (p Entries) set(post string, e *Entry) {
	if e.empty() {
		delete(p, post)
		return
	}
	p[post] = e
}

// decision is what became of one item.
type decision int

const (
	held decision = iota // it was there before
	given
	refused
)

// sameMoment is how far apart the times of two requests for the same post may be.
// A post that is published at once has the time of its request, and a repeated
// request has a later one.
const sameMoment = time.Minute

// stands returns a function that reports whether an item is the wanted one: of
// the same target and, if the limit has a window, of the same time. exactly asks
// for the very same time.
func (l Limit) stands(want Item, exactly bool) func(Item) bool {
	return func(s Item) bool {
		apart := s.At.Sub(want.At).Abs()
		return s.Target == want.Target && (l.Within == 0 || apart == 0 || !exactly && apart <= sameMoment)
	}
}

// give adds an item to an entry, or replaces a smaller one, if the limit allows
// it beside what others hold. A delivery gives up the target's other times; a
// reservation leaves them to the requests that made them. used is what is taken
// without the item.
func (e *Entry) give(want Item, others []Item, limit Limit, delivers bool) (used int, v decision) {
	want.At = want.At.UTC()
	stands := limit.stands(want, delivers)
	if slices.ContainsFunc(e.Items, func(s Item) bool { return stands(s) && s.Count >= want.Count }) {
		if delivers {
			e.Items = slices.DeleteFunc(slices.Clone(e.Items), func(s Item) bool { return s.Target == want.Target && !stands(s) })
		}
		return 0, held
	}
	rest := slices.DeleteFunc(slices.Clone(e.Items), func(s Item) bool {
		return stands(s) || delivers && s.Target == want.Target
	})
	if used = busiest(slices.Concat(others, rest), want.At, limit.Within); used+want.Count > limit.Most {
		return used, refused
	}
	rest = append(rest, want)
	e.Items = rest
	return used, given
}

// others returns all items but those of one entry's present post.
func (p Entries) others(post string, e *Entry) []Item {
	all := slices.Clone(e.Earlier)
	for name, other := range p {
		if name != post {
			all = append(append(all, other.Items...), other.Earlier...)
		}
	}
	return all
}

// busiest returns how much is taken in the fullest window that contains an
// instant. A window does not include its end: two items that lie a whole window
// apart are never in the same one. Without a window everything counts.
func busiest(items []Item, at time.Time, span time.Duration) int {
	from := func(start time.Time) int {
		sum := 0
		for _, s := range items {
			if span == 0 || !s.At.Before(start) && s.At.Sub(start) < span {
				sum += s.Count
			}
		}
		return sum
	}
	most := from(at)
	for _, s := range items {
		if before := at.Sub(s.At); before > 0 && before < span {
			most = max(most, from(s.At))
		}
	}
	return most
}
