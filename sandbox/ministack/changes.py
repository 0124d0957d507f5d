"""Events of AWS's own services, which PutEvents rejects: `Parameter Store Change`, and events that scripts request.

SSM's events are best effort. Here they are reliable, unless a script orders otherwise for the next ones (POST
/_sandbox/change-events?order=drop&count=3): they are dropped (drop), delivered twice (repeat), or delivered after
the event that follows (delay). Only events of what users write count, because functions write statuses and
outputs at any time.
"""

import json
import re

from ministack.services import eventbridge

ORDERS = ("drop", "repeat", "delay")

_order, _left = "", 0
_delayed = []


def order(what, count):
    global _order, _left
    if what not in ORDERS:
        raise ValueError(f"order {what}: one of {ORDERS}")
    _order, _left = what, count


def emit(operation, param):
    detail = {"operation": operation, "name": param["Name"], "type": param["Type"]}
    if param.get("Description"):
        detail["description"] = param["Description"]
    event = ("aws.ssm", "Parameter Store Change", detail, [param["ARN"]])
    for one in _delivered(event) if re.search("/params/|/change$", param["Name"]) else [event]:
        put(*one)


def _delivered(event):
    """The events to deliver now, in place of this one."""
    global _left
    late = list(_delayed)
    _delayed.clear()
    if not _left:
        return [event, *late]
    _left -= 1
    if _order == "delay":
        _delayed.append(event)
        return late
    return [event] * {"drop": 0, "repeat": 2}[_order] + late


def put(source, kind, detail, resources):
    eventbridge._put_events({"Entries": [{
        "Source": source,
        "DetailType": kind,
        "Detail": json.dumps(detail),
        "Resources": resources,
    }]}, allow_aws_source=True)
