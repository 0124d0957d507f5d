"""EKS's rules for a cluster's access mode and version."""

MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")
FORWARD = (("CONFIG_MAP", "API_AND_CONFIG_MAP"), ("API_AND_CONFIG_MAP", "API"))


def complete(body):
    """Returns (body with EKS's defaults, refusal) of a CreateCluster request."""
    access = {"authenticationMode": "CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": True,
              **body.get("accessConfig", {})}
    if access["authenticationMode"] not in MODES:
        return body, ("InvalidParameterException", f"Invalid authentication mode {access['authenticationMode']}")
    if access["authenticationMode"] == "CONFIG_MAP" and not access["bootstrapClusterCreatorAdminPermissions"]:
        return body, ("InvalidParameterException", "bootstrapClusterCreatorAdminPermissions must be true if cluster "
                      "authentication mode is set to CONFIG_MAP")
    return {**body, "accessConfig": access}, None


def access_refusal(cluster, body):
    """The refusal of an UpdateClusterConfig request, or None."""
    mode = (body.get("accessConfig") or {}).get("authenticationMode")
    if not mode:
        return "InvalidParameterException", "The sandbox knows accessConfig.authenticationMode only."
    now = cluster["accessConfig"]["authenticationMode"]
    if (now, mode) not in FORWARD:
        return "InvalidParameterException", f"Unsupported authentication mode update from {now} to {mode}"
    return None


def version_refusal(cluster, body):
    """The refusal of an UpdateClusterVersion request, or None: EKS goes one minor version forward, and never back."""
    now, version = cluster["version"], body.get("version", "")
    if version != f"1.{int(now.split('.')[1]) + 1}":
        return "InvalidParameterException", f"Unsupported Kubernetes minor version update from {now} to {version}"
    return None
