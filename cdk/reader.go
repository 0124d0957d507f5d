package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reader reads context values and collects errors.
type reader struct {
	get  func(key string) any
	errs []error
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

var (
	tableNames = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	// rolePaths matches what IAM takes as the beginning of a path (CreateRole, Path), without what has a meaning in a policy.
	rolePaths  = regexp.MustCompile(`^/([A-Za-z0-9+=,.@_-]+/){1,20}$`)
	policyARNs = regexp.MustCompile(`^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$`)
)

// optional returns a value that may be absent.
func (r *reader) optional(key string, pattern *regexp.Regexp, allowed string) string {
	value := r.text(key, "")
	if value != "" && !pattern.MatchString(value) {
		r.fail(key, value, allowed)
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

// retentions are the retention periods in days that CloudWatch Logs supports (CloudWatch
// Logs API Reference, PutRetentionPolicy).
var retentions = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

func (r *reader) retention(key string, fallback int) int {
	text := r.text(key, strconv.Itoa(fallback))
	days, err := strconv.Atoi(text)
	if err != nil || !slices.Contains(retentions, days) {
		r.fail(key, text, "a number of days that CloudWatch Logs knows: "+strings.Trim(fmt.Sprint(retentions), "[]"))
	}
	return days
}

// list reads a JSON array from cdk.json, or comma-separated text from the command line.
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

// guarded are the services of which no node may have all actions: they grant permissions, so a node
// could give itself any.
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
			r.fail(key, action, "single actions of "+service+", like "+service+":GetSomething, not the whole service: a node could give "+
				"itself any right with it")
		}
	}
	return list
}

// rolePatterns matches names of roles with their paths, and patterns of them.
var rolePatterns = regexp.MustCompile(`^[A-Za-z0-9+=.@_/*-]*[A-Za-z0-9+=.@_-][A-Za-z0-9+=.@_/*-]*$`)

// endpointNames matches names of AWS's endpoint services. China's begin with cn, and IAM's has no region.
var endpointNames = regexp.MustCompile(`^(cn\.)?com\.amazonaws\.([a-z0-9-]+\.)?[a-z0-9-]+$`)

func (r *reader) endpoints() []string {
	const key = "vpcEndpoints"
	list := r.list(key)
	for _, name := range list {
		if _, known := called[service(name)]; !endpointNames.MatchString(name) || !known {
			r.fail(key, name, "the name of an endpoint service, like com.amazonaws.eu-central-1.ssm, of one that the functions call: "+
				strings.Join(slices.Sorted(maps.Keys(called)), ", "))
		}
	}
	return list
}

// checkEndpoints reports what is missing for the endpoints.
func (r *reader) checkEndpoints(s settings) {
	if len(s.Endpoints) == 0 {
		return
	}
	all := strings.Join(s.Endpoints, ",")
	if s.VPCID == "" || len(s.SubnetIDs) == 0 {
		r.fail("vpcEndpoints", all, "given together with vpcId, subnetIds and securityGroupIds")
	}
	gateway := slices.ContainsFunc(s.Endpoints, func(name string) bool { return called[service(name)] })
	if gateway && len(s.RouteTableIDs) == 0 {
		r.fail("vpcEndpoints", all, "given together with routeTableIds: the endpoints of dynamodb and s3 are routes")
	}
}

// operatorRacks reads names of racks, or patterns of them.
func (r *reader) operatorRacks() []string {
	list := r.matching("operatorRacks", rackPatterns, "a rack's name, or the beginning of names and *, like team-a-*")
	if len(list) == 0 {
		return []string{"*"}
	}
	return list
}

var rackPatterns = regexp.MustCompile(`^([a-z][a-z0-9-]*\*?|\*)$`)

// matching reads a list whose elements must all match a pattern.
func (r *reader) matching(key string, pattern *regexp.Regexp, allowed string) []string {
	list := r.list(key)
	for _, value := range list {
		if !pattern.MatchString(value) {
			r.fail(key, value, allowed)
		}
	}
	return list
}

var accountIDs = regexp.MustCompile(`^[0-9]{12}$`)
