// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

func TestCannotFetch(t *testing.T) {
	for name, tc := range map[string]struct{ reason, url, want string }{
		"plain":    {"it is told", "https://a.example/b.png", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"query":    {"it may hold a signature", "https://a.example/b.png?X-Amz-Signature=secret", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"fragment": {"it may hold a token", "https://a.example/b.png#token=secret", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"no path":  {"the query begins at once", "https://a.example?key=secret", "The source https://a.example cannot be fetched: it is empty."},
	} {
		if got := cannotFetch(tc.url, "it is empty"); got != tc.want {
			t.Errorf("%s: %s, but got %q", name, tc.reason, got)
		}
	}
}

// The Kubernetes API refuses an event whose note has more than 1,024 bytes, and
// nobody would hear of it.
func TestEventsFit(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	r := &Reconciler{Options: Options{Events: recorder}}
	m := &v1alpha1.Media{}
	conditions.Apply(&m.Status.Conditions, conditions.Summary{
		Reason: v1alpha1.ReasonSourceRefused, Message: cannotFetch("https://a.example/"+strings.Repeat("é", 1015), "it is empty"),
	}, 1, noon)
	r.tell(m, "")
	note := strings.TrimPrefix(<-recorder.Events, "Warning SourceRefused ")
	if !strings.HasPrefix(note, "The source https://a.example/é") || !strings.HasSuffix(note, "é… cannot be fetched: it is empty.") {
		t.Errorf("a long address hides why: %q", note)
	}
	conditions.Apply(&m.Status.Conditions, conditions.Summary{Reason: v1alpha1.ReasonSourceRefused, Message: strings.Repeat("é", 2000)}, 1, noon)
	r.tell(m, "")
	note = strings.TrimPrefix(<-recorder.Events, "Warning SourceRefused ")
	if len(note) > 1024 || len(note) < 900 || !utf8.ValidString(note) {
		t.Errorf("%d bytes: %q", len(note), note)
	}
}
