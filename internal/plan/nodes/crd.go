package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/karpenter-provider-aws/pkg/apis"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// crd is one kind's schema and CEL rules, compiled from the CRD of the pinned Karpenter module.
type crd struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// crds maps each kind to its CRD. Compiling the rules takes longer than everything else that validate does, so it is
// done on first use.
var crds = map[string]func() crd{
	"NodePool":     sync.OnceValue(func() crd { return compileCRD("NodePool") }),
	"EC2NodeClass": sync.OnceValue(func() crd { return compileCRD("EC2NodeClass") }),
}

func compileCRD(kind string) crd {
	for _, definition := range apis.CRDs {
		if definition.Spec.Names.Kind != kind {
			continue
		}
		at := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1" })
		var internal apiextensions.JSONSchemaProps
		err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[at].Schema.OpenAPIV3Schema, &internal, nil)
		if err != nil {
			panic(fmt.Sprintf("nodes: CRD of %s: convert: %v", kind, err)) // the pinned module's own file
		}
		structural, err := schema.NewStructural(&internal)
		if err != nil {
			panic(fmt.Sprintf("nodes: CRD of %s: structural schema: %v", kind, err))
		}
		validator, _, err := validation.NewSchemaValidator(&internal)
		if err != nil {
			panic(fmt.Sprintf("nodes: CRD of %s: validator: %v", kind, err))
		}
		return crd{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	panic("nodes: the Karpenter module has no CRD of " + kind)
}

// check treats an object as the API server does at creation: it removes null fields, sets defaults, and applies schema
// and rules. unknown has the paths of fields that the API server would silently drop, refused the errors of the schema,
// broken those of the rules.
func (c crd) check(object plan.Object) (unknown []string, refused, broken field.ErrorList) {
	copied := runtime.DeepCopyJSON(object)
	unknown = pruning.PruneWithOptions(copied, c.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(copied, c.structural)
	defaulting.Default(copied, c.structural)
	refused = validation.ValidateCustomResource(nil, copied, c.validator)
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

// fields returns the names of the fields that an object at a path may have.
func (c crd) fields(path []string) []string {
	at := c.structural
	for _, part := range path {
		switch {
		case at.Items != nil:
			at = at.Items
		default:
			next, ok := at.Properties[part]
			if !ok {
				return nil
			}
			at = &next
		}
	}
	var names []string
	for name := range at.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
