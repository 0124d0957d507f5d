package main

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// prefixes are the prefixes of IAM actions, by the names of the SDK's packages.
var prefixes = map[string]string{
	"arczonalshift": "arc-zonal-shift", "ec2": "ec2", "eks": "eks", "iam": "iam", "pricing": "pricing", "sqs": "sqs", "ssm": "ssm",
	"timestreamwrite": "timestream",
}

// calls returns the IAM actions of the API calls in the code of the provider. The methods stand in the interfaces of
// pkg/aws; those count that code outside of tests and fakes calls by that name, directly or through a paginator. Each
// call of these services needs the action of its own name.
func calls(provider string) ([]string, error) {
	parsed, err := parse(filepath.Join(provider, "pkg", "aws"))
	if err != nil {
		return nil, err
	}
	actions := map[string]string{}
	for name, declared := range parsed.types {
		methods, ok := declared.(*ast.InterfaceType)
		if !ok || !strings.HasSuffix(name, "API") {
			continue
		}
		for _, method := range methods.Methods.List {
			action, err := action(method)
			if err != nil {
				return nil, fmt.Errorf("pkg/aws: %s: %w", name, err)
			}
			actions[method.Names[0].Name] = action
		}
	}
	var found []string
	note := func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		called, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return
		}
		name := called.Sel.Name
		if paginated, ok := strings.CutSuffix(name, "Paginator"); ok {
			name = strings.TrimPrefix(paginated, "New")
		}
		if action, ok := actions[name]; ok {
			found = append(found, action)
		}
	}
	if err := inspectAll(filepath.Join(provider, "pkg"), []string{"aws", "fake", "test"}, note); err != nil {
		return nil, err
	}
	if err := inspectAll(filepath.Join(provider, "cmd"), nil, note); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no code calls a method of the interfaces in pkg/aws")
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// action returns the IAM action of a method like DescribeImages(ctx, *ec2.DescribeImagesInput, …).
func action(method *ast.Field) (string, error) {
	if len(method.Names) != 1 {
		return "", fmt.Errorf("an embedded interface, which the generator does not know")
	}
	name := method.Names[0].Name
	function, ok := method.Type.(*ast.FuncType)
	if !ok || len(function.Params.List) < 2 {
		return "", fmt.Errorf("%s has no second parameter for its input", name)
	}
	pointer, _ := function.Params.List[1].Type.(*ast.StarExpr)
	if pointer == nil {
		return "", fmt.Errorf("the input of %s is not a pointer", name)
	}
	input, _ := pointer.X.(*ast.SelectorExpr)
	if input == nil || input.Sel.Name != name+"Input" {
		return "", fmt.Errorf("the input of %s is not a %sInput", name, name)
	}
	service := nameOf(input.X)
	if prefixes[service] == "" {
		return "", fmt.Errorf("%s is of service %s, whose IAM prefix the generator does not know; add it to prefixes", name, service)
	}
	return prefixes[service] + ":" + name, nil
}

// events returns the events that the interruption controller parses, in its order.
func events(provider string) ([]karpenter.Event, error) {
	const folder = "pkg/controllers/interruption"
	parsed, err := parse(filepath.Join(provider, folder))
	if err != nil {
		return nil, err
	}
	list, ok := parsed.values["DefaultParsers"].(*ast.CompositeLit)
	if !ok || len(list.Elts) == 0 {
		return nil, fmt.Errorf("%s has no list DefaultParsers", folder)
	}
	var all []karpenter.Event
	for _, element := range list.Elts {
		event, err := parserOf(provider, element, parsed.imports)
		if err != nil {
			return nil, fmt.Errorf("%s: DefaultParsers: %w", folder, err)
		}
		all = append(all, event)
	}
	return all, nil
}

// parserOf returns the event of an element of DefaultParsers like spotinterruption.Parser{}.
func parserOf(provider string, element ast.Expr, paths map[string]string) (karpenter.Event, error) {
	made, _ := element.(*ast.CompositeLit)
	if made == nil {
		return karpenter.Event{}, fmt.Errorf("an element is not a composite literal")
	}
	kind, _ := made.Type.(*ast.SelectorExpr)
	if kind == nil {
		return karpenter.Event{}, fmt.Errorf("an element is not of an imported type")
	}
	path := strings.TrimPrefix(paths[nameOf(kind.X)], providerModule+"/")
	parsed, err := parse(filepath.Join(provider, path))
	if err != nil {
		return karpenter.Event{}, err
	}
	result := func(method string) (text string) {
		if declared := parsed.methods[kind.Sel.Name+"."+method]; declared != nil {
			ast.Inspect(declared, func(n ast.Node) bool {
				if statement, ok := n.(*ast.ReturnStmt); ok && len(statement.Results) == 1 {
					text, _ = literal(statement.Results[0])
				}
				return true
			})
		}
		return text
	}
	event := karpenter.Event{Source: result("Source"), DetailType: result("DetailType")}
	if event.Source == "" || event.DetailType == "" {
		return event, fmt.Errorf("%s: Source and DetailType do not return a text", path)
	}
	return event, nil
}
