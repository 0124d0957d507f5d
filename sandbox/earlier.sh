#!/usr/bin/env bash
# Builds the stack that was deployed before this one, and prints the folder of its template. It is the stack of
# UPGRADE_FROM, or else of the newest first-parent ancestor whose functions, state machine or stack differ from the
# working tree's.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
root=$PWD

fail() {
	echo "sandbox/earlier.sh: $1" >&2
	exit 1
}

# sources prints the files that functions and stack are built from: the Go files of the packages that they import, the
# files that those embed, and the files that the CDK and Go read.
sources() {
	go list -deps -f '{{if and .Module .Module.Main}}{{$dir := .Dir}}:(glob){{$dir}}/*.go{{range .EmbedFiles}}{{"\n"}}{{$dir}}/{{.}}{{end}}{{end}}' ./functions/... ./cdk
	printf '%s\n' go.mod go.sum cdk.json ':(exclude,glob)**/*_test.go'
}

earlier() {
	local paths commits commit
	paths=$(sources)
	mapfile -t paths <<<"$paths"
	commits=$(git rev-list --first-parent HEAD)
	for commit in $commits; do
		if ! git diff --exit-code --ignore-matching-lines='^[[:space:]]*//' "$commit" -- "${paths[@]}" >/dev/null; then # comments
			echo "$commit"
			return
		fi
	done
	if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
		fail "this clone is shallow, and no commit that it has differs from the working tree in functions, state machine or stack: git fetch --unshallow gets the others."
	fi
	fail "no commit on the way to HEAD differs from the working tree in functions, state machine or stack; name another one with UPGRADE_FROM."
}

commit=${UPGRADE_FROM:-}
[ -n "$commit" ] || commit=$(earlier)
commit=$(git rev-parse --verify --quiet "$commit^{commit}") || fail "there is no commit $UPGRADE_FROM here; git fetch gets those of other branches."
folder=$root/.cache/earlier/$commit
if [ ! -f "$folder/cdk.out/manifest.json" ]; then
	rm -rf "$root/.cache/earlier"
	mkdir -p "$folder"
	git archive "$commit" | tar -x -C "$folder"
	cd "$folder"
	echo "Building the functions and the stack of $(git -C "$root" log -1 --format='%h (%s)' "$commit") …" >&2
	go run ./cdk/bundle -architecture "$("$root/sandbox/architecture.sh")" >&2
	"$root/sandbox/cdk.sh" synth --quiet --output cdk.new >&2
	mv cdk.new cdk.out
fi
echo "$folder/cdk.out"
