// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/herald-social/herald/hack/image/archive"
	"github.com/herald-social/herald/hack/image/licences"
	"github.com/herald-social/herald/hack/image/sbom"
	"github.com/herald-social/herald/hack/image/tree"
)

// licencesPath is the path of the licence texts in an image.
const licencesPath = "/usr/share/doc/herald/licences.txt"

// packer builds images from compiled programs.
type packer struct {
	release release
	// registry is the images' registry and path, such as ghcr.io/herald-social.
	registry string
	// programs is the folder with the Go programs, in a subfolder linux_<architecture> for each architecture.
	programs string
	// cache is the folder for Debian packages.
	cache string
}

// openLicences loads the licence classifier once for all programs, which takes seconds. It caches the result for each
// module.
var openLicences = sync.OnceValues(licences.Open)

// content is the content of an image for one architecture.
type content struct {
	layers     []archive.Layer
	components []cdx.Component
}

// content returns the content of the image. The layers that change least come first, so a new version shares them with
// the previous one.
func (p packer) content(d definition, architecture string) (content, error) {
	authorities, err := certificates()
	if err != nil {
		return content{}, err
	}
	base := tree.Tree{}
	base.Add(certificatesPath, 0o644, authorities)
	for _, folder := range d.scratch {
		base.AddScratch(folder)
	}
	module, err := certificatesVersion()
	if err != nil {
		return content{}, err
	}
	c := content{
		layers:     []archive.Layer{{Comment: "certificate authorities and folders", Files: base}},
		components: []cdx.Component{sbom.GoModule(module)},
	}
	if d.ffmpeg {
		files, packages, err := ffmpeg(architecture, p.cache)
		if err != nil {
			return content{}, err
		}
		c.layers = append(c.layers, archive.Layer{Comment: "ffmpeg from Debian", Files: files})
		for _, pkg := range packages {
			c.components = append(c.components, sbom.DebianPackage(pkg, debianRelease))
		}
	}
	err = p.addProgram(&c, d.program, architecture)
	return c, err
}

// addProgram adds the Go program.
func (p packer) addProgram(c *content, program, architecture string) error {
	file := filepath.Join(p.programs, "linux_"+architecture, program)
	if err := checkStatic(file, architecture); err != nil {
		return err
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	files := tree.Tree{}
	files.Add("/"+program, 0o755, binary)
	store, err := openLicences()
	if err != nil {
		return err
	}
	modules, err := store.Program(file)
	if err != nil {
		return err
	}
	files.Add(licencesPath, 0o644, licences.Texts(modules))
	c.layers = append(c.layers, archive.Layer{Comment: program, Files: files})
	components, err := sbom.GoProgram(file, p.release.version)
	if err != nil {
		return err
	}
	for i := range components {
		at := slices.IndexFunc(modules, func(m licences.Module) bool { return m.Path == components[i].Name })
		if at >= 0 {
			components[i].Licenses = sbom.Licences(modules[at].Licences)
		}
	}
	c.components = append(c.components, components...)
	return nil
}

// machines are the ELF machines of the images' architectures.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkStatic rejects a program that is for another architecture or needs a loader, which the image does not have.
func checkStatic(file, architecture string) error {
	program, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	segments := program.Progs
	if err := program.Close(); err != nil {
		return err
	}
	if want, known := machines[architecture]; !known || program.Machine != want {
		return fmt.Errorf("%s is for %s, not for %s", file, program.Machine, architecture)
	}
	for _, segment := range segments {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("%s is linked dynamically; build it with CGO_ENABLED=0", file)
		}
	}
	return nil
}

// pack writes an image for the given architectures, and an SBOM for each.
func (p packer) pack(d definition, architectures []string, out string) (v1.Hash, error) {
	tag, err := name.NewTag(p.registry+"/"+d.name+":"+p.release.version, name.StrictValidation)
	if err != nil {
		return v1.Hash{}, err
	}
	images := map[string]v1.Image{}
	for _, architecture := range architectures {
		c, err := p.content(d, architecture)
		if err != nil {
			return v1.Hash{}, err
		}
		image, err := archive.Image(architecture, d.config(p.release), c.layers, p.release.created)
		if err != nil {
			return v1.Hash{}, err
		}
		images[architecture] = image
		list := filepath.Join(out, fmt.Sprintf("%s_linux_%s.cdx.json", d.name, architecture))
		if err := p.list(list, d, tag, architecture, image, c.components); err != nil {
			return v1.Hash{}, err
		}
	}
	index, err := archive.Index(images, d.labels(p.release))
	if err != nil {
		return v1.Hash{}, err
	}
	if err := archive.Write(filepath.Join(out, d.name+".tar"), index, tag); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// list writes the SBOM of an image for one architecture.
func (p packer) list(file string, d definition, tag name.Tag, architecture string, image v1.Image, components []cdx.Component) error {
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	err = sbom.Write(out, sbom.Subject{
		Name:         tag.Context().Name(),
		Version:      p.release.version,
		Licences:     d.licences,
		Architecture: architecture,
		Digest:       digest.String(),
		Created:      p.release.created,
	}, components)
	return errors.Join(err, out.Close())
}

// unpack writes an image's files to a folder, for other image builders.
func (p packer) unpack(d definition, architecture, out string) error {
	c, err := p.content(d, architecture)
	if err != nil {
		return err
	}
	for _, layer := range c.layers {
		if err := layer.Files.WriteDir(out); err != nil {
			return err
		}
	}
	return nil
}
