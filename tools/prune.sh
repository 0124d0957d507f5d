#!/usr/bin/env bash
# Deletes the versions of the functions and of the state machine that neither the release in force nor the newest ones
# name: tools/prune.sh NUMBER, of releases to keep besides the one in force. A pass that still runs with a deleted version fails.
set -euo pipefail
export AWS_PAGER=""
stack=${SAWHORSE_STACK:-Sawhorse} keep=${1:?usage: tools/prune.sh NUMBER}

alias=$(aws cloudformation describe-stacks --stack-name "$stack" --query "Stacks[0].Outputs[?OutputKey=='StateMachineArn'].OutputValue" --output text)
machine=${alias%:*}
current=$(aws stepfunctions describe-state-machine-alias --state-machine-alias-arn "$alias" --query 'routingConfiguration[0].stateMachineVersionArn' --output text)
versions=$(aws stepfunctions list-state-machine-versions --state-machine-arn "$machine" --query 'stateMachineVersions[].stateMachineVersionArn' --output text |
  tr '\t' '\n' | sed 's/.*://' | sort -rn)
kept=$({ echo "${current##*:}"; head -n $((keep + 1)) <<< "$versions"; } | sort -u)
named=$(for version in $kept; do
  aws stepfunctions describe-state-machine --state-machine-arn "$machine:$version" --query definition --output text
done | grep -oE ":function:$stack-[a-z]+:[0-9]+" | sort -u)
# The state machine's versions go first: what is left of them always finds its functions.
for version in $(grep -vxF "$kept" <<< "$versions" || true); do
  aws stepfunctions delete-state-machine-version --state-machine-version-arn "$machine:$version"
  echo "deleted $machine:$version"
done
for function in $(grep -oE "$stack-[a-z]+" <<< "$named" | sort -u); do
  for version in $(aws lambda list-versions-by-function --function-name "$function" --query 'Versions[].Version' --output text); do
    if [ "$version" != '$LATEST' ] && ! grep -qx ":function:$function:$version" <<< "$named"; then
      aws lambda delete-function --function-name "$function" --qualifier "$version"
      echo "deleted $function:$version"
    fi
  done
done
