#!/bin/sh
# Runs the CDK CLI on the stack of the checkout in the current folder, with the sandbox's settings: the production stack
# with other context values. Values given as arguments take precedence.
set -eu
here=$(dirname "$0")
command=$1
shift
# The wait for a lag of AWS is as long as the sandbox's lag (docs/sandbox.md).
delay=$(awk -v lag="${LAG:-1}" -v scale="${LAG_SCALE:-1}" 'BEGIN { print lag ? int(15 * scale + 0.999) : 0 }')
# make's settings, for calls without make, so that binaries that make has built are not built again.
export GOFLAGS="${GOFLAGS--trimpath -buildvcs=false}" CGO_ENABLED="${CGO_ENABLED-0}" CDK_VALIDATION="${CDK_VALIDATION-false}"
exec "$here/../.cache/npm/node_modules/.bin/cdk" "$command" --no-notices -c architecture="$("$here/architecture.sh")" -c debounceSeconds=1 -c drainSeconds=20 -c proofSeconds=90 -c podIdentityDelaySeconds="$delay" \
	-c removal=destroy -c synthesizer=cli -c objectPrefixes='s3://sawhorse-demo/racks/{rack}/' -c nodeRoles='*-node' \
	-c proxies=http://proxy.example.com:3128,169.254.170.23,.svc "$@"
