#!/bin/sh
# The CDK CLI, on the stack of the checkout that is the current folder, as the sandbox deploys it: the production stack with other
# context values. Values that are given count more.
set -eu
here=$(dirname "$0")
command=$1
shift
# What stands for a lag of AWS's is as long as the sandbox's lag (docs/sandbox.md).
delay=$(awk -v lag="${LAG:-1}" -v scale="${LAG_SCALE:-1}" 'BEGIN { print lag ? int(15 * scale + 0.999) : 0 }')
# Outside of make: its settings, so that what make has built is not built again.
export GOFLAGS="${GOFLAGS--trimpath -buildvcs=false}" CGO_ENABLED="${CGO_ENABLED-0}" CDK_VALIDATION="${CDK_VALIDATION-false}"
exec "$here/../.cache/npm/node_modules/.bin/cdk" "$command" --no-notices -c architecture="$("$here/architecture.sh")" -c settleSeconds=1 -c drainSeconds=20 -c podIdentityDelaySeconds="$delay" \
	-c removal=destroy -c synthesizer=cli -c objectPrefixes=s3://sawhorse-demo/racks/ -c nodeRoles='*-node' "$@"
