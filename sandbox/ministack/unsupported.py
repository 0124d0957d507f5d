"""Services that MiniStack does not have, such as Service Quotas, are refused at once.

At the first call of such a service, MiniStack loads all of botocore's models to see whether AWS has a service of that
name. That takes it seconds, in which it answers nobody: neither another call nor the API server's webhook for tokens.
Here every call is signed for a service of AWS.
"""

from patches import patch


@patch("ministack.core.router._is_aws_service_name")
def is_aws_service_name(_original, _name):
    return True
