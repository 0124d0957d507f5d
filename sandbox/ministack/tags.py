"""EKS tags: MiniStack stores the tags of TagResource apart from those that the Describe calls show."""

from urllib.parse import unquote

from ministack.services import eks

_resolve = eks._resolve_tag_resource_arn
_tag = eks._tag_resource
_untag = eks._untag_resource
_handle = None


def install():
    global _handle
    _handle = eks._handle_request_sync
    eks._handle_request_sync = handle
    eks._resolve_tag_resource_arn = resolve
    eks._tag_resource = lambda arn, body: _show(arn, _tag(arn, body))
    eks._untag_resource = lambda arn, query: _show(arn, _untag(arn, query))


def handle(method, path, headers, body, query):
    # MiniStack reads only the first of several tagKeys.
    if method == "DELETE" and path.startswith("/tags/"):
        return eks._untag_resource(unquote(path[len("/tags/"):]), query)
    return _handle(method, path, headers, body, query)


def resolve(arn):
    """Makes Pod Identity associations taggable."""
    record = _record(arn)
    if record and arn == record.get("associationArn"):
        return arn, None
    return _resolve(arn)


def _show(arn, answer):
    record = _record(arn)
    if answer[0] == 200 and record:
        record["tags"] = dict(eks._tags.get(arn, {}))
    return answer


def _record(arn):
    keys = ((eks._clusters, "arn"), (eks._nodegroups, "nodegroupArn"), (eks._addons, "addonArn"),
            (eks._access_entries, "accessEntryArn"), (eks._pod_identity_associations, "associationArn"))
    return next((record for store, key in keys for record in store.values() if record.get(key) == arn), None)
