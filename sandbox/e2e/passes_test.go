package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// client is how a test calls the local AWS where the AWS CLI would be too slow.
func client(t *testing.T) aws.Config {
	t.Helper()
	environment := sandbox.Environment(t)
	setting := func(name string) string {
		for _, pair := range slices.Backward(environment) {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return os.Getenv(name)
	}
	return aws.Config{
		Region: setting("AWS_REGION"), BaseEndpoint: aws.String(setting("AWS_ENDPOINT_URL")),
		Credentials: credentials.NewStaticCredentialsProvider(setting("AWS_ACCESS_KEY_ID"), setting("AWS_SECRET_ACCESS_KEY"), ""),
	}
}

// round is one round of a pass: from the call of validate to the release of the rack, or to the next round.
type round struct {
	outcome string
	steps   int
	from    time.Time
	to      time.Time
}

// executions waits until none runs and returns those since a time.
func executions(t *testing.T, since time.Time) (arns []string) {
	t.Helper()
	states := sfn.NewFromConfig(client(t))
	machines, err := states.ListStateMachines(t.Context(), &sfn.ListStateMachinesInput{})
	if err != nil || len(machines.StateMachines) != 1 {
		t.Fatalf("state machines: %v, %v", machines, err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		running, err := states.ListExecutions(t.Context(), &sfn.ListExecutionsInput{StateMachineArn: machines.StateMachines[0].StateMachineArn, StatusFilter: "RUNNING"})
		if err != nil {
			t.Fatal(err)
		}
		if len(running.Executions) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d executions still run", len(running.Executions))
		}
		time.Sleep(100 * time.Millisecond)
	}
	pages := sfn.NewListExecutionsPaginator(states, &sfn.ListExecutionsInput{StateMachineArn: machines.StateMachines[0].StateMachineArn})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Executions {
			if e.StartDate.After(since) {
				arns = append(arns, *e.ExecutionArn)
			}
		}
	}
	return arns
}

// rounds waits until no execution runs and returns the rounds since a time, in order.
func rounds(t *testing.T, since time.Time) []round {
	t.Helper()
	var all []round
	for _, e := range executions(t, since) {
		all = append(all, roundsOf(t, e)...)
	}
	slices.SortFunc(all, func(a, b round) int { return a.from.Compare(b.from) })
	return all
}

// history are the events of an execution.
func history(t *testing.T, execution string) (all []types.HistoryEvent) {
	t.Helper()
	pages := sfn.NewGetExecutionHistoryPaginator(sfn.NewFromConfig(client(t)), &sfn.GetExecutionHistoryInput{ExecutionArn: &execution})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Events...)
	}
	return all
}

// statesOf are the states that an execution has entered, in order.
func statesOf(t *testing.T, execution string) (names []string) {
	t.Helper()
	for _, event := range history(t, execution) {
		if entered := event.StateEnteredEventDetails; entered != nil {
			names = append(names, *entered.Name)
		}
	}
	return names
}

// roundsOf reads an execution's history: validate's answer begins a round, the next one or the execution's end ends it.
func roundsOf(t *testing.T, execution string) []round {
	t.Helper()
	var all []round
	for _, event := range history(t, execution) {
		if len(all) > 0 {
			all[len(all)-1].to = *event.Timestamp
		}
		done := event.TaskSucceededEventDetails
		if done == nil || done.Output == nil {
			continue
		}
		var answer struct {
			Payload struct {
				Outcome string
				Steps   []any
			}
		}
		if json.Unmarshal([]byte(*done.Output), &answer) == nil && answer.Payload.Outcome != "" {
			all = append(all, round{outcome: answer.Payload.Outcome, steps: len(answer.Payload.Steps), from: *event.Timestamp, to: *event.Timestamp})
		}
	}
	return all
}

// apart fails if two rounds overlap.
func apart(t *testing.T, all []round) {
	t.Helper()
	for i := 1; i < len(all); i++ {
		if all[i].from.Before(all[i-1].to) {
			t.Errorf("two rounds at once: %+v and %+v", all[i-1], all[i])
		}
	}
}

// write puts parameters of the rack demo, all at once.
func write(t *testing.T, values map[string]string) {
	t.Helper()
	store := ssm.NewFromConfig(client(t))
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
			t.Fatal(err)
		}
	}
}
