// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// NeedsHandle reports whether a platform's accounts are connected by OAuth on a server that is determined by their
// handle.
func (s *Service) NeedsHandle(platform v1alpha1.Platform) bool {
	_, err := s.ClientDocument(platform)
	return err == nil
}

// ClientDocument returns the document that identifies the installation to a platform's servers. It returns an error if
// there is none.
func (s *Service) ClientDocument(platform v1alpha1.Platform) ([]byte, error) {
	connector, ok := s.Platforms[platform].(platforms.HandleConnector)
	if !ok {
		return nil, notHere(platform)
	}
	return connector.ClientDocument(platforms.Site{URL: s.SiteURL, RedirectURI: s.redirect(&flow{Platform: platform})})
}

// begin requests a flow's consent from the server that hosts the handle's account. It returns the address of the
// consent page.
func (s *Service) begin(ctx context.Context, f *flow, handle string, consent platforms.Consent) (string, error) {
	connector, ok := s.Platforms[f.Platform].(platforms.HandleConnector)
	if !ok {
		return "", notHere(f.Platform)
	}
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	address, begun, err := connector.Begin(ctx, handle, consent)
	if err != nil {
		return "", s.explain(ctx, f, err)
	}
	f.Begun = begun
	return address, nil
}

// finish exchanges the code of a consent that begin requested.
func (s *Service) finish(ctx context.Context, f *flow, code platforms.Code, issuer string) ([]platforms.Choice, error) {
	connector, ok := s.Platforms[f.Platform].(platforms.HandleConnector)
	if !ok {
		return nil, notHere(f.Platform)
	}
	choice, err := connector.Finish(ctx, f.Begun, code, issuer)
	if err != nil {
		return nil, s.explain(ctx, f, err)
	}
	return []platforms.Choice{choice}, nil
}
