// Package ask calls the sandbox's own endpoints, which are no API of AWS and need no signature.
package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// JSON sends body as JSON, if there is one, and decodes the answer into a value. A string takes the answer as it is, nil ignores it. A
// status of 300 or more is an error that has the answer.
func JSON(ctx context.Context, method, address string, body, into any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch text, plain := into.(*string); {
	case err != nil:
		return err
	case response.StatusCode >= 300:
		return fmt.Errorf("%s: %s", response.Status, answer)
	case plain:
		*text = string(answer)
		return nil
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}
