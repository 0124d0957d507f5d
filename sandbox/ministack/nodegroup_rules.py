"""EKS's rules for a new node group, and for its scaling, labels and taints."""

import json

RESERVED = ("kubernetes.io/", "k8s.io/", "eks.amazonaws.com/")
EFFECTS = ("NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE")
INVALID = "InvalidParameterException"


def create_refusal(cluster, body):
    """The refusal of a CreateNodegroup request, or None."""
    template, ami = body.get("launchTemplate"), body.get("amiType")
    doubled = [key for key in ("diskSize", "remoteAccess") if template and body.get(key)]
    theirs = [key for key in body.get("tags") or {} if key.lower().startswith("aws:")]
    version, release = body.get("version"), body.get("releaseVersion") or cluster["version"]
    if template and bool(template.get("id")) == bool(template.get("name")):
        return INVALID, "You must specify either the launch template ID or the launch template name, but not both."
    if doubled:
        return INVALID, f"{doubled[0]} must be specified within the launch template."
    if ami == "CUSTOM" and (not template or body.get("version") or body.get("releaseVersion")):
        return INVALID, "AMI type CUSTOM takes its AMI, and no version, from a launch template."
    if (version and version != cluster["version"]) or not release.startswith(cluster["version"]):
        return INVALID, f"Requested Nodegroup release version {version or release} is invalid. Allowed version is {cluster['version']}"
    if body.get("capacityType", "ON_DEMAND") not in ("ON_DEMAND", "SPOT", "CAPACITY_BLOCK"):
        return INVALID, f"Invalid capacity type {body['capacityType']}"
    if theirs:
        return INVALID, f"Tag keys cannot start with aws: {theirs[0]}"
    return (scaling_refusal(body.get("scalingConfig") or {}) or labels_refusal(body.get("labels") or {})
            or _taints_refusal({"addOrUpdateTaints": body.get("taints")}))


def change(group, body):
    """Returns (the changed fields of the group, refusal) of an UpdateNodegroupConfig request."""
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
    """The change in the form of DescribeUpdate."""
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
    # A taint is identified by key and effect; its value may change.
    def name(taint):
        return taint.get("key"), taint.get("effect")

    add = asked.get("addOrUpdateTaints") or []
    gone = {name(taint) for taint in add + (asked.get("removeTaints") or [])}
    return [taint for taint in old if name(taint) not in gone] + add
