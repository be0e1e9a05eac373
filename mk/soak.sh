#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# soak.sh build minutes "names" - runs random suites, and replays of fuzz corpora
# with inputs that are drawn, again and again for so many minutes: each time with
# a new seed, as many at a time as there are processors, or $JOBS. A failure is
# printed with the command that repeats it. Seeds are made of $FROM, or the time.
#
# soak.sh --one build end name seed - runs one, unless the time is over.
set -u
export FUZZ_RUNS="${FUZZ_RUNS:-2000}"

run_one()
{
	case $1 in
	fuzz_*)
		timeout -k 10 900 "$build/replay_${1#fuzz_}" \
		    "fuzz/corpus/${1#fuzz_}" ;;
	*) "$build/check" "$1" ;;
	esac > "$log" 2>&1
}

one()
{
	build=$1 end=$2
	left=$((end - $(date +%s)))
	[ "$left" -gt 0 ] || return 0
	[ ! -t 2 ] || printf '\r  %-14s %5d s left \r' "$3" "$left" >&2
	log=$build/soak/$3.$4
	export KVR_SEED="$4"
	if run_one "$3"; then
		echo "$3 passed" >> "$build/soak/runs"
	else
		echo "$3 failed" >> "$build/soak/runs"
		grep FAILED "$log" || tail -n 5 "$log"
		echo "             KVR_SEED=$4 FUZZ_RUNS=$FUZZ_RUNS ${KVR_TEST_PERCENT:+\
KVR_TEST_PERCENT=$KVR_TEST_PERCENT }make check T=$3"
	fi
	rm "$log"
}

if [ "$1" = --one ]; then
	shift
	one "$@"
	exit 0
fi

build=$1
end=$(($(date +%s) + $2 * 60))
names=$3
n=${FROM:-$(date +%s)}

# Suites draw from a seed and the numbers behind it, so seeds are far apart.
every_run()
{
	while [ "$(date +%s)" -lt "$end" ]; do
		for name in $names; do
			echo "$name $((n * 2654435761 % 9007199254740992))"
		done
		n=$((n + 1))
	done
}

rm -rf "$build/soak"
mkdir -p "$build/soak"
: > "$build/soak/runs"
echo "  seeds FROM=$n"
every_run | xargs -P "${JOBS:-$(nproc)}" -n 2 sh "$0" --one "$build" "$end"
awk '
	{ n[$1]++; bad[$1] += $2 == "failed"; sum += $2 == "failed" }
	END {
		for (name in n)
			printf "  %-14s %5d seeds, %d failed\n", name, n[name], \
			    bad[name]
		printf "%d passed, %d failed\n", NR - sum, sum
		exit sum > 0 || NR == 0
	}' "$build/soak/runs"
