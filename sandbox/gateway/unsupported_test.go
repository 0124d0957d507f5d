package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// A call of a service that MiniStack does not have is refused by the service's name. MiniStack alone takes it for a call
// of S3 unless botocore has the name, and looks for it by loading every model that botocore has.
func TestAServiceThatMiniStackDoesNotHave(t *testing.T) {
	credentials := need[aws.Credentials](t)(sandbox.Config().Credentials.Retrieve(t.Context()))
	empty := sha256.Sum256(nil)
	for _, service := range []string{"servicequotas", "newer-than-botocore"} {
		request := need[*http.Request](t)(http.NewRequest(http.MethodGet, sandbox.URL+"/", nil))
		err := v4.NewSigner().SignHTTP(t.Context(), credentials, request, hex.EncodeToString(empty[:]), service, "us-east-1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		response := need[*http.Response](t)(http.DefaultClient.Do(request))
		defer response.Body.Close()
		text := string(need[[]byte](t)(io.ReadAll(response.Body)))
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(text, "Unsupported service: "+service) {
			t.Errorf("%s: %s: %s", service, response.Status, text)
		}
	}
}
