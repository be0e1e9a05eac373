#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# python.sh BUILD SUITE [python] - builds the wheel, installs it into a virtual
# environment of its own, and runs the tests of a folder: tests/SUITE, which has
# its requirements. $T names cases, PYTHON another python3. Skipped without
# Python or its index: that is not an error.
set -u

build=$1
suite=$2
python=${PYTHON:-python3}
here=tests/$suite
scratch=$build/$suite-test
venv=$scratch/venv
tally=$scratch/tally

mkdir -p "$scratch" || exit 1
scratch=$(cd "$scratch" && pwd -P)
: > "$tally"

skip()
{
	printf '  %-14s skipped: %s\n' "$suite" "$1"
	echo '0 passed, 0 failed, 1 skipped'
	echo 0 0 1 > "$tally"
	exit 0
}

fail()
{
	printf '    FAILED   %s: %s\n' "$suite" "$1"
	[ ! -s "${2:-/dev/null}" ] || tail -n 20 "$2" | sed 's/^/             /'
	echo 0 1 0 > "$tally"
	sh mk/tally.sh "$tally"
	exit 1
}

pip()
{
	"$venv/bin/python" -m pip --no-input --disable-pip-version-check "$@"
}

has_index()
{
	pip download -q --no-deps -d "$scratch/index" \
	    "$(grep '^cffi==' "$here/requirements.txt")" > /dev/null 2>&1
}

install_once()
{
	cmp -s "$here/requirements.txt" "$scratch/installed" && return
	rm -rf "$venv" "$scratch/installed"
	"$python" -m venv "$venv" > "$scratch/install.log" 2>&1 ||
	    skip 'there is no python3 with venv'
	if ! pip install -r "$here/requirements.txt" \
	    > "$scratch/install.log" 2>&1; then
		has_index || skip 'the Python package index is not there'
		fail 'pip cannot install' "$scratch/install.log"
	fi
	cp "$here/requirements.txt" "$scratch/installed"
}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null ||
    skip 'there is no python3 of 3.9 or newer'
install_once
rm -rf "$scratch/wheel"
KVROUTE_BUILD=$build pip wheel --no-build-isolation --no-deps \
    -w "$scratch/wheel" ./bindings/python > "$scratch/wheel.log" 2>&1 ||
    fail 'the wheel is not built' "$scratch/wheel.log"
pip install --no-deps --force-reinstall "$scratch"/wheel/*.whl \
    > "$scratch/wheel.log" 2>&1 ||
    fail 'the wheel is not installed' "$scratch/wheel.log"
PYTHONPATH=tests/python PYTHONDONTWRITEBYTECODE=1 \
    "$venv/bin/python" tests/python/run.py "$build" "$here" "$scratch" ||
    echo 0 1 0 >> "$tally"
sh mk/tally.sh "$tally"
