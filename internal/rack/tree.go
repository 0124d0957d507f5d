package rack

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// ParameterReader is what reading a tree needs of SSM.
type ParameterReader interface {
	GetParametersByPath(context.Context, *ssm.GetParametersByPathInput, ...func(*ssm.Options)) (*ssm.GetParametersByPathOutput, error)
}

// Tree is what is written below one path.
type Tree struct {
	// Values are the texts by name, without the path. A SecureString's is missing: nothing of ours may decrypt it.
	Values map[string]string
	// Secure names the SecureStrings.
	Secure []string
	// Modified is when each was last written, Versions are Parameter Store's counts of the writes: one more with each write, that of the
	// same value too, and 1 again for a parameter that was deleted and is back.
	Modified map[string]time.Time
	Versions map[string]int64
}

// Written is a write to one parameter, as the event of it tells: EventBridge's event of Parameter Store has operation, name and time,
// to the second, and neither value nor version (Systems Manager User Guide, "EventBridge event examples").
type Written struct {
	// Operation is Create, Update or Delete.
	Operation string
	At        time.Time
	// Name is the parameter's, without the path of the tree.
	Name string
}

// Has tells whether the tree was read after a write: it has the parameter as of then or later, or no longer.
func (t Tree) Has(w Written) bool {
	modified, there := t.Modified[w.Name]
	if modified = modified.Truncate(time.Second); w.Operation == "Delete" {
		return !there || modified.After(w.At)
	}
	return there && !modified.Before(w.At)
}

// readWritten reads a write as the state machine puts it into the lease: operation, time and name.
func readWritten(text string) (Written, bool) {
	words := strings.SplitN(text, " ", 3)
	if len(words) < 3 {
		return Written{}, false
	}
	at, err := time.Parse(time.RFC3339, words[1])
	return Written{Operation: words[0], At: at, Name: words[2]}, err == nil
}

// ReadTree reads what is below a path, but no page behind the one on which there are more names than a rack may have: who writes
// parameters chooses how many there are. A parameter in a subfolder has its folder in its name.
func ReadTree(ctx context.Context, reader ParameterReader, path string) (Tree, error) {
	tree := Tree{Values: map[string]string{}, Modified: map[string]time.Time{}, Versions: map[string]int64{}}
	var next *string
	for {
		out, err := reader.GetParametersByPath(ctx, &ssm.GetParametersByPathInput{
			Path: &path, Recursive: new(true), NextToken: next, MaxResults: new(int32(10)),
		})
		if err != nil {
			return tree, fmt.Errorf("parameters below %s: read: %w", path, err)
		}
		for _, p := range out.Parameters {
			name := strings.TrimPrefix(*p.Name, path+"/")
			if tree.Modified[name] = (time.Time{}); p.LastModifiedDate != nil {
				tree.Modified[name] = *p.LastModifiedDate
			}
			tree.Versions[name] = p.Version
			if p.Type == types.ParameterTypeSecureString {
				tree.Secure = append(tree.Secure, name)
				tree.Values[name] = ""
				continue
			}
			tree.Values[name] = *p.Value
		}
		if next = out.NextToken; next == nil || *next == "" || len(tree.Values) > params.MostNames {
			return tree, nil
		}
	}
}
