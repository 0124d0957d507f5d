package main

import (
	"os"
	"path/filepath"
	"testing"
)

// configuration has every form of field that the kubelet's configuration has.
const configuration = `package v1beta1

type KubeletConfiguration struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	Pods      *int32            ` + "`json:\"pods,omitempty\"`" + `
	On        bool              ` + "`json:\"on\"`" + `
	Factor    float64           ` + "`json:\"factor\"`" + `
	Every     metav1.Duration   ` + "`json:\"every\"`" + `
	Mode      Mode              ` + "`json:\"mode\"`" + `
	Gates     map[string]bool   ` + "`json:\"gates\"`" + `
	Reserved  []Reservation     ` + "`json:\"reserved\"`" + `
	Logging   logs.Options      ` + "`json:\"logging\"`" + `
}

type Mode string

type Reservation struct {
	Node int64 ` + "`json:\"node\"`" + `
}
`

func TestKubelet(t *testing.T) {
	root := files(t, map[string]string{"config/v1beta1/types.go": configuration, "empty/config/v1beta1/types.go": "package v1beta1"})
	target := filepath.Join(root, "kubelet.json")
	if err := writeKubelet(target, root); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "type": "object",
  "properties": {
    "apiVersion": {
      "type": "string"
    },
    "every": {
      "type": "string",
      "format": "duration"
    },
    "factor": {
      "type": "number"
    },
    "gates": {
      "type": "object",
      "additionalProperties": {
        "type": "boolean"
      }
    },
    "kind": {
      "type": "string"
    },
    "logging": {
      "type": "object",
      "x-kubernetes-preserve-unknown-fields": true
    },
    "mode": {
      "type": "string"
    },
    "on": {
      "type": "boolean"
    },
    "pods": {
      "type": "integer",
      "format": "int32"
    },
    "reserved": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "node": {
            "type": "integer",
            "format": "int64"
          }
        }
      }
    }
  }
}
`
	if string(text) != want {
		t.Errorf("got %s", text)
	}
	if err := writeKubelet(target, filepath.Join(root, "empty")); err == nil {
		t.Error("a module without the type is taken")
	}
	none := filepath.Join(root, "none.json")
	if err := writeKubelet(none, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("a provider that does not read the module has a schema")
	}
}
