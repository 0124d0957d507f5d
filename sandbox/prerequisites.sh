#!/bin/sh
# Checks, before anything is built, whether this machine can build the sandbox. If not, prints one sentence that names
# what to install or to free, and exits with 1. `sandbox up` checks what the built sandbox needs in addition (ports, its
# own parts).
set -eu
cache=$(dirname "$0")/../.cache

fail() {
	echo "$1" >&2
	exit 1
}

# at_least HAVE WANT: compares versions of the form MAJOR.MINOR.
at_least() {
	have_major=${1%%.*} have_rest=${1#*.}
	want_major=${2%%.*} want_rest=${2#*.}
	have_minor=${have_rest%%.*} want_minor=${want_rest%%.*}
	[ "$have_major" -gt "$want_major" ] || { [ "$have_major" -eq "$want_major" ] && [ "$have_minor" -ge "$want_minor" ]; }
}

# From 1.21 on, Go downloads the newer toolchain that go.mod names.
command -v go >/dev/null 2>&1 || fail "Go is missing; install Go 1.21 or newer."
go_version=$(go version | sed -n 's/^go version go\([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p')
at_least "${go_version:-0.0}" 1.21 || fail "Go ${go_version:-of unknown version} is too old; install Go 1.21 or newer."

command -v node >/dev/null 2>&1 || fail "Node.js is missing; install Node.js 20 or newer (the AWS CDK runs on it)."
node_version=$(node --version | sed -n 's/^v\([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p')
at_least "${node_version:-0.0}" 20.0 || fail "Node.js ${node_version:-of unknown version} is too old; install Node.js 20 or newer."
command -v npm >/dev/null 2>&1 || fail "npm is missing; install it, it comes with Node.js."

command -v python3 >/dev/null 2>&1 || fail "Python is missing; install Python 3.11 or newer."
python_version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "python3 does not run; install Python 3.11 or newer."
at_least "$python_version" 3.11 || fail "Python $python_version is too old; install Python 3.11 or newer."
python3 -c 'import ensurepip, venv' 2>/dev/null || fail "Python $python_version cannot make virtual environments; install its venv module (Debian and Ubuntu: python3-venv)."

mkdir -p "$cache" && cache=$(cd "$cache" && pwd) || fail "$cache cannot be written; make it writable."
free=$(df -Pk "$cache" | awk 'NR == 2 { print int($4 / 1024) }')
[ "$free" -ge 1024 ] || fail "The disk of $cache has $free MB free; free some space, 1024 MB at least."
