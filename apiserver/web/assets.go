// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/herald-social/herald/apiserver/request"
)

//go:embed assets/*.css assets/*.js assets/*.svg
var files embed.FS

// asset is a static file. Its name contains a hash of its content, so browsers can cache it forever.
type asset struct {
	contentType string
	body        request.Fixed
}

// assets maps hashed names to files, and file names to their paths.
type assets struct {
	byName map[string]asset
	paths  map[string]string
}

// hashLength is the number of hex digits of the hash in a file's name: enough to distinguish versions.
const hashLength = 12

// sharedAssets returns the assets that all Sites of a process share. Compressing them is slow.
var sharedAssets = sync.OnceValue(newAssets)

func newAssets() assets {
	all := assets{map[string]asset{}, map[string]string{}}
	entries, _ := files.ReadDir("assets") // the folder is embedded
	for _, entry := range entries {
		data, _ := files.ReadFile("assets/" + entry.Name())
		if pattern := needless[path.Ext(entry.Name())]; pattern != nil {
			data = pattern.ReplaceAll(data, nil)
		}
		name := hashed(entry.Name(), data)
		all.byName[name] = asset{mime.TypeByExtension(path.Ext(entry.Name())), request.NewFixed(data)}
		all.paths[entry.Name()] = "/assets/" + name
	}
	return all
}

// needless matches text that browsers do not need, by file extension: comments on lines of their own, and indentation.
// They make up a fifth of the scripts' size. Removing them is safe, because no template literal spans several lines.
var needless = map[string]*regexp.Regexp{
	".css": regexp.MustCompile(`(?ms)/\*.*?\*/\n?|^[ \t]+`),
	".js":  regexp.MustCompile(`(?m)^[ \t]*//.*\n|^[ \t]+`),
}

func hashed(name string, data []byte) string {
	sum := sha256.Sum256(data)
	extension := path.Ext(name)
	return strings.TrimSuffix(name, extension) + "-" + hex.EncodeToString(sum[:])[:hashLength] + extension
}

// assetPolicy replaces the pages' Content-Security-Policy, whose origins would make up most of a small file's headers.
// With it, a file that is opened as a page neither runs nor loads anything.
const assetPolicy = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"

// pagesOnly are headers of Guard that have no effect on a file, or repeat assetPolicy.
var pagesOnly = []string{"Referrer-Policy", "X-Frame-Options", "Cross-Origin-Opener-Policy", "Permissions-Policy"}

func (a assets) path(name string) string { return a.paths[name] }

func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, ok := a.byName[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", found.contentType)
	w.Header().Set("Content-Security-Policy", assetPolicy)
	for _, name := range pagesOnly {
		w.Header().Del(name)
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	found.body.Write(w, r)
}
