// Package observe reads the state of a rack's cluster and account for package doctor, with the operator's own
// credentials. It writes nothing. If something cannot be read, it records the reason and continues.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// Clients are the clients that an observation calls.
type Clients struct {
	Parameters *ssm.Client
	STS        *sts.Client
	EKS        *eks.Client
	EC2        *ec2.Client
	IAM        *iam.Client
	SQS        *sqs.Client
	KMS        *kms.Client
	Quotas     *servicequotas.Client
	Rules      *eventbridge.Client
	Dial       k8s.Connector
}

// patience is the time limit of the whole observation. Sources that have not answered by then count as not observed.
const patience = 90 * time.Second

// Read observes a rack, its cluster and its account and, unless kubernetes is empty, what AWS has for an upgrade to that version. It
// records a source that could not be read in Unseen.
func Read(ctx context.Context, name, kubernetes string, paths ownership.Paths, clients Clients) *doctor.Observed {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := &reader{Clients: clients, paths: paths, o: &doctor.Observed{Rack: name, Kubernetes: kubernetes, Unseen: map[doctor.Source]string{}}}
	r.read(doctor.Parameters, func() error { return r.parameters(ctx, paths) })
	r.read(doctor.Rules, func() error { return r.rules(ctx) })
	r.caller(ctx)
	r.o.Config = r.o.Examined()
	r.facts(ctx)
	r.volumeKeys = r.o.VolumeKeys()
	sources := r.ofAccount()
	if r.o.Facts.Cluster != nil {
		sources = append(sources, r.ofCluster()...)
	} else {
		reason := r.o.Unseen[doctor.TheCluster]
		for _, each := range append(r.ofCluster(), r.inCluster()...) {
			r.o.Unseen[each.source] = reason
		}
		r.o.Unseen[doctor.Facts], r.o.Unseen[doctor.AddOnVersions], r.o.Unseen[doctor.Associations] = reason, reason, reason
	}
	var all sync.WaitGroup
	for _, each := range sources {
		all.Go(func() { r.read(each.source, func() error { return each.do(ctx) }) })
	}
	if r.o.Facts.Cluster != nil {
		all.Go(func() { r.kubernetes(ctx) })
	}
	all.Wait()
	return r.o
}

// reader fills in what was observed. Each source has other fields, so that they can be read in parallel.
type reader struct {
	Clients
	paths  ownership.Paths
	o      *doctor.Observed
	unseen sync.Mutex
	// volumeKeys are the KMS keys that pools name for their volumes.
	volumeKeys []string
	// client calls the cluster's API server.
	client *k8s.Client
}

// observer returns the observer of passes with the operator's credentials. It does not require the tag of the cluster's
// owner, because the operator reads with rights of his own.
func (r *reader) observer() *observe.Observer {
	return &observe.Observer{EKS: r.EKS, EC2: r.EC2, IAM: r.IAM, SQS: r.SQS, SSM: r.Parameters, Rules: r.Rules, Records: noRecords{},
		Kubernetes: r.o.Kubernetes, Now: time.Now}
}

// noRecords is a rack without records: doctor does not read the table.
type noRecords struct{ outcome.Recorder }

// ClusterLock returns no rack.
func (noRecords) ClusterLock(context.Context, string) (string, error) { return "", nil }

// Plan returns no plan.
func (noRecords) Plan(context.Context, string) (*plan.Plan, error) { return nil, nil }

// Baselines returns a recorder without records.
func (n noRecords) Baselines() outcome.Recorder { return n }

// Get finds no record.
func (noRecords) Get(context.Context, string, string) ([]byte, bool, error) { return nil, false, nil }

// source is one source, with what reads it.
type source struct {
	source doctor.Source
	do     func(context.Context) error
}

// ofAccount returns what reads the account.
func (r *reader) ofAccount() []source {
	return []source{
		{doctor.AllParameters, r.allParameters},
		{doctor.Hold, r.hold},
		{doctor.Instances, r.instances},
		{doctor.Keys, r.keys},
		{doctor.Quotas, r.quotas},
		{doctor.AccountSummary, r.account},
	}
}

// ofCluster returns what reads the AWS resources of the cluster. The add-ons' versions follow the add-ons.
func (r *reader) ofCluster() []source {
	return []source{
		{doctor.Addresses, r.addresses},
		{doctor.AddOns, r.addOns},
		{doctor.Endpoints, r.endpoints},
		{doctor.Organization, r.organization},
	}
}

// read reads a source. If that fails, it records the reason.
func (r *reader) read(source doctor.Source, do func() error) {
	if err := do(); err != nil {
		r.unseen.Lock()
		defer r.unseen.Unlock()
		r.o.Unseen[source] = r.reason(err)
	}
}

// reason returns an error as a finding shows it: the service's own code and message, or the whole chain.
func (r *reader) reason(err error) string {
	if errors.As(err, new(*k8s.UnknownCaller)) {
		const unknown = "the cluster's API server does not know the caller: "
		if r.o.Facts.Cluster.AuthMode == doctor.ConfigMap {
			return unknown + "the cluster's access mode is CONFIG_MAP, and access entries come with karpenter_auth_mode=true"
		}
		return unknown + "it has no access entry"
	}
	var refused smithy.APIError
	var operation *smithy.OperationError
	switch {
	case !errors.As(err, &operation):
		return err.Error()
	case errors.As(err, &refused):
		return fmt.Sprintf("%s %s: %s: %s", operation.Service(), operation.Operation(), refused.ErrorCode(), refused.ErrorMessage())
	}
	return fmt.Sprintf("%s %s: %v", operation.Service(), operation.Operation(), operation.Unwrap())
}

func (r *reader) hold(ctx context.Context) error {
	hold, err := store.ReadHold(ctx, r.Parameters, r.paths)
	if err = cmp.Or(err, hold.Denied); err != nil {
		return err
	}
	for _, advice := range hold.Advice(r.paths, r.o.Rack, false) {
		r.o.Held = advice.Message
	}
	return nil
}

func (r *reader) parameters(ctx context.Context, paths ownership.Paths) error {
	tree, err := store.ReadTree(ctx, r.Parameters, paths.Params(r.o.Rack))
	r.o.Params, r.o.Secure = tree.Values, tree.Secure
	return err
}
