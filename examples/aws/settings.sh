#!/bin/sh
# Sets, changes and removes settings of a rack with the AWS CLI alone: settings.sh set|change|unset [RACK]
set -eu
rack=${2:-demo}

put() {
	aws ssm put-parameter --overwrite --type String --name "/sawhorse/racks/$rack/$1" --value "$2" --query Version --output text
}

case ${1:-} in
set) # one after the other
	put params/karpenter_cpu_limit 120
	put params/karpenter_node_labels team=core
	;;
change) # as one: all of it is in force, or nothing
	put change '{"set": {"karpenter_cpu_limit": "140", "karpenter_node_labels": "team=data"}, "note": "the data team moves in"}'
	;;
unset) # the single word stands for the default, because SSM cannot store an empty value
	put params/karpenter_cpu_limit unset
	put params/karpenter_node_labels unset
	;;
*)
	echo "usage: $0 set|change|unset [RACK]" >&2
	exit 2
	;;
esac
