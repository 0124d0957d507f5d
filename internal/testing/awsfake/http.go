package awsfake

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/aws/smithy-go"
)

// ServeHTTP serves SSM, Step Functions, EventBridge, writes of S3 and the clusters of EKS, for tests that run the command as a process. It
// denies everything else.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.serving.Lock()
	defer c.serving.Unlock()
	body, err := io.ReadAll(r.Body)
	var out any
	if err == nil {
		out, err = c.serve(r, body)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		code, message := "InternalFailure", err.Error()
		if api := smithy.APIError(nil); errors.As(err, &api) {
			code, message = api.ErrorCode(), api.ErrorMessage()
		}
		w.Header().Set("X-Amzn-Errortype", code)
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"__type": code, "message": message}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// serve answers a request of the protocols AWS JSON and REST JSON.
func (c *Cloud) serve(r *http.Request, body []byte) (any, error) {
	service, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	first, subject, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case service == "AmazonSSM":
		return called(r.Context(), c.SSM, action, body, "", "")
	case service == "AWSStepFunctions":
		return called(r.Context(), c.States, action, body, "", "")
	case service == "AWSEvents":
		return called(r.Context(), c.Events, action, body, "", "")
	case r.Method == http.MethodGet && first == "clusters" && !strings.Contains(subject, "/"):
		return called(r.Context(), c.EKS, "DescribeCluster", []byte("{}"), "Name", subject)
	case r.Method == http.MethodPut && r.URL.Query().Get("x-id") == "PutObject":
		return nil, c.S3.put(first+"/"+subject, string(body))
	case r.Method == http.MethodPost && first == "tags":
		return called(r.Context(), c.EKS, "TagResource", body, "ResourceArn", subject)
	}
	c.Unserved = append(c.Unserved, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+action))
	return nil, refuse("AccessDeniedException", "no")
}

// called calls a method of a service with an input in JSON, and sets one more member of it, which was in the path.
func called(ctx context.Context, service any, action string, body []byte, member, text string) (any, error) {
	method := reflect.ValueOf(service).MethodByName(action)
	if !method.IsValid() {
		return nil, refuse("UnknownOperationException", "the fake has no %s", action)
	}
	in := reflect.New(method.Type().In(1).Elem())
	if err := json.Unmarshal(body, in.Interface()); err != nil {
		return nil, err
	}
	if member != "" {
		in.Elem().FieldByName(member).Set(reflect.ValueOf(&text))
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), in})
	if err, failed := results[1].Interface().(error); failed {
		return nil, err
	}
	_, small := service.(*StepFunctions)
	_, rest := service.(*EKS)
	capital := !small && !rest
	return wire(results[0], capital), nil
}

// wire returns an output in the form in which services send it. Times are seconds. Names of members begin with a small
// letter, or with a capital one.
func wire(v reflect.Value, capital bool) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return wire(v.Elem(), capital)
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = wire(v.Index(i), capital)
		}
		return list
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			return float64(at.UnixMilli()) / 1000
		}
		return members(v, capital)
	}
	return v.Interface()
}

func members(v reflect.Value, capital bool) map[string]any {
	all := map[string]any{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() || name == "ResultMetadata" || v.Field(i).IsZero() {
			continue
		}
		if !capital {
			name = strings.ToLower(name[:1]) + name[1:]
		}
		all[name] = wire(v.Field(i), capital)
	}
	return all
}
