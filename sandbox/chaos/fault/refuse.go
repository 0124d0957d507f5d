package fault

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// refusal is the status and error code with which a service rejects a call.
type refusal struct {
	status int
	code   string
}

// patience has the throttling error of the services that have one of their own.
var patience = map[string]refusal{
	"ec2":      {http.StatusServiceUnavailable, "RequestLimitExceeded"},
	"iam":      {http.StatusBadRequest, "Throttling"},
	"sqs":      {http.StatusBadRequest, "RequestThrottled"},
	"s3":       {http.StatusServiceUnavailable, "SlowDown"},
	"dynamodb": {http.StatusBadRequest, "ProvisionedThroughputExceededException"},
	"eks":      {http.StatusTooManyRequests, "ThrottlingException"},
}

// AWS returns a Refusal that answers in the protocol of the service's call.
func AWS(service string) Refusal {
	return func(w http.ResponseWriter, req *http.Request, f Fault) {
		answer := refusal{http.StatusInternalServerError, "InternalFailure"}
		own, ok := patience[service]
		switch {
		case f.Kind == Throttle && ok:
			answer = own
		case f.Kind == Throttle:
			answer = refusal{http.StatusBadRequest, "ThrottlingException"}
		case f.Kind == Refuse:
			answer = refusal{refusedStatus(f.Code), f.Code}
		}
		Deny(w, req, service, answer.status, answer.code, "ordered by the sandbox")
	}
}

// refusedStatus returns the status with which AWS's services send an error code. EC2's lack of capacity is an error of the
// server.
func refusedStatus(code string) int {
	switch {
	case strings.HasPrefix(code, "AccessDenied") || code == "UnauthorizedOperation":
		return http.StatusForbidden
	case code == "InsufficientInstanceCapacity":
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// Deny refuses a call in the protocol of its service.
func Deny(w http.ResponseWriter, req *http.Request, service string, status int, code, message string) {
	text := ""
	w.Header().Set("Content-Type", "text/xml")
	switch {
	case req.Header.Get("X-Amz-Target") != "":
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		text = fmt.Sprintf(`{"__type":%q,"message":%q}`, code, message)
	case service == "ec2":
		text = fmt.Sprintf("<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors></Response>", code, message)
	case service == "s3":
		text = fmt.Sprintf("<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
	case strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		text = fmt.Sprintf("<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>",
			code, message)
	default: // REST with JSON
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Amzn-Errortype", code)
		text = fmt.Sprintf(`{"message":%q}`, message)
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // fails only if the caller has closed the connection
}

// Kubernetes is the Refusal of the API server.
func Kubernetes(w http.ResponseWriter, _ *http.Request, f Fault) {
	status, reason := http.StatusInternalServerError, "InternalError"
	switch f.Kind {
	case Throttle:
		w.Header().Set("Retry-After", "1") // API Priority and Fairness sends the same header
		status, reason = http.StatusTooManyRequests, "TooManyRequests"
	case Refuse:
		status, reason = http.StatusForbidden, f.Code
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // fails only if the caller has closed the connection
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason, "message": "ordered by the sandbox",
	})
}
