#!/bin/sh
# The CDK CLI, on the stack of the checkout that is the current folder, as the sandbox deploys it: the production stack with other
# context values. Values that are given count more.
set -eu
here=$(dirname "$0")
command=$1
shift
# Outside of make: its settings, so that what make has built is not built again.
export GOFLAGS="${GOFLAGS--trimpath -buildvcs=false}" CGO_ENABLED="${CGO_ENABLED-0}" CDK_VALIDATION="${CDK_VALIDATION-false}"
exec "$here/../.cache/npm/node_modules/.bin/cdk" "$command" --no-notices -c architecture="$("$here/architecture.sh")" -c settleSeconds=1 -c drainSeconds=20 \
	-c removal=destroy -c synthesizer=cli -c objectPrefixes=s3://sawhorse-demo/racks/ "$@"
