#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh build "names" "harnesses" - runs suites, replays of fuzz corpora and
# the contract checks: all, or those named (suites, "fuzz", single harnesses,
# "contract"). As many at a time as there are processors, or $JOBS, each suite in
# a process of its own. $KVR_UNDER is an optional command to run them under. The
# last lines repeat what failed, each with a command that repeats it; that begins
# with $AGAIN, or `make check`.
#
# check.sh --one build name - runs one.
set -u

run_suite()
{
	# shellcheck disable=SC2086
	${KVR_UNDER:-} "$build/check" -t "$counts" "$1"
}

run_replay()
{
	log=$build/replay_$1.log
	# shellcheck disable=SC2086
	if timeout -k 10 900 ${KVR_UNDER:-} "$build/replay_$1" \
	    "fuzz/corpus/$1" > "$log" 2>&1; then
		printf '  %-14s %s\n' "fuzz_$1" "$(tail -n 1 "$log")"
		echo 1 0 0 > "$counts"
	else
		echo "    FAILED   $(tail -n 1 "$log")"
		tail -n 40 "$log"
		echo 0 1 0 > "$counts"
	fi
}

# Amounts, and what replays draw, are a part of what is repeated.
settings()
{
	for name in KVR_TEST_PERCENT FUZZ_RUNS; do
		eval "value=\${$name:-}"
		[ -z "$value" ] || printf '%s=%s ' "$name" "$value"
	done
}

# Repeats what failed, for the last lines. A message may name the seed of one
# round; that is quicker than all rounds.
note()
{
	grep '^ *FAILED' "$out" | while IFS= read -r line; do
		seed=$(echo "$line" | sed -n 's/.*KVR_SEED=\([0-9]*\).*/\1/p')
		printf '    FAILED   %s: %s\n             KVR_SEED=%s %s%s T=%s\n' \
		    "$1" "${line#*FAILED   }" "${seed:-$KVR_SEED}" \
		    "$(settings)" "${AGAIN:-make check}" "$1"
	done >> "$build/failed"
}

run_one()
{
	out=$build/$1.out
	counts=$build/$1.counts
	rm -f "$counts"
	case $1 in
	contract) sh tests/contract.sh "$build" "$counts" || rm -f "$counts" ;;
	fuzz_*) run_replay "${1#fuzz_}" ;;
	*) run_suite "$1" ;;
	esac > "$out" 2>&1
	[ -s "$counts" ] || {
		echo "    FAILED   $1 exited early" >> "$out"
		echo 0 1 0 > "$counts"
	}
	cat "$out"
	note "$1"
	cat "$counts" >> "$build/tally"
	rm "$out" "$counts"
}

if [ "$1" = --one ]; then
	build=$2
	run_one "$3"
	exit 0
fi

build=$1
names=$(echo "$2" | tr ',' ' ')
harnesses=$3

: > "$build/tally"
: > "$build/failed"
KVR_SEED=$("$build/check" -s) || exit 1
export KVR_SEED
[ -n "$(echo "$names" | tr -d ' ')" ] ||
    names="$("$build/check" -l) contract fuzz"

# Those that take longest are begun first.
slow=' model contract each_word shadow process simulate_events simulate bounds '

ordered()
{
	for turn in slow others; do
		for name in $names; do
			[ "$name" != fuzz ] || name=$harnesses
			case $slow in
			*" $name "*) [ $turn = others ] || echo "$name" ;;
			*) [ $turn = slow ] || echo "$name" ;;
			esac
		done
	done | xargs -n 1
}

echo "  random tests draw from KVR_SEED=$KVR_SEED"
ordered | xargs -P "${JOBS:-$(nproc)}" -n 1 sh "$0" --one "$build" || {
	echo '    FAILED   not all suites were run' | tee -a "$build/failed"
	echo 0 1 0 >> "$build/tally"
}
if [ -s "$build/failed" ]; then
	printf '\nwhat failed:\n'
	cat "$build/failed"
fi
sh mk/tally.sh "$build/tally"
