"""Events of AWS's own services, which PutEvents would refuse from outside: `Parameter Store Change`, and what scripts ask for."""

import json

from ministack.services import eventbridge


def emit(operation, param):
    detail = {"operation": operation, "name": param["Name"], "type": param["Type"]}
    if param.get("Description"):
        detail["description"] = param["Description"]
    put("aws.ssm", "Parameter Store Change", detail, [param["ARN"]])


def put(source, kind, detail, resources):
    eventbridge._put_events({"Entries": [{
        "Source": source,
        "DetailType": kind,
        "Detail": json.dumps(detail),
        "Resources": resources,
    }]}, allow_aws_source=True)
