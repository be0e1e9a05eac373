#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_bus.sh build - the buses of replicas on real servers. $T selects cases.
set -u
export LC_ALL=C

build=$(cd "$1" && pwd)
scratch=$build/sync-test
tally=$scratch/tally
rm -rf "$scratch"
mkdir -p "$scratch"
: > "$tally"

wanted()
{
	[ -z "${T:-}" ] && return 0
	for name in $(echo "$T" | tr ',' ' '); do
		[ "$name" != "$1" ] || return 0
	done
	return 1
}

check()
{
	folder=$scratch/$1-$2
	mkdir -p "$folder"
	${KVR_UNDER:-} timeout 120 "$build/check-bus" "$1" "$2" "$folder" \
	    "$build/relay" > "$folder/out" 2>&1
	status=$?
	[ "$status" -eq 0 ] || echo "exit $status" >> "$folder/out"
	if [ -s "$folder/out" ]; then
		echo 0 1 0 >> "$tally"
		printf '    FAILED   %s, %s:\n' "$1" "$(echo "$2" | tr _ ' ')"
		head -n 20 "$folder/out" | sed 's/^/             /'
	else
		echo 1 0 0 >> "$tally"
	fi
}

for bus in redis nats; do
	before=$(wc -l < "$tally")
	for name in $("$build/check-bus" --list "$bus"); do
		! wanted "$name" || check "$bus" "$name"
	done
	printf '  %-14s %4d tests\n' "$bus" \
	    $(($(wc -l < "$tally") - before))
done
sh mk/tally.sh "$tally"
