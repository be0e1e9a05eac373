#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh build "names" "harnesses" - runs suites, replays of fuzz corpora and
# the contract checks: all, or those named (suites, "fuzz", single harnesses,
# "contract"). As many suites at a time as there are processors, or $JOBS, each
# in a process of its own. $KVR_UNDER is an optional command to run them under.
# The last lines repeat what failed, each with a command that repeats it; that
# begins with $AGAIN, or `make check`.
#
# check.sh --suite build name - runs one.
set -u

# note NAME FILE - keeps what failed, for the last lines. A message may name the
# seed of one round; that is quicker than all rounds.
note()
{
	grep '^ *FAILED' "$2" | while IFS= read -r line; do
		seed=$(echo "$line" | sed -n 's/.*KVR_SEED=\([0-9]*\).*/\1/p')
		printf '    FAILED   %s: %s\n             KVR_SEED=%s %s T=%s\n' "$1" \
		    "${line#*FAILED   }" "${seed:-$KVR_SEED}" \
		    "${AGAIN:-make check}" "$1"
	done >> "$build/failed"
}

# A runner that dies leaves no counts.
run_suite()
{
	out=$build/suite_$1.out
	counts=$build/suite_$1.counts
	rm -f "$counts"
	# shellcheck disable=SC2086
	${KVR_UNDER:-} "$build/check" -t "$counts" "$1" > "$out" 2>&1
	if [ ! -s "$counts" ]; then
		echo "    FAILED   the runner of $1 exited early" >> "$out"
		echo 0 1 0 > "$counts"
	fi
	cat "$out"
	note "$1" "$out"
	cat "$counts" >> "$build/tally"
	rm "$out" "$counts"
}

if [ "$1" = --suite ]; then
	build=$2
	run_suite "$3"
	exit 0
fi

build=$1
names=$(echo "$2" | tr ',' ' ')
harnesses=$3
tally=$build/tally
suites=
contract=
replays=

if [ -z "$(echo "$names" | tr -d ' ')" ]; then
	all=yes contract=yes replays=$harnesses
else
	all=
	for name in $names; do
		case " contract fuzz $harnesses " in
		*" $name "*)
			case $name in
			contract) contract=yes ;;
			fuzz) replays=$harnesses ;;
			*) replays="$replays $name" ;;
			esac ;;
		*) suites="$suites $name" ;;
		esac
	done
fi

: > "$tally"
: > "$build/failed"
KVR_SEED=$("$build/check" -s) || exit 1
export KVR_SEED

# Those that take longest are begun first.
slow=' model simulate each_word body_yajl bounds apply churn '

slow_first()
{
	for turn in slow others; do
		for name in $1; do
			case $slow in
			*" $name "*) [ $turn = others ] || echo "$name" ;;
			*) [ $turn = slow ] || echo "$name" ;;
			esac
		done
	done
}

run_suites()
{
	slow_first "${suites:-$("$build/check" -l)}" |
	    xargs -P "${JOBS:-$(nproc)}" -n 1 sh "$0" --suite "$build" || {
		echo '    FAILED   not all suites were run'
		echo 0 1 0 >> "$tally"
	}
}

replay()
{
	log=$build/replay_$1.log
	# shellcheck disable=SC2086
	if ${KVR_UNDER:-} "$build/replay_$1" "fuzz/corpus/$1" \
	    > "$log" 2>&1; then
		printf '  %-14s %s\n' "fuzz_$1" "$(tail -n 1 "$log")"
		echo 1 0 0 >> "$tally"
	else
		{
			echo "    FAILED   $(tail -n 1 "$log")"
			tail -n 40 "$log"
		} > "$log.failed"
		cat "$log.failed"
		note "fuzz_$1" "$log.failed"
		echo 0 1 0 >> "$tally"
	fi
}

if [ -n "$all$suites" ]; then
	echo "  random tests draw from KVR_SEED=$KVR_SEED"
	run_suites
fi
for harness in $replays; do
	replay "${harness#fuzz_}"
done
if [ -n "$contract" ]; then
	sh tests/contract.sh "$build" "$tally" > "$build/contract.out" 2>&1
	cat "$build/contract.out"
	note contract "$build/contract.out"
fi
if [ -s "$build/failed" ]; then
	printf '\nwhat failed:\n'
	cat "$build/failed"
fi
sh mk/tally.sh "$tally"
