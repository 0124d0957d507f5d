#!/usr/bin/env bash
# Builds the stack of this checkout with another default version of Karpenter, and prints the folder of its template.
set -euo pipefail
shopt -s inherit_errexit
version=${1:?"sandbox/default.sh: name a version of Karpenter"}
cd "$(dirname "$0")/.."
root=$PWD folder=$PWD/.cache/default-$version
rm -rf "$folder"
mkdir -p "$folder"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$folder"
cd "$folder"
sed -i "s/KarpenterVersion = \".*\"/KarpenterVersion = \"$version\"/" internal/ownership/names.go
if ! grep -q "KarpenterVersion = \"$version\"" internal/ownership/names.go; then
	echo "sandbox/default.sh: internal/ownership/names.go has no KarpenterVersion any more." >&2
	exit 1
fi
echo "Building the functions and the stack with Karpenter $version as default …" >&2
go run ./cdk/bundle -architecture "$("$root/sandbox/architecture.sh")" >&2
"$root/sandbox/cdk.sh" synth --quiet --output cdk.out >&2
echo "$folder/cdk.out"
