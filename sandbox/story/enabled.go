package story

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// Enabled turns Karpenter on in the rack demo with a pool for builds, and gives every other parameter its default.
func Enabled(s *Script) {
	reset(s)
	wanted := map[string]string{"build_node_enabled": "true", "karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	for name, is := range s.parameters() {
		if wanted[name] == "" && is.Value != "unset" {
			s.Unset(name)
		}
		if wanted[name] == is.Value {
			delete(wanted, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		s.Put(name, wanted[name])
	}
	if len(s.unserved) == 0 && (s.Status().State != "Reconciled" || s.printed(ready) != "True") {
		s.Request("full")
	}
	if len(s.unserved) > 0 {
		s.Reconciled()
	}
	s.Check("NodePool workload is Ready", ready, "True")
	s.Check("NodePool build is Ready", buildReady, "True")
}

// reset removes the faults of calls and the lags that an earlier script has ordered, if a check has ended that script.
func reset(s *Script) {
	kinds := []string{"deleted-entry", "deleted-queue"}
	for _, lag := range slowest {
		kinds = append(kinds, lag.kind)
	}
	err := s.env.Sandbox(s.ctx, http.MethodPut, "faults", []fault.Fault{}, nil)
	for _, kind := range kinds {
		err = errors.Join(err, s.env.Sandbox(s.ctx, http.MethodPost, "lag?kind="+kind, nil, nil))
	}
	if err != nil {
		s.fail("faults and lags: %v", err)
	}
}

const (
	buildReady = `kubectl get nodepool build -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null`

	ready   = `kubectl get nodepool workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null`
	machine = `"$(aws stepfunctions list-state-machines --query 'stateMachines[0].stateMachineArn' --output text)"`
	role    = `"$(aws lambda get-function-configuration --function-name Sawhorse-nodepools --query Role --output text)"`
	table   = `"$(aws cloudformation describe-stacks --stack-name Sawhorse --query 'Stacks[0].Outputs[?OutputKey==` + "`TableName`" +
		`].OutputValue' --output text)"`
	update = `aws dynamodb update-item --table-name ` + table + ` --key '{"pk":{"S":"rack#demo"},"sk":{"S":"lease"}}' `
	invoke = `aws lambda invoke --function-name Sawhorse-nodepools --payload '{"rack":"demo","execution":"probe",` +
		`"step":{"name":"nodepools","function":"nodepools"}}' /dev/stdout`
	entry = "aws eks describe-access-entry --cluster-name demo --principal-arn " + role +
		" --query accessEntry.kubernetesGroups --output text"
)

// LockedOut deletes a function's access entry, calls the function as the state machine does, and has a
// full pass repair it.
func LockedOut(s *Script) {
	s.Chapter("A function without an access entry", func() {
		s.Check("its entry", entry, "sawhorse:nodepools")
		s.Type(update + `--update-expression 'SET #o = :o' --expression-attribute-names '{"#o":"owner"}' ` +
			`--expression-attribute-values '{":o":{"S":"probe"}}'`)
		s.Contains("with its entry it may", invoke, `"status": "done"`)
		s.Type("aws eks delete-access-entry --cluster-name demo --principal-arn " + role)
		lagsEnd(s)
		// The API server caches its webhook's answers for a second.
		s.Until("without, the API server refuses it", invoke+" | grep -o Unauthorized | head -1", "Unauthorized", time.Minute)
		s.Type(update + `--update-expression 'REMOVE #o' --expression-attribute-names '{"#o":"owner"}'`)
		s.Reconciled(s.Request("full"))
		s.Check("a full pass has made the entry again", entry, "sawhorse:nodepools")
	})
}
