#!/usr/bin/env bash
# Moves the aliases of the stack back to the release before the one in force, or to that of a version of the state
# machine: make rollback [TO=VERSION]. Passes that run go on as they began; those that start from now on are of that release.
set -euo pipefail
export AWS_PAGER=""
stack=${SAWHORSE_STACK:-Sawhorse} to=${1:-}

stop() { echo "tools/rollback.sh: $1" >&2; exit 1; }

alias=$(aws cloudformation describe-stacks --stack-name "$stack" --query "Stacks[0].Outputs[?OutputKey=='StateMachineArn'].OutputValue" --output text)
[[ $alias == *:live ]] || stop "stack $stack has no alias of its state machine: it is of a release before those that can be rolled back"
machine=${alias%:*}
current=$(aws stepfunctions describe-state-machine-alias --state-machine-alias-arn "$alias" --query 'routingConfiguration[0].stateMachineVersionArn' --output text)
versions=$(aws stepfunctions list-state-machine-versions --state-machine-arn "$machine" --query 'stateMachineVersions[].stateMachineVersionArn' --output text |
  tr '\t' '\n' | sed 's/.*://' | sort -n)
[ -n "$to" ] || to=$(awk -v current="${current##*:}" '$1 + 0 < current + 0 { before = $1 } END { print before }' <<< "$versions")
[ -n "$to" ] || stop "version ${current##*:} of the state machine is the first that there is: no release comes before it"
grep -qx "$to" <<< "$versions" || stop "the state machine has no version $to, but $(tr '\n' ' ' <<< "$versions")"

# The definition names the versions of all functions of its release.
definition=$(aws stepfunctions describe-state-machine --state-machine-arn "$machine:$to" --query definition --output text)
functions=$(grep -oE "arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]+:function:$stack-[a-z]+:[0-9]+" <<< "$definition" | sort -u)
for function in $functions; do
  aws lambda get-function-configuration --function-name "$function" --query Version --output text > /dev/null ||
    stop "version $to of the state machine calls $function, which cannot be read: nothing has been changed"
done
for name in audit resync rollout; do
  function=$(grep ":function:$stack-$name:" <<< "$functions")
  aws lambda update-alias --function-name "${function%:*}" --name "${alias##*:}" --function-version "${function##*:}" --query AliasArn --output text
done
aws stepfunctions update-state-machine-alias --state-machine-alias-arn "$alias" \
  --routing-configuration "stateMachineVersionArn=$machine:$to,weight=100" --query updateDate --output text
echo "Passes that start from now on are of version $to of the state machine. It was ${current##*:}; make rollback TO=${current##*:} goes there again."
