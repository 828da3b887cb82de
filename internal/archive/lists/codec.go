// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Limits for reading: a file that Herald did not write must not exhaust the memory. Writers stay far below them.
const (
	// maxText is the longest title or agent name in bytes: 256 characters of at most four bytes.
	maxText = 1024
	// maxTargets is more than the schema allows.
	maxTargets = 1000
	// maxRows is the maximum number of rows in a segment or head.
	maxRows = 1 << 14
	// maxSegment, maxManifest and maxIndex limit sizes in bytes, both compressed and uncompressed.
	maxSegment  = 32 << 20
	maxManifest = 128 << 20
	maxIndex    = 32 << 20
)

// The magic bytes of each kind of file, including its format version.
const (
	magicIndex    = "HLx1"
	magicManifest = "HLm1"
	magicRows     = "HLr1"
	magicNames    = "HLn1"
)

// ID identifies a segment or manifest. It is the first half of the file's SHA-256.
type ID [16]byte

func idOf(data []byte) ID {
	sum := sha256.Sum256(data)
	return ID(sum[:16])
}

// sealer encodes files. It reuses its compressors, which take 1 MiB each.
type sealer struct{ compressors sync.Pool }

// seal makes a file from a payload. It adds random bytes so that no two files have the same name: otherwise a file due
// for removal could be one that has just been written again.
func (s *sealer) seal(magic string, payload []byte) ([]byte, error) {
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	var out bytes.Buffer
	out.WriteString(magic)
	out.Write(nonce[:])
	w, ok := s.compressors.Get().(*flate.Writer)
	if ok {
		w.Reset(&out)
	} else {
		var err error
		if w, err = flate.NewWriter(&out, flate.BestSpeed); err != nil {
			return nil, fmt.Errorf("cannot compress a list: %w", err)
		}
	}
	defer s.compressors.Put(w)
	if _, err := w.Write(payload); err != nil {
		return nil, fmt.Errorf("cannot compress a list: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot compress a list: %w", err)
	}
	return out.Bytes(), nil
}

// unseal returns the payload of a file. It fails if the payload is larger than most bytes.
func unseal(magic string, data []byte, most int64) (string, error) {
	header := len(magic) + 8
	if len(data) < header || string(data[:len(magic)]) != magic {
		return "", fmt.Errorf("%w: it does not begin with %q; a newer version of Herald may have written it", ErrDamaged, magic)
	}
	var payload strings.Builder
	n, err := io.Copy(&payload, io.LimitReader(flate.NewReader(bytes.NewReader(data[header:])), most+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrDamaged, err)
	case n > most:
		return "", fmt.Errorf("%w: it holds more than %d bytes", ErrDamaged, most)
	}
	return payload.String(), nil
}

type kinds struct {
	numbers map[string]int
	list    []*Kind
}

func newKinds() *kinds { return &kinds{numbers: map[string]int{}} }

// intern returns the kind in the set that equals k.
func (s *kinds) intern(k *Kind) *Kind { return s.list[s.number(k)] }

func (s *kinds) number(k *Kind) int {
	// None of the parts contains the separators.
	var b strings.Builder
	for _, part := range []string{string(k.Status), string(k.Category), k.Agent} {
		b.WriteString(part)
		b.WriteByte(0)
	}
	for _, t := range k.Targets {
		b.WriteString(string(t.Platform))
		b.WriteByte('=')
		b.WriteString(t.word())
		b.WriteByte(0)
	}
	n, known := s.numbers[b.String()]
	if !known {
		n = len(s.list)
		s.numbers[b.String()] = n
		s.list = append(s.list, k)
	}
	return n
}

// append encodes the kinds, which rows refer to by number.
func (s *kinds) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(s.list)))
	for _, k := range s.list {
		b = appendText(appendText(appendText(b, string(k.Status)), string(k.Category)), k.Agent)
		b = binary.AppendUvarint(b, uint64(len(k.Targets)))
		for _, t := range k.Targets {
			b = appendText(appendText(b, string(t.Platform)), t.word())
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func encodeRows(rows []*Row) []byte {
	known := newKinds()
	var body []byte
	at := int64(0)
	for _, r := range rows {
		body = binary.AppendUvarint(body, uint64(known.number(r.Kind))) //nolint:gosec // it is not negative
		body = binary.AppendVarint(body, r.DisplayAt-at)
		body = binary.AppendVarint(body, r.finished-r.DisplayAt)
		body = binary.AppendUvarint(body, uint64(r.bytes)) //nolint:gosec // it is not negative
		body = appendText(appendText(appendText(body, r.Name), r.uid), r.Title)
		at = r.DisplayAt
	}
	return append(known.append(binary.AppendUvarint(nil, uint64(len(rows)))), body...)
}

// decodeRows decodes rows. They share the payload's memory.
func decodeRows(payload string) ([]*Row, error) {
	d := &decoder{rest: payload}
	rows := d.rows()
	return rows, d.done()
}

func (d *decoder) rows() []*Row {
	n := d.count(maxRows)
	known := d.kinds()
	all, rows := make([]Row, n), make([]*Row, n)
	at := int64(0)
	for i := range all {
		r := &all[i]
		r.Kind = d.kind(known)
		r.DisplayAt = at + d.varint()
		r.finished = r.DisplayAt + d.varint()
		r.bytes = int64(d.uvarint() & (1<<62 - 1))
		r.Name, r.uid, r.Title = d.text(), d.text(), d.text()
		at, rows[i] = r.DisplayAt, r
		if i > 0 && rows[i-1].Compare(r.SortKey) >= 0 {
			d.fail("posts are not in their order")
		}
		if d.err != nil {
			return nil
		}
	}
	return rows
}

func encodeNames(rows []*nameRow) []byte {
	known := newKinds()
	var body []byte
	for _, r := range rows {
		// The category and the agent do not affect which lists a post is in.
		body = binary.AppendUvarint(body, uint64(known.number(&Kind{Status: r.kind.Status, Targets: r.kind.Targets}))) //nolint:gosec // it is not negative
		body = binary.BigEndian.AppendUint64(body, r.hash)
		body = binary.BigEndian.AppendUint64(body, r.uid)
		body = binary.AppendVarint(body, r.at)
	}
	return append(known.append(binary.AppendUvarint(nil, uint64(len(rows)))), body...)
}

func decodeNames(payload string) ([]*nameRow, error) {
	d := &decoder{rest: payload}
	n := d.count(maxRows)
	known := d.kinds()
	all, rows := make([]nameRow, n), make([]*nameRow, n)
	for i := range all {
		r := &all[i]
		r.kind, r.hash, r.uid, r.at = d.kind(known), d.fixed(), d.fixed(), d.varint()
		rows[i] = r
		if i > 0 && rows[i-1].hash >= r.hash {
			d.fail("names are not in their order")
		}
		if d.err != nil {
			return nil, d.err
		}
	}
	return rows, d.done()
}

// decoder reads values from a payload. After the first invalid value it returns zeros.
type decoder struct {
	rest string
	err  error
}

func (d *decoder) fail(why string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrDamaged, why)
	}
	d.rest = ""
}

func (d *decoder) done() error {
	if d.err == nil && d.rest != "" {
		d.fail("data follows its end")
	}
	return d.err
}

func (d *decoder) uvarint() uint64 {
	var v uint64
	for i := 0; i < len(d.rest) && i < binary.MaxVarintLen64; i++ {
		b := d.rest[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.fail("a number has no end")
	return 0
}

func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) fixed() uint64 {
	if len(d.rest) < 8 {
		d.fail("it ends within a number")
		return 0
	}
	v := binary.BigEndian.Uint64([]byte(d.rest[:8]))
	d.rest = d.rest[8:]
	return v
}

// count reads the number of items that follow. Each takes at least one byte.
func (d *decoder) count(most int) int {
	n := d.uvarint()
	if n > uint64(most) || n > uint64(len(d.rest)) { //nolint:gosec // both are positive
		d.fail("it holds too much")
		return 0
	}
	return int(n) //nolint:gosec // bounded above
}

func (d *decoder) text() string {
	n := d.count(maxText)
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) id() ID {
	if len(d.rest) < len(ID{}) {
		d.fail("it ends within a name")
		return ID{}
	}
	id := ID([]byte(d.rest[:len(ID{})]))
	d.rest = d.rest[len(ID{}):]
	return id
}

func (d *decoder) kinds() []*Kind {
	out := make([]*Kind, d.count(maxRows))
	for i := range out {
		k := &Kind{Status: v1alpha1.PostPhase(d.text()), Category: v1alpha1.Category(d.text()), Agent: d.text()}
		k.Targets = make([]Target, d.count(maxTargets))
		for j := range k.Targets {
			k.Targets[j] = targetOf(d.text(), d.text())
		}
		out[i] = k
	}
	return out
}

func (d *decoder) kind(known []*Kind) *Kind {
	n := d.uvarint()
	if n >= uint64(len(known)) {
		d.fail("a post is of no kind")
		return &Kind{}
	}
	return known[n]
}

// packUID encodes a UID in the Kubernetes format in 17 bytes.
func packUID(uid string) string {
	const dashes = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(uid) == len(dashes) && uid == strings.ToLower(uid) {
		raw, err := hex.DecodeString(uid[:8] + uid[9:13] + uid[14:18] + uid[19:23] + uid[24:])
		if packed := "\x00" + string(raw); err == nil && unpackUID(packed) == uid {
			return packed
		}
	}
	return "=" + uid
}

func unpackUID(packed string) string {
	if len(packed) == 17 && packed[0] == 0 {
		h := hex.EncodeToString([]byte(packed[1:]))
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	}
	return strings.TrimPrefix(packed, "=")
}
