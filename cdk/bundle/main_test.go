package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The CDK names a function's code by a hash of its zip. `make reproducible` checks the same for the binaries.
func TestTheSameBinaryMakesTheSameZip(t *testing.T) {
	var zips [][]byte
	for i, written := range []time.Time{time.Now(), time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)} {
		dir := t.TempDir()
		binary, target := filepath.Join(dir, "function"), filepath.Join(dir, "function.zip")
		if err := os.WriteFile(binary, []byte("binary"), os.FileMode(0o755-i)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(binary, written, written); err != nil {
			t.Fatal(err)
		}
		if err := pack(binary, target); err != nil {
			t.Fatal(err)
		}
		made, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		zips = append(zips, made)
	}
	if !bytes.Equal(zips[0], zips[1]) {
		t.Error("two zips of one binary differ")
	}
}

func TestTheZipHoldsBootstrapAndMayBeRun(t *testing.T) {
	dir := t.TempDir()
	binary, target := filepath.Join(dir, "function"), filepath.Join(dir, "function.zip")
	for _, content := range []string{"one", "another"} { // the second replaces the first
		if err := os.WriteFile(binary, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := pack(binary, target); err != nil {
			t.Fatal(err)
		}
		archive, err := zip.OpenReader(target)
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		if len(archive.File) != 1 || archive.File[0].Name != "bootstrap" || archive.File[0].Mode().Perm() != 0o755 {
			t.Fatalf("%+v", archive.File)
		}
		file, err := archive.File[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(file); err != nil || string(got) != content {
			t.Errorf("it holds %q (%v), want %q", got, err, content)
		}
	}
}

func TestAZipThatIsRightStays(t *testing.T) {
	dir := t.TempDir()
	binary, target := filepath.Join(dir, "function"), filepath.Join(dir, "function.zip")
	if err := os.WriteFile(binary, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := pack(binary, target); err != nil {
		t.Fatal(err)
	}
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.Chtimes(target, old, old); err != nil {
		t.Fatal(err)
	}
	if err := pack(binary, target); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(target); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("it was written again: %v, %v", info, err)
	}
}

// A zip in the way of the build is kept only if it holds what was built: not other code with the same CRC and size, and
// not the same code beside something else or under another name.
func TestAZipThatIsForgedGoes(t *testing.T) {
	const built, forged = "plumless", "buckeroo"
	if len(built) != len(forged) || crc32.ChecksumIEEE([]byte(built)) != crc32.ChecksumIEEE([]byte(forged)) {
		t.Fatal("the two have another size or CRC")
	}
	type entry struct{ name, content string }
	for what, entries := range map[string][]entry{
		"other code with the same CRC": {{"bootstrap", forged}},
		"another name":                 {{"other", built}},
		"one more file":                {{"bootstrap", built}, {"other", forged}},
		"nothing":                      nil,
	} {
		dir := t.TempDir()
		binary, target := filepath.Join(dir, "function"), filepath.Join(dir, "function.zip")
		if err := os.WriteFile(binary, []byte(built), 0o755); err != nil {
			t.Fatal(err)
		}
		var content bytes.Buffer
		archive := zip.NewWriter(&content)
		for _, e := range entries {
			header := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
			header.SetMode(0o755)
			file, err := archive.CreateHeader(header)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(file, e.content); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(archive.Close(), os.WriteFile(target, content.Bytes(), 0o644), pack(binary, target)); err != nil {
			t.Fatal(err)
		}
		read, err := zip.OpenReader(target)
		if err != nil {
			t.Fatal(err)
		}
		file, err := read.File[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(file)
		if err != nil || len(read.File) != 1 || read.File[0].Name != "bootstrap" || string(got) != built {
			t.Errorf("%s: %d files, %s has %q: %v", what, len(read.File), read.File[0].Name, got, err)
		}
		read.Close()
	}
}
