#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# soak.sh build minutes "names" - runs suites again and again for so many
# minutes, each time with a new seed, as many at a time as there are processors,
# or $JOBS. A failure is printed with the command that repeats it. Seeds count
# from $FROM, or from the time.
#
# soak.sh --one build end name seed - runs one suite, unless the time is over.
set -u

one()
{
	build=$1 end=$2 name=$3 seed=$4
	[ "$(date +%s)" -lt "$end" ] || return 0
	[ ! -t 2 ] || printf '\r  %-14s %4d s left \r' "$name" \
	    $((end - $(date +%s))) >&2
	log=$build/soak/$name.$seed
	if KVR_SEED=$seed "$build/check" "$name" > "$log" 2>&1; then
		echo "$name passed" >> "$build/soak/runs"
	else
		echo "$name failed" >> "$build/soak/runs"
		grep FAILED "$log" || tail -n 5 "$log"
		echo "             KVR_SEED=$seed make check T=$name"
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
seed=${FROM:-$(date +%s)}

every_run()
{
	while [ "$(date +%s)" -lt "$end" ]; do
		for name in $names; do
			echo "$name $seed"
		done
		seed=$((seed + 1))
	done
}

rm -rf "$build/soak"
mkdir -p "$build/soak"
: > "$build/soak/runs"
echo "  seeds from $seed"
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
