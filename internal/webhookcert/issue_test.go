// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookcert

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func made(t *testing.T, trusted []byte, hosts []string, at time.Time) map[string][]byte {
	t.Helper()
	data, err := issue(trusted, hosts, at)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestValid(t *testing.T) {
	hosts := []string{"herald-webhook.herald-system.svc", "127.0.0.1"}
	data := made(t, nil, hosts, noon)
	other := made(t, nil, hosts, noon)
	mixed := func(key string) map[string][]byte {
		out := maps.Clone(data)
		out[key] = other[key]
		return out
	}
	for name, tc := range map[string]struct {
		reason string
		data   map[string][]byte
		hosts  []string
		at     time.Time
		want   bool
	}{
		"new":               {"the certificate is new", data, hosts, noon, true},
		"one of its hosts":  {"additional hosts do no harm", data, hosts[:1], noon, true},
		"clock set back":    {"not every clock is right", data, hosts, noon.Add(-30 * time.Minute), true},
		"half its life":     {"the certificate is valid for long enough", data, hosts, noon.Add(lifetime / 2), true},
		"near its end":      {"the renewal must not be missed", data, hosts, noon.Add(lifetime - renewAhead + time.Minute), false},
		"ended":             {"clients would reject the certificate", data, hosts, noon.Add(lifetime + time.Minute), false},
		"another host":      {"the Service was renamed", data, []string{"other.svc"}, noon, false},
		"nothing":           {"the Secret was emptied", nil, hosts, noon, false},
		"another key":       {"the parts do not belong together", mixed(keyPrivate), hosts, noon, false},
		"another authority": {"the certificate is signed by another authority", mixed(keyAuthority), hosts, noon, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := coversHosts(tc.data, tc.hosts, tc.at); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestIssueKeepsTrustedCertificates(t *testing.T) {
	hosts := []string{"localhost"}
	first := made(t, nil, hosts, noon)
	second := made(t, first[keyAuthority], hosts, noon.Add(lifetime/2))
	if n := bytes.Count(second[keyAuthority], []byte("BEGIN CERTIFICATE")); n != 2 {
		t.Errorf("%d authorities are trusted: a replica that serves with the first certificate would be refused", n)
	}
	// The first replica's certificate is still trusted.
	first[keyAuthority] = second[keyAuthority]
	if !coversHosts(first, hosts, noon.Add(lifetime/2)) {
		t.Error("the first certificate is no longer trusted")
	}
	third := made(t, second[keyAuthority], hosts, noon.Add(lifetime+time.Hour))
	if n := bytes.Count(third[keyAuthority], []byte("BEGIN CERTIFICATE")); n != 2 {
		t.Errorf("%d authorities are trusted: one has ended, and bundles must not grow for ever", n)
	}
	if _, err := tls.X509KeyPair(third[keyCertificate], third[keyPrivate]); err != nil {
		t.Error(err)
	}
	if kept := unexpired([]byte("no PEM"), noon); len(kept) > 0 {
		t.Errorf("%q was kept", kept)
	}
	garbage := pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: []byte("x")})
	if kept := unexpired(garbage, noon); len(kept) > 0 {
		t.Errorf("%q was kept", kept)
	}
}

func TestBundlesAreBounded(t *testing.T) {
	data := made(t, nil, []string{"a"}, noon)
	last := data
	for i := range 3 * maxTrusted {
		last, data = data, made(t, data[keyAuthority], []string{"a"}, noon.Add(time.Duration(i)*time.Minute))
	}
	if n := bytes.Count(data[keyAuthority], []byte("BEGIN CERTIFICATE")); n != maxTrusted+1 {
		t.Errorf("%d authorities are trusted", n)
	}
	last[keyAuthority] = data[keyAuthority]
	if !coversHosts(last, []string{"a"}, noon) {
		t.Error("the newest certificate must be kept, because a replica may still use the previous one")
	}
}

func TestHostsFor(t *testing.T) {
	many := make([]string, maxHosts+5)
	for i := range many {
		many[i] = fmt.Sprintf("host-%d.svc", i)
	}
	other := made(t, nil, []string{"b.svc"}, noon)
	for name, tc := range map[string]struct {
		reason string
		data   map[string][]byte
		at     time.Time
		want   []string
	}{
		"nothing":      {"no certificate exists yet", nil, noon, []string{"a.svc"}},
		"another name": {"another replica needs it", made(t, nil, []string{"b.svc", "10.0.0.1"}, noon), noon, []string{"a.svc", "b.svc", "10.0.0.1"}},
		"its own name": {"once is enough", made(t, nil, []string{"b.svc", "a.svc"}, noon), noon, []string{"a.svc", "b.svc"}},
		"near its end": {"unused names are dropped at the renewal", made(t, nil, []string{"b.svc"}, noon), noon.Add(lifetime - renewAhead + time.Minute), []string{"a.svc"}},
		"a stranger's": {"no authority vouches for its names", map[string][]byte{
			keyCertificate: other[keyCertificate], keyPrivate: other[keyPrivate], keyAuthority: made(t, nil, []string{"b.svc"}, noon)[keyAuthority],
		}, noon, []string{"a.svc"}},
		"many": {"the hosts do not grow indefinitely", made(t, nil, many, noon), noon, append([]string{"a.svc"}, many[:maxHosts]...)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hostsFor(tc.data, []string{"a.svc"}, tc.at)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
