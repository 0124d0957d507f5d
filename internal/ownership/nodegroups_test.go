package ownership

import (
	"strings"
	"testing"
)

func TestNamesOfCopies(t *testing.T) {
	if got := NodeGroupCopy("system"); got != "system-ondemand" {
		t.Errorf("%s", got)
	}
	if fits := strings.Repeat("a", 54); NodeGroupCopy(fits) != fits+"-ondemand" {
		t.Errorf("%s", NodeGroupCopy(fits))
	}
	long := strings.Repeat("a", 62)
	one, two := NodeGroupCopy(long+"1"), NodeGroupCopy(long+"2")
	if len(one) != 63 || len(two) != 63 || one == two || one != NodeGroupCopy(long+"1") {
		t.Errorf("%s (%d), %s (%d)", one, len(one), two, len(two))
	}
}
