package params

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// setter returns a function that reads a text into a field, or leaves the field as it is if the text is refused.
func setter[T, V any](read func(text string) (V, error), field func(*T) *V) func(*T, string) error {
	return func(t *T, text string) error {
		value, err := read(text)
		if err == nil {
			*field(t) = value
		}
		return err
	}
}

// Each of these functions reads a text that matches the pattern of one kind of value. Their errors are the end of a
// sentence, for example "which has c5 twice".

func text(value string) (string, error) { return value, nil }

func boolean(value string) (bool, error) { return value == "true", nil }

var errRange = errors.New("which is out of range")

// integer reads a number that is not negative.
func integer(most int) func(value string) (int, error) {
	return func(value string) (int, error) {
		n, err := strconv.Atoi(value)
		if err != nil || n > most {
			return 0, errRange
		}
		return n, nil
	}
}

// list sorts the elements, because their order has no meaning, and removes duplicates.
func list(value string) ([]string, error) {
	elements := strings.Split(value, ",")
	slices.Sort(elements)
	return slices.Compact(elements), nil
}

// ordered keeps the order of the elements, because the first one has more weight, and removes duplicates.
func ordered(value string) (elements []string, err error) {
	for element := range strings.SplitSeq(value, ",") {
		if !slices.Contains(elements, element) {
			elements = append(elements, element)
		}
	}
	return elements, nil
}

var errTooLong = errors.New("which is longer than 292 years")

func duration(value string) (string, error) {
	if _, err := time.ParseDuration(value); err != nil {
		return "", errTooLong
	}
	return value, nil
}

func expiry(value string) (string, error) {
	if value == "Never" {
		return value, nil
	}
	return lasting("which would delete every node at once")(value)
}

// lasting reads a duration that is not zero. zero says what one of zero would do.
func lasting(zero string) func(value string) (string, error) {
	return func(value string) (string, error) {
		switch length, err := time.ParseDuration(value); {
		case err != nil:
			return "", errTooLong
		case length == 0:
			return "", errors.New(zero)
		}
		return value, nil
	}
}

func budget(value string) (string, error) {
	digits, percent := strings.CutSuffix(value, "%")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return "", errRange
	}
	if percent && n > 100 {
		return "", errors.New("which is more than all nodes")
	}
	// The percentage is normalized: Karpenter's CRD accepts at most two digits before the percent sign, or 100%.
	return strconv.FormatInt(n, 10) + value[len(digits):], nil
}

// pairs splits a list of key=value elements. White space around the commas and at the ends is ignored.
func pairs(value string) ([][2]string, error) {
	var all [][2]string
	for element := range strings.SplitSeq(value, ",") {
		key, v, found := strings.Cut(strings.TrimSpace(element), "=")
		if !found || key == "" || v == "" || strings.Contains(v, "=") {
			return nil, fmt.Errorf("in which %s is not key=value", Quoted(strings.TrimSpace(element)))
		}
		if slices.ContainsFunc(all, func(p [2]string) bool { return p[0] == key }) {
			return nil, fmt.Errorf("which has the key %s twice", key)
		}
		all = append(all, [2]string{key, v})
	}
	return all, nil
}

// reservedLabels are the labels that Sawhorse sets on nodes or selects them by; reservedBuildLabels those of build nodes.
var (
	reservedLabels      = []string{ownership.LabelNodePool, ownership.LabelSystemNode}
	reservedBuildLabels = append(slices.Clone(reservedLabels), ownership.LabelBuild)
)

func labels(reserved []string) func(value string) (map[string]string, error) {
	return func(value string) (map[string]string, error) {
		all, err := pairs(value)
		if err != nil {
			return nil, err
		}
		made := map[string]string{}
		for _, p := range all {
			if slices.Contains(reserved, p[0]) {
				return nil, fmt.Errorf("in which the label %s is reserved", p[0])
			}
			if wrong := validation.IsQualifiedName(p[0]); len(wrong) > 0 {
				return nil, fmt.Errorf("in which the label key %s is not valid in Kubernetes: %s", Quoted(p[0]), wrong[0])
			}
			if wrong := validation.IsValidLabelValue(p[1]); len(wrong) > 0 {
				return nil, fmt.Errorf("in which the value %s of label %s is not valid in Kubernetes: %s", Quoted(p[1]), p[0], wrong[0])
			}
			made[p[0]] = p[1]
		}
		return made, nil
	}
}

// effects are the taint effects, as Kubernetes spells them.
var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

func taints(value string) ([]Taint, error) {
	var made []Taint
	for element := range strings.SplitSeq(value, ",") {
		taint, err := parseTaint(strings.TrimSpace(element))
		if err != nil {
			return nil, err
		}
		if slices.Contains(made, taint) {
			continue
		}
		if slices.ContainsFunc(made, func(t Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }) {
			return nil, fmt.Errorf("which has the taint %s with effect %s twice, with different values", taint.Key, taint.Effect)
		}
		made = append(made, taint)
	}
	// The order has no meaning. Sorting gives the same fingerprint for every order.
	slices.SortFunc(made, func(a, b Taint) int { return strings.Compare(a.Key+":"+a.Effect, b.Key+":"+b.Effect) })
	return made, nil
}

func parseTaint(element string) (Taint, error) {
	colon := strings.LastIndex(element, ":")
	if colon < 0 {
		return Taint{}, fmt.Errorf("in which %s has no effect behind a colon", Quoted(element))
	}
	key, value, _ := strings.Cut(element[:colon], "=")
	taint := Taint{Key: key, Value: value, Effect: element[colon+1:]}
	if !slices.Contains(effects, taint.Effect) {
		return taint, fmt.Errorf("in which the effect %s is none of %s", Quoted(taint.Effect), strings.Join(effects, ", "))
	}
	if key == "" || strings.Contains(value, "=") {
		return taint, fmt.Errorf("in which %s is not key=value:Effect or key:Effect", Quoted(element))
	}
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return taint, fmt.Errorf("in which the taint key %s is not valid in Kubernetes: %s", Quoted(key), wrong[0])
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return taint, fmt.Errorf("in which the value %s of taint %s is not valid in Kubernetes: %s", Quoted(value), key, wrong[0])
	}
	return taint, nil
}

// maxTags is the most tags that a user may set. AWS allows 50 on a resource, and Sawhorse and Karpenter need the
// others.
const maxTags = 40

// reservedTag reports whether users may not set a tag key, ignoring letter case.
func reservedTag(key string) bool {
	lower := strings.ToLower(key)
	return strings.HasPrefix(lower, ownership.TagPrefix) ||
		slices.ContainsFunc(ownership.ReservedTags, func(r string) bool { return strings.EqualFold(r, key) }) ||
		slices.ContainsFunc(ownership.ReservedTagPrefixes, func(p string) bool { return strings.HasPrefix(lower, p) })
}

// twins maps tag keys in lower case to their first spelling. IAM compares tag keys without letter case, and refuses two
// keys on one resource that differ only in case.
type twins map[string]string

// add records a key. It returns an earlier key that differs only in letter case, or "".
func (t twins) add(key string) string {
	first, known := t[strings.ToLower(key)]
	if !known {
		t[strings.ToLower(key)] = key
	}
	if first == key {
		return ""
	}
	return first
}

// tooLong reports whether a tag exceeds the lengths that AWS allows.
func tooLong(key, value string) bool {
	return utf8.RuneCountInString(key) > 128 || utf8.RuneCountInString(value) > 256
}

func tags(value string) (map[string]string, error) {
	all, err := pairs(value)
	if err != nil {
		return nil, err
	}
	if len(all) > maxTags {
		return nil, fmt.Errorf("which has %d tags, more than %d", len(all), maxTags)
	}
	made, seen := map[string]string{}, twins{}
	for _, p := range all {
		switch {
		case reservedTag(p[0]):
			return nil, fmt.Errorf("in which the tag %s is reserved", Quoted(p[0]))
		case tooLong(p[0], p[1]):
			return nil, fmt.Errorf("in which the tag %s is too long: AWS takes 128 characters of a key and 256 of a value", Quoted(p[0]))
		}
		if twin := seen.add(p[0]); twin != "" {
			return nil, fmt.Errorf("in which IAM takes the tags %s and %s for one", Quoted(twin), Quoted(p[0]))
		}
		made[p[0]] = p[1]
	}
	return made, nil
}
