// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var (
	imagesDir  = flag.String("images", "", "folder with archives to look into; without it, some are packed around a small program")
	imageArchs = flag.String("architectures", "amd64 arm64", "architectures that those archives are for")
)

var architectures = []string{"amd64", "arm64"}

// stamp is the release of the packed images.
var stamp = release{version: "v1.2.3", revision: "0123456789abcdef0123456789abcdef01234567", created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}

// built is the folder that programs returns.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		panic(err)
	}
	built = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// programs returns the folder with the programs that most tests use. The first test builds them.
func programs(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(built, "linux_arm64")); errors.Is(err, fs.ErrNotExist) {
		build(t, built)
	}
	return built
}

// build builds the small program, from a copy of its source, under the name of each program in the images.
func build(t *testing.T, out string) {
	t.Helper()
	source := t.TempDir()
	if err := os.CopyFS(source, os.DirFS("testdata/hello")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "go.mod"), []byte("module example.com/hello\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, architecture := range architectures {
		dir := filepath.Join(out, "linux_"+architecture)
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(dir, "herald"), ".")
		build.Dir = source
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture, "GOFLAGS=", "GOWORK=off")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, output)
		}
		binary, err := os.ReadFile(filepath.Join(dir, "herald"))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range definitions {
			if err := os.WriteFile(filepath.Join(dir, d.program), binary, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// packed packs all images that do not need the network.
func packed(t *testing.T, programs string, r release) string {
	t.Helper()
	out := t.TempDir()
	p := packer{release: r, registry: "registry.example.com/herald", programs: programs, cache: t.TempDir()}
	for _, d := range definitions {
		if d.ffmpeg {
			continue
		}
		if _, err := p.pack(d, architectures, out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// opened is an image read from an archive.
type opened struct {
	index       v1.ImageIndex
	annotations map[string]string
	images      map[string]v1.Image
}

// open reads an archive and verifies every digest in it.
func open(t *testing.T, file string) opened {
	t.Helper()
	dir := t.TempDir()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	files := tar.NewReader(in)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(target, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return read(t, dir)
}

// read reads an OCI layout with one index.
func read(t *testing.T, dir string) opened {
	t.Helper()
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].MediaType != types.OCIImageIndex {
		t.Fatalf("the archive contains %v, want one OCI index", manifest.Manifests)
	}
	o := opened{annotations: manifest.Manifests[0].Annotations, images: map[string]v1.Image{}}
	o.index, err = top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(o.index); err != nil {
		t.Errorf("the index is damaged: %v", err)
	}
	inner, err := o.index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range inner.Manifests {
		image, err := o.index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		o.images[descriptor.Platform.String()] = image
	}
	return o
}

// entry is one file of an image.
type entry struct {
	header  *tar.Header
	content []byte
}

func entries(t *testing.T, image v1.Image) map[string]entry {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	all, files := map[string]entry{}, tar.NewReader(content)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		all["/"+strings.Trim(header.Name, "/")] = entry{header, data}
	}
}

func TestArchives(t *testing.T) {
	dir, architectures := *imagesDir, list(*imageArchs)
	if dir == "" {
		dir = packed(t, programs(t), stamp)
	}
	for _, d := range definitions {
		t.Run(d.name, func(t *testing.T) {
			file := filepath.Join(dir, d.name+".tar")
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && (d.ffmpeg || *imagesDir != "") {
				t.Skip("the image was not packed")
			}
			o := open(t, file)
			if len(o.images) != len(architectures) {
				t.Errorf("the image is for %d platforms, want %v", len(o.images), architectures)
			}
			for _, architecture := range architectures {
				t.Run(architecture, func(t *testing.T) {
					image := o.images["linux/"+architecture]
					if image == nil {
						t.Fatal("the index has no image for this architecture")
					}
					config, err := image.ConfigFile()
					if err != nil {
						t.Fatal(err)
					}
					checkConfig(t, d, architecture, config)
					files := entries(t, image)
					checkFiles(t, d, files)
					checkProgram(t, "/"+d.program, architecture, files)
					checkAuthorities(t, files[certificatesPath].content)
					checkList(t, filepath.Join(dir, d.name+"_linux_"+architecture+".cdx.json"), d, image, config)
				})
			}
		})
	}
}

func checkConfig(t *testing.T, d definition, architecture string, config *v1.ConfigFile) {
	t.Helper()
	if config.OS != "linux" || config.Architecture != architecture {
		t.Errorf("the configuration is for %s/%s", config.OS, config.Architecture)
	}
	labels := config.Config.Labels
	created, err := time.Parse(time.RFC3339, labels["org.opencontainers.image.created"])
	if err != nil {
		t.Errorf("the creation label: %v", err)
	}
	if !config.Created.Equal(created) {
		t.Errorf("created at %s, but labelled %s", config.Created, created)
	}
	r := release{version: labels["org.opencontainers.image.version"], revision: labels["org.opencontainers.image.revision"], created: created}
	if *imagesDir == "" {
		r = stamp
	}
	want := d.config(r)
	compare(t, "configuration", config.Config, want)
	for _, name := range []string{"version", "revision", "source", "title", "licenses"} {
		if labels["org.opencontainers.image."+name] == "" {
			t.Errorf("the label %s is missing", name)
		}
	}
	if uid, _, _ := strings.Cut(config.Config.User, ":"); strings.Trim(uid, "0123456789") != "" || strings.Trim(uid, "0") == "" {
		t.Errorf("user %q: Kubernetes only recognizes a numeric user other than 0 as non-root", config.Config.User)
	}
}

// compare compares the JSON of two values.
func compare(t *testing.T, what string, have, want any) {
	t.Helper()
	haveText, err := json.Marshal(have)
	if err != nil {
		t.Fatal(err)
	}
	wantText, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(haveText, wantText) {
		t.Errorf("%s:\n%s\nwant\n%s", what, haveText, wantText)
	}
}

// checkFiles checks that the image's user can write only to the scratch folders.
func checkFiles(t *testing.T, d definition, files map[string]entry) {
	t.Helper()
	for name, file := range files {
		if file.header.Uid != 0 || file.header.Gid != 0 {
			t.Errorf("the owner of %s is %d:%d", name, file.header.Uid, file.header.Gid)
		}
		if file.header.Mode&0o6000 != 0 {
			t.Errorf("%s has the setuid or setgid bit", name)
		}
		if writable := file.header.Mode&0o022 != 0; writable != slices.Contains(d.scratch, name) {
			t.Errorf("%s has the mode %o", name, file.header.Mode)
		}
	}
	for _, name := range d.scratch {
		if file, found := files[name]; !found || file.header.Mode != 0o1777 {
			t.Errorf("%s is not world-readable", name)
		}
	}
	if texts := string(files[licencesPath].content); !strings.Contains(texts, "std ") || !strings.Contains(texts, "Redistribution and use") {
		t.Errorf("the image lacks the licence of Go's standard library: %.200q", texts)
	}
	if !d.ffmpeg {
		if len(files) > 11+len(d.scratch) {
			t.Errorf("the image contains more than a program, licences and certificate authorities: %d files", len(files))
		}
		return
	}
	for _, name := range []string{ffmpegPath, "/etc/os-release", "/var/lib/dpkg/status.d/ffmpeg", "/usr/share/doc/ffmpeg/copyright"} {
		if len(files[name].content) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	loader, found := files["/lib64/ld-linux-x86-64.so.2"]
	if !found {
		loader, found = files["/lib/ld-linux-aarch64.so.1"]
	}
	if !found || loader.header.Mode != 0o755 {
		t.Error("ffmpeg's loader is missing")
	}
}

func checkProgram(t *testing.T, name, architecture string, files map[string]entry) {
	t.Helper()
	file, found := files[name]
	if !found || file.header.Mode != 0o755 {
		t.Fatalf("%s is not executable", name)
	}
	program, err := elf.NewFile(bytes.NewReader(file.content))
	if err != nil {
		t.Fatal(err)
	}
	if program.Machine != machines[architecture] {
		t.Errorf("%s is built for %s", name, program.Machine)
	}
	libraries, err := program.ImportedLibraries()
	if err != nil || len(libraries) > 0 || program.Section(".interp") != nil {
		t.Errorf("%s is not static: %v, %v", name, libraries, err)
	}
}

// checkAuthorities parses each certificate, since Go silently skips invalid ones.
func checkAuthorities(t *testing.T, text []byte) {
	t.Helper()
	count := 0
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			break
		}
		count++
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Errorf("certificate %d: %v", count, err)
		} else if !certificate.IsCA {
			t.Errorf("%s is not a certificate authority", certificate.Subject)
		}
	}
	// Mozilla trusts about 120.
	if count < 100 || len(bytes.TrimSpace(text)) > 0 {
		t.Errorf("%d authorities, followed by %d other bytes", count, len(text))
	}
}

func checkList(t *testing.T, file string, d definition, image v1.Image, config *v1.ConfigFile) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	subject := bom.Metadata.Component
	if (*subject.Hashes)[0].Value != digest.Hex || subject.Version != config.Config.Labels["org.opencontainers.image.version"] {
		t.Errorf("the SBOM's subject is %s %v, not %s", subject.Version, *subject.Hashes, digest)
	}
	wanted := []string{"pkg:golang/stdlib@", "pkg:golang/golang.org/x/crypto/x509roots/fallback@v"}
	if d.ffmpeg {
		wanted = append(wanted, "pkg:deb/debian/ffmpeg@7", "pkg:deb/debian/libc6@", "pkg:golang/k8s.io/client-go@v")
	}
	for _, want := range wanted {
		if !slices.ContainsFunc(*bom.Components, func(c cdx.Component) bool { return strings.HasPrefix(c.PackageURL, want) }) {
			t.Errorf("%s does not list %s…", filepath.Base(file), want)
		}
	}
	for _, component := range *bom.Components {
		if component.Version == "" {
			t.Errorf("%s has no version", component.BOMRef)
		}
	}
}

func TestReproducibleBuild(t *testing.T) {
	elsewhere := t.TempDir()
	build(t, elsewhere)
	first, again := packed(t, programs(t), stamp), packed(t, elsewhere, stamp)
	later := stamp
	later.created = later.created.Add(time.Second)
	other := packed(t, programs(t), later)
	written, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range written {
		read := func(dir string) []byte {
			content, err := os.ReadFile(filepath.Join(dir, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			return content
		}
		if !bytes.Equal(read(first), read(again)) {
			t.Errorf("%s differs after a second build in another folder", file.Name())
		}
		if bytes.Equal(read(first), read(other)) {
			t.Errorf("%s does not depend on the commit, so this test cannot fail", file.Name())
		}
	}
}

// TestTagged checks the annotations that name the image: the first is for containerd and Docker, the second for other
// tools.
func TestTagged(t *testing.T) {
	o := open(t, filepath.Join(packed(t, programs(t), stamp), "herald.tar"))
	if got := o.annotations["io.containerd.image.name"]; got != "registry.example.com/herald/herald:v1.2.3" {
		t.Errorf("containerd would call the image %q", got)
	}
	if got := o.annotations["org.opencontainers.image.ref.name"]; got != "v1.2.3" {
		t.Errorf("the tag is %q", got)
	}
}

func TestInvalidPrograms(t *testing.T) {
	dir := programs(t)
	host, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason, file, architecture, want string
	}{
		"another architecture": {"the program would not start", filepath.Join(dir, "linux_amd64", "herald"), "arm64", "not for arm64"},
		"unknown architecture": {"its loader is unknown", filepath.Join(dir, "linux_amd64", "herald"), "riscv64", "not for riscv64"},
		"no program":           {"the image has no shell to run a script", "images.go", "amd64", "read the program"},
		"not built":            {"an image needs its program", filepath.Join(filepath.Dir(host), "missing"), "amd64", "no such file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := checkStatic(tc.file, tc.architecture); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}
