package rack

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
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
}

// ReadTree reads everything below a path. A parameter in a subfolder has its folder in its name.
func ReadTree(ctx context.Context, reader ParameterReader, path string) (Tree, error) {
	tree := Tree{Values: map[string]string{}}
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
			if p.Type == types.ParameterTypeSecureString {
				tree.Secure = append(tree.Secure, name)
				tree.Values[name] = ""
				continue
			}
			tree.Values[name] = *p.Value
		}
		if next = out.NextToken; next == nil || *next == "" {
			return tree, nil
		}
	}
}
