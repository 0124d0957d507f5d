"""Checks that the functions' roles have exactly the permissions that the end-to-end scripts need.

Each sandbox records the authorization decisions about the roles (sandbox/ministack/decisions.py). This program
repeats them with the same engine. With the policies as deployed, the results must be the same. Then it removes each
statement, each action and each resource of a statement in turn; each removal must deny a call that a script made. A
call that was denied with the policies as deployed shows a missing permission.

The proof file has a call for each action, which docs/permissions.md shows; --update writes it. A row stays as long
as any script makes its call: a pass that the schedule starts may run during any of them.
"""

import argparse
import hashlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

from ministack.core.iam_evaluator import EvalContext, ParsedStatement, evaluate

# The permissions that no call in a sandbox can need, by resource ("*" means any), with the reason.
UNSEEN = {
    "*": {
        "logs:CreateLogStream": "Lambda writes the log, with the function's role",
        "logs:PutLogEvents": "Lambda writes the log, with the function's role",
        "xray:PutTraceSegments": "X-Ray's daemon beside the function, which the sandbox has not",
        "xray:PutTelemetryRecords": "X-Ray's daemon beside the function, which the sandbox has not",
    },
    "nodegroup/*": {
        "eks:DescribeUpdate": "AWS names the node group beside the cluster, and the sandbox authorizes on the cluster",
    },
    "Sawhorse-Undelivered": {
        "sqs:SendMessage": "Lambda sends what failed in the end, with the function's role",
        "sqs:GetQueueAttributes": "comes with CDK's way to grant sending",
        "sqs:GetQueueUrl": "comes with CDK's way to grant sending",
    },
}

# No script makes the calls that the Deny statements prevent, so they are tested with this resource: a user's parameter
# whose name looks like one of Sawhorse's own.
DENIED = "arn:aws:ssm:us-east-1:000000000000:parameter/sawhorse/racks/demo/params/status"


class Package:
    """The decisions of one sandbox, and the policies that they were made with."""

    def __init__(self, path):
        self.name = path.parent.name
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.template = lines[0]["template"]
        self.roles = {role: [ParsedStatement(**s) for s in statements] for role, statements in lines[0]["roles"].items()}
        self.calls = [line for line in lines if "context" in line]  # a restarted MiniStack writes the first line again
        for call in self.calls:
            call["context"] = EvalContext(**call["context"])


def decide(context, statements):
    return evaluate(context, [statements]).decision


def without(statements, i, **part):
    """The statements without the i-th, or without one action or resource of it (actions="iam:GetRole")."""
    rest = []
    for field, value in part.items():
        kept = [one for one in getattr(statements[i], field) if one != value]
        rest = [replace(statements[i], **{field: kept})] if kept else []  # an empty list would match everything
    return statements[:i] + rest + statements[i + 1:]


def functions(template):
    """The functions, by the logical ids of their roles. Of two that share a role, it is the one that it is named after,
    which the template has first.
    """
    found = {}
    for r in template["Resources"].values():
        if r["Type"] == "AWS::Lambda::Function":
            found.setdefault(r["Properties"]["Role"]["Fn::GetAtt"][0], r["Properties"]["FunctionName"].split("-")[-1])
    return found


def packages(paths, template, problems):
    found = []
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()
    for path in paths:
        if not path.exists() or not path.stat().st_size:
            problems.append(f"{path.parent.name}: no script of it has run")
            continue
        package = Package(path)
        if package.template != digest:
            problems.append(f"{package.name}: its scripts ran with another stack than the one built now; run them again")
            continue
        found.append(package)
    return found


class Rights:
    """Which recorded calls need each action and each resource of each statement."""

    def __init__(self, packages, functions, problems):
        self.problems = problems
        self.scripts = list(dict.fromkeys(call["script"] for package in packages for call in package.calls))
        self.statements = {}  # function -> statements
        # (function, index of the statement, its part) -> calls that are denied without that part. A part is its field
        # and index, because resource names differ between the stacks of two sandboxes; None is the whole statement.
        self.calls = {}
        for package in packages:
            for role, statements in package.roles.items():
                if role in functions:
                    self.statements[functions[role]] = statements
            for call in package.calls:
                if call["role"] in functions:
                    self._judge(call, functions[call["role"]], package.roles[call["role"]])

    def _judge(self, call, function, statements):
        context = call["context"]
        decision = decide(context, statements)
        if decision != call["decision"]:
            self.problems.append(f"{call['script']}: {function} {said(call)} was {call['decision']} and is {decision} when judged again: "
                                 "the record lacks something")
        if call["denied"]:
            self.problems.append(f"{call['script']}: {function} was refused {said(call)}")
        if decision != "Allow":
            return
        for i, statement in enumerate(statements):
            if statement.effect != "Allow" or decide(context, without(statements, i)) == "Allow":
                continue
            refused = [None] + [(field, j) for field, j, value in parts_of(statement)
                                if decide(context, without(statements, i, **{field: value})) != "Allow"]
            for part in refused:
                self.calls.setdefault((function, i, part), set()).add((call["script"], said(call)))

    def check(self):
        """Each statement, and each action and resource of it, must be needed or be listed in UNSEEN."""
        used = set()
        for function, statements in self.statements.items():
            for i, statement in enumerate(statements):
                if statement.effect == "Deny":
                    self._check_denying(function, statements, i)
                else:
                    self._check_allowing(function, statement, i, used)
        for key, rows in UNSEEN.items():
            self.problems += [f"{key}: {action} is listed as one that no call can need, and nobody has it"
                              for action in rows if (key, action) not in used]

    def _check_allowing(self, function, statement, i, used):
        where = f"{function}: {', '.join(statement.actions)} on {', '.join(map(plain, statement.resources))}"
        if len(where) > 120:
            where = where[:120] + "…"
        unseen = {action: unseen_reason(statement, action, used) for action in statement.actions}
        parts = {value: self.calls.get((function, i, (field, j))) for field, j, value in parts_of(statement)}
        for part, reason in unseen.items():
            if reason and parts[part]:
                self.problems.append(f"{where}: {part} is listed as one that no call can need, "
                                     f"and {row(first(parts[part], self.scripts))} needs it")
        idle = [plain(part) for part, calls in parts.items() if not calls and not unseen.get(part)]
        if not self.calls.get((function, i, None)) and not all(unseen.values()):
            self.problems.append(f"{where}: no call is refused without this statement")
        elif idle and not all(unseen.values()):
            self.problems.append(f"{where}: no call is refused without {', '.join(idle)}")

    def _check_denying(self, function, statements, i):
        for action in statements[i].actions:
            call = EvalContext("arn:aws:sts::000000000000:assumed-role/any/any", "AssumedRole", "000000000000", action, DENIED, "us-east-1")
            if decide(call, statements) != "Deny" or decide(call, without(statements, i, actions=action)) != "Allow":
                self.problems.append(f"{function}: the statement that denies {action} keeps nobody from {DENIED}")

    def rows(self, old, update):
        """For each function and action, the call that needs it, for each statement that allows it."""
        table = {}
        for function, statements in sorted(self.statements.items()):
            for i, statement in enumerate(statements):
                for action in statement.actions if statement.effect == "Allow" else []:
                    rows = table.setdefault(function, {}).setdefault(action, [])
                    before = dict(enumerate(old.get(function, {}).get(action, [])))
                    rows.append(self._row(function, i, action, before.get(len(rows)), update))
        return table

    def _row(self, function, i, action, before, update):
        if reason := unseen_reason(self.statements[function][i], action, set()):
            return reason
        calls = self.calls.get((function, i, ("actions", self.statements[function][i].actions.index(action))), set())
        if before in map(row, calls):
            return before
        if before and not update:
            if call_of(before) not in map(call_of, map(row, calls)):
                self.problems.append(f"{function}: {action} was needed by {before}, and is not any more, or that script has not run")
            return before
        return row(first(calls, self.scripts)) if calls else ""


def parts_of(statement):
    """Each action and each resource of a statement: its field, its index and its value."""
    return [(field, j, value) for field in ("actions", "resources") for j, value in enumerate(getattr(statement, field))]


def unseen_reason(statement, action, used):
    for key in [*map(plain, statement.resources), "*"]:
        if action in UNSEEN.get(key, {}):
            used.add((key, action))
            return UNSEEN[key][action]
    return ""


def first(calls, scripts):
    return min(calls, key=lambda call: (scripts.index(call[0]), call[1]))


def row(call):
    script, what = call
    return f"{script}: {what.partition(' on ')[2]}"


def call_of(row):
    return row.partition(": ")[2]


def said(call):
    context = call["context"]
    return f"{context.action} on {plain(context.resource_arn)}"


def plain(arn):
    """An ARN in the form that the documents use, without the ids that differ between runs."""
    rest = arn.split(":", 5)[-1] if arn.startswith("arn:") else arn
    rest = re.sub(r"(Sawhorse-\w+)[0-9A-F]{8}-[0-9A-F]{13}", r"\1", rest)  # CloudFormation's suffix
    rest = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "…", rest)
    return re.sub(r"(?<=[-/_])([0-9a-f]{8,}|[0-9A-F]{32})(?=/|$)", "…", rest)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--proof", type=Path, required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("decisions", type=Path, nargs="+")
    given = parser.parse_args()
    problems = []
    template = json.loads(given.template.read_text(encoding="utf-8"))
    old = json.loads(given.proof.read_text(encoding="utf-8")) if given.proof.exists() else {}
    found = packages(given.decisions, template, problems)
    rights = Rights(found, functions(template), problems)
    if found:
        rights.check()
    table = rights.rows(old, given.update)
    if given.update and not problems:
        given.proof.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    elif given.update:
        problems.append(f"{given.proof} is left as it is")
    elif found and table != old:
        problems.append(f"{given.proof} is not what was found: make rights UPDATE=yes")
    judged = sum(len(package.calls) for package in found)
    statements = sum(len(s) for s in rights.statements.values())
    print(f"{len(rights.statements)} functions, {statements} statements, "
          f"{sum(len(a.actions) for s in rights.statements.values() for a in s)} actions; "
          f"{judged} calls of {len(rights.scripts)} scripts judged again")
    for problem in dict.fromkeys(problems):
        print("  " + problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
