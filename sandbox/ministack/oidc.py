"""OIDC providers in IAM, and the credentials a service account's token is traded for (IRSA).

GetOpenIDConnectProvider gives the issuer without its scheme; MiniStack keeps it as it was given.
STS wants the issuer's provider to exist, and reads the audience of a token that lists just one.
"""

from ministack.services import iam, sts

_get = iam._get_oidc_provider
_principal = sts._web_identity_principal
_denied = sts._web_identity_trust_denied


def install():
    iam._IAM_HANDLERS["GetOpenIDConnectProvider"] = get_oidc_provider
    sts._web_identity_principal = web_identity_principal
    sts._web_identity_trust_denied = web_identity_trust_denied


def get_oidc_provider(params):
    status, headers, body = _get(params)
    return status, headers, body.replace(b"<Url>https://", b"<Url>")


def web_identity_principal(token, provider_id, role_arn):
    provider, keys = _principal(token, provider_id, role_arn)
    return provider, {k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in keys.items()}


def web_identity_trust_denied(role_arn, params, use_json):
    provider, _ = _principal(sts._p(params, "WebIdentityToken"), sts._p(params, "ProviderId"), role_arn)
    _, is_ours, host = provider.partition(":oidc-provider/")
    if is_ours and provider not in iam._oidc_providers:
        return sts._error(400, "InvalidIdentityToken",
                          f"No OpenIDConnect provider found in your account for https://{host}", ns="sts")
    return _denied(role_arn, params, use_json)
