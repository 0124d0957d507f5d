"""OIDC providers in IAM, and the credentials for a service account's token (IRSA).

GetOpenIDConnectProvider returns the issuer without its scheme, but MiniStack returns it as it was given. MiniStack
cannot add a client id. STS requires that the issuer's provider exists and that the token's audience is one of its
client ids. It accepts a token whose audience is a list with one element.
"""

from patches import patch

from ministack.services import iam, sts


@patch("ministack.services.iam._IAM_HANDLERS.GetOpenIDConnectProvider")
def get_oidc_provider(original, params):
    status, headers, body = original(params)
    return status, headers, body.replace(b"<Url>https://", b"<Url>")


@patch("ministack.services.iam._IAM_HANDLERS.AddClientIDToOpenIDConnectProvider", new=True)
def add_client_id(_original, params):
    provider = iam._oidc_providers.get(iam._p(params, "OpenIDConnectProviderArn"))
    if not provider:
        return iam._error(404, "NoSuchEntity", "OpenIDConnect Provider not found", ns="iam")
    provider["ClientIDList"].append(iam._p(params, "ClientID"))
    return iam._xml(200, "AddClientIDToOpenIDConnectProviderResponse", "", ns="iam")


@patch("ministack.services.sts._web_identity_principal")
def web_identity_principal(original, token, provider_id, role_arn):
    provider, keys = original(token, provider_id, role_arn)
    return provider, {k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in keys.items()}


@patch("ministack.services.sts._web_identity_trust_denied")
def web_identity_trust_denied(original, role_arn, params, use_json):
    provider, keys = web_identity_principal(sts._p(params, "WebIdentityToken"), sts._p(params, "ProviderId"), role_arn)
    _, is_ours, host = provider.partition(":oidc-provider/")
    if is_ours and provider not in iam._oidc_providers:
        return sts._error(400, "InvalidIdentityToken",
                          f"No OpenIDConnect provider found in your account for https://{host}", ns="sts")
    if is_ours and keys.get(f"{host}:aud".lower()) not in iam._oidc_providers[provider]["ClientIDList"]:
        return sts._error(400, "InvalidIdentityToken", "Incorrect token audience", ns="sts")
    return original(role_arn, params, use_json)
