package change

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// obeys checks the parameters' AllowedPatterns before the first write of a change. Parameter Store reports a violation
// only at the write itself, when a part of the change would already be written.
func (w *writer) obeys(ctx context.Context, c store.ChangeRequest) error {
	if c.Written > 0 {
		return nil
	}
	wanted := map[string]string{}
	for _, one := range c.Left() {
		if w.missing(one) {
			wanted[w.folder+"/"+one.Name] = one.Value
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	pages := ssm.NewDescribeParametersPaginator(w.SSM, &ssm.DescribeParametersInput{
		MaxResults:       new(int32(50)),
		ParameterFilters: []types.ParameterStringFilter{{Key: new("Path"), Option: new("OneLevel"), Values: []string{w.folder}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("parameters below %s: read patterns: %w", w.folder, err)
		}
		for _, p := range page.Parameters {
			value, changed := wanted[*p.Name]
			if changed && p.AllowedPattern != nil && breaks(value, *p.AllowedPattern) {
				return w.refuse(ctx, c, params.Problem{Parameter: strings.TrimPrefix(*p.Name, w.folder+"/"), Message: fmt.Sprintf(
					"its AllowedPattern in Parameter Store, %s, does not take the value that the change request %s has for it, "+
						"so nothing of that was written: request it again with one that obeys the pattern, "+
						"or bring the pattern up to date with `sawhorse register`",
					*p.AllowedPattern, c.ID,
				)})
			}
		}
	}
	return nil
}

// breaks reports whether a value violates a pattern. SSM's patterns are Java's. If Go cannot compile one, SSM reports
// the violation at the write.
func breaks(value, pattern string) bool {
	compiled, err := regexp.Compile(pattern)
	return err == nil && !compiled.MatchString(value)
}
