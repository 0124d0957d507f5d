package outcome

import "testing"

func TestSamePolicy(t *testing.T) {
	const policy = `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},
			"Action":["sqs:SendMessage","sqs:ReceiveMessage"],"Resource":["a","b"]},
		{"Sid":"DenyHTTP","Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"a","Condition":{"StringEquals":{"k":["1","2"]},
			"Bool":{"aws:SecureTransport":"false"}}}]}`
	for _, c := range []struct {
		what, policy string
		want         bool
	}{
		{"the same", policy, true},
		{"all in another order", `{"Statement":[
			{"Condition":{"Bool":{"aws:SecureTransport":["false"]},"StringEquals":{"k":["2","1"]}},"Resource":["a"],"Action":["SQS:*"],
				"Principal":{"AWS":"*"},"Effect":"Deny","Sid":"DenyHTTP"},
			{"Effect":"Allow","Action":["sqs:receivemessage","sqs:SendMessage"],"Principal":{"Service":["sqs.amazonaws.com",
				"events.amazonaws.com"]},"Resource":["b","a","b"]}],"Version":"2012-10-17"}`, true},
		{"a statement less", `{"Version":"2012-10-17","Statement":[
			{"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},
				"Action":["sqs:SendMessage","sqs:ReceiveMessage"],"Resource":["a","b"]}]}`, false},
		{"an action more", `{"Version":"2012-10-17","Statement":[
			{"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},
				"Action":["sqs:SendMessage","sqs:ReceiveMessage","sqs:*"],"Resource":["a","b"]},
			{"Sid":"DenyHTTP","Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"a","Condition":{"StringEquals":{"k":["1","2"]},
				"Bool":{"aws:SecureTransport":"false"}}}]}`, false},
		{"another condition", `{"Version":"2012-10-17","Statement":[
			{"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},
				"Action":["sqs:SendMessage","sqs:ReceiveMessage"],"Resource":["a","b"]},
			{"Sid":"DenyHTTP","Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"a","Condition":{"StringEquals":{"k":["1"]},
				"Bool":{"aws:SecureTransport":"false"}}}]}`, false},
		{"resources know capitals", `{"Version":"2012-10-17","Statement":[
			{"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},
				"Action":["sqs:SendMessage","sqs:ReceiveMessage"],"Resource":["A","b"]},
			{"Sid":"DenyHTTP","Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"a","Condition":{"StringEquals":{"k":["1","2"]},
				"Bool":{"aws:SecureTransport":"false"}}}]}`, false},
		{"no policy", "", false},
		{"no object", `[]`, false},
	} {
		if got := SamePolicy(policy, c.policy); got != c.want || SamePolicy(c.policy, policy) != got {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	const one = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"a:B","Resource":"*"}}`
	if !SamePolicy(one, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["a:B"],"Resource":["*"]}]}`) {
		t.Error("a statement that stands alone")
	}
}
