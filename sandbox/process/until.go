package process

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Until tries again until there is no error, or until the context ends. A group handles a child that died.
func Until(ctx context.Context, what string, try func() error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w (last try: %v)", what, context.Cause(ctx), last)
	}
	return nil
}
