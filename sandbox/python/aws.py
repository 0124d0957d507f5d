"""The AWS CLI, with AWS_ENDPOINT_URL obeyed by every command.

Version 1, the one that package registries have, sends sqs, emr, rds and health commands to
hosts from a table of its own unless --endpoint-url is given: aws/aws-cli issue 8737. The
sandbox puts a launcher of this file into the PATH of its users.
"""

import sys

from awscli import clidriver
from awscli.customizations import overridesslcommonname

overridesslcommonname.SSL_COMMON_NAMES.clear()
sys.exit(clidriver.main())
