"""Asks Step Functions where each case of statemachine/testdata/states.json leads (test-state, which calls nothing), and prints
whether all go on as they should, or those that do not.

    teststates.py AWS STATE_MACHINE_ARN PREFIX

AWS is the AWS CLI: a python3 that a version manager starts may have another one first in its PATH.
"""

import json
import subprocess
import sys

ERROR_TRIED = 30  # more often than any retrier of the definition says: the error is caught
SECONDS = 120  # for one answer, with all attempts of the AWS CLI


def aws(*arguments):
    command = [sys.argv[1], "stepfunctions", *arguments, "--output", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS).stdout)


def ask(machine, variables, case):
    """Returns the answer of test-state to a case."""
    arguments = ["--definition", machine["definition"], "--state-name", case["state"], "--inspection-level", "TRACE",
                 "--variables", json.dumps({**variables, **case.get("variables", {})}), "--input", json.dumps(case.get("input", {})),
                 "--context", json.dumps({"Execution": {"Id": "me", "StartTime": "2026-01-02T03:04:05Z"}})]
    if "error" in case:
        mock = {"errorOutput": {"error": case["error"], "cause": "c"}}
        arguments += ["--state-configuration", json.dumps({"retrierRetryCount": ERROR_TRIED})]
    elif "result" in case:
        mock = {"result": json.dumps(case["result"]), "fieldValidationMode": "NONE"}
    else:
        return aws("test-state", "--role-arn", machine["roleArn"], *arguments)
    return aws("test-state", "--mock", json.dumps(mock), *arguments)


def contains(got, want):
    """Whether an object has all fields that are wanted. A wanted object with fields is a subset again."""
    return all(contains(got.get(name) or {}, value) if isinstance(value, dict) and value else got.get(name) == value
               for name, value in want.items())


def differs(case, answer):
    """Says in what an answer is not that of the case."""
    if "fails" in case:
        return "" if answer.get("error") == case["fails"]["error"] and json.loads(answer["cause"]) == case["fails"]["cause"] else "fails otherwise"
    if answer.get("nextState") != case["next"]:
        return f"goes on to {answer.get('nextState') or answer.get('cause')}"
    seen = answer.get("inspectionData", {})
    for what, wanted in (("afterArguments", case.get("arguments")), ("variables", case.get("assigns"))):
        if wanted and what in seen and not contains(json.loads(seen[what]), wanted):
            return f"{what} {seen[what]}"
    return ""


def main(arn, prefix):
    machine = aws("describe-state-machine", "--state-machine-arn", arn)
    with open("statemachine/testdata/states.json") as file:
        given = json.loads(file.read().replace("${Prefix}", prefix))
    wrong = []
    for case in given["cases"]:
        try:
            difference = differs(case, ask(machine, given["variables"], case))
        except subprocess.CalledProcessError as refused:
            difference = refused.stderr.strip()
        except subprocess.TimeoutExpired:
            sys.exit(f"{case['state']}, {case['what']}: no answer within {SECONDS} s")
        if difference:
            wrong.append(f"{case['state']}, {case['what']}: {difference}")
    cases = f"{len(given['cases'])} cases"
    print("; ".join([f"{len(wrong)} of {cases} do not go on as they should", *wrong]) if wrong else f"all {cases} go on as they should")


main(*sys.argv[2:])
