"""Requests that PutParameter rejects on AWS and MiniStack accepts."""

import re

STANDARD, ADVANCED = 4096, 8192
VERSIONS = 100
TYPES = ("String", "StringList", "SecureString")


def complete(data, existing):
    """The request with the pattern and the tier that AWS keeps from the existing parameter."""
    data = dict(data)
    if existing and not data.get("AllowedPattern"):
        data["AllowedPattern"] = existing.get("AllowedPattern", "")
    if data.get("Tier") == "Intelligent-Tiering":
        large = len(data.get("Value", "").encode()) > STANDARD
        data["Tier"] = "Advanced" if large or (existing or {}).get("Tier") == "Advanced" else "Standard"
    return data


def refusal(data, existing):
    """Returns (code, message), or None if MiniStack may handle the request."""
    for rule in (_length, _type, _tier, _size, _pattern):
        found = rule(data, existing)
        if found:
            return found
    return None


def _length(data, _existing):
    if data.get("Value"):
        return None
    return ("ValidationException", "1 validation error detected: Value '' at 'value' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1.")


def _type(data, existing):
    kind = data.get("Type")
    if kind and kind not in TYPES:
        return ("ValidationException", f"1 validation error detected: Value '{kind}' at 'type' failed to satisfy "
                f"constraint: Member must satisfy enum value set: [{', '.join(TYPES)}]")
    if existing and kind and data.get("Overwrite") and kind != existing["Type"]:
        return ("HierarchyTypeMismatchException", "Parameter Store doesn't support changing a parameter type in a "
                f"hierarchy: {data['Name']} is a {existing['Type']}.")
    return None


def _tier(data, existing):
    if existing and existing.get("Tier") == "Advanced" and data.get("Tier") == "Standard":
        return ("ValidationException", "This parameter uses the advanced-parameter tier. You can't downgrade a "
                "parameter from the advanced-parameter tier to the standard-parameter tier.")
    return None


def _size(data, existing):
    tier = data.get("Tier") or (existing or {}).get("Tier") or "Standard"
    size = len(data["Value"].encode())
    if tier != "Advanced" and size > STANDARD:
        return ("ValidationException", f"Standard tier parameters support a maximum parameter value of {STANDARD} "
                "characters. To create a larger parameter value, upgrade the parameter to use the "
                "advanced-parameter tier.")
    if size > ADVANCED:
        return ("ValidationException", f"Advanced tier parameters support a maximum parameter value of {ADVANCED} "
                "characters.")
    return None


def _pattern(data, _existing):
    pattern = data.get("AllowedPattern")
    if not pattern:
        return None
    try:
        compiled = re.compile(_python(pattern), re.ASCII)
    except re.error:
        return ("InvalidAllowedPatternException", "The parameter could not be validated, because the allowed pattern "
                f"is not a regular expression: {pattern}")
    if compiled.search(data["Value"]):
        return None
    return ("ParameterPatternMismatchException",
            f"Parameter value, cannot be validated against allowedPattern: {pattern}")


def _python(pattern):
    """The pattern for Python's regular expressions. SSM uses Java's, where \\z matches the very end of the text."""
    return re.sub(r"((?:^|[^\\])(?:\\\\)*)\\z", r"\1\\Z", pattern)
