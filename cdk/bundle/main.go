// Command bundle builds every function and packs each one into dist/{architecture}/{function}.zip, as the CDK stack
// expects them. The same sources give the same bytes on every machine, so that a deployment changes only functions that
// have changed.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
)

// goarch is Go's name for each of Lambda's architectures.
var goarch = map[string]string{"arm64": "arm64", "x86_64": "amd64"}

// bootstrap is the name that Lambda runs, and executable its mode.
const (
	bootstrap  = "bootstrap"
	executable = 0o755
)

func main() {
	architecture := flag.String("architecture", "arm64", "arm64 or x86_64")
	dist := flag.String("dist", "dist", "folder of the zips")
	flag.Parse()
	if err := bundle(*architecture, *dist); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func bundle(architecture, dist string) error {
	if goarch[architecture] == "" {
		return fmt.Errorf("-architecture is %q; it must be arm64 or x86_64", architecture)
	}
	folder := filepath.Join(dist, architecture)
	binaries := filepath.Join(folder, "bin")
	if err := os.MkdirAll(binaries, 0o755); err != nil {
		return fmt.Errorf("%s: create: %w", binaries, err)
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags=lambda.norpc", "-o",
		binaries+string(filepath.Separator), "./functions/...")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+goarch[architecture], "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	functions, err := os.ReadDir("functions")
	if err != nil {
		return fmt.Errorf("functions: list: %w", err)
	}
	var packs errgroup.Group
	packs.SetLimit(runtime.GOMAXPROCS(0))
	for _, function := range functions {
		packs.Go(func() error {
			err := pack(filepath.Join(binaries, function.Name()), filepath.Join(folder, function.Name()+".zip"))
			if err != nil {
				return fmt.Errorf("function %s: pack: %w", function.Name(), err)
			}
			return nil
		})
	}
	return packs.Wait()
}

// pack writes a zip with one file, bootstrap, with a fixed time. If the zip already contains just that, pack leaves it
// unchanged, so that files built from it need not be built again.
func pack(binary, target string) error {
	from, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer from.Close()
	if same, err := holds(target, from); err != nil || same {
		return err
	}
	to, err := os.CreateTemp(filepath.Dir(target), ".zip-")
	if err != nil {
		return err
	}
	defer os.Remove(to.Name())
	archive := zip.NewWriter(to)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestSpeed) // a sixth more bytes in a third of the time
	})
	header := &zip.FileHeader{Name: bootstrap, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(executable)
	entry, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := io.Copy(entry, from); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	if err := os.Chmod(to.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(to.Name(), target)
}

// holds reports whether a zip already contains exactly this binary, as the file bootstrap, by the SHA-256 of its content.
// The zip's own checksum, a CRC, can be that of other code, but another one cannot be that of this binary.
func holds(target string, binary *os.File) (bool, error) {
	archive, err := zip.OpenReader(target)
	if err != nil {
		return false, nil // it does not exist, or is broken
	}
	defer archive.Close()
	if len(archive.File) != 1 || archive.File[0].Name != bootstrap || archive.File[0].Mode() != executable {
		return false, nil
	}
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, binary); err != nil {
		return false, err
	}
	if _, err := binary.Seek(0, io.SeekStart); err != nil || sum.Sum32() != archive.File[0].CRC32 {
		return false, err
	}
	packed, err := archive.File[0].Open()
	if err != nil {
		return false, nil
	}
	defer packed.Close()
	have := sha256.New()
	if _, err := io.Copy(have, packed); err != nil {
		return false, nil
	}
	want := sha256.New()
	if _, err := io.Copy(want, binary); err != nil {
		return false, err
	}
	_, err = binary.Seek(0, io.SeekStart)
	return bytes.Equal(have.Sum(nil), want.Sum(nil)), err
}
