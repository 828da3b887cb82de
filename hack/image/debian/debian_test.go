// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sum = "61c902185365b5d6a2615f97e7c9baecdfb8e53b6c318396da3022c5b2e8734a"

const lockText = `# Written by ` + "`make image-packages`" + `, which takes today's packages.
# taken 20261122
'http://deb.debian.org/debian-security/pool/updates/main/f/ffmpeg/ffmpeg_7.1.5-0%2bdeb13u1_amd64.deb' ffmpeg_7.1.5-0+deb13u1_amd64.deb 7 SHA256:` + sum + `
'http://deb.debian.org/debian/pool/main/z/zimg/libzimg2_3.0.5%2bds1-1_amd64.deb' libzimg2_3.0.5+ds1-1_amd64.deb 227000 SHA256:` + sum + `
`

func TestLockRoundTrip(t *testing.T) {
	lock, err := ParseLock([]byte(lockText))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(lock.Packages)
	if got := string(lock.Format()); got != lockText {
		t.Errorf("formatted as\n%s", got)
	}
	want := "http://snapshot.debian.org/archive/debian/20261122T235959Z/pool/main/z/zimg/libzimg2_3.0.5%2bds1-1_amd64.deb"
	if got := lock.Packages[0].archived(lock.Taken); got != want {
		t.Errorf("got the archive URL %s, want %s", got, want)
	}
}

func TestInvalidLocks(t *testing.T) {
	tests := map[string]struct{ reason, text, want string }{
		"no day":   {"old packages are archived by day", "", "# taken"},
		"weak sum": {"MD5 sums do not detect tampering", "# taken 1\n'http://x/y/z.deb' z.deb 1 MD5Sum:00", "line 2"},
		"no size":  {"a truncated line", "# taken 1\n'http://x/y/z.deb' z.deb one SHA256:" + sum, "size"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseLock([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

func TestPackagesOf(t *testing.T) {
	printed := "Reading package lists...\n" +
		"'http://deb.debian.org/debian/pool/main/g/gcc-14/libstdc%2b%2b6_14.2.0-19_amd64.deb' libstdc++6_14.2.0-19_amd64.deb 718 MD5Sum:00\n"
	if got := packagesOf([]byte(printed)); !slices.Equal(got, []string{"libstdc++6"}) {
		t.Errorf("the packages are %q", got)
	}
}

// fakePackages returns packages whose programs are text: the loader and the libraries, one per line.
func fakePackages() []*Package {
	return []*Package{
		{
			Name: "player", Control: []byte("Package: player\n"),
			Files: map[string][]byte{
				"/usr/bin/player":                     []byte("/lib64/ld.so.2\nliba.so.1\n"),
				"/usr/share/doc/player/copyright":     []byte("GPL"),
				"/usr/share/doc/player/changelog.gz":  []byte("news"),
				"/usr/lib/x86_64-linux-gnu/plugin.so": []byte("\nlibmissing.so\n"),
			},
		},
		{
			Name:  "liba",
			Files: map[string][]byte{"/usr/lib/x86_64-linux-gnu/liba.so.1.2": []byte("\nlibb.so.3\nlibc.so.6\n")},
			Links: map[string]string{"/usr/lib/x86_64-linux-gnu/liba.so.1": "/usr/lib/x86_64-linux-gnu/liba.so.1.2"},
		},
		{Name: "libb", Files: map[string][]byte{
			"/usr/lib/x86_64-linux-gnu/libb/libb.so.3":                           []byte("\nliba.so.1\n"),
			"/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3/libb.so.3":         []byte("\nlibnew.so\n"),
			"/usr/lib/x86_64-linux-gnu/libb-other-implementation/libunused.so.3": []byte("\n"),
		}},
		{
			Name:  "libc6",
			Files: map[string][]byte{"/lib/x86_64-linux-gnu/libc.so.6": []byte("\nld.so.2\n"), "/lib/x86_64-linux-gnu/ld.so.2": []byte("\n")},
			Links: map[string]string{"/lib64/ld.so.2": "/usr/lib/x86_64-linux-gnu/ld.so.2"},
		},
		{Name: "unused", Files: map[string][]byte{"/usr/lib/x86_64-linux-gnu/libunused.so.1": nil}},
		{Name: Base, Files: map[string][]byte{"/usr/lib/os-release": []byte("Debian"), "/usr/share/common-licenses/GPL-2": []byte("text")}},
	}
}

func fakeLinkage(content []byte) (loader string, needed []string, err error) {
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	return lines[0], lines[1:], nil
}

func TestClosure(t *testing.T) {
	files, used, err := collect(fakePackages(), "amd64", "/usr/bin/player", fakeLinkage)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range used {
		names = append(names, p.Name)
	}
	if want := []string{Base, "liba", "libb", "libc6", "player"}; !slices.Equal(names, want) {
		t.Errorf("got files of %q, want %q", names, want)
	}
	want := map[string]string{
		"/etc/os-release":                     "by which scanners know Debian's versions",
		"/lib64/ld.so.2":                      "the loader, where the program asks for it",
		"/usr/bin/player":                     "the program",
		"/usr/lib/x86_64-linux-gnu/ld.so.2":   "the loader as a library",
		"/usr/lib/x86_64-linux-gnu/liba.so.1": "named as it is asked for, not as its file is",
		"/usr/lib/x86_64-linux-gnu/libb.so.3": "from a folder of its own, where /etc/alternatives would choose it",
		"/usr/lib/x86_64-linux-gnu/libc.so.6": "from /lib, which is a link today",
		"/usr/share/common-licenses/GPL-2":    "the text to which copyright files refer",
		"/usr/share/doc/player/copyright":     "the licence",
		"/var/lib/dpkg/status.d/" + Base:      "for scanners",
		"/var/lib/dpkg/status.d/liba":         "for scanners",
		"/var/lib/dpkg/status.d/libb":         "for scanners",
		"/var/lib/dpkg/status.d/libc6":        "for scanners",
		"/var/lib/dpkg/status.d/player":       "for scanners",
	}
	for name, reason := range want {
		if _, found := files[name]; !found {
			t.Errorf("%s is missing: %s", name, reason)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if want[name] == "" {
			t.Errorf("%s is not needed", name)
		}
	}
}

func TestMissingDependencies(t *testing.T) {
	tests := map[string]struct{ reason, architecture, program, want string }{
		"missing library":                 {"the program would not start", "amd64", "/usr/lib/x86_64-linux-gnu/plugin.so", "libmissing.so, which"},
		"no package contains the program": {"no package contains the program", "amd64", "/usr/bin/other", "/usr/bin/other"},
		"architecture":                    {"the library path is unknown", "s390x", "/usr/bin/player", "[amd64 arm64]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, err := collect(fakePackages(), tc.architecture, tc.program, fakeLinkage); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

// built builds a package with dpkg-deb.
func built(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	root := t.TempDir()
	for name, content := range map[string]string{
		"DEBIAN/control":     "Package: thing\nSource: things (1.0)\nVersion: 1:1.0-2\nArchitecture: amd64\nMaintainer: x <x@example.com>\nDescription: x\n",
		"usr/lib/thing.so.1": "content",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("thing.so.1", filepath.Join(root, "usr", "lib", "thing.so")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "thing_1.0-2_amd64.deb")
	if output, err := exec.Command("dpkg-deb", "--build", "--root-owner-group", root, file).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, output)
	}
	return file
}

func TestUnpack(t *testing.T) {
	p, err := Unpack(built(t))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "thing" || p.Version != "1:1.0-2" || p.Source != "things" || p.Architecture != "amd64" {
		t.Errorf("got %s %s of %s for %s", p.Name, p.Version, p.Source, p.Architecture)
	}
	if string(p.Files["/usr/lib/thing.so.1"]) != "content" || p.Links["/usr/lib/thing.so"] != "/usr/lib/thing.so.1" {
		t.Errorf("files %q, links %q", p.Files, p.Links)
	}
}

func TestFetch(t *testing.T) {
	file := built(t)
	if _, err := os.Stat(aptHelper); err != nil {
		t.Skip("apt is not installed")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(content)
	pin := Pin{URL: "copy:" + file, SHA256: hex.EncodeToString(hash[:])}
	cache := t.TempDir()
	paths, err := Fetch(Lock{Packages: []Pin{pin}}, cache)
	if err != nil || len(paths) != 1 {
		t.Fatalf("fetched %q, %v", paths, err)
	}
	if err := verify(paths[0], pin.SHA256); err != nil {
		t.Error(err)
	}
	t.Run("a stored package is not downloaded again", func(t *testing.T) {
		gone := pin
		gone.URL = "copy:/nowhere/" + filepath.Base(file)
		if _, err := Fetch(Lock{Packages: []Pin{gone}}, cache); err != nil {
			t.Error(err)
		}
	})
	t.Run("a damaged package is downloaded again", func(t *testing.T) {
		if err := os.WriteFile(paths[0], []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Fetch(Lock{Packages: []Pin{pin}}, cache); err != nil {
			t.Error(err)
		}
		if err := verify(paths[0], pin.SHA256); err != nil {
			t.Error(err)
		}
	})
}
