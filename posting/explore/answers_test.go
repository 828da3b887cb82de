// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

// answers adds the outcomes of calls that a manager waits for.
func (w *world) answers(i int, add adder) {
	for k := range w.manager[i].ships {
		s := w.manager[i].ships[k]
		if s.phase != waiting {
			continue
		}
		name := "attempt " + s.attempt + ": "
		switch {
		case s.call.limit <= w.now && s.slow:
		case w.x.works:
			add(i, name+"taken", "", false, func(n *world) { n.answerProcessing(i, k, took) })
		default:
			add(i, name+"published", "", false, func(n *world) { n.published(i, k, true, yes) })
		}
		if w.now >= s.by {
			add(i, name+"takes too long", "", false, func(n *world) { n.orphan(i, k) })
			continue
		}
		if !s.slow {
			add(i, name+"takes long", slow, false, func(n *world) { n.manager[i].ships[k].slow = true })
		}
		add(i, name+"refused for the moment", busy, false, func(n *world) { n.answer(i, k, later, 0) })
		add(i, name+"refused permanently", refusal, false, func(n *world) { n.answer(i, k, no, 0) })
		add(i, name+"said to be a duplicate", duplicate, false, func(n *world) { n.answer(i, k, twin, 0) })
		w.lyingAnswers(i, k, add)
		if w.x.works {
			add(i, name+"taken, answer lost", answerLost, false, func(n *world) { n.answerProcessing(i, k, lost) })
		} else {
			add(i, name+"published, answer lost", answerLost, false, func(n *world) { n.published(i, k, false, lost) })
			add(i, name+"published, answer lost, listing lags", answerLost, false, func(n *world) { n.published(i, k, true, lost) })
		}
		add(i, name+"connection lost", answerLost, false, func(n *world) { n.orphan(i, k) })
	}
}

// lyingAnswers adds calls that are refused although they took effect. They are limited to calls that a lookup can find:
// an accepted call must be found without its operation ID, and a post must appear in the listing.
func (w *world) lyingAnswers(i, k int, add adder) {
	if w.x.works {
		if w.x.tells {
			for _, a := range []answer{later, no} {
				add(i, "attempt "+w.manager[i].ships[k].attempt+": taken, "+string(a), lies, false, func(n *world) { n.answerProcessing(i, k, a) })
			}
		}
		return
	}
	name := "attempt " + w.manager[i].ships[k].attempt + ": published, "
	answers := []answer{later, no}
	switch {
	case w.x.beyond.lag > 0:
		// No lookup finds a post that is listed later than this.
		answers = []answer{limited}
	case w.x.kinds != nil:
		answers = append(answers, limited)
	}
	for _, a := range answers {
		add(i, name+string(a), lies, false, func(n *world) { n.published(i, k, false, a) })
		if w.x.listing == reliable {
			add(i, name+string(a)+", listing lags", lies, false, func(n *world) { n.published(i, k, true, a) })
		}
	}
}

func (w *world) published(i, k int, hidden bool, a answer) {
	post := w.land(w.manager[i].ships[k].call, hidden)
	if post == 0 && a == yes {
		a = twin
	}
	if a != yes {
		post = 0
	}
	w.answer(i, k, a, post)
}

// orphan ends the wait for a call whose response was lost. The platform may still execute the call.
func (w *world) orphan(i, k int) {
	if c := w.manager[i].ships[k].call; c.limit > w.now {
		w.orphans = append(w.orphans, c)
	}
	w.answer(i, k, lost, 0)
}
