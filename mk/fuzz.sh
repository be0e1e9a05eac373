#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fuzz.sh build seconds "harnesses" "numbers" - runs each fuzzer for so many
# seconds, as many at a time as there are processors, or $JOBS. New inputs go to
# build/corpus/, failing ones to build/crash/. What went wrong is printed first,
# then how far the fuzzer had come.
#
# $FUZZ_RUNS is a number of inputs for each instead of a time, from the corpus
# and $FUZZ_SEED. What is covered and compared depends on addresses, so these are
# the same in each run, where that is allowed.
#
# Harnesses among "numbers" run thousands of edges in each execution. To weigh
# inputs by how rare their features are would take more than half of the time.
# They get a twentieth of the runs.
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
	entropic=1 share=1
	case " $numbers " in
	*" $1 "*) entropic=0 share=20 ;;
	esac
	bound=-max_total_time=$seconds
	same=
	if [ -n "${FUZZ_RUNS:-}" ]; then
		! setarch -R true 2> /dev/null || same='setarch -R'
		bound="-seed=${FUZZ_SEED:-1} -runs=$((FUZZ_RUNS / share))"
		rm -f "$found"/*
	fi
	# shellcheck disable=SC2086
	if $same "$build/$1" $bound -timeout=120 \
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
