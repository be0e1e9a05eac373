#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fuzz.sh build seconds "harnesses" "numbers" - runs each fuzzer for so many
# seconds. New inputs go to build/corpus/, failing ones to build/crash/.
#
# Harnesses among "numbers" run thousands of edges in each execution. To weigh
# inputs by how rare their features are would take more than half of the time.
set -u

build=$1
seconds=$2
numbers=$4
tally=$build/tally
mkdir -p "$build/crash"
: > "$tally"

fuzz()
{
	log=$build/$1.log
	seeds=fuzz/corpus/${1#fuzz_}
	found=$build/corpus/${1#fuzz_}
	mkdir -p "$found"
	[ -d "$seeds" ] || seeds=$found
	case " $numbers " in
	*" $1 "*) entropic=0 ;;
	*) entropic=1 ;;
	esac
	if "$build/$1" -max_total_time="$seconds" -timeout=20 \
	    -rss_limit_mb=3072 -print_final_stats=1 -entropic="$entropic" \
	    -artifact_prefix="$build/crash/$1-" \
	    "$found" "$seeds" > "$log" 2>&1 < /dev/null; then
		printf '  %-14s %s\n' "$1" "$(grep '^Done ' "$log")"
		echo 1 0 0 >> "$tally"
	else
		printf '    FAILED   %s:\n' "$1"
		tail -n 60 "$log"
		echo 0 1 0 >> "$tally"
	fi
}

for harness in $3; do
	fuzz "$harness"
done
sh mk/tally.sh "$tally"
