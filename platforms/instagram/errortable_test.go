// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"testing"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta/metatest"
)

// TestErrorTable has an expectation for each row of the table, and compares the page that documents it. To write the
// page, run go test -run ErrorTable -args -update.
func TestErrorTable(t *testing.T) {
	p := New(Config{}, nil)
	notTaken := metatest.Trouble
	want := map[string]metatest.Want{
		"-1/2207001": notTaken, "-2/2207003": notTaken, "24/2207006": notTaken, "24/2207008": notTaken, "-2/2207020": notTaken,
		"9007/2207027": notTaken, "-1/2207032": notTaken, "-1/2207053": notTaken, "2207077": notTaken, "2207082": notTaken,
		"36000/2207004": metatest.BadFile, "36001/2207005": metatest.BadFile, "36003/2207009": metatest.BadFile, "100/2207023": metatest.BadFile,
		"352/2207026": metatest.BadFile, "1/2207057": metatest.BadFile, "36004/2207010": metatest.BadText,
		"100/2207028": metatest.Refused, "100/2207035": metatest.Refused, "100/2207036": metatest.Refused, "100/2207037": metatest.Refused,
		"100/2207040": metatest.Refused, "9/2207042": metatest.Blocked, "9004/2207052": metatest.NotFetched,
		"2207081": {Class: platforms.ClassPermanent, Subject: platforms.SubjectAccount},
	}
	for _, h := range []*host{&p.own, &p.linked} {
		metatest.CheckErrors(t, "instagram", &h.Graph, want)
	}
}
