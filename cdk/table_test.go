package main

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// partitions are the keys of one rack, with that of its cluster.
var partitions = []string{"rack#demo", "plan#demo", "change#demo", "snapshot#demo", "cluster#demo", "racks", "rollouts"}

// operations of the table, and whether they write.
var operations = map[string]bool{"GetItem": false, "Query": false, "PutItem": true, "UpdateItem": true, "DeleteItem": true}

// may reports whether a role's policies allow an operation on a partition of the table, as IAM decides: a statement with
// dynamodb:LeadingKeys allows a call for the keys that match, and one without such a condition for all.
func (t template) may(role, operation, partition string) bool {
	return slices.ContainsFunc(t.grants(), func(g grant) bool {
		if !strings.HasPrefix(g.where, role+"RoleDefaultPolicy") || g.boundary() || !slices.ContainsFunc(g.actions, func(a any) bool {
			return matches(a.(string), "dynamodb:"+operation)
		}) {
			return false
		}
		keys := at(g.condition, "ForAllValues:StringLike", "dynamodb:LeadingKeys")
		return keys == nil || slices.ContainsFunc(list(keys), func(key any) bool { return matches(key.(string), partition) })
	})
}

func matches(pattern, value string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(value)
}

// A plan is executed with the rights of all functions together. Whoever holds the role of a step, of the state machine or
// of the schedule cannot write one, whatever operation it tries: only the two functions that validate can, and report
// deletes the plan of a rack that ends.
func TestAStepCannotWriteAPlan(t *testing.T) {
	onlyThese(t, "SavePlan", "Validate PutItem", "Audit PutItem", "Report DeleteItem")
}

// The function change writes the values of changes to Parameter Store.
func TestAStepCannotWriteAChange(t *testing.T) {
	onlyThese(t, "SaveChanges", "Validate UpdateItem", "Audit UpdateItem", "Change UpdateItem", "Report DeleteItem")
}

// Whoever goes back to a snapshot has its values applied.
func TestAStepCannotWriteASnapshot(t *testing.T) {
	onlyThese(t, "LastSnapshot", "Report PutItem", "Report DeleteItem")
}

// onlyThese compares which roles may write in the partition of a method of the store with those that must.
func onlyThese(t *testing.T, method string, want ...string) {
	t.Helper()
	_, partition, _ := strings.Cut(effects(t)[method][0], " ")
	var got []string
	for _, of := range []template{production, custom, again} {
		for _, role := range roleNames(of) {
			for _, operation := range []string{"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLInsert", "PartiQLUpdate",
				"PartiQLDelete", "ImportTable"} {
				if of.may(role, operation, partition) {
					got = append(got, role+" "+operation)
				}
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("%s is written by %q, want %q", partition, got, want)
	}
}

// roleNames returns the names of all roles of the stack.
func roleNames(of template) (all []string) {
	for id := range of.all("AWS::IAM::Role") {
		name, _, _ := strings.Cut(strings.TrimRight(id, "0123456789ABCDEF"), "Role")
		all = append(all, name)
	}
	return all
}

// Nothing in the stack has a right on the whole table, not even to read it: neither a scan, which has no keys, nor a
// statement without the condition, nor one that a call without keys would meet.
func TestEveryRightOnTheTableIsForPartitions(t *testing.T) {
	seen := 0
	for _, of := range []template{production, custom, again} {
		for _, g := range of.grants() {
			for _, a := range g.actions {
				operation, table := strings.CutPrefix(a.(string), "dynamodb:")
				if !table {
					continue
				}
				seen++
				if _, known := operations[operation]; !known || at(g.condition, "ForAllValues:StringLike", "dynamodb:LeadingKeys") == nil ||
					text(at(g.condition, "Null")) != `{"dynamodb:LeadingKeys":"false"}` {
					t.Errorf("%s: %s, condition %s", g.where, a, text(g.condition))
				}
			}
		}
	}
	if seen < 3*len(functions) {
		t.Errorf("%d rights: the test has lost the policies", seen)
	}
}

// excused are the methods of the store that a function has in its code and does not call, by the method or by the package
// that calls it, and why.
var excused = map[string]map[string]string{
	"audit": {
		"Forget":                "a step; its store refuses to write",
		"internal/pass/report/": "only its bus is used",
	},
	"change":   {"Plan": "its step belongs to no plan"},
	"validate": {"internal/pass/report/": "only its bus is used"},
	"rollout": {
		"internal/pass/report/": "only its bus is used", "internal/handler/": "it is no step", "internal/outcome/": "it is no step",
		"internal/resource/": "it is no step",
	},
	"resync": {
		"End": "of a pass that did not fail", "Delist": "of a pass that did not fail", "EndRollout": "of a pass that did not fail",
		"ForgetChanges": "of a pass that did not fail", "ForgetSnapshots": "of a pass that did not fail",
		"Settings": "of a pass that did not fail", "LastSnapshot": "of a pass that did not fail",
		"CompleteSnapshot": "of a pass that did not fail", "AddSnapshot": "of a pass that did not fail",
		"PruneSnapshots": "of a pass that did not fail",
	},
}

// Each function may do in the table what its code does, partition by partition, and nothing else.
func TestFunctionsHaveTheKeysThatTheirCodeUses(t *testing.T) {
	does, unused := effects(t), map[string]bool{}
	for method := range does {
		unused[method] = true
	}
	for _, f := range withRoles() {
		used, needed := map[string]bool{}, map[string]bool{}
		for _, r := range reached(t, f.name) {
			if strings.HasPrefix(r.place, "internal/plan/") || strings.HasPrefix(r.place, "internal/store/") { // their records are data
				continue
			}
			for _, method := range r.stored {
				delete(unused, method)
				for _, call := range does[method] {
					operation, partition, _ := strings.Cut(call, " ")
					excuse := method
					if place := r.place[:strings.LastIndex(r.place, "/")+1]; excused[f.name][place] != "" {
						excuse = place
					}
					if excused[f.name][excuse] != "" {
						used[excuse] = true
						continue
					}
					needed[level(operation)+partition] = true
					if !production.may(logicalID(f.name), operation, partition) {
						t.Errorf("function %s: %s calls %s, which is %s, and its role may not", f.name, r.place, method, call)
					}
				}
			}
		}
		for excuse := range excused[f.name] {
			if !used[excuse] {
				t.Errorf("function %s: there is nothing to excuse for %s", f.name, excuse)
			}
		}
		exactly(t, f.name, logicalID(f.name), needed)
	}
	if len(unused) > 0 {
		t.Errorf("methods of the store that no function calls: %v", slices.Sorted(maps.Keys(unused)))
	}
}

// The operations that the state machine itself performs, by the key of each state.
func TestTheStateMachineHasTheKeysThatItsStatesUse(t *testing.T) {
	needed := map[string]bool{}
	state := regexp.MustCompile(`(?s):states:::dynamodb:(\w+)",.*?"pk": \{ "S": "\{% '(\w+#)' & \$rack %\}" \}`)
	for _, call := range state.FindAllStringSubmatch(statemachine.Definition, -1) {
		operation, partition := strings.ToUpper(call[1][:1])+call[1][1:], call[2]+"demo"
		needed[level(operation)+partition] = true
		if !production.may("Machine", operation, partition) {
			t.Errorf("the state machine may not %s on %s", operation, partition)
		}
	}
	exactly(t, "the state machine", "Machine", needed)
}

func level(operation string) string {
	return map[bool]string{true: "write ", false: "read "}[operations[operation]]
}

// exactly compares what a role may do, reading and writing, with what is needed.
func exactly(t *testing.T, who, role string, needed map[string]bool) {
	t.Helper()
	may := map[string]bool{}
	for _, partition := range partitions {
		for operation := range operations {
			if production.may(role, operation, partition) {
				may[level(operation)+partition] = true
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(may)), slices.Sorted(maps.Keys(needed)); !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("%s may %q, and its code needs %q", who, got, want)
	}
}

// effects calls every method of the store, and returns the calls of DynamoDB that each makes: "PutItem plan#demo".
func effects(t *testing.T) map[string][]string {
	t.Helper()
	all, of := map[string][]string{}, reflect.TypeFor[*store.Store]()
	for i := range of.NumMethod() {
		method := of.Method(i)
		cloud := awsfake.New()
		call := []reflect.Value{reflect.ValueOf(&store.Store{DB: cloud.Table, Name: "sawhorse"})}
		for j := 1; j < method.Type.NumIn(); j++ {
			call = append(call, argument(t, cloud, method.Type.In(j)))
		}
		out := method.Func.Call(call)
		if recorder, is := out[0].Interface().(outcome.Recorder); is {
			_, _, _ = recorder.Get(t.Context(), "demo", "a")
			all[method.Name] = calls(cloud)
			for name, do := range map[string]func() error{
				"RecordOnce": func() error { return recorder.RecordOnce(t.Context(), "demo", "a", nil) },
				"Replace":    func() error { return recorder.Replace(t.Context(), "demo", "a", nil) },
				"Forget":     func() error { return recorder.Forget(t.Context(), "demo", "a") },
			} {
				if err := do(); err != nil {
					t.Fatal(err)
				}
				all[name] = calls(cloud)
			}
			continue
		}
		all[method.Name] = calls(cloud)
	}
	for method, did := range all {
		if len(did) == 0 {
			t.Errorf("method %s of the store has called nothing: the test has lost it", method)
		}
	}
	return all
}

// calls returns and forgets the calls of DynamoDB that were made, each with its partition.
func calls(cloud *awsfake.Cloud) (all []string) {
	for _, call := range cloud.Made() {
		if operation, table := strings.CutPrefix(call, "DynamoDB."); table {
			operation, key, _ := strings.Cut(operation, " ")
			partition, _, _ := strings.Cut(key, " ")
			all = append(all, operation+" "+partition)
		}
	}
	cloud.Forget()
	slices.Sort(all)
	return slices.Compact(all)
}

// argument returns a value for a method: of everything that has a rack, for the rack demo.
func argument(t *testing.T, cloud *awsfake.Cloud, of reflect.Type) reflect.Value {
	t.Helper()
	value := reflect.New(of).Elem()
	target := value
	if of.Kind() == reflect.Pointer {
		value = reflect.New(of.Elem())
		target = value.Elem()
	}
	switch {
	case of == reflect.TypeFor[context.Context]():
		return reflect.ValueOf(t.Context())
	case of == reflect.TypeFor[time.Time]():
		return reflect.ValueOf(time.Unix(1_800_000_000, 0))
	case of == reflect.TypeFor[store.RackReader]():
		return reflect.ValueOf(cloud.SSM)
	case of.Kind() == reflect.String:
		value.SetString("demo")
	case of.Kind() == reflect.Int64:
		value.SetInt(1)
	case of == reflect.TypeFor[events.Force]():
		return reflect.ValueOf(events.Force{events.ForceRoom, events.ForceRetire + "a-b"})
	case of == reflect.TypeFor[map[string]string]():
		return reflect.ValueOf(map[string]string{"a": "1"})
	case of.Kind() == reflect.Map:
		value.Set(reflect.MakeMap(of))
	case target.Kind() == reflect.Struct:
		if rack := target.FieldByName("Rack"); rack.IsValid() {
			rack.SetString("demo")
		}
	case of.Kind() != reflect.Slice && of.Kind() != reflect.Int && of.Kind() != reflect.Bool:
		t.Fatal(fmt.Sprint("the test knows no value of type ", of))
	}
	return value
}
