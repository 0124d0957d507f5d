package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// published writes a module proxy with one module, example.com/m v1.0.0, and makes Go use it, with a module cache of its
// own and no network.
func published(t *testing.T) {
	t.Helper()
	proxy := t.TempDir()
	versions := filepath.Join(proxy, "example.com", "m", "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	const mod = "module example.com/m\n\ngo 1.21\n"
	archive, err := os.Create(filepath.Join(versions, "v1.0.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	content := zip.NewWriter(archive)
	for name, text := range map[string]string{"go.mod": mod, "m.go": "package m\n"} {
		file, err := content.Create("example.com/m@v1.0.0/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(content.Close(), archive.Close(),
		os.WriteFile(filepath.Join(versions, "v1.0.0.mod"), []byte(mod), 0o644),
		os.WriteFile(filepath.Join(versions, "v1.0.0.info"), []byte(`{"Version":"v1.0.0"}`), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GOSUMDB", "sum.golang.org https://127.0.0.1:1") // answers nothing
}

// fresh downloads the module into an empty module cache.
func fresh(t *testing.T, recorded string) (module, error) {
	t.Helper()
	cache := t.TempDir()
	t.Setenv("GOMODCACHE", cache)
	defer func() { // Go makes what is in it read-only
		_ = filepath.Walk(cache, func(path string, _ os.FileInfo, _ error) error { return os.Chmod(path, 0o755) })
	}()
	return downloads{recorded: []byte(recorded)}.download("example.com/m", "1.0.0")
}

// What is recorded is compared, also if the environment exempts the module from the checksum database, and needs no answer
// of that. A module that was changed is a finding, and one that cannot be had is none.
func TestADownloadIsComparedWithWhatIsRecorded(t *testing.T) {
	published(t)
	t.Setenv("GONOSUMDB", "example.com/m")
	first, err := fresh(t, "")
	if err != nil || first.Sum == "" || first.GoModSum == "" {
		t.Fatalf("%+v: %v", first, err)
	}
	const other = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	record := func(sum, mod string) string {
		return fmt.Sprintf("example.com/m v1.0.0 %s\nexample.com/m v1.0.0/go.mod %s\n", sum, mod)
	}
	for _, exempt := range []string{"example.com/m", ""} {
		t.Setenv("GONOSUMDB", exempt)
		if _, err := fresh(t, record(first.Sum, first.GoModSum)); err != nil {
			t.Errorf("exempt %q: what is recorded: %v", exempt, err)
		}
		for what, recorded := range map[string]string{
			"other content": record(other, first.GoModSum), "another go.mod": record(first.Sum, other),
		} {
			if _, err := fresh(t, recorded); err == nil || errors.Is(err, errUnreached) || !strings.Contains(err.Error(), "checksum mismatch") {
				t.Errorf("exempt %q: %s: %v", exempt, what, err)
			}
		}
	}
	if _, err := fresh(t, "example.com/m v1.0.0\n"); err == nil || errors.Is(err, errUnreached) {
		t.Errorf("a record that is no checksum: %v", err)
	}
	if _, err := fresh(t, ""); !errors.Is(err, errUnreached) {
		t.Errorf("not recorded, and without the database: %v", err)
	}
	t.Setenv("GOPROXY", "off")
	if _, err := fresh(t, record(first.Sum, first.GoModSum)); !errors.Is(err, errUnreached) {
		t.Errorf("without a proxy: %v", err)
	}
}

// The status tells what was not looked at from what is wrong, and all versions are looked at.
func TestTheStatus(t *testing.T) {
	away := fmt.Errorf("a: %w", errUnreached)
	for _, c := range []struct {
		errs []error
		want int
	}{{nil, 0}, {[]error{nil, away, nil}, 3}, {[]error{away, errors.New("changed"), away}, 1}, {[]error{errors.New("changed"), nil}, 1}} {
		var versions []string
		for i := range c.errs {
			versions = append(versions, fmt.Sprint(i))
		}
		looked := 0
		got := all(versions, func(version string) error {
			looked++
			return c.errs[looked-1]
		})
		if got != c.want || looked != len(c.errs) {
			t.Errorf("%v: status %d, %d looked at", c.errs, got, looked)
		}
	}
}
