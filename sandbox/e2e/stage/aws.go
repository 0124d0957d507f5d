package stage

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// AWS returns a configuration for calls to the local AWS, for tests in which the AWS CLI would be too slow.
func (s *Stage) AWS() aws.Config { return s.Environment.AWS() }

// Write writes parameters of the rack demo, all concurrently.
func (s *Stage) Write(values map[string]string) {
	s.t.Helper()
	store := ssm.NewFromConfig(s.AWS())
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
