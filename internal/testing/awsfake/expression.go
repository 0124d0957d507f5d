package awsfake

import (
	"maps"
	"reflect"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// check evaluates a condition: "attribute_not_exists(x)", "attribute_exists(x)", "x = :y", "x < :y" and "x > y" of numbers, joined by
// AND and, inside one pair of brackets, by OR.
func check(item Item, condition string, names map[string]string, values Item) error {
	if condition == "" {
		return nil
	}
	for part := range strings.SplitSeq(condition, " AND ") {
		holds := false
		for either := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(part, "("), ")"), " OR ") {
			one, err := holdsOne(item, either, names, values)
			if err != nil {
				return err
			}
			holds = holds || one
		}
		if !holds {
			return &types.ConditionalCheckFailedException{}
		}
	}
	return nil
}

func holdsOne(item Item, condition string, names map[string]string, values Item) (bool, error) {
	function, name, called := strings.Cut(strings.TrimSuffix(condition, ")"), "(")
	_, exists := item[named(name, names)]
	switch left, wanted, equal := strings.Cut(condition, " = "); {
	case called && function == "attribute_not_exists":
		return !exists, nil
	case called && function == "attribute_exists":
		return exists, nil
	case equal && values[wanted] != nil:
		have, exists := item[named(left, names)]
		return exists && reflect.DeepEqual(have, values[wanted]), nil
	}
	if words := strings.Fields(condition); len(words) == 3 && (words[1] == "<" || words[1] == ">") {
		left, right := item[named(words[0], names)], values[words[2]]
		if right == nil {
			right = item[named(words[2], names)]
		}
		order, both := compare(left, right)
		return both && (order < 0) == (words[1] == "<") && order != 0, nil
	}
	return false, refuse("ValidationException", "the fake does not know the condition %s", condition)
}

// compare returns the order of two numbers, if both are there.
func compare(left, right types.AttributeValue) (order int, both bool) {
	a, isNumber := left.(*types.AttributeValueMemberN)
	b, too := right.(*types.AttributeValueMemberN)
	if !isNumber || !too {
		return 0, false
	}
	one, _ := strconv.Atoi(a.Value)
	other, _ := strconv.Atoi(b.Value)
	return one - other, true
}

// change applies "SET a = :b, c.d = :e, f = g + :h", "REMOVE a, b", or both in this order, and "ADD a :b". As in DynamoDB, sums
// are those of the values before the update.
func change(item Item, expression string, names map[string]string, values Item) error {
	if set, rest, two := strings.Cut(expression, " REMOVE "); two {
		if err := change(item, set, names, values); err != nil {
			return err
		}
		expression = "REMOVE " + rest
	}
	verb, rest, _ := strings.Cut(expression, " ")
	before := maps.Clone(item)
	for part := range strings.SplitSeq(rest, ", ") {
		path, wanted, _ := strings.Cut(part, " = ")
		if name, n, ok := strings.Cut(part, " "); verb == "ADD" && ok {
			if err := add(item, named(name, names), values[n]); err != nil {
				return err
			}
			continue
		}
		owner, last := item, named(path, names)
		if folder, name, nested := strings.Cut(path, "."); nested {
			inner, ok := item[named(folder, names)].(*types.AttributeValueMemberM)
			if !ok {
				return refuse("ValidationException", "The document path provided in the update expression is invalid for update")
			}
			owner, last = inner.Value, named(name, names)
		}
		of, more, sum := strings.Cut(wanted, " + ")
		switch {
		case verb == "SET" && sum && before[named(of, names)] != nil:
			total := Item{"sum": before[named(of, names)]}
			if err := add(total, "sum", values[more]); err != nil {
				return err
			}
			owner[last] = total["sum"]
		case verb == "SET" && values[wanted] != nil:
			owner[last] = values[wanted]
		case verb == "REMOVE" && wanted == "":
			delete(owner, last)
		default:
			return refuse("ValidationException", "the fake does not know the expression %s", expression)
		}
	}
	return nil
}

// add adds a number to an attribute. An absent attribute counts as 0.
func add(item Item, name string, more types.AttributeValue) error {
	by, ok := more.(*types.AttributeValueMemberN)
	have, isNumber := item[name].(*types.AttributeValueMemberN)
	if !ok || item[name] != nil && !isNumber {
		return refuse("ValidationException", "An operand in the update expression has an incorrect data type")
	}
	sum := 0
	for _, n := range []*types.AttributeValueMemberN{have, by} {
		if n == nil {
			continue
		}
		one, err := strconv.Atoi(n.Value)
		if err != nil {
			return refuse("ValidationException", "The parameter cannot be converted to a numeric value: %s", n.Value)
		}
		sum += one
	}
	item[name] = &types.AttributeValueMemberN{Value: strconv.Itoa(sum)}
	return nil
}

func named(name string, names map[string]string) string {
	if real, ok := names[name]; ok {
		return real
	}
	return name
}

// copyOf copies an item, with maps one level down, so that callers cannot change the table's items.
func copyOf(item Item) Item {
	copied := maps.Clone(item)
	for name, v := range copied {
		if m, ok := v.(*types.AttributeValueMemberM); ok {
			copied[name] = &types.AttributeValueMemberM{Value: maps.Clone(m.Value)}
		}
	}
	return copied
}
