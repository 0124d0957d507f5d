package store

import (
	"bytes"
	"compress/gzip"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// packed compresses a value's JSON, because JSON parameters and their problems can exceed DynamoDB's 400 KB for an
// item.
func packed(value any) (types.AttributeValue, error) {
	var buffer bytes.Buffer
	zip := gzip.NewWriter(&buffer)
	if err := json.NewEncoder(zip).Encode(value); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberB{Value: buffer.Bytes()}, nil
}

// unpack reads what packed wrote, and the plain JSON of earlier versions.
func unpack(attribute types.AttributeValue, into any) error {
	binary, ok := attribute.(*types.AttributeValueMemberB)
	if !ok {
		return json.Unmarshal([]byte(stringOf(item{"": attribute}, "")), into)
	}
	zip, err := gzip.NewReader(bytes.NewReader(binary.Value))
	if err != nil {
		return err
	}
	return json.NewDecoder(zip).Decode(into)
}
