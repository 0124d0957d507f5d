"""CloudFormation alarms on a metrics query.

CloudWatch accepts an alarm on one metric, or on Metrics, a list of expressions. MiniStack's provisioner rejects the
second form. This module stores such an alarm under its expression. No metric can trigger it.
"""

from patches import patch


@patch("ministack.services.cloudformation.provisioners._cw_metric_alarm_record")
def record(original, name, props):
    queries = [q for q in props.get("Metrics") or [] if q.get("Expression")]
    if queries:
        plain = {key: value for key, value in props.items() if key != "Metrics"}
        props = plain | {"MetricName": queries[0]["Expression"], "Namespace": "Expression"}
    return original(name, props)
