// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Users may give the register's name to their own Secrets, even to a Connection's input. Herald only reads these.
func TestUsersSecretIsNotARegister(t *testing.T) {
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: RegisterName},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"accessToken": []byte("a")},
	}
	store, api := newStore(clocktesting.NewFakeClock(noon), interceptor.Funcs{}, theirs.DeepCopy(), secretWith(map[string]string{"accessToken": "a"}))
	seeded(t, store)
	before := secretOf(t, api, RegisterName)
	entry := RegisterEntryOf(connection())
	if err := store.Register(t.Context(), "team", entry); ReasonOf(err) != Invalid || !strings.Contains(err.Error(), "rename it") {
		t.Errorf("a user has to act: %v", err)
	}
	if _, err := store.Entries(t.Context(), "team"); ReasonOf(err) != Invalid {
		t.Errorf("a Secret without Herald's entries returned %v", err)
	}
	if err := store.Remove(t.Context(), "team", entry); err != nil {
		t.Errorf("tokens are not deleted when the account is disconnected: %v", err)
	}
	if _, err := store.Working(t.Context(), connection()); ReasonOf(err) != NotFound {
		t.Errorf("the copy: %v", err)
	}
	if diff := cmp.Diff(before, secretOf(t, api, RegisterName)); diff != "" {
		t.Errorf("another tool's Secret was changed:\n%s", diff)
	}
}

func secretOf(t *testing.T, api client.Reader, name string) *corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, &secret); err != nil {
		t.Fatal(err)
	}
	return &secret
}
