"""CloudFormation alarms on a metrics query.

CloudWatch accepts an alarm on one metric, or on Metrics, a list of expressions. MiniStack's provisioner rejects the
second form. This module stores such an alarm under its expression. No metric can trigger it.
"""

from ministack.services.cloudformation import provisioners

_record = provisioners._cw_metric_alarm_record


def install():
    provisioners._cw_metric_alarm_record = record


def record(name, props):
    queries = [q for q in props.get("Metrics") or [] if q.get("Expression")]
    if queries:
        plain = {key: value for key, value in props.items() if key != "Metrics"}
        props = plain | {"MetricName": queries[0]["Expression"], "Namespace": "Expression"}
    return _record(name, props)
