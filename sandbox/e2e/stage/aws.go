package stage

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// Write writes parameters of the rack demo, all concurrently.
func (s *Stage) Write(values map[string]string) {
	s.t.Helper()
	store := ssm.NewFromConfig(s.Environment.AWS())
	failed := make(chan error, len(values))
	for name, value := range values {
		go func() {
			_, err := store.PutParameter(context.Background(), &ssm.PutParameterInput{
				Name: aws.String("/sawhorse/racks/demo/params/" + name), Value: &value, Type: "String", Overwrite: aws.Bool(true),
			})
			if err != nil {
				err = fmt.Errorf("%s=%s: %w", name, value, err)
			}
			failed <- err
		}()
	}
	for range values {
		if err := <-failed; err != nil {
			s.t.Fatal(err)
		}
	}
}
