// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive builds container images and writes them as OCI archives, the tar form of an OCI image layout.
package archive

import (
	"archive/tar"
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

// Index combines the images of several architectures, by architecture.
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

// Write writes an index to an archive, with its tag.
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
	// containerd and Docker read the first annotation. Podman, Skopeo and others read the second, which has the tag
	// only.
	err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          tag.Name(),
		"org.opencontainers.image.ref.name": tag.TagStr(),
	}))
	if err != nil {
		return err
	}
	// A killed run must not leave an incomplete archive.
	part := file + ".part"
	if err := writeTar(part, dir); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// writeTar packs a folder into a file, reproducibly.
func writeTar(file, dir string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return add(archive, dir, path, entry)
	})
	if err == nil {
		err = archive.Close()
	}
	return errors.Join(err, out.Close())
}

// add adds a file or folder to a tar, without the times and owners of this machine.
func add(archive *tar.Writer, dir, path string, entry fs.DirEntry) error {
	relative, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: filepath.ToSlash(relative), Mode: 0o644, Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if entry.IsDir() {
		header.Name, header.Mode, header.Typeflag = header.Name+"/", 0o755, tar.TypeDir
		return archive.WriteHeader(header)
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, content)
	return errors.Join(err, content.Close())
}
