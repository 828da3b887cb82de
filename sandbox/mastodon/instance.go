// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"net/http"

	"github.com/herald-social/herald/sandbox/faults"
)

// The limits of a server with the default settings (entities/Instance).
const (
	maxCharacters  = 500
	maxMedia       = 4
	urlLength      = 23
	maxDescription = 1500
	maxImage       = 16 << 20
	maxVideo       = 99 << 20
	maxImagePixels = 33177600
	maxVideoPixels = 8294400
	maxFrameRate   = 120
)

var (
	imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/heic", "image/heif", "image/webp", "image/avif"}
	videoTypes = []string{"video/webm", "video/mp4", "video/quicktime", "video/ogg"}
)

func configuration() map[string]any {
	return map[string]any{
		"urls":     map[string]any{"streaming": "wss://streaming.example", "status": nil, "about": "https://about.example", "privacy_policy": nil, "terms_of_service": nil},
		"vapid":    map[string]any{"public_key": "BCk-QqERU0q-CfYZjcuB6lnyyOYfJ2AifKqfeGIm7Z-HiTU5T9eTG5GxVA0_OH5mMlI4UkkDTpaZwozy0TzdZ2M="},
		"accounts": map[string]any{"max_featured_tags": 10, "max_pinned_statuses": 5},
		"statuses": map[string]any{"max_characters": maxCharacters, "max_media_attachments": maxMedia, "characters_reserved_per_url": urlLength},
		"media_attachments": map[string]any{
			"description_limit": maxDescription, "supported_mime_types": append(append([]string{}, imageTypes...), videoTypes...),
			"image_size_limit": maxImage, "image_matrix_limit": maxImagePixels,
			"video_size_limit": maxVideo, "video_frame_rate_limit": maxFrameRate, "video_matrix_limit": maxVideoPixels,
		},
		"polls":       map[string]any{"max_options": 4, "max_characters_per_option": 50, "min_expiration": 300, "max_expiration": 2629746},
		"translation": map[string]any{"enabled": false},
	}
}

// version is the version of Mastodon that the sandbox simulates.
const version = "4.5.0"

// instanceV2 handles GET /api/v2/instance.
func (p *Platform) instanceV2(w http.ResponseWriter, r *faults.Request) {
	p.write(w, http.StatusOK, map[string]any{
		"domain": r.Host, "title": "Sandbox", "version": version, "source_url": "https://github.com/mastodon/mastodon", "description": "A simulated server",
		"usage": map[string]any{"users": map[string]any{"active_month": 1}}, "thumbnail": map[string]any{"url": p.SiteURL(r.Request) + "/mastodon/"},
		"icon": []any{}, "languages": []string{"en"}, "configuration": configuration(), "api_versions": map[string]any{"mastodon": 7},
		"registrations": map[string]any{"enabled": false, "approval_required": false, "message": nil, "url": nil},
		"contact":       map[string]any{"email": "", "account": nil}, "rules": []any{},
	})
}

// instanceV1 handles GET /api/v1/instance, which Mastodon has deprecated but older clients still read.
func (p *Platform) instanceV1(w http.ResponseWriter, r *faults.Request) {
	p.write(w, http.StatusOK, map[string]any{
		"uri": r.Host, "title": "Sandbox", "short_description": "A simulated server", "description": "A simulated server", "email": "", "version": version,
		"urls": map[string]any{"streaming_api": "wss://streaming.example"}, "stats": map[string]any{"user_count": 1, "status_count": 0, "domain_count": 1},
		"thumbnail": nil, "languages": []string{"en"}, "registrations": false, "approval_required": false, "invites_enabled": false,
		"configuration": configuration(), "contact_account": nil, "rules": []any{},
	})
}
