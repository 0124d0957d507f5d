package readonly

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
)

// Once returns a copy of a configuration whose clients refuse to write, and together send each read once: a repeated
// read gets the first one's answer. It is for one look at a rack, because the answers never expire.
func Once(config aws.Config) aws.Config {
	config = Config(config)
	client := config.HTTPClient
	if client == nil {
		client = awshttp.NewBuildableClient()
	}
	config.HTTPClient = &once{client: client}
	return config
}

// once keeps the answers to requests. Each caller decodes an answer for itself, so callers share no data.
type once struct {
	client  aws.HTTPClient
	answers sync.Map // *answer, by what identify returns
}

// answer is the answer to one request, when there is one. It is locked while the request is sent.
type answer struct {
	sync.Mutex
	response *http.Response
	body     []byte
}

// longest is the size of the longest answer that is kept, in bytes.
const longest = 1 << 20

// Do sends a request, or returns the answer that an equal request got. While a request is under way, equal ones wait for
// its answer. An answer that may be another one at the next try, or that is very long, is not kept.
func (o *once) Do(request *http.Request) (*http.Response, error) {
	key, err := identify(request)
	if err != nil {
		return nil, err
	}
	found, _ := o.answers.LoadOrStore(key, new(answer))
	a := found.(*answer)
	a.Lock()
	defer a.Unlock()
	if a.response != nil {
		return a.to(request), nil
	}
	response, err := o.client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotFound {
		return response, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, longest+1))
	if err != nil || len(body) > longest {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
		return response, nil // reading the body returns the error again
	}
	response.Body.Close()
	a.response, a.body = response, body
	return a.to(request), nil
}

// to returns the answer as that to a request.
func (a *answer) to(request *http.Request) *http.Response {
	response := *a.response
	response.Header, response.Request = a.response.Header.Clone(), request
	response.Body = io.NopCloser(bytes.NewReader(a.body))
	return &response
}

// identify returns what two equal requests have in common. AWS's protocols name the operation in the URL, in the body or in
// the header X-Amz-Target. The other headers have the time and the number of the try. identify reads the body, and puts it
// back.
func identify(request *http.Request) (string, error) {
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return "", err
		}
		request.Body.Close()
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	return request.Method + " " + request.URL.String() + "\n" + request.Header.Get("X-Amz-Target") + "\n" + sorted(body), nil
}

// sorted returns a body of JSON with sorted keys, because the SDK writes those of a map in any order. Any other body is
// returned as it is.
func sorted(body []byte) string {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return string(body)
	}
	return string(canonical.JSON(value))
}
