"""EKS tags: MiniStack stores the tags of TagResource apart from those that the Describe calls show."""

from patches import patch

from ministack.services import eks


@patch("ministack.services.eks._tag_resource", "ministack.services.eks._untag_resource")
def change(original, arn, asked):
    answer, record = original(arn, asked), _record(arn)
    if answer[0] == 200 and record:
        record["tags"] = dict(eks._tags.get(arn, {}))
    return answer


@patch("ministack.services.eks._resolve_tag_resource_arn")
def resolve(original, arn):
    """Makes Pod Identity associations taggable."""
    record = _record(arn)
    if record and arn == record.get("associationArn"):
        return arn, None
    return original(arn)


def _record(arn):
    keys = ((eks._clusters, "arn"), (eks._nodegroups, "nodegroupArn"), (eks._addons, "addonArn"),
            (eks._access_entries, "accessEntryArn"), (eks._pod_identity_associations, "associationArn"))
    return next((record for store, key in keys for record in store.values() if record.get(key) == arn), None)
