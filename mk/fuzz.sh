#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fuzz.sh build seconds "harnesses" "numbers" - runs each fuzzer for so many
# seconds, as many at a time as there are processors, or $JOBS. New inputs go to
# build/corpus/, failing ones to build/crash/. What went wrong is printed first,
# then how far the fuzzer had come.
#
# Harnesses among "numbers" run thousands of edges in each execution. To weigh
# inputs by how rare their features are would take more than half of the time.
set -u

build=$1
seconds=$2
harnesses=$3
numbers=$4
tally=$build/tally

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
		printf '    FAILED   %s, status %s:\n' "$1" $?
		grep -v '^#[0-9]' "$log" | tail -n 60
		grep '^#[0-9]' "$log" | tail -n 3
		echo 0 1 0 >> "$tally"
	fi
}

# With a fifth argument it is that one's turn.
if [ $# -eq 5 ]; then
	fuzz "$5"
	exit 0
fi
mkdir -p "$build/crash"
: > "$tally"
# shellcheck disable=SC2086
printf '%s\n' $harnesses | xargs -P "${JOBS:-$(nproc)}" -n 1 \
    sh "$0" "$build" "$seconds" "$harnesses" "$numbers" || {
	echo '    FAILED   not all fuzzers were run'
	echo 0 1 0 >> "$tally"
}
sh mk/tally.sh "$tally"
