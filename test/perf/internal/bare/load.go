// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bare

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// load creates posts through Herald's REST API. It sends the same bytes again and again over connections of its own,
// since what it uses of the processor is not Herald's.
type load struct {
	config  Config
	request []byte
	conns   []*loadConn
}

type loadConn struct {
	net.Conn
	answers *bufio.Reader
}

func newLoad(config Config) (*load, error) {
	to, err := url.Parse(config.URL)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, config.URL, bytes.NewReader(config.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+config.Key)
	request.Header.Set("Content-Type", "application/json")
	var wire bytes.Buffer
	if err := request.Write(&wire); err != nil {
		return nil, err
	}
	l := &load{config: config, request: wire.Bytes()}
	for range config.InFlight {
		conn, err := net.Dial("tcp", to.Host)
		if err != nil {
			return nil, err
		}
		l.conns = append(l.conns, &loadConn{Conn: conn, answers: bufio.NewReader(conn)})
	}
	return l, nil
}

func (l *load) warm(ctx context.Context) error {
	return each(ctx, l.config.InFlight, l.config.Warm, l.createOne)
}

func (l *load) run(ctx context.Context) error {
	return each(ctx, l.config.InFlight, l.config.Count, l.createOne)
}

func (l *load) createOne(_ context.Context, worker int) error {
	conn := l.conns[worker]
	if _, err := conn.Write(l.request); err != nil {
		return err
	}
	response, err := http.ReadResponse(conn.answers, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		answer, err := io.ReadAll(response.Body)
		return fmt.Errorf("herald answers %s: %s (%w)", response.Status, answer, err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
