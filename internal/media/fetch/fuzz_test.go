// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzHead checks, for any URL and any response header, that a file is fetched over HTTPS without a user name and
// password, and that its size is known and within the limit.
func FuzzHead(f *testing.F) {
	f.Add("https://files.example/a.png", 200, int64(10), "", int64(10))
	f.Add("https://u:p@files.example/", 206, int64(-1), "gzip", int64(0))
	f.Add("https:///a", 200, int64(-1), "identity", int64(5))
	f.Add("HTTPS://[::1%25en0]/", 200, int64(1<<62), "", int64(0))
	f.Fuzz(func(t *testing.T, address string, status int, length int64, coding string, stated int64) {
		u, err := url.Parse(address)
		if err == nil && check(u) == nil && (!strings.HasPrefix(strings.ToLower(address), "https://") || u.User != nil || u.Hostname() == "") {
			t.Errorf("%q is fetched", address)
		}
		header := http.Header{}
		header.Set("Content-Encoding", coding)
		const most = 1 << 30
		size, err := sizeOf(&http.Response{StatusCode: status, ContentLength: length, Header: header}, Expected{Size: stated, MaxSize: most})
		if err == nil && (size <= 0 || size > most || status != http.StatusOK || stated > 0 && size != stated) {
			t.Errorf("status %d, length %d, %d stated: %d bytes are taken", status, length, stated, size)
		}
	})
}
