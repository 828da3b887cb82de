// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/herald-social/herald/internal/media/store"
)

// VideoSource is a readable video.
type VideoSource struct {
	// Size is its length in bytes.
	Size int64
	// Open streams length bytes, starting at offset.
	Open func(ctx context.Context, offset, length int64) (io.ReadCloser, error)
}

// StoredVideo returns a video in the store that is read through open.
func StoredVideo(open store.Open, source Source) VideoSource {
	return VideoSource{Size: source.Size, Open: func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
		return open(ctx, source.Key, source.ETag, offset, length)
	}}
}

// servedVideo serves one video to one child over HTTP, for one run. A presigned store URL would contain a signature
// that every process on the machine could read in the child's command line, and its bytes may not be the verified ones.
type servedVideo struct {
	// address leads nowhere: the child gets its connections from isolate.
	address string

	server *http.Server
	served sync.WaitGroup
	// reads is the context of all reads. Its cause is the error of the first one that failed.
	reads context.Context //nolint:containedctx // it ends with the source
	end   context.CancelCauseFunc
}

// longestHeader is the maximum size of a request header in bytes: ffmpeg's headers take about two hundred. The number
// of concurrent headers is limited too, since the child's connections count as open files.
const longestHeader = 8 << 10

// headerTimeout is the timeout for reading a request header.
const headerTimeout = 10 * time.Second

// newServedVideo returns a servedVideo. It serves nothing until serve is called.
func newServedVideo(ctx context.Context, video VideoSource) *servedVideo {
	ctx, end := context.WithCancelCause(ctx)
	s := &servedVideo{address: "http://127.0.0.1/video", reads: ctx, end: end}
	s.server = &http.Server{
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    longestHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			content := &videoReader{ctx: r.Context(), video: video, failed: s.end}
			defer content.close()
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeContent(w, r, "", time.Time{}, content)
		}),
	}
	return s
}

func (s *servedVideo) serve(from net.Listener) {
	s.served.Go(func() { _ = s.server.Serve(from) }) // close ends it.
}

// close ends all reads and connections.
func (s *servedVideo) close() {
	s.end(nil)
	_ = s.server.Close() // The connections belong to the child, which has exited.
	s.served.Wait()
}

// failure returns the error from reading the video, or nil if there was none before the run ended.
func (s *servedVideo) failure() error {
	if err := context.Cause(s.reads); err != nil && !ffmpegEnded(err) {
		return fmt.Errorf("cannot read the video: %w", err)
	}
	return nil
}

func ffmpegEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// videoReader reads a video, starting at its offset, through one stream until Seek changes the offset.
type videoReader struct {
	ctx    context.Context //nolint:containedctx // io.ReadSeeker has no context parameter
	video  VideoSource
	failed func(error)

	offset int64
	body   io.ReadCloser
}

// Seek implements io.Seeker.
func (r *videoReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.video.Size
	}
	if offset != r.offset {
		r.close()
	}
	r.offset = offset
	return offset, nil
}

// Read implements io.Reader.
func (r *videoReader) Read(p []byte) (int, error) {
	if r.offset >= r.video.Size {
		return 0, io.EOF
	}
	if r.body == nil {
		body, err := r.video.Open(r.ctx, r.offset, r.video.Size-r.offset)
		if err != nil {
			r.report(err)
			return 0, err
		}
		r.body = body
	}
	n, err := r.body.Read(p)
	r.offset += int64(n)
	if errors.Is(err, io.EOF) && r.offset < r.video.Size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.report(err)
	}
	return n, err
}

func (r *videoReader) report(err error) {
	if r.ctx.Err() == nil && !ffmpegEnded(err) {
		r.failed(err)
	}
}

func (r *videoReader) close() {
	if r.body != nil {
		_ = r.body.Close() // Close errors do not affect the data read.
		r.body = nil
	}
}
