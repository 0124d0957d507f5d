"""The `Parameter Store Change` event, which PutEvents would refuse from outside (source aws.ssm)."""

import json

from ministack.services import eventbridge


def emit(operation, param):
    detail = {"operation": operation, "name": param["Name"], "type": param["Type"]}
    if param.get("Description"):
        detail["description"] = param["Description"]
    eventbridge._put_events({"Entries": [{
        "Source": "aws.ssm",
        "DetailType": "Parameter Store Change",
        "Detail": json.dumps(detail),
        "Resources": [param["ARN"]],
    }]}, allow_aws_source=True)
