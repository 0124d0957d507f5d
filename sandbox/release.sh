#!/usr/bin/env bash
# Builds the stack of this checkout as another release would be, and prints the folder of its template. Each pair of
# arguments is a file and the sed expression that changes it: sandbox/release.sh NAME FILE EXPRESSION …
set -euo pipefail
shopt -s inherit_errexit
name=${1:?"sandbox/release.sh: name the release"}
shift
cd "$(dirname "$0")/.."
root=$PWD folder=$PWD/.cache/release-$name
rm -rf "$folder"
mkdir -p "$folder"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$folder"
cd "$folder"
while [ $# -gt 0 ]; do
	sed -i "$2" "$1"
	if cmp -s "$1" "$root/$1"; then
		echo "sandbox/release.sh: $2 changes nothing in $1." >&2
		exit 1
	fi
	shift 2
done
echo "Building the functions and the stack of the release $name …" >&2
go run ./cdk/bundle -architecture "$("$root/sandbox/architecture.sh")" >&2
"$root/sandbox/cdk.sh" synth --quiet --output cdk.out >&2
echo "$folder/cdk.out"
