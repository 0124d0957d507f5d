package params

import (
	"errors"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// versionValue is a version of the catalogue. The pattern accepts every version, so that it need not be written to
// Parameter Store again for each one that is added to the catalogue.
var versionValue = Value{
	Type: "version", Pattern: `(0|[1-9][0-9]{0,4})(\.(0|[1-9][0-9]{0,4})){2}`, Allowed: either(karpenter.Versions()), Example: newest(),
	Words: karpenter.Versions(),
}

// either lists words for a sentence: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func newest() string {
	all := karpenter.Versions()
	return all[len(all)-1]
}

var errNoVersion = errors.New("which Sawhorse does not have")

func version[T any](field func(*T) *string) func(*T, string) error {
	return func(c *T, value string) error {
		if !slices.Contains(karpenter.Versions(), value) {
			return errNoVersion
		}
		*field(c) = value
		return nil
	}
}

// nearestVersion returns the oldest version of the catalogue that has what a version has: the next newer one, or the
// newest. Its result for a text that is not a version is "".
func nearestVersion(value string) string {
	if !versionValue.matches(value) {
		return ""
	}
	for _, each := range karpenter.Versions() {
		if karpenter.Compare(each, value) > 0 {
			return each
		}
	}
	return newest()
}
