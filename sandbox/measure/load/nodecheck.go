package load

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// clusters is how many clusters the node check is measured with (docs/cost.md).
const clusters = 500

// fullCPU is the memory in MB with which Lambda gives a function one vCPU. With other memory it gets that share of one.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
const fullCPU = 1769

// look has the node check look once at all racks, as its schedule does every five minutes, and at as many as it is made for.
func (r *run) look(ctx context.Context, racks int) error {
	if err := r.looks(ctx, racks); err != nil {
		return err
	}
	if err := r.copies(ctx, clusters-racks); err != nil {
		return err
	}
	return r.looks(ctx, max(racks, clusters))
}

// looks has the node check look once, and prints how long that took, and what Lambda would bill for it.
func (r *run) looks(ctx context.Context, racks int) error {
	fmt.Fprintf(r.out, "\na node check of %d racks\n", racks)
	before, err := r.process("Sawhorse-rollout")
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := r.environment.Run(ctx, `aws lambda invoke --function-name Sawhorse-rollout:live --payload '{}' /dev/null`); err != nil {
		return err
	}
	if err := r.times(ctx, began, "rollout", 1); err != nil {
		return err
	}
	after, err := r.process("Sawhorse-rollout")
	if err != nil {
		return err
	}
	cpu := after.cpu - before.cpu
	if after.id != before.id {
		cpu = after.cpu
	}
	r.line("its CPU time", "%.2f s, %.1f ms for each rack", cpu.Seconds(), 1000*cpu.Seconds()/float64(racks))
	r.line("its memory", "%d MB at most", after.memory)
	lines, err := functionlog.Since(ctx, r.environment, "rollout", began)
	if err != nil {
		return err
	}
	for _, line := range lines {
		call, is := line.Call()
		if !is {
			continue
		}
		for _, memory := range []float64{256, 512, 1024, fullCPU} {
			billed := max(call.Took.Seconds(), cpu.Seconds()*fullCPU/memory) // it waits for answers, or for its share of a CPU
			r.line(fmt.Sprintf("billed with %.0f MB, about", memory), "%.1f s, %.1f GB-s", billed, billed*memory/1024)
		}
	}
	return nil
}

// copies adds to the table what is recorded of the nodes of n racks more. Their clusters are those of the racks that there are, and they
// have no pools: what the node check asks of a cluster without nodes is the same.
func (r *run) copies(ctx context.Context, n int) error {
	table, err := r.table(ctx)
	if err != nil {
		return err
	}
	client := dynamodb.NewFromConfig(r.aws)
	found, err := client.Query(ctx, &dynamodb.QueryInput{TableName: &table, KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: "rollouts"}}})
	if err != nil {
		return fmt.Errorf("load: what is recorded of nodes: read: %w", err)
	}
	if len(found.Items) == 0 {
		return errors.New("load: nothing is recorded of nodes")
	}
	for i := range n {
		item := maps.Clone(found.Items[i%len(found.Items)])
		name := fmt.Sprintf("copy-%03d", i)
		record, err := another(item["rollout"], name)
		if err != nil {
			return err
		}
		item["sk"], item["rollout"] = &types.AttributeValueMemberS{Value: name}, &types.AttributeValueMemberS{Value: record}
		if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			return fmt.Errorf("load: rack %s: put: %w", name, err)
		}
	}
	return nil
}

// another returns what is recorded of a rack's nodes, for another rack without pools. The record is compressed JSON.
func another(record types.AttributeValue, rack string) (string, error) {
	binary, is := record.(*types.AttributeValueMemberB)
	if !is {
		return "", fmt.Errorf("load: the record of nodes is %T", record)
	}
	zip, err := gzip.NewReader(bytes.NewReader(binary.Value))
	if err != nil {
		return "", err
	}
	fields := map[string]any{}
	if err := json.NewDecoder(zip).Decode(&fields); err != nil {
		return "", err
	}
	fields["rack"] = rack
	delete(fields, "names")
	delete(fields, "pools")
	text, err := json.Marshal(fields)
	return string(text), err
}

// process is what a function has used of this machine.
type process struct {
	id string
	// cpu is the CPU time so far, and memory the most memory that it had, in MB.
	cpu    time.Duration
	memory int
}

// process returns the process that runs a function of this sandbox; an empty one if there is none yet.
func (r *run) process(function string) (process, error) {
	folder, _, _ := strings.Cut(r.environment.Value("KUBECONFIG"), "/kube/") // of the sandbox, which has the functions' code too
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return process{}, err
	}
	var found []process
	for _, path := range all {
		text, err := os.ReadFile(path)
		environment := strings.Split(string(text), "\x00")
		if err != nil || !slices.Contains(environment, "AWS_LAMBDA_FUNCTION_NAME="+function) ||
			!strings.HasPrefix(user.Environment(environment).Value("LAMBDA_TASK_ROOT"), folder+"/") {
			continue // of another user or another sandbox, or it has ended
		}
		one, err := used(filepath.Dir(path))
		if err != nil {
			return process{}, err
		}
		found = append(found, one)
	}
	switch len(found) {
	case 0:
		return process{}, nil
	case 1:
		return found[0], nil
	}
	return process{}, fmt.Errorf("load: %d processes run the function %s at once", len(found), function)
}

// tick is the unit of CPU times in /proc (sysconf(_SC_CLK_TCK), which is 100 on Linux).
const tick = 10 * time.Millisecond

// used reads what a process has used from its folder in /proc (proc(5)).
func used(folder string) (process, error) {
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return process{}, err
	}
	p := process{id: filepath.Base(folder)}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return p, fmt.Errorf("load: %s: stat has %d fields", folder, len(fields))
	}
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return p, err
		}
		p.cpu += time.Duration(n) * tick
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return p, err
	}
	for line := range strings.Lines(string(status)) {
		if value, is := strings.CutPrefix(line, "VmHWM:"); is {
			kilobytes, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				return p, err
			}
			p.memory = kilobytes / 1024
		}
	}
	return p, nil
}
