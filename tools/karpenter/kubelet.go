package main

import (
	"fmt"
	"go/ast"
	"path/filepath"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kubeletModule has the type of the kubelet's configuration.
const kubeletModule = "k8s.io/kubelet"

// writeKubelet writes the schema of the kubelet's configuration, if the provider reads its type. Such a provider's CRD
// leaves the field kubelet open, and Karpenter itself checks the field.
func writeKubelet(file, module string) error {
	if module == "" {
		return nil
	}
	parsed, err := parse(filepath.Join(module, "config", "v1beta1"))
	if err != nil {
		return err
	}
	const configuration = "KubeletConfiguration"
	if _, found := parsed.types[configuration].(*ast.StructType); !found {
		return fmt.Errorf("%s has no %s", module, configuration)
	}
	return writeJSON(file, parsed.schema(ast.NewIdent(configuration)))
}

// schema returns the schema of a type as Go's JSON decoder reads it. Types of other packages are open objects, except
// durations.
func (s source) schema(declared ast.Expr) v1.JSONSchemaProps {
	switch t := declared.(type) {
	case *ast.StarExpr:
		return s.schema(t.X)
	case *ast.ArrayType:
		element := s.schema(t.Elt)
		return v1.JSONSchemaProps{Type: "array", Items: &v1.JSONSchemaPropsOrArray{Schema: &element}}
	case *ast.MapType:
		value := s.schema(t.Value)
		return v1.JSONSchemaProps{Type: "object", AdditionalProperties: &v1.JSONSchemaPropsOrBool{Allows: true, Schema: &value}}
	case *ast.StructType:
		all := v1.JSONSchemaProps{Type: "object", Properties: map[string]v1.JSONSchemaProps{}}
		for _, field := range t.Fields.List {
			if name, inline, _ := tags(field); !inline {
				all.Properties[name] = s.schema(field.Type)
				continue
			}
			for _, name := range []string{"apiVersion", "kind"} { // metav1.TypeMeta
				all.Properties[name] = v1.JSONSchemaProps{Type: "string"}
			}
		}
		return all
	case *ast.SelectorExpr:
		if t.Sel.Name == "Duration" {
			return v1.JSONSchemaProps{Type: "string", Format: "duration"}
		}
	case *ast.Ident:
		switch t.Name {
		case "string":
			return v1.JSONSchemaProps{Type: "string"}
		case "bool":
			return v1.JSONSchemaProps{Type: "boolean"}
		case "int32", "int64":
			return v1.JSONSchemaProps{Type: "integer", Format: t.Name}
		case "float64":
			return v1.JSONSchemaProps{Type: "number"}
		default:
			return s.schema(s.types[t.Name])
		}
	}
	open := true
	return v1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}
}
