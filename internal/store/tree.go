package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// ParameterReader is the part of SSM's API that reading a tree needs.
type ParameterReader interface {
	GetParametersByPath(context.Context, *ssm.GetParametersByPathInput, ...func(*ssm.Options)) (*ssm.GetParametersByPathOutput, error)
}

// Tree holds the parameters below one path.
type Tree struct {
	// Values maps names, without the path, to texts. For a SecureString the text is empty: Sawhorse must not decrypt
	// it.
	Values map[string]string
	// Secure has the names of the SecureStrings.
	Secure []string
	// Modified has the time of each parameter's last write, Versions its version in Parameter Store. A version
	// increases with each write, also of the same value, and starts at 1 again if a parameter is deleted and created
	// again.
	Modified map[string]time.Time
	Versions map[string]int64
}

// Written is a write to one parameter, as an event reports it. EventBridge's event of Parameter Store has operation,
// name and time, to the second, but neither value nor version (Systems Manager User Guide, "EventBridge event
// examples").
type Written struct {
	// Operation is Create, Update or Delete.
	Operation string
	At        time.Time
	// Name is the parameter's name without the path of the tree, WrittenChange or WrittenHold.
	Name string
}

// WrittenChange and WrittenHold are the names of the parameter change, and of the hold, in a Written. No parameter of a tree
// has them, because SSM allows no empty folder.
const (
	WrittenChange = "/change"
	WrittenHold   = "/hold"
)

// text is what readWritten reads.
func (w Written) text() string {
	return w.Operation + " " + w.At.UTC().Format(time.RFC3339) + " " + strings.TrimPrefix(w.Name, "/")
}

// Has reports whether the tree was read after a write: the parameter is as new as the write or newer. After a delete, it
// is gone or newer.
func (t Tree) Has(w Written) bool {
	modified, there := t.Modified[w.Name]
	return IsAsNew(modified, there, w)
}

// IsAsNew reports whether a parameter was read after a write, from the time at which what was read had been written.
func IsAsNew(modified time.Time, there bool, w Written) bool {
	if modified = modified.Truncate(time.Second); w.Operation == "Delete" {
		return !there || modified.After(w.At)
	}
	return there && !modified.Before(w.At)
}

// readWritten parses a write as the state machine stores it in the lease: operation, time and the name below the rack's folder.
func readWritten(text string) (Written, bool) {
	words := strings.SplitN(text, " ", 3)
	if len(words) < 3 {
		return Written{}, false
	}
	at, err := time.Parse(time.RFC3339, words[1])
	name, isParam := strings.CutPrefix(words[2], "params/")
	if !isParam {
		name = "/" + words[2]
	}
	return Written{Operation: words[0], At: at, Name: name}, err == nil
}

// ReadTree reads the parameters below a path. It stops after the page on which there are more names than a rack may
// have, because the writer of the parameters controls their number. The name of a parameter in a subfolder includes the
// folder.
func ReadTree(ctx context.Context, reader ParameterReader, path string) (Tree, error) {
	return readTree(ctx, reader, path, true)
}

// readTree is ReadTree, with or without the parameters in subfolders.
func readTree(ctx context.Context, reader ParameterReader, path string, recursive bool) (Tree, error) {
	tree := Tree{Values: map[string]string{}, Modified: map[string]time.Time{}, Versions: map[string]int64{}}
	pages := ssm.NewGetParametersByPathPaginator(reader, &ssm.GetParametersByPathInput{
		Path: &path, Recursive: &recursive, MaxResults: new(int32(10)),
	})
	for pages.HasMorePages() && len(tree.Values) <= params.MostNames {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return tree, fmt.Errorf("parameters below %s: read: %w", path, err)
		}
		for _, p := range page.Parameters {
			name := strings.TrimPrefix(*p.Name, path+"/")
			tree.Modified[name] = aws.ToTime(p.LastModifiedDate)
			tree.Versions[name] = p.Version
			if p.Type == types.ParameterTypeSecureString {
				tree.Secure = append(tree.Secure, name)
				tree.Values[name] = ""
				continue
			}
			tree.Values[name] = *p.Value
		}
	}
	return tree, nil
}
