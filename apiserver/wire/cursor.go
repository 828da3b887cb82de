// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/apiserver/postindex"
)

// The first letter of a cursor is its direction; the display time in milliseconds and the id follow. Clients receive it
// encoded, because its format may change.
const (
	cursorAfter  = "a"
	cursorBefore = "b"
	// maxCursor limits the encoded form, in bytes: a direction, 19 digits and an id, in base64.
	maxCursor = (1+20+1+maxName)*4/3 + 3
)

func formatCursor(c *postindex.Cursor) string {
	if c == nil {
		return ""
	}
	direction := cursorAfter
	if c.Back {
		direction = cursorBefore
	}
	return base64.RawURLEncoding.EncodeToString([]byte(direction + strconv.FormatInt(c.DisplayAt.UnixMilli(), 10) + "." + c.ID))
}

// ParseCursor parses a cursor from a page of posts; ok is false for any other text.
func ParseCursor(encoded string) (c *postindex.Cursor, ok bool) {
	if encoded == "" || len(encoded) > maxCursor {
		return nil, false
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(decoded) == 0 {
		return nil, false
	}
	direction, rest := string(decoded[:1]), string(decoded[1:])
	millis, id, found := strings.Cut(rest, ".")
	at, err := strconv.ParseInt(millis, 10, 64)
	if err != nil || !found || id == "" || direction != cursorAfter && direction != cursorBefore {
		return nil, false
	}
	return &postindex.Cursor{ID: id, DisplayAt: time.UnixMilli(at), Back: direction == cursorBefore}, true
}
