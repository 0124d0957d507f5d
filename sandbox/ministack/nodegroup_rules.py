"""What EKS says about a node group's scaling, labels and taints."""

import json

RESERVED = ("kubernetes.io/", "k8s.io/", "eks.amazonaws.com/")
EFFECTS = ("NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE")
INVALID = "InvalidParameterException"


def change(group, body):
    """(what an UpdateNodegroupConfig request makes of the group, refusal)."""
    scaling = {**group["scalingConfig"], **(body.get("scalingConfig") or {})}
    labels, taints = body.get("labels") or {}, body.get("taints") or {}
    refusal = scaling_refusal(scaling) or _labels_change_refusal(labels) or _taints_refusal(taints)
    if refusal:
        return None, refusal
    out = {"scalingConfig": scaling, "labels": _labels(group["labels"], labels),
           "taints": _taints(group["taints"], taints)}
    if body.get("updateConfig"):
        out["updateConfig"] = body["updateConfig"]
    return out, None


def params(body):
    """The change as DescribeUpdate lists it."""
    scaling, labels, taints = (body.get(key) or {} for key in ("scalingConfig", "labels", "taints"))
    found = [("MinSize", scaling.get("minSize")), ("MaxSize", scaling.get("maxSize")),
             ("DesiredSize", scaling.get("desiredSize")),
             ("LabelsToAdd", labels.get("addOrUpdateLabels")), ("LabelsToRemove", labels.get("removeLabels")),
             ("TaintsToAdd", taints.get("addOrUpdateTaints")), ("TaintsToRemove", taints.get("removeTaints"))]
    return [(key, json.dumps(value)) for key, value in found if value not in (None, {}, [])]


def scaling_refusal(scaling):
    small, large = scaling.get("minSize", 1), scaling.get("maxSize", 2)
    desired = scaling.get("desiredSize", small)
    if small < 0 or desired < 0:
        return INVALID, "Minimum and desired capacity must be at least 0"
    if large < 1:
        return INVALID, "Maximum capacity must be at least 1"
    if small > large:
        return INVALID, f"Minimum capacity {small} can't be greater than maximum size {large}"
    if small > desired:
        return INVALID, f"Minimum capacity {small} can't be greater than desired size {desired}"
    if desired > large:
        return INVALID, f"Desired capacity {desired} can't be greater than max size {large}"
    return None


def labels_refusal(labels):
    for key in labels:
        if any(key.startswith(prefix) or f".{prefix}" in key for prefix in RESERVED):
            return INVALID, f"Label cannot contain reserved prefixes {list(RESERVED)}: {key}"
    return None


def _labels_change_refusal(labels):
    add = labels.get("addOrUpdateLabels") or {}
    both = sorted(set(add) & set(labels.get("removeLabels") or []))
    if both:
        return INVALID, f"The same label key was given to add and to remove: {both[0]}"
    return labels_refusal(add)


def _taints_refusal(taints):
    for taint in (taints.get("addOrUpdateTaints") or []) + (taints.get("removeTaints") or []):
        if taint.get("effect") not in EFFECTS:
            return INVALID, f"Invalid taint effect {taint.get('effect')}"
    return None


def _labels(old, asked):
    new = {**old, **(asked.get("addOrUpdateLabels") or {})}
    return {key: value for key, value in new.items() if key not in (asked.get("removeLabels") or [])}


def _taints(old, asked):
    # A taint is known by key and effect; its value may change.
    def name(taint):
        return taint.get("key"), taint.get("effect")

    add = asked.get("addOrUpdateTaints") or []
    gone = {name(taint) for taint in add + (asked.get("removeTaints") or [])}
    return [taint for taint in old if name(taint) not in gone] + add
