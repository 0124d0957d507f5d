package store

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

var clock = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func store() (*Store, *awsfake.Cloud) {
	cloud := awsfake.New()
	return &Store{DB: cloud.Table, Name: "sawhorse"}, cloud
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// keepsCause requires an error that begins with its subject, for operators, and wraps its cause, for code.
func keepsCause(t *testing.T, err error, subject string) {
	t.Helper()
	if !errors.Is(err, awsfake.Throttling) || len(err.Error()) < len(subject) || err.Error()[:len(subject)] != subject {
		t.Errorf("error %v, want one that begins with %q and wraps its cause", err, subject)
	}
}

// attribute returns a binary attribute of an item.
func attribute(t *testing.T, cloud *awsfake.Cloud, place, name string) []byte {
	t.Helper()
	value, is := cloud.Table.Items[place][name].(*types.AttributeValueMemberB)
	if !is {
		t.Fatalf("%s has no %s", place, name)
	}
	return value.Value
}
