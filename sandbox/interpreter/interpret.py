"""Plays one pass of the state machine with MiniStack's interpreter, without any AWS service.

Reads {definition, steps, answers, refuses, together} and prints {path, inputs, called, report, waits, took}. A Task does not call anything:
validate returns the steps, the function of a step returns its next answer, and DynamoDB counts one request. An answer
that begins with "!" is an error of that name. An answer may have a note after a colon. With refuses, report fails where
a step waits. With together, the fields of an Assign see the old values, as on AWS.
Without it they see each other, as in MiniStack. The clock goes on in Wait states, and by the longest delay before a Task is repeated;
took is in seconds.

With {definition, variables, cases} it plays each case's state once instead, and prints {next, variables, arguments, error, cause} of each:
the case has the input, the variables that differ, and the result or the error of a Task's call, which is not repeated.
"""

import json
import sys
import time

from ministack.services import stepfunctions as asl


def main():
    given = json.load(sys.stdin)
    if given.get("together", True):
        asl._apply_state_assign = assign_together
    if "cases" in given:
        print(json.dumps([Case(given, case).play() for case in given["cases"]]))
    else:
        print(json.dumps(Pass(given).play()))


def assign_together(state, raw, ctx, result=None, error_output=None):
    old = dict(ctx, variables=dict(ctx["variables"]))
    for name, value in state.get("Assign", {}).items():
        ctx["variables"][name] = asl._apply_jsonata_template(value, raw, old, result=result, error_output=error_output)


class Pass:
    def __init__(self, given):
        self.states, self.at = given["definition"]["States"], given["definition"]["StartAt"]
        self.steps, self.answers, self.refuses = given.get("steps"), given.get("answers"), given.get("refuses")
        self.path, self.inputs, self.called, self.reported, self.waits = [], [], [], {}, []
        self.clock = self.began = int(time.time() * 1000)
        known = asl._register_sfn_jsonata_functions

        def register(expression):
            known(expression)
            expression.register_lambda("millis", lambda: self.clock)

        asl._register_sfn_jsonata_functions = register
        self.data = {"source": "test", "detail-type": "Rack Reconcile Requested", "detail": {"rack": "demo"}}
        execution = {"Id": "me", "Name": "me", "Input": self.data, "StartTime": "2026-01-02T03:04:05Z"}
        self.ctx = {"QueryLanguage": "JSONata", "Execution": execution, "StateMachine": {"Id": "machine"}, "variables": {}}

    def play(self):
        while len(self.path) < 1000:
            self.path.append(self.at)
            if self.at == "RunStep":
                self.inputs.append(self.data)
            if self.states[self.at]["Type"] in ("Succeed", "Fail"):
                break
            self.enter(self.states[self.at])
        return {"path": self.path, "inputs": self.inputs, "called": self.called, "report": self.reported, "waits": self.waits,
                "took": (self.clock - self.began) // 1000}

    def enter(self, state):
        self.ctx["State"] = {"Name": self.at}
        match state["Type"]:
            case "Wait":
                self.clock += 1000 * asl._jsonata_wait_seconds(state, self.data, self.ctx)
                self.at = state["Next"]
            case "Choice":
                self.data, self.at = asl._execute_choice(state, self.data, self.ctx)
            case "Pass":
                self.data, self.at = asl._execute_pass(state, self.data, self.ctx)
            case "Task":
                self.task(state)

    def task(self, state):
        tries = {}
        while not self.tried(state, tries):
            pass

    def tried(self, state, tries):
        try:
            result = self.call(state["Resource"], asl._apply_jsonata_arguments(state, self.data, self.ctx))
            output = asl._apply_jsonata_output(state, self.data, self.ctx, result=result, default=result)
            asl._apply_state_assign(state, self.data, self.ctx, result=result)
            self.data, self.at = output, state["Next"]
        except asl._ExecutionError as error:
            if self.repeats(state, error.error, tries):
                return False
            caught = {"Error": error.error, "Cause": error.cause}
            catch = next(c for c in state["Catch"] if error.error in c["ErrorEquals"] or "States.ALL" in c["ErrorEquals"])
            output = asl._apply_jsonata_output(catch, self.data, self.ctx, error_output=caught, default=caught)
            asl._apply_state_assign(catch, self.data, self.ctx, error_output=caught)
            self.data, self.at = output, catch["Next"]
        return True

    def repeats(self, state, error, tries):
        """The first retrier that names the error decides, and counts its own tries."""
        for number, retrier in enumerate(state.get("Retry", [])):
            if error in retrier["ErrorEquals"] or "States.ALL" in retrier["ErrorEquals"]:
                before = tries.get(number, 0)
                if before == retrier["MaxAttempts"]:
                    return False
                tries[number] = before + 1
                self.clock += 1000 * min(retrier["MaxDelaySeconds"], retrier["IntervalSeconds"] * retrier["BackoffRate"] ** before)
                return True
        return False

    def call(self, resource, arguments):
        if not resource.endswith(":lambda:invoke"):
            return {"Attributes": {"requested": {"N": "7"}}}
        function, payload = arguments["FunctionName"], arguments["Payload"]
        if function == "validate":
            outcome = "Planned" if self.steps else "Unchanged"
            return {"Payload": {"generation": 7, "outcome": outcome, "report": True, "steps": self.steps}}
        if function == "report" and "wait" in payload:
            self.waits.append(payload)
            if self.refuses:
                raise asl._ExecutionError("Throttled", "reason")
            return {"Payload": {"unknown": False}}
        if function == "report":
            self.reported = payload
            return {"Payload": {}}
        self.called.append(payload["step"]["name"])
        answers = self.answers.get(payload["step"]["name"], ["done"])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer.startswith("!"):
            raise asl._ExecutionError(answer[1:], "reason")
        status, _, note = answer.partition(":")
        return {"Payload": {"status": status, "waitSeconds": 1, "note": note or "note"}}


class Case(Pass):
    def __init__(self, given, case):
        super().__init__(given)
        self.case, self.at, self.data = case, case["state"], case.get("input", {})
        self.ctx["variables"] = {**given["variables"], **case.get("variables", {})}
        self.arguments = None

    def play(self):
        state = self.states[self.at]
        if state["Type"] == "Fail":
            error, cause = asl._fail_state_error(state, self.data, self.ctx)
            return {"error": error, "cause": cause}
        self.enter(state)
        return {"next": self.at, "variables": self.ctx["variables"], "arguments": self.arguments}

    def repeats(self, state, error, tries):
        return False

    def call(self, resource, arguments):
        self.arguments = arguments
        if "error" in self.case:
            raise asl._ExecutionError(self.case["error"], "c")
        return self.case["result"]


main()
