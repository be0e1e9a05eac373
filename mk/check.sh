#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh build "names" "harnesses" - runs suites, replays of fuzz corpora and
# the contract checks: all, or those named (suites, "fuzz", single harnesses,
# "contract"). $KVR_UNDER is an optional command to run them under.
set -u

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

run_suites()
{
	before=$(wc -l < "$tally")
	# shellcheck disable=SC2086
	${KVR_UNDER:-} "$build/check" -t "$tally" $suites
	if [ "$(wc -l < "$tally")" -eq "$before" ]; then
		echo "    FAILED   the test runner exited early"
		echo 0 1 0 >> "$tally"
	fi
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
		printf '    FAILED   fuzz_%s:\n' "$1"
		tail -n 40 "$log"
		echo 0 1 0 >> "$tally"
	fi
}

if [ -n "$all$suites" ]; then
	run_suites
fi
for harness in $replays; do
	replay "${harness#fuzz_}"
done
if [ -n "$contract" ]; then
	sh tests/contract.sh "$build" "$tally"
fi
sh mk/tally.sh "$tally"
