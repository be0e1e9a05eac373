#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dynamo.sh build [venv] - NVIDIA Dynamo's KvRouter and the library with the same
# requests: hashes, overlaps, loads and choices are compared by parity.py beside
# this. $T names some of the cases.
#
# Dynamo's runtime comes into the build folder from PyPI, unless a virtual
# environment is given that has it. Where it cannot be installed all is skipped.
set -u

build=$1
venv=${2:-}
here=$(dirname "$0")
scratch=$build/dynamo
tally=$scratch/tally
wanted=",${T:-},"

mkdir -p "$scratch" || exit 1
scratch=$(cd "$scratch" && pwd -P)
: > "$tally"

# case, kind, block, seed, requests
cases='
approximate-16 approximate 16 1 700
approximate-16-again approximate 16 2 700
approximate-32 approximate 32 3 700
approximate-64 approximate 64 4 700
events-16 events 16 5 500
events-64 events 64 6 500
leave leave 16 7 300
expire expire 16 8 200
'

skip()
{
	printf '  %-14s skipped: %s\n' dynamo "$1"
	echo '0 passed, 0 failed, 1 skipped'
	echo 0 0 1 > "$tally"
	exit 0
}

fail()
{
	printf '    FAILED   dynamo: %s\n' "$1"
	[ ! -s "${2:-/dev/null}" ] || tail -n 20 "$2" | sed 's/^/             /'
	echo 0 1 0 >> "$tally"
}

is_usable()
{
	python3 -c '
import sys, venv, ensurepip
sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2> /dev/null
}

has_index()
{
	timeout --foreground 90 python3 -m pip download -q --no-deps \
	    -d "$scratch/index" annotated-types > /dev/null 2>&1
}

install()
{
	python3 -m venv "$venv" &&
	    "$venv/bin/pip" install --no-input --disable-pip-version-check \
	    --no-deps --require-hashes -r "$here/requirements.txt"
}

install_once()
{
	cmp -s "$here/requirements.txt" "$scratch/installed" && return
	rm -rf "$venv" "$scratch/installed"
	echo "  dynamo         installing 40 MB of packages into $venv"
	if ! install > "$scratch/install.log" 2>&1; then
		has_index || skip 'the Python package index is not there'
		fail 'pip cannot install' "$scratch/install.log"
		sh mk/tally.sh "$tally"
		exit 1
	fi
	cp "$here/requirements.txt" "$scratch/installed"
}

run_case()
{
	name=$1
	shift
	if counts=$(timeout -k 5 300 "$venv/bin/python" "$here/parity.py" \
	    "$build/mirror" "$@" 2> "$scratch/$name.log"); then
		printf '  %-14s %s: %s\n' dynamo "$name" "$counts" | fold -s -w 100
		echo 1 0 0 >> "$tally"
	else
		fail "$name: $counts -- make check-dynamo T=$name" \
		    "$scratch/$name.log"
	fi
}

[ "$(uname -s) $(uname -m)" = 'Linux x86_64' ] ||
    skip 'the packages are for Linux on x86_64'
if [ -z "$venv" ]; then
	is_usable || skip 'there is no python3 of 3.11 to 3.13 with venv'
	venv=$scratch/venv
	install_once
fi
# Read when its module is imported.
export DYN_LOG=error HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1
while read -r name facts; do
	[ -n "$name" ] || continue
	case $wanted in ,, | *",$name,"*) ;; *) continue ;; esac
	# shellcheck disable=SC2086
	run_case "$name" $facts < /dev/null
done <<END
$cases
END
sh mk/tally.sh "$tally"
