// Package canonical encodes data as JSON: the same data gives the same bytes, whatever the order of Go's maps.
package canonical

import (
	"crypto/sha256"
	"encoding/json"
)

// JSON returns a value as JSON, without white space and with sorted keys. It must be a value that encoding/json encodes.
func JSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic("canonical: encode: " + err.Error())
	}
	return text
}

// Hash returns the SHA-256 of a value's JSON.
func Hash(value any) [sha256.Size]byte { return sha256.Sum256(JSON(value)) }
