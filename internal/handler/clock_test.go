package handler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// signed is how far AWS lets the time of a signature differ from its own (IAM User Guide, "Signature elements"; S3 lets 15 minutes).
const signed = 5 * time.Minute

// AWS refuses what a function with a clock ten minutes off has signed, and the SDK does not correct that for the services that
// answer in JSON. Each call of a function begins with an update of the lease in DynamoDB, so such a function changes nothing. A
// clock that is off by less gets through, and docs/reliability.md says what follows.
func TestAFunctionWithAClockTenMinutesOffChangesNothing(t *testing.T) {
	for off, gets := range map[time.Duration]bool{
		10 * time.Minute: false, -10 * time.Minute: false, 4 * time.Minute: true, -4 * time.Minute: true,
	} {
		calls, updates := 0, 0
		aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			now := time.Now().Add(-off) // AWS's clock is right, and the function's is ours
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if err != nil || now.Sub(at).Abs() > signed {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired: %s"}`, at)
				return
			}
			updates++
			fmt.Fprint(w, `{"Attributes":{"requested":{"N":"1"}}}`)
		}))
		defer aws.Close()
		for name, value := range map[string]string{"AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL": aws.URL,
			"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"} {
			t.Setenv(name, value)
		}
		config, err := awsConfig(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := store.Store{DB: dynamodb.NewFromConfig(config), Name: "table"}
		_, err = s.Renew(t.Context(), "demo", "me", time.Now())
		if (err == nil) != gets || (updates > 0) != gets {
			t.Errorf("%v off: %d updates in %d calls, %v", off, updates, calls, err)
		}
		if err == nil {
			continue
		}
		if got := fmt.Sprintf("%T", edge(t.Context(), err)); got != "handler."+statemachine.StepFailed ||
			!strings.Contains(err.Error(), "Signature expired") {
			t.Errorf("%v off: %s, %v", off, got, err)
		}
	}
}
