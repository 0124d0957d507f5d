#!/usr/bin/env bash
# Runs Sawhorse's story on the AWS account of the current credentials, and writes a report of what an emulator cannot
# show: make acceptance.
#   CLUSTER=NAME  an existing cluster that has never had Karpenter; without it a small one is created, and deleted later
#   RACK=NAME     the rack's name (acceptance); it must not have parameters yet
#   CONFIRM=NAME  the cluster's name, if nobody is there to type it
#   REPORT=FILE   the report (acceptance.md)
# kubectl uses KUBECONFIG, or else a kubeconfig of the script's own.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.cache/bin:$PWD/.cache/npm/node_modules/.bin:$PATH" AWS_PAGER=""
rack=${RACK:-acceptance} report=${REPORT:-acceptance.md} stack=${SAWHORSE_STACK:-Sawhorse}
params=${SAWHORSE_PREFIX:-/sawhorse}/racks/$rack/params
marker=${SAWHORSE_PREFIX:-/sawhorse}/acceptance # has what a run makes, until that is taken back
work=$(mktemp -d)
probe=sawhorse-acceptance-$(date +%s)

stop() { echo "tools/acceptance.sh: $1" >&2; exit 1; }
say() { printf '\n── %s\n' "$1" >&2; }
now() { date +%s.%N; }
since() { python3 -c 'import sys; print("%.1f" % (float(sys.argv[2]) - float(sys.argv[1])))' "$1" "$(now)"; }

# answer writes a row of the report: a question, and AWS's answer.
answer() {
  printf '| %s | %s |\n' "$1" "$(tr '\n|' ' /' <<< "${2:-nothing}")" >> "$work/answers"
  printf '  %s: %s\n' "$1" "${2:-nothing}" >&2
}

# code prints AWS's error code and message of a command, or "accepted".
code() {
  local said
  if said=$("$@" 2>&1); then echo accepted; return; fi
  sed -n 's/.*An error occurred (\([A-Za-z.]*\)).*: \(.*\)/\1: \2/p' <<< "$said" | head -1 | grep . || tail -1 <<< "$said"
}

# lag retries a command every half second until it succeeds, for at most a minute. It reports how long that took and the
# first error.
lag() {
  local question=$1 began first=""; shift
  began=$(now)
  for _ in $(seq 120); do
    local said; said=$(code "$@")
    if [ "$said" = accepted ]; then
      answer "$question" "$(since "$began") s${first:+; before that $first}"
      return
    fi
    first=${first:-$said}
    sleep 0.5
  done
  answer "$question" "not within a minute: $first"
}

set_parameter() { aws ssm put-parameter --overwrite --type String --name "$params/$1" --value "$2" --query Version --output text > /dev/null; }

# passes waits until the pass of the last write has ended, and stops unless the rack is in order.
passes() {
  sawhorse watch "$rack" >&2
  sawhorse status "$rack" >&2 || stop "$1: see the status above; the report is not finished"
}

# --- setup and confirmation -------------------------------------------------------------------------------------------

account=$(aws sts get-caller-identity --query Account --output text) || stop "these credentials are for no account"
partition=$(aws sts get-caller-identity --query Arn --output text | cut -d: -f2)
export AWS_REGION=${AWS_REGION:-$(aws configure get region)}
[ -n "$AWS_REGION" ] || stop "set AWS_REGION"
command -v kubectl > /dev/null || stop "kubectl is not there: https://kubernetes.io/docs/tasks/tools/"
command -v sawhorse > /dev/null || stop "build sawhorse first: make build"
cluster=${CLUSTER:-sawhorse-acceptance}

# confirm has somebody type the cluster's name, unless CONFIRM has it.
confirm() {
  local typed=${CONFIRM:-}
  if [ -z "$typed" ]; then read -r -p "Type the cluster's name to go on: " typed || true; fi
  [ "$typed" = "$cluster" ] || stop "not confirmed; nothing was done"
}

# --- cleanup ----------------------------------------------------------------------------------------------------------

# unprofile deletes the instance profile of the questions.
unprofile() {
  aws iam remove-role-from-instance-profile --instance-profile-name "$probe" --role-name "$probe" 2> /dev/null
  aws iam delete-instance-profile --instance-profile-name "$probe" 2> /dev/null
}

# take_back deletes what a run has made: this one, or one that was stopped before its end.
take_back() {
  say "Taking back what was made"
  kubectl delete deployment "$probe" --ignore-not-found > /dev/null 2>&1
  if aws ssm get-parameter --name "$params/karpenter_enabled" > /dev/null 2>&1; then
    set_parameter karpenter_enabled false
    sawhorse watch "$rack" >&2
  fi
  aws ssm get-parameters-by-path --path "$params" --query 'Parameters[].Name' --output text | xargs -n 10 aws ssm delete-parameters --names > /dev/null 2>&1
  for _ in $(seq 120); do
    [ -n "$(aws ssm get-parameters-by-path --path "${params%/params}" --recursive --query 'Parameters[].Name' --output text)" ] || break
    sleep 1
  done
  aws eks delete-access-entry --cluster-name "$cluster" --principal-arn "arn:$partition:iam::$account:role/$probe" > /dev/null 2>&1
  unprofile
  aws iam delete-role --role-name "$probe" 2> /dev/null
  aws iam delete-role-policy --role-name "$probe-launch" --policy-name launch 2> /dev/null
  aws iam delete-role --role-name "$probe-launch" 2> /dev/null
  local copy; copy=$(aws ec2 describe-images --owners self --filters "Name=name,Values=$probe" --query 'Images[0].ImageId' --output text)
  if [ "$copy" != None ]; then
    local snapshot; snapshot=$(aws ec2 describe-images --image-ids "$copy" --query 'Images[0].BlockDeviceMappings[0].Ebs.SnapshotId' --output text 2> /dev/null)
    aws ec2 deregister-image --image-id "$copy" > /dev/null
    aws ec2 delete-snapshot --snapshot-id "$snapshot" 2> /dev/null
  fi
  aws sqs get-queue-url --queue-name "$probe" --query QueueUrl --output text 2> /dev/null | xargs -r -n 1 aws sqs delete-queue --queue-url 2> /dev/null
  aws ssm delete-parameter --name "${params%/racks/*}/$probe" > /dev/null 2>&1
  answer "instances of Karpenter's that are left" "$(aws ec2 describe-instances --filters "Name=tag:eks:eks-cluster-name,Values=$cluster" Name=tag-key,Values=karpenter.sh/nodepool \
    Name=instance-state-name,Values=pending,running,stopping,stopped --query 'length(Reservations)' --output text)"
  [ "$ours" = no ] || cdk destroy --force >&2
  [ "$made" = no ] || unmake
  aws ssm delete-parameter --name "$marker" > /dev/null
}

# finish ends a run, whatever the result of the story is, and writes the report.
finish() {
  take_back
  { echo "# Acceptance: account $account, $AWS_REGION, $(date -u +%FT%TZ), $(git describe --always --dirty 2> /dev/null)"; echo
    echo "| question | answer |"; echo "|---|---|"; cat "$work/answers"; } > "$report"
  rm -rf "$work"
  echo "The report is in $report." >&2
}

# unmake deletes the cluster that make_cluster has made, or has begun to make.
unmake() {
  aws eks wait cluster-active --name "$cluster" 2> /dev/null
  aws eks wait nodegroup-active --cluster-name "$cluster" --nodegroup-name system 2> /dev/null
  aws eks delete-nodegroup --cluster-name "$cluster" --nodegroup-name system > /dev/null
  answer "a node group that is DELETING: update-nodegroup-config" "$(code aws eks update-nodegroup-config --cluster-name "$cluster" --nodegroup-name system --labels addOrUpdateLabels={probe=3})"
  aws eks wait nodegroup-deleted --cluster-name "$cluster" --nodegroup-name system
  aws eks delete-cluster --name "$cluster" > /dev/null && aws eks wait cluster-deleted --name "$cluster"
  for role in "$cluster-cluster" "$cluster-system"; do
    aws iam list-attached-role-policies --role-name "$role" --query 'AttachedPolicies[].PolicyArn' --output text | xargs -n 1 aws iam detach-role-policy --role-name "$role" --policy-arn
    aws iam delete-role --role-name "$role"
  done
}

# connect configures kubectl for the cluster.
connect() {
  if [ -z "${KUBECONFIG:-}" ]; then
    export KUBECONFIG=$work/kubeconfig
    aws eks update-kubeconfig --name "$cluster" > /dev/null || stop "there is no cluster $cluster"
  fi
  kubectl get nodes > /dev/null || stop "kubectl cannot reach cluster $cluster"
}

left=$(aws ssm get-parameter --name "$marker" --query Parameter.Value --output text 2> /dev/null)
if [ -n "$left" ]; then
  read -r cluster rack probe ours made <<< "$left"
  params=${SAWHORSE_PREFIX:-/sawhorse}/racks/$rack/params
  echo "A run for rack $rack on cluster $cluster was stopped before its end. What it has made is taken back now." >&2
  confirm
  [ "$made" = yes ] || connect # what is in one that was made goes with it
  take_back
  rm -rf "$work"
  echo "It is taken back. Start again for another run." >&2
  exit
fi
[ -z "$(aws ssm get-parameters-by-path --path "$params" --query 'Parameters[].Name' --output text)" ] || stop "rack $rack has parameters; name another one with RACK="
if aws cloudformation describe-stacks --stack-name "$stack" > /dev/null 2>&1; then ours=no; else ours=yes; fi
if [ -n "${CLUSTER:-}" ]; then made=no; else made=yes; fi

if [ -n "${CLUSTER:-}" ]; then
  connect
  [ -z "$(kubectl get crd nodepools.karpenter.sh --ignore-not-found -o name)" ] || stop "cluster $cluster has a Karpenter, or has had one; use another; nothing was done"
fi
{
  echo "Account $account, region $AWS_REGION. This will"
  [ "$made" = no ] || echo "  - make the EKS cluster $cluster in the default VPC, with a node group of two t3.large, and delete it in the end"
  [ "$ours" = no ] || echo "  - deploy the stack $stack, and destroy it in the end; its table and permissions boundaries stay, as docs/deploy.md says"
  [ "$made" = yes ] || echo "  - change the access mode of cluster $cluster to API_AND_CONFIG_MAP, if it is CONFIG_MAP: EKS does not take that back"
  echo "  - tag the cluster, its subnets and security groups; label its system node group; scale its Cluster Autoscaler, if it has one, to zero and back"
  echo "  - turn Karpenter on there for rack $rack, launch one node with it, turn it off, and forget the rack"
  echo "  - make and delete two roles, an instance profile, a queue, a parameter and an access entry named $probe, and a copy of Amazon's image for nodes"
  echo "It takes some 15 minutes with a cluster that is there and 45 without, and costs less than a dollar: a cluster is 0.10 an hour, two t3.large 0.17."
} >&2
confirm

# make_cluster creates a small cluster with the AWS CLI alone, in the default VPC; unmake deletes it.
make_cluster() {
  say "The cluster $cluster"
  local subnets trust
  # EKS takes no subnets of control planes in the zones that are left out (EKS user guide, network requirements).
  subnets=$(aws ec2 describe-subnets --filters Name=default-for-az,Values=true --output text --query "sort_by(Subnets[?!contains(['use1-az3','usw1-az2','cac1-az3'],
    AvailabilityZoneId)], &AvailabilityZone)[:3].SubnetId" | tr '\t' ',')
  [ -n "$subnets" ] || stop "region $AWS_REGION has no default VPC; make a cluster and name it with CLUSTER="
  trust='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":["eks.amazonaws.com","ec2.amazonaws.com"]},"Action":"sts:AssumeRole"}]}'
  aws iam create-role --role-name "$cluster-cluster" --assume-role-policy-document "$trust" > /dev/null || stop "the cluster's role"
  aws iam create-role --role-name "$cluster-system" --assume-role-policy-document "$trust" > /dev/null || stop "the nodes' role"
  aws iam attach-role-policy --role-name "$cluster-cluster" --policy-arn "arn:$partition:iam::aws:policy/AmazonEKSClusterPolicy"
  for policy in AmazonEKSWorkerNodePolicy AmazonEKS_CNI_Policy AmazonEC2ContainerRegistryPullOnly; do
    aws iam attach-role-policy --role-name "$cluster-system" --policy-arn "arn:$partition:iam::aws:policy/$policy"
  done
  sleep 15 # a new role reaches EKS after about 10 s
  aws eks create-cluster --name "$cluster" --role-arn "arn:$partition:iam::$account:role/$cluster-cluster" --resources-vpc-config "subnetIds=$subnets" \
    --access-config authenticationMode=CONFIG_MAP > /dev/null || stop "the cluster could not be made"
  aws eks wait cluster-active --name "$cluster" || stop "the cluster is not ACTIVE"
  aws eks create-addon --cluster-name "$cluster" --addon-name eks-pod-identity-agent > /dev/null
  aws eks create-nodegroup --cluster-name "$cluster" --nodegroup-name system --subnets ${subnets//,/ } --node-role "arn:$partition:iam::$account:role/$cluster-system" \
    --instance-types t3.large --scaling-config minSize=2,maxSize=2,desiredSize=2 > /dev/null || stop "the node group could not be made"
  answer "a node group that is CREATING: update-nodegroup-config" "$(code aws eks update-nodegroup-config --cluster-name "$cluster" --nodegroup-name system --labels addOrUpdateLabels={probe=1})"
  answer "a node group that is CREATING: update-nodegroup-version" "$(code aws eks update-nodegroup-version --cluster-name "$cluster" --nodegroup-name system)"
  aws eks wait nodegroup-active --cluster-name "$cluster" --nodegroup-name system || stop "the node group is not ACTIVE"
  aws eks update-nodegroup-config --cluster-name "$cluster" --nodegroup-name system --labels addOrUpdateLabels={probe=1} > /dev/null
  answer "a node group that is UPDATING: update-nodegroup-config" "$(code aws eks update-nodegroup-config --cluster-name "$cluster" --nodegroup-name system --labels addOrUpdateLabels={probe=2})"
  aws eks wait nodegroup-active --cluster-name "$cluster" --nodegroup-name system
}

# --- the story --------------------------------------------------------------------------------------------------------

aws ssm put-parameter --type String --name "$marker" --value "$cluster $rack $probe $ours $made" > /dev/null || stop "parameter $marker"
trap finish EXIT
trap 'exit 1' INT TERM
touch "$work/answers"
[ "$made" = no ] || { make_cluster && connect; }
if [ "$ours" = yes ]; then
  say "The stack"
  unreserved=$(aws lambda get-account-settings --query AccountLimit.UnreservedConcurrentExecutions --output text)
  answer "Lambda's concurrent calls that nothing reserves (of fewer than 105 the stack can reserve none for dry runs)" "$unreserved"
  if [ "$unreserved" -ge 105 ]; then few=""; else few=yes; fi
  { make synth && cdk deploy --require-approval never ${few:+-c dryRunConcurrency=0}; } >&2 || stop "the stack could not be deployed"
fi

say "Access"
sawhorse register "$rack" --cluster "$cluster" >&2 || stop "register"
began=$(now)
set_parameter karpenter_auth_mode true
passes "access"
answer "from the write to access that is migrated (the cluster's tag was set by register just before)" "$(since "$began") s"

say "On"
began=$(now)
set_parameter tags "acceptance=$probe"
set_parameter karpenter_enabled true
passes "on"
answer "from the write to a running Karpenter" "$(since "$began") s"
answer "Karpenter's controller, since its pods were made: restarts" "$(kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter -o jsonpath='{.items[*].status.containerStatuses[0].restartCount}')"
answer "tags of the node role's access entry, made with the parameter tags (eks:TagResource by the tags of the call)" "$(aws eks describe-access-entry \
  --cluster-name "$cluster" --principal-arn "arn:$partition:iam::$account:role/sawhorse/$rack-karpenter-nodes" --query accessEntry.tags --output json)"
answer "image of the controller, as it runs" "$(kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter -o jsonpath='{.items[0].status.containerStatuses[0].imageID}')"

say "A node"
began=$(now)
kubectl create deployment "$probe" --image=public.ecr.aws/eks-distro/kubernetes/pause:3.10 --dry-run=client -o json |
  python3 -c 'import json, sys; d = json.load(sys.stdin); d["spec"]["template"]["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": "workload"}; print(json.dumps(d))' | kubectl apply -f - > /dev/null
if kubectl rollout status deployment "$probe" --timeout=5m > /dev/null; then
  answer "from a pod to a node that runs it (networks by tag, the node's role by the controller's principal tag)" "$(since "$began") s"
else
  answer "a pod got no node within 5 minutes" "$(kubectl get events --field-selector reason!=Scheduled --sort-by .lastTimestamp -o jsonpath='{.items[-1:].message}')"
fi
queue=$(aws sqs get-queue-url --queue-name "$rack-karpenter" --query QueueUrl --output text)
aws sqs send-message --queue-url "$queue" --message-body '{}' > /dev/null
[ -n "${AWS_ENDPOINT_URL:-}" ] || sleep 60 # SQS may count a message up to a minute later; an emulator counts exactly
for _ in $(seq 30); do
  waiting=$(aws sqs get-queue-attributes --queue-url "$queue" --attribute-names ApproximateNumberOfMessages ApproximateNumberOfMessagesNotVisible \
    --query 'Attributes.[ApproximateNumberOfMessages,ApproximateNumberOfMessagesNotVisible]' --output text)
  if [ "$waiting" = $'0\t0' ]; then break; fi
  sleep 1
done
answer "messages in the interruption queue, some time after one was sent (the queue by the controller's principal tag)" "$waiting"

say "Rights of nodes"
nodes=arn:$partition:iam::$account:role/sawhorse/$rack-karpenter-nodes
# simulated lists the actions for which IAM's decision about the node role is (==) or is not (!=) allowed. The role is
# simulated with AdministratorAccess beside its policies, so that only its permissions boundary can deny.
simulated() {
  local is=$1; shift
  aws iam simulate-principal-policy --policy-source-arn "$nodes" --action-names "$@" \
    --policy-input-list '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}' \
    --query "EvaluationResults[?EvalDecision$is\`allowed\`].EvalActionName" --output text 2>&1 | tail -3
}
needed=$(python3 -c '
import glob, json
for name in glob.glob("cdk/testdata/nodes/*.json"):
    for s in json.load(open(name))["PolicyVersion"]["Document"]["Statement"]:
        print(*(a for a in s["Action"] if a.startswith(("ec2:Describe", "ssm:Update", "ssmmessages:", "ec2messages:"))))')
answer "what nodes need of every resource, and their boundary denies" "$(simulated "!=" $needed)"
answer "what their boundary must deny, and allows" "$(simulated == ec2:DescribeInstanceAttribute ec2:DescribeLaunchTemplateVersions ec2:GetConsoleOutput \
  ec2:TerminateInstances ssm:GetParameters iam:PassRole)"
for document in cdk/testdata/nodes/*.json; do
  policy=$(basename "$document" .json)
  answer "version of $policy (the tests know $(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["PolicyVersion"]["VersionId"])' "$document"))" \
    "$(aws iam get-policy --policy-arn "arn:$partition:iam::aws:policy/$policy" --query Policy.DefaultVersionId --output text 2>&1 | tail -1)"
done
answer "pods of the VPC CNI, and how many have credentials of their own" "$(kubectl -n kube-system get pods -l k8s-app=aws-node -o json | python3 -c '
import json, sys
pods = json.load(sys.stdin)["items"]
own = {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE"}
print(len(pods), sum(any(v["name"] in own for c in p["spec"]["containers"] for v in c.get("env", [])) for p in pods))')"
answer "policies of the node role" "$(aws iam list-attached-role-policies --role-name "$rack-karpenter-nodes" --query 'AttachedPolicies[].PolicyName' --output text)"

say "A change"
began=$(now)
set_parameter karpenter_cpu_limit 77
until [ "$(kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}')" = 77 ] || [ "$(since "$began" | cut -d. -f1)" -gt 120 ]; do sleep 0.2; done
answer "from the write to the NodePool" "$(since "$began") s"
passes "a change"

# What EC2 takes for the owner of an image, only a launch shows. A role with the boundary of Karpenter's controllers and
# otherwise every right to launch tries launches as dry runs: from images of Amazon, and from the account's own copy of one.
images() {
  say "Images"
  local controller=arn:$partition:iam::$account:role/sawhorse/$rack-karpenter version amazon bottlerocket subnet tags trust id key token
  version=$(aws eks describe-cluster --name "$cluster" --query cluster.version --output text)
  amazon=$(aws ssm get-parameter --name "/aws/service/eks/optimized-ami/$version/amazon-linux-2023/x86_64/standard/recommended/image_id" --query Parameter.Value --output text)
  bottlerocket=$(aws ssm get-parameter --name "/aws/service/bottlerocket/aws-k8s-$version/x86_64/latest/image_id" --query Parameter.Value --output text 2> /dev/null)
  subnet=$(aws ec2 describe-subnets --filters "Name=tag:karpenter.sh/discovery,Values=$cluster" --query 'Subnets[0].SubnetId' --output text)
  copy=$(aws ec2 copy-image --source-region "$AWS_REGION" --source-image-id "$amazon" --name "$probe" --query ImageId --output text)
  trust='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"'$account'"},"Action":"sts:AssumeRole"}]}'
  aws iam create-role --role-name "$probe-launch" --assume-role-policy-document "$trust" \
    --permissions-boundary "$(aws iam get-role --role-name "$rack-karpenter" --query Role.PermissionsBoundary.PermissionsBoundaryArn --output text)" > /dev/null
  aws iam put-role-policy --role-name "$probe-launch" --policy-name launch \
    --policy-document '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:RunInstances","ec2:CreateTags"],"Resource":"*"}]}'
  aws ec2 wait image-available --image-ids "$copy"
  lag "a new role: sts assume-role" aws sts assume-role --role-arn "arn:$partition:iam::$account:role/$probe-launch" --role-session-name probe
  read -r id key token < <(aws sts assume-role --role-arn "arn:$partition:iam::$account:role/$probe-launch" --role-session-name probe \
    --query 'Credentials.[AccessKeyId,SecretAccessKey,SessionToken]' --output text)
  tags="{Key=karpenter.sh/nodepool,Value=workload},{Key=eks:eks-cluster-name,Value=$cluster}"
  launch() {
    AWS_ACCESS_KEY_ID=$id AWS_SECRET_ACCESS_KEY=$key AWS_SESSION_TOKEN=$token code aws ec2 run-instances --dry-run --image-id "$1" --instance-type t3.large \
      --subnet-id "$subnet" --tag-specifications "ResourceType=instance,Tags=[$tags]" "ResourceType=volume,Tags=[$tags]" "ResourceType=network-interface,Tags=[$tags]"
  }
  # launched is launch for one that is allowed. EC2 answers from replicas, which hear of policies and tags later: so it is tried until it was
  # allowed three times in a row, for half a minute at most.
  launched() {
    local said in_a_row=0 until=$((SECONDS + 30))
    while [ "$in_a_row" -lt 3 ] && [ "$SECONDS" -lt "$until" ]; do
      said=$(launch "$1")
      case $said in UnauthorizedOperation*) in_a_row=0; sleep 0.5 ;; *) in_a_row=$((in_a_row + 1)) ;; esac
    done
    echo "$said"
  }
  decided() {
    aws iam simulate-principal-policy --policy-source-arn "$controller" --action-names ec2:RunInstances ec2:CreateFleet --resource-arns "arn:$partition:ec2:$AWS_REGION::image/$copy" \
      --context-entries "$@" --query 'EvaluationResults[].EvalDecision' --output text 2>&1 | tail -1
  }
  local owner=ContextKeyName=ec2:Owner,ContextKeyType=string,ContextKeyValues
  answer "a launch within the controllers' boundary: Amazon's AL2023" "$(launched "$amazon")"
  [ -z "$bottlerocket" ] || answer "a launch within the controllers' boundary: Bottlerocket" "$(launched "$bottlerocket")"
  answer "a launch within the controllers' boundary: the account's own image" "$(launch "$copy")"
  aws ec2 create-tags --resources "$copy" --tags Key=sawhorse.dev/nodes,Value=true
  answer "a launch within the controllers' boundary: the account's own image with the tag sawhorse.dev/nodes" "$(launched "$copy")"
  answer "simulate-principal-policy, the controller's role: an image of Amazon" "$(decided "$owner=amazon")"
  answer "simulate-principal-policy, the controller's role: the account's own image" "$(decided "$owner=$account")"
  answer "simulate-principal-policy, the controller's role: the account's own image with the tag" \
    "$(decided "$owner=$account" ContextKeyName=aws:ResourceTag/sawhorse.dev/nodes,ContextKeyType=string,ContextKeyValues=true)"
}
images

say "How soon AWS knows"
began_at=$(date -u +%s)
trust='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}'
role=arn:$partition:iam::$account:role/$probe
aws iam create-role --role-name "$probe" --assume-role-policy-document "$trust" > /dev/null
lag "a new role: iam get-role" aws iam get-role --role-name "$probe"
lag "a new role: eks create-access-entry" aws eks create-access-entry --cluster-name "$cluster" --principal-arn "$role"
lag "a new access entry: list-associated-access-policies" aws eks list-associated-access-policies --cluster-name "$cluster" --principal-arn "$role"
answer "delete-access-entry of one that is seconds old" "$(code aws eks delete-access-entry --cluster-name "$cluster" --principal-arn "$role")"
answer "describe-access-entry right after" "$(code aws eks describe-access-entry --cluster-name "$cluster" --principal-arn "$role")"
answer "create-access-entry right after" "$(code aws eks create-access-entry --cluster-name "$cluster" --principal-arn "$role")"
aws eks delete-access-entry --cluster-name "$cluster" --principal-arn "$role" > /dev/null
aws iam create-instance-profile --instance-profile-name "$probe" --path "/$probe/" > /dev/null
aws iam add-role-to-instance-profile --instance-profile-name "$probe" --role-name "$probe"
answer "roles in a new instance profile, by list-instance-profiles at once" \
  "$(aws iam list-instance-profiles --path-prefix "/$probe/" --query 'InstanceProfiles[].Roles[].RoleName' --output text 2>&1 | tail -1)"
answer "delete-role of a role that is in an instance profile" "$(code aws iam delete-role --role-name "$probe")"
unprofile
url=$(aws sqs create-queue --queue-name "$probe" --query QueueUrl --output text)
lag "a new queue: get-queue-attributes" aws sqs get-queue-attributes --queue-url "$url" --attribute-names QueueArn
aws sqs delete-queue --queue-url "$url"
answer "a deleted queue, at once: get-queue-attributes" "$(code aws sqs get-queue-attributes --queue-url "$url" --attribute-names QueueArn)"
answer "a deleted queue, at once: create-queue" "$(code aws sqs create-queue --queue-name "$probe")"
parameter=${params%/racks/*}/$probe
aws ssm put-parameter --type String --name "$parameter" --value true --allowed-pattern 'true|false' > /dev/null
lag "a new parameter: get-parameter" aws ssm get-parameter --name "$parameter"
aws ssm put-parameter --overwrite --type String --name "$parameter" --value false > /dev/null
answer "AllowedPattern after put-parameter --overwrite without it" "$(aws ssm describe-parameters --parameter-filters "Key=Name,Values=$parameter" --query 'Parameters[0].AllowedPattern' --output text)"
answer "a value against the pattern of before" "$(code aws ssm put-parameter --overwrite --type String --name "$parameter" --value perhaps)"

say "The functions and the state machine"
machine=$(aws stepfunctions list-state-machines --query "stateMachines[?starts_with(name, '$stack')].stateMachineArn | [0]" --output text)
aws stepfunctions describe-state-machine --state-machine-arn "$machine" --query definition --output text > "$work/definition.json"
answer "validate-state-machine-definition" "$(aws stepfunctions validate-state-machine-definition --definition "file://$work/definition.json" --query '[result, diagnostics[].message]' --output text 2>&1 | tail -3)"
answer "test-state, expression by expression" "$(AWS_MAX_ATTEMPTS=10 python3 tools/teststates.py "$(command -v aws)" "$machine" "${params%/racks/*}" 2>&1 | tail -1)"
answer "executions that did not succeed" "$(aws stepfunctions list-executions --state-machine-arn "$machine" --query 'length(executions[?status!=`SUCCEEDED` && status!=`RUNNING`])' --output json)"
answer "an execution that the alias started: state machine, version, alias" "$(aws stepfunctions describe-execution --execution-arn \
  "$(aws stepfunctions list-executions --state-machine-arn "$machine" --query 'executions[0].executionArn' --output text)" \
  --query '[stateMachineArn, stateMachineVersionArn, stateMachineAliasArn]' --output text)"
answer "offerings of the types m6i.* (families are looked up by such a filter: 0 would have every one refused)" "$(aws ec2 describe-instance-type-offerings \
  --location-type availability-zone --filters 'Name=instance-type,Values=m6i.*' --query 'length(InstanceTypeOfferings)' --output text)"
answer "telemetry enrichment, without which no alarm by tag goes off" \
  "$(aws observabilityadmin get-telemetry-enrichment-status --query Status --output text 2>&1 | tail -1)"
answer "the alarm by tag, on the age of messages in all racks' queues" "$(aws cloudwatch describe-alarms --alarm-name-prefix "$stack-" \
  --query 'MetricAlarms[?Metrics[?contains(Expression || `""`, `tag.`)]].[StateValue, StateReason]' --output text 2>&1 | tail -1)"
answer "dimensions of the metric ExecutionsSucceeded" "$(aws cloudwatch list-metrics --namespace AWS/States --metric-name ExecutionsSucceeded \
  --dimensions "Name=StateMachineArn,Value=$machine" --query 'Metrics[].join(`+`, Dimensions[].Name)' --output text)"
for log in $(aws logs describe-log-groups --log-group-name-prefix "/aws/lambda/$stack-" --query 'logGroups[].logGroupName' --output text); do
  answer "function ${log#/aws/lambda/}" "$(aws logs filter-log-events --log-group-name "$log" --filter-pattern REPORT --query 'events[].message' --output text 2>&1 | python3 -c '
import re, sys
text = sys.stdin.read()
numbers = lambda name: [float(n) for n in re.findall(name + r": ([0-9.]+)", text)]
starts, memory, took = numbers("Init Duration"), numbers("Max Memory Used"), numbers("Duration")
print(f"{len(memory)} calls, {len(starts)} cold starts" + (f" of at most {max(starts):.0f} ms" if starts else "") + (f", at most {max(memory):.0f} MB" if memory else ""))')"
done
calls=$(aws cloudtrail lookup-events --start-time "$began_at" --max-items 500 --query 'Events[].EventName' --output text 2>&1 | tr '\t' '\n' | sort | uniq -c | sort -rn |
  head -12 | awk '$2 != "None" { printf "%s %s, ", $1, $2 }')
answer "calls by event name since the questions began" "${calls:-none yet: CloudTrail is minutes late}"

say "Off"
kubectl delete deployment "$probe" --wait > /dev/null
began=$(now)
set_parameter karpenter_enabled false
passes "off"
answer "from the write to a cluster without Karpenter" "$(since "$began") s"
