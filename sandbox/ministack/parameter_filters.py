"""DescribeParameters' filters. MiniStack treats every Path filter as recursive and ignores tag filters."""

from patches import patch

from ministack.services import ssm


@patch("ministack.services.ssm._apply_filter")
def matches(original, param, key, option, values):
    if key == "Path":
        return any(_below(param["Name"], path, option == "Recursive") for path in values)
    if key.startswith("tag:"):
        tags = ssm._tags.get(param["ARN"], {})
        name = key[len("tag:"):]
        return name in tags and (not values or tags[name] in values)
    return original(param, key, option, values)


def _below(name, path, recursive):
    prefix = path.rstrip("/") + "/"
    return name.startswith(prefix) and (recursive or "/" not in name[len(prefix):])
