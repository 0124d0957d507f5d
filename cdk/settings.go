package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// settings are the context values of a deployment (`cdk deploy -c key=value`, or "context" in cdk.json).
type settings struct {
	// StackName (stackName) begins the names of the functions and of the state machine.
	StackName string
	// Architecture (architecture) of the functions: arm64 or x86_64. Dist (dist) holds their zips: {dist}/{architecture}/{function}.zip.
	Architecture, Dist string
	// Prefix (prefix) is the root of the parameter tree, BusName (busName) the event bus.
	Prefix, BusName string
	// SettleSeconds (settleSeconds) is how long a pass waits for a burst of writes to end.
	SettleSeconds int
	// ResyncMinutes (resyncMinutes) is the interval of the full passes, ResyncSlots (resyncSlots) the number of ticks they are spread over.
	ResyncMinutes, ResyncSlots int
	// DrainSeconds (drainSeconds) is how long nodes may drain when Karpenter is turned off, and those of a node group that is
	// replaced.
	DrainSeconds int
	// AlarmTopicARN (alarmTopicArn) is the SNS topic for alarms; none: alarms only show.
	AlarmTopicARN string
	// SubnetIDs and SecurityGroupIDs (subnetIds, securityGroupIds) put the functions into a VPC, for private clusters.
	SubnetIDs, SecurityGroupIDs []string
	// NodeActions (nodeActions) are what the roles of nodes may do beyond Karpenter's own needs: what the boundary lets through
	// of policies that racks attach with node_policy_arns.
	NodeActions []string
	// ObjectPrefixes (objectPrefixes) are where JSON parameters may be read from: s3://bucket/prefix.
	ObjectPrefixes []string
	// Destroy (removal=destroy, default retain) deletes the table and the permissions boundary with the stack.
	Destroy bool
	// CLICredentials (synthesizer=cli, default default) deploys with the caller's own credentials, not CDK's bootstrap roles.
	CLICredentials bool
}

var (
	stackNames = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,39}$`)
	busNames   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,256}$`)
	prefixes   = regexp.MustCompile(`^(/[A-Za-z0-9_.-]+)+$`)
	actions    = regexp.MustCompile(`^[a-z0-9-]+:([A-Za-z0-9]+\*?|\*)$`)
	// The slash ends the bucket's name: without it, s3://config would also be s3://config-of-others. No *, ? or $, which mean
	// something in a policy, and no comma, which ends a prefix in the function's environment.
	objects = regexp.MustCompile(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[A-Za-z0-9!_.'()/=@+-]*$`)
)

// reader reads context values and collects what is wrong with them.
type reader struct {
	get  func(key string) any
	errs []error
}

// readSettings reads all settings. get gives a context value, nil where there is none.
func readSettings(get func(key string) any) (settings, error) {
	r := &reader{get: get}
	s := settings{
		StackName:        r.match("stackName", "Sawhorse", stackNames),
		Architecture:     r.oneOf("architecture", "arm64", "x86_64"),
		Dist:             r.text("dist", "dist"),
		Prefix:           r.match("prefix", names.DefaultPrefix, prefixes),
		BusName:          r.match("busName", names.Bus, busNames),
		SettleSeconds:    r.number("settleSeconds", 5, 0, 60), // well inside the lease's 180 s
		ResyncMinutes:    r.number("resyncMinutes", 60, 1, 1440),
		ResyncSlots:      r.number("resyncSlots", 12, 1, 1440),
		DrainSeconds:     r.number("drainSeconds", 300, 0, 3600),
		AlarmTopicARN:    r.text("alarmTopicArn", ""),
		SubnetIDs:        r.list("subnetIds"),
		SecurityGroupIDs: r.list("securityGroupIds"),
		NodeActions:      r.nodeActions(),
		ObjectPrefixes:   r.objectPrefixes(),
		Destroy:          r.oneOf("removal", "retain", "destroy") == "destroy",
		CLICredentials:   r.oneOf("synthesizer", "default", "cli") == "cli",
	}
	if strings.HasPrefix(s.Prefix, "/aws") || strings.HasPrefix(s.Prefix, "/ssm") {
		r.fail("prefix", s.Prefix, "a path that does not begin with aws or ssm, which Parameter Store keeps for itself")
	}
	if s.ResyncSlots > 0 && s.ResyncMinutes%s.ResyncSlots != 0 {
		r.fail("resyncSlots", strconv.Itoa(s.ResyncSlots), fmt.Sprintf("a divisor of resyncMinutes, %d: a tick is a whole number of minutes", s.ResyncMinutes))
	}
	if (len(s.SubnetIDs) == 0) != (len(s.SecurityGroupIDs) == 0) {
		r.fail("subnetIds", strings.Join(s.SubnetIDs, ","), "given together with securityGroupIds, or neither of them")
	}
	return s, errors.Join(r.errs...)
}

func (r *reader) fail(key, value, allowed string) {
	r.errs = append(r.errs, fmt.Errorf("context %s: %q: it must be %s", key, value, allowed))
}

func (r *reader) text(key, fallback string) string {
	if value := r.get(key); value != nil {
		return fmt.Sprint(value)
	}
	return fallback
}

func (r *reader) match(key, fallback string, pattern *regexp.Regexp) string {
	value := r.text(key, fallback)
	if !pattern.MatchString(value) {
		r.fail(key, value, "like "+fallback+" ("+pattern.String()+")")
	}
	return value
}

func (r *reader) oneOf(key, fallback string, others ...string) string {
	value := r.text(key, fallback)
	if value != fallback && !slices.Contains(others, value) {
		r.fail(key, value, fallback+" or "+strings.Join(others, " or "))
	}
	return value
}

func (r *reader) number(key string, fallback, least, most int) int {
	text := r.text(key, strconv.Itoa(fallback))
	value, err := strconv.Atoi(text)
	if err != nil || value < least || value > most {
		r.fail(key, text, fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return value
}

// list reads a JSON array of cdk.json or the comma-separated text of the command line.
func (r *reader) list(key string) (values []string) {
	if array, ok := r.get(key).([]any); ok {
		for _, value := range array {
			values = append(values, fmt.Sprint(value))
		}
		return values
	}
	if text := r.text(key, ""); text != "" {
		return strings.Split(text, ",")
	}
	return nil
}

// guarded are the services whose every action no node may have: they hand out rights, and a node could take any.
var guarded = []string{"iam", "organizations", "sts"}

func (r *reader) nodeActions() []string {
	const key = "nodeActions"
	list := r.list(key)
	for _, action := range list {
		service, _, _ := strings.Cut(action, ":")
		switch {
		case action == "*":
			r.fail(key, action, "single actions, like s3:GetObject or s3:Get*: with * the boundary would hold nothing back")
		case !actions.MatchString(action):
			r.fail(key, action, "service:Action or service:Prefix*, like s3:GetObject or s3:Get*")
		case slices.Contains(guarded, service) && strings.HasSuffix(action, ":*"):
			r.fail(key, action, "single actions of "+service+", like "+service+":GetSomething, not the whole service: a node could give itself any right with it")
		}
	}
	return list
}

func (r *reader) objectPrefixes() []string {
	const key = "objectPrefixes"
	list := r.list(key)
	for _, prefix := range list {
		if !objects.MatchString(prefix) {
			r.fail(key, prefix, "s3://bucket/prefix, like s3://example-config/racks/, without wildcards (a whole bucket is s3://bucket/)")
		}
	}
	return list
}

// zip is the path of a function's code.
func (s settings) zip(function string) string {
	return filepath.Join(s.Dist, s.Architecture, function+".zip")
}

// checkZips tells in one sentence what the CDK would say with a stack trace.
func (s settings) checkZips() error {
	for _, f := range functions {
		if _, err := os.Stat(s.zip(f.name)); err != nil {
			return fmt.Errorf("function %s: no %s: run `make build` first", f.name, s.zip(f.name))
		}
	}
	return nil
}
