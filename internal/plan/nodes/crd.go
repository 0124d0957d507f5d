package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// crd is the schema and the CEL rules of one kind, compiled from the CRD of a version of Karpenter.
type crd struct {
	schema     *apiextensions.JSONSchemaProps
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// crdOf maps each kind to the name of its CRD.
var crdOf = map[string]string{"NodePool": "nodepools.karpenter.sh", "EC2NodeClass": "ec2nodeclasses.karpenter.k8s.aws",
	kindOverlay: "nodeoverlays.karpenter.sh"}

// readSchema reads the schema of a kind in a version of Karpenter.
func readSchema(release catalogue.Release, kind string) crd {
	definition := decodeCRD(release, kind)
	at := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	var internal apiextensions.JSONSchemaProps
	read := definition.Spec.Versions[at].Schema.OpenAPIV3Schema
	if text := release.Kubelet(); text != nil && kind == "EC2NodeClass" {
		read.Properties["spec"].Properties["kubelet"] = kubeletSchema(text)
	}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(read, &internal, nil)
	if err != nil {
		panic(fmt.Sprintf("nodes: CRD of %s: convert: %v", kind, err)) // an embedded file
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		panic(fmt.Sprintf("nodes: CRD of %s: structural schema: %v", kind, err))
	}
	return crd{schema: &internal, structural: structural}
}

func (c crd) compile(kind string) crd {
	c.validator, c.rules = schemaValidator(kind, c.schema), cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	return c
}

func decodeCRD(release catalogue.Release, kind string) *apiextensionsv1.CustomResourceDefinition {
	all, err := release.CRDs()
	if err != nil {
		panic("nodes: " + err.Error()) // an embedded file
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(all[crdOf[kind]], definition); err != nil {
		panic(fmt.Sprintf("nodes: CRD of %s: decode: %v", kind, err))
	}
	return definition
}

// kubeletSchema decodes the schema of the kubelet's configuration. Karpenter takes an expression for maxPods too.
func kubeletSchema(text []byte) (all apiextensionsv1.JSONSchemaProps) {
	if err := json.Unmarshal(text, &all); err != nil {
		panic("nodes: kubelet: " + err.Error()) // an embedded file
	}
	all.Properties["maxPods"] = apiextensionsv1.JSONSchemaProps{XIntOrString: true}
	return all
}

func schemaValidator(kind string, schema *apiextensions.JSONSchemaProps) validation.SchemaValidator {
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		panic(fmt.Sprintf("nodes: CRD of %s: validator: %v", kind, err))
	}
	return validator
}

// check treats an object as the API server does at creation: it removes null fields, sets defaults, and applies schema
// and rules. unknown has the paths of fields that the API server would silently drop, refused the errors of the schema,
// broken those of the rules.
func (c crd) check(object any) (unknown []string, refused, broken field.ErrorList) {
	copied := runtime.DeepCopyJSONValue(object)
	unknown = pruning.PruneWithOptions(copied, c.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(copied, c.structural)
	defaulting.Default(copied, c.structural)
	refused = validation.ValidateCustomResource(nil, copied, c.validator)
	if fields, is := copied.(map[string]any); is {
		refused = append(refused, listtype.ValidateListSetsAndMaps(nil, c.structural, fields)...)
	}
	broken, _ = c.rules.Validate(context.Background(), nil, c.structural, copied, nil, celconfig.RuntimeCELCostBudget)
	if len(refused) > 0 {
		// The API server stops here. Users get all problems at once, so the errors of the rules are kept, except those
		// of rules that could not be evaluated because a value has the wrong type.
		broken = slices.DeleteFunc(broken, func(e *field.Error) bool {
			return strings.Contains(e.Detail, " evaluating rule: ") || strings.Contains(e.Detail, "call arguments did not match")
		})
	}
	return unknown, refused, broken
}

// at returns the schema at a path, or nil if the schema does not describe it. Elements of lists are numbers in the path.
func (c crd) at(path []string) *schema.Structural {
	at := c.structural
	for _, part := range path {
		next, known := at.Properties[part]
		switch {
		case at.Items != nil:
			if _, err := strconv.Atoi(part); err != nil {
				return nil
			}
			at = at.Items
		case known:
			at = &next
		case at.XPreserveUnknownFields:
			return &schema.Structural{} // anything
		default:
			return nil
		}
	}
	return at
}

// fields returns the names of the fields that an object at a path may have.
func (c crd) fields(path []string) []string {
	at := c.at(path)
	if at == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(at.Properties))
}
