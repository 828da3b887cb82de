// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// timeouts limit how long to wait for a server, so the decision to build instead takes only seconds.
type timeouts struct {
	// connect limits connecting and, separately, the TLS handshake; header limits waiting for the response; stall
	// limits a pause between two parts of the body.
	connect, header, stall time.Duration
}

var defaultTimeouts = timeouts{connect: 3 * time.Second, header: 5 * time.Second, stall: 10 * time.Second}

// unavailableError reports that a file cannot be downloaded right now, so its program is built instead.
type unavailableError struct {
	err error
	// server is true if it is pointless to try other files on the same server.
	server bool
}

func (e *unavailableError) Error() string { return e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }

// checksumError reports a file whose SHA-256 does not match the pinned one. It is never a reason to build instead.
type checksumError struct{ address, got, want string }

func (e *checksumError) Error() string {
	return fmt.Sprintf(`%s does not have the pinned SHA-256
  received  %s
  pinned    %s  (hack/controlplane/%s)
Nothing was installed. Something on the way may have changed the file: try another network, name another mirror with
DOWNLOADS=https://..., or build from source with DOWNLOADS=off. make controlplane-checksums prints the published checksums.`,
		e.address, e.got, e.want, checksumsFile)
}

var errStalled = errors.New("the server stopped sending")

// downloader downloads releases. It does not retry.
type downloader struct {
	client   *http.Client
	timeouts timeouts
	// mirror replaces the publishers' servers, if it is not empty.
	mirror string
	// platform is the platform of the programs, such as linux/amd64.
	platform string
	log      io.Writer
}

func newClient(limits timeouts) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: limits.connect}).DialContext,
		TLSHandshakeTimeout:   limits.connect,
		ResponseHeaderTimeout: limits.header,
		ForceAttemptHTTP2:     true,
		// The pinned checksum is for the file as published.
		DisableCompression: true,
	}}
}

// fetchAll downloads the named programs into a folder if they are pinned, and returns the names of the programs to
// build.
func (d *downloader) fetchAll(ctx context.Context, pinned pins, into string, names []string) (build []string, err error) {
	away := map[string]bool{}
	var unpinned []string
	for _, name := range names {
		r, err := newRelease(name, pinned.versions, d.platform)
		if err != nil {
			return nil, err
		}
		sum := pinned.sums[r.path]
		if sum == "" {
			unpinned = append(unpinned, name)
		}
		if sum == "" || away[r.origin] {
			build = append(build, name)
			continue
		}
		err = d.fetch(ctx, r, sum, filepath.Join(into, name))
		unavailable, ok := errors.AsType[*unavailableError](err)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, errors.New("interrupted")
		case ok:
			fmt.Fprintf(d.log, "cannot download %s: %v\n", d.address(r, r.path), err)
			away[r.origin] = unavailable.server
			build = append(build, name)
		default:
			return nil, err
		}
	}
	if len(unpinned) > 0 {
		fmt.Fprintf(d.log, "hack/controlplane/%s pins no %s for %s\n", checksumsFile, strings.Join(unpinned, ", "), d.platform)
	}
	return build, nil
}

func (d *downloader) address(r release, file string) string {
	if d.mirror != "" {
		return d.mirror + "/" + file
	}
	return r.origin + "/" + file
}

// fetch downloads one release to target, which appears only once it is complete and has the pinned checksum.
func (d *downloader) fetch(ctx context.Context, r release, want, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	file, remove, err := temporary(target)
	if err != nil {
		return err
	}
	defer remove()
	address := d.address(r, r.path)
	got, err := d.save(ctx, address, file)
	if err != nil {
		return err
	}
	if got != want {
		return &checksumError{address: address, got: got, want: want}
	}
	if r.member == "" {
		return place(file, target)
	}
	extracted, removeExtracted, err := temporary(target)
	if err != nil {
		return err
	}
	defer removeExtracted()
	if err := extract(file, r.member, extracted); err != nil {
		return fmt.Errorf("cannot unpack %s: %w", address, err)
	}
	return place(extracted, target)
}

// temporary creates a file next to target. remove closes and deletes it, unless place has renamed it.
func temporary(target string) (file *os.File, remove func(), err error) {
	file, err = os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return nil, nil, err
	}
	return file, func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}, nil
}

// place renames a temporary file to target and makes it executable.
func place(file *os.File, target string) error {
	if err := file.Chmod(0o755); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), target)
}

// save writes the file at address to w and returns its SHA-256.
func (d *downloader) save(ctx context.Context, address string, w io.Writer) (sum string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		// The caller adds the address.
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err
		}
		return "", &unavailableError{err: err, server: true}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", &unavailableError{err: errors.New("the server answers " + resp.Status)}
	}
	fmt.Fprintf(d.log, "downloading %s%s\n", address, megabytes(resp.ContentLength))
	stall := time.AfterFunc(d.timeouts.stall, func() { cancel(errStalled) })
	defer stall.Stop()
	body := &watchedReader{r: resp.Body, progress: func() { stall.Reset(d.timeouts.stall) }}
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, hash), body); err != nil {
		if body.err == nil {
			return "", err
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", &unavailableError{err: fmt.Errorf("the download broke off: %w", err), server: true}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func megabytes(size int64) string {
	if size < 0 {
		return ""
	}
	return fmt.Sprintf(" (%d MB)", (size+500_000)/1_000_000)
}

// watchedReader reports progress, and distinguishes errors from the server from disk errors.
type watchedReader struct {
	r        io.Reader
	progress func()
	err      error
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.progress()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// extract writes one member of a tar.gz archive to w.
func extract(file io.ReadSeeker, member string, w io.Writer) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	compressed, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("it has no " + member)
		case err != nil:
			return err
		case header.Name == member:
			_, err := io.CopyN(w, archive, header.Size)
			return err
		}
	}
}
