// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive builds container images and writes them as OCI archives, the tar form of an OCI image layout.
package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/herald-social/herald/hack/image/tree"
)

const linux = "linux"

// Layer is one layer of an image.
type Layer struct {
	// Comment describes the layer in the image's history.
	Comment string
	Files   tree.Tree
}

// Image builds a Linux image for one architecture.
func Image(architecture string, config v1.Config, layers []Layer, created time.Time) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var additions []mutate.Addendum
	for _, layer := range layers {
		packed, err := pack(layer.Files, created)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: created}, CreatedBy: "make image", Comment: layer.Comment}
		additions = append(additions, mutate.Addendum{Layer: packed, History: history})
	}
	image, err := mutate.Append(image, additions...)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Created = v1.Time{Time: created}
	file.OS, file.Architecture = linux, architecture
	file.Config = config
	return mutate.ConfigFile(image, file)
}

// pack builds a compressed layer.
func pack(files tree.Tree, modified time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	if err := files.WriteTar(&content, modified); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression),
		tarball.WithCompressedCaching)
}

// Index combines the images of several architectures, given by architecture.
func Index(images map[string]v1.Image, annotations map[string]string) (v1.ImageIndex, error) {
	var additions []mutate.IndexAddendum
	for _, architecture := range slices.Sorted(maps.Keys(images)) {
		platform := &v1.Platform{OS: linux, Architecture: architecture}
		additions = append(additions, mutate.IndexAddendum{Add: images[architecture], Descriptor: v1.Descriptor{Platform: platform}})
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), additions...)
	annotated, ok := mutate.Annotations(index, annotations).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("an index with annotations is a %T", annotated)
	}
	return annotated, nil
}

// Write writes an index with its tag to an archive.
func Write(file string, index v1.ImageIndex, tag name.Tag) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// containerd and Docker read the first annotation. Podman, Skopeo and others read the second, which is only the
	// tag.
	err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          tag.Name(),
		"org.opencontainers.image.ref.name": tag.TagStr(),
	}))
	if err != nil {
		return err
	}
	// A run that is killed must not leave an incomplete archive.
	part := file + ".part"
	if err := writeTar(part, dir); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// writeTar packs a folder into a file without this machine's times and owners.
func writeTar(file, dir string) error {
	files, folder := tree.Tree{}, os.DirFS(dir)
	err := fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, path)
		files.Add("/"+path, 0o644, content)
		return err
	})
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(files.WriteTar(out, time.Unix(0, 0)), out.Close())
}
