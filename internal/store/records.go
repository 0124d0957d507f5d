package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// recordsFormat is the version of the data that is kept from pass to pass (records, baselines, checkpoints, contests) that is written;
// recordsReadable is the newest one that is read. Sawhorse does not change a rack whose data a later version wrote, because it
// would lose data it does not know. A release that prepares another format raises recordsReadable only, so that what a release
// writes is read by the one before it. testdata has a sample of each.
const recordsFormat, recordsReadable = 2, 2

// ErrLaterVersion is the reason for which records are not read.
var ErrLaterVersion = errors.New("a later version of Sawhorse wrote them")

// Records returns what Sawhorse recorded about the rack in earlier passes, or the zero Records for a new rack.
func (s *Store) Records(ctx context.Context, rack string) (plan.Records, error) {
	var records plan.Records
	values, err := s.get(ctx, key(rack, "records"))
	if err != nil || values == nil {
		return records, wrap(err, "rack %s: read records", rack)
	}
	if format := numberOf(values, "format"); format > recordsReadable {
		return records, fmt.Errorf("rack %s: read records: %w (format %d, this one knows up to %d); deploy that version again",
			rack, ErrLaterVersion, format, recordsReadable)
	}
	if err := unpack(values, "records", &records); err != nil {
		return records, fmt.Errorf("rack %s: decode records: %w", rack, err)
	}
	if stringOf(values, karpenterAttribute) != "" {
		if err := unpack(values, karpenterAttribute, &records.Karpenter); err != nil {
			return records, fmt.Errorf("rack %s: decode %s: %w", rack, karpenterAttribute, err)
		}
	}
	if applied, ok := values["applied"].(*types.AttributeValueMemberM); ok {
		records.Applied = map[string]string{}
		for step, v := range applied.Value {
			if fingerprint, ok := v.(*types.AttributeValueMemberS); ok {
				records.Applied[step] = fingerprint.Value
			}
		}
	}
	for name := range values {
		step, ok := strings.CutPrefix(name, warningsOf(""))
		if !ok {
			continue
		}
		var warnings []params.Problem
		if err := unpack(values, name, &warnings); err != nil {
			return records, fmt.Errorf("rack %s: decode %s: %w", rack, name, err)
		}
		if len(warnings) == 0 {
			continue
		}
		if records.Warnings == nil {
			records.Warnings = map[string][]params.Problem{}
		}
		records.Warnings[step] = warnings
	}
	return records, nil
}

// warningsOf returns the attribute with a step's warnings. Each step has its own attribute, because DynamoDB cannot
// write into a map that does not exist.
func warningsOf(step string) string { return "warnings#" + step }

// SaveRecords replaces the records.
func (s *Store) SaveRecords(ctx context.Context, rack string, records plan.Records) error {
	applied := item{}
	for step, fingerprint := range records.Applied {
		applied[step] = text(fingerprint)
	}
	values := key(rack, "records")
	values["format"] = number(recordsFormat)
	if records.Karpenter != (plan.KarpenterRecord{}) {
		values[karpenterAttribute] = plain(records.Karpenter)
	}
	records.Applied, records.ClusterLock, records.Karpenter = nil, "", plan.KarpenterRecord{}
	values["records"] = plain(records)
	values["applied"] = &types.AttributeValueMemberM{Value: applied}
	for step, warnings := range records.Warnings {
		values[warningsOf(step)] = plain(warnings)
	}
	return wrap(s.put(ctx, values, nil), "rack %s: save records", rack)
}

// NoteApplied records that a step is done, and its final warnings.
func (s *Store) NoteApplied(ctx context.Context, rack string, step plan.Step, warnings []params.Problem) error {
	in := s.updating(key(rack, "records"), "SET #applied.#step = :fingerprint, #warnings = :warnings", "",
		item{":fingerprint": text(step.Fingerprint), ":warnings": plain(warnings)})
	in.ExpressionAttributeNames["#step"], in.ExpressionAttributeNames["#warnings"] = step.Name, warningsOf(step.Name)
	_, err := s.DB.UpdateItem(ctx, in)
	return wrap(err, "rack %s: note step %s", rack, step.Name)
}

// LockCluster claims a cluster for a rack, and returns the rack that owns the claim.
func (s *Store) LockCluster(ctx context.Context, clusterARN, rack string) (owner string, err error) {
	values := claimKey(clusterARN)
	values["rack"] = text(rack)
	err = s.put(ctx, values, new("attribute_not_exists(pk)"))
	if err == nil {
		return rack, nil
	}
	if !refused(err) {
		return "", fmt.Errorf("cluster %s: claim for rack %s: %w", clusterARN, rack, err)
	}
	return s.ClusterLock(ctx, clusterARN)
}

// End deletes a rack's claim on its cluster, its baselines, checkpoints and contests, its plan and settings, its status and outputs
// records, and its records last, so that an interrupted call is repeated. The lease is kept, and goes on counting.
func (s *Store) End(ctx context.Context, rack, clusterARN string) error {
	if clusterARN != "" {
		_, err := s.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &s.Name, Key: claimKey(clusterARN), ConditionExpression: new("rack = :rack OR attribute_not_exists(pk)"),
			ExpressionAttributeValues: item{":rack": text(rack)},
		})
		if err != nil && !refused(err) {
			return fmt.Errorf("cluster %s: give back the claim of rack %s: %w", clusterARN, rack, err)
		}
	}
	for _, kind := range []string{kindBaseline, kindCheckpoint, kindContest} {
		kept, err := s.query(ctx, partition(rack), kind, kind+end)
		if err != nil {
			return fmt.Errorf("rack %s: read %s: %w", rack, kind, err)
		}
		for _, values := range kept {
			if err := s.remove(ctx, item{"pk": values["pk"], "sk": values["sk"]}); err != nil {
				return fmt.Errorf("rack %s: forget %s: %w", rack, stringOf(values, "sk"), err)
			}
		}
	}
	return s.deleteEach(ctx, rack, planKey(rack), settingsKey(rack), key(rack, "status"), key(rack, "outputs"), key(rack, "records"))
}

// ClusterLock returns the rack that has claimed a cluster, or "".
func (s *Store) ClusterLock(ctx context.Context, clusterARN string) (string, error) {
	values, err := s.get(ctx, claimKey(clusterARN))
	return stringOf(values, "rack"), wrap(err, "cluster %s: read claim", clusterARN)
}

func claimKey(clusterARN string) item {
	return item{"pk": text(ownership.PartitionCluster + clusterARN), "sk": text("claim")}
}
