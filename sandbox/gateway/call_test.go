package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestIdentify(t *testing.T) {
	const scope = "AWS4-HMAC-SHA256 Credential=AKIA1/20260101/us-east-1/%/aws4_request, SignedHeaders=host, Signature=0"
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}
	for _, c := range []struct {
		service, method, target, body string
		header                        http.Header
		want                          call
	}{
		{"ssm", "POST", "/", "{}", http.Header{"X-Amz-Target": {"AmazonSSM.PutParameter"}}, call{"ssm", "PutParameter", "AKIA1"}},
		{"ec2", "POST", "/", "Action=CreateTags&Version=1", form, call{"ec2", "CreateTags", "AKIA1"}},
		{"monitoring", "POST", "/service/GraniteServiceVersion20100801/operation/PutMetricData", "", nil,
			call{"monitoring", "PutMetricData", "AKIA1"}},
		{"eks", "GET", "/clusters/demo", "", nil, call{"eks", "DescribeCluster", "AKIA1"}},
		{"eks", "DELETE", "/clusters/demo/access-entries/arn%3Aaws%3Aiam%3A%3A0%3Arole%2Fa%2Fb", "", nil,
			call{"eks", "DeleteAccessEntry", "AKIA1"}},
		{"eks", "DELETE", "/clusters/demo/access-entries/arn:aws:iam::0:role/a/access-policies/arn:aws:eks::aws:cluster-access-policy/P",
			"", nil, call{"eks", "DisassociateAccessPolicy", "AKIA1"}},
		{"lambda", "POST", "/2015-03-31/functions/f/invocations", "{}", nil, call{"lambda", "Invoke", "AKIA1"}},
		{"s3", "PUT", "/bucket/key", "x", nil, call{"s3", "PUT", "AKIA1"}},
		{"scheduler", "GET", "/schedules", "", nil, call{"scheduler", "GET /schedules", "AKIA1"}},
		{"", "GET", "/?Action=GetCallerIdentity&X-Amz-Credential=AKIA2%2F20260101%2Fus-east-1%2Fsts%2Faws4_request", "", nil,
			call{"sts", "GetCallerIdentity", "AKIA2"}},
		{"", "POST", "/", "Action=AssumeRoleWithWebIdentity", form, call{"unsigned", "AssumeRoleWithWebIdentity", ""}},
	} {
		req := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
		for name, values := range c.header {
			req.Header[name] = values
		}
		if c.service != "" {
			req.Header.Set("Authorization", strings.Replace(scope, "%", c.service, 1))
		}
		got, err := identify(req)
		if err != nil || got != c.want {
			t.Errorf("%s %s: %+v, %v, want %+v", c.method, c.target, got, err, c.want)
		}
		if body, _ := io.ReadAll(req.Body); string(body) != c.body {
			t.Errorf("%s %s: body is %q afterwards", c.method, c.target, body)
		}
	}
}

// Signatures and the emulator's routing rely on unchanged requests.
func TestARequestPassesUntouched(t *testing.T) {
	type seen struct{ method, uri, host, body, accept string }
	var got seen
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = seen{r.Method, r.RequestURI, r.Host, string(body), r.Header.Get("Accept-Encoding")}
		w.Header().Set("X-Amzn-Errortype", "E")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "answer")
	}))
	defer upstream.Close()
	target, _ := url.Parse(upstream.URL)
	front := httptest.NewServer(New(Config{MiniStack: target, Moto: target}))
	defer front.Close()

	const uri = "/clusters/demo/access-entries/arn%3Aaws%3Aiam%3A%3A0%3Arole%2Fa//b?x=%2F&y="
	req, _ := http.NewRequest(http.MethodPut, front.URL+uri, strings.NewReader("body"))
	req.Host = "bucket.s3.example"
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	if want := (seen{"PUT", uri, "bucket.s3.example", "body", "identity"}); got != want {
		t.Errorf("upstream saw %+v, want %+v", got, want)
	}
	if resp.StatusCode != http.StatusConflict || string(answer) != "answer" || resp.Header.Get("X-Amzn-Errortype") != "E" {
		t.Errorf("answer %d %q %v", resp.StatusCode, answer, resp.Header)
	}
}

func TestProducts(t *testing.T) {
	g := New(Config{MiniStack: &url.URL{}, Moto: &url.URL{}, Prices: func() (map[string]float64, error) {
		return map[string]float64{"m5.large": 0.096, "m5.metal": 4.608}, nil
	}})
	for filter, want := range map[string]string{
		`{"Value":"Compute Instance"}`: "m5.large", `{"Value":"Compute Instance (bare metal)"}`: "m5.metal",
	} {
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(filter))
		req.Header.Set("X-Amz-Target", "AWSPriceListService.GetProducts")
		req.Header.Set("Authorization", "Credential=A/20260101/us-east-1/pricing/aws4_request")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, req)
		if body := w.Body.String(); strings.Count(body, "instanceType") != 1 || !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s", filter, body, want)
		}
	}
}
