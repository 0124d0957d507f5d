package architecture

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.." // of the repository
	module = "github.com/sawhorse-io/sawhorse/"
)

// folder is one package with its imports. Imports of this module are without the module's name.
type folder struct {
	dir                      string
	own, ownInTests, outside []string
}

// tree has the packages of the root module and of the sandbox's modules.
type tree struct{ root, sandbox []folder }

var read = sync.OnceValues(func() (tree, error) {
	var found tree
	files, err := list(root)
	if err != nil {
		return found, err
	}
	folders := map[string]*folder{}
	for _, file := range files {
		dir := path.Dir(file)
		if folders[dir] == nil {
			folders[dir] = &folder{dir: dir}
		}
		if err := folders[dir].add(file); err != nil {
			return found, err
		}
	}
	for dir, f := range folders {
		if strings.HasPrefix(dir, "sandbox") {
			found.sandbox = append(found.sandbox, *f)
		} else {
			found.root = append(found.root, *f)
		}
	}
	byName := func(a, b folder) int { return strings.Compare(a.dir, b.dir) }
	slices.SortFunc(found.root, byName)
	slices.SortFunc(found.sandbox, byName)
	return found, nil
})

func (f *folder) add(file string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(file, "_test.go")
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		switch own, ours := strings.CutPrefix(name, module); {
		case ours && test:
			f.ownInTests = append(f.ownInTests, own)
		case ours:
			f.own = append(f.own, own)
		case !test:
			f.outside = append(f.outside, name)
		}
	}
	return nil
}

func repository(t *testing.T) tree {
	t.Helper()
	found, err := read()
	if err != nil {
		t.Fatal(err)
	}
	if len(found.root) < 15 || len(found.sandbox) < 3 {
		t.Fatalf("%d and %d packages: the test has lost the repository", len(found.root), len(found.sandbox))
	}
	return found
}

func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// list returns the paths of all Go files below a folder, relative to it.
func list(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && file != dir &&
			(strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "testdata", "cdk.out", "dist"}, name)) {
			return fs.SkipDir
		}
		if strings.HasSuffix(file, ".go") {
			relative, err := filepath.Rel(dir, file)
			if err != nil {
				return err
			}
			files = append(files, filepath.ToSlash(relative))
		}
		return nil
	})
	return files, err
}
