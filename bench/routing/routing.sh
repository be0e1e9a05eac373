#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# routing.sh REPLAY TRACE FOLDER - how good routing without events is, on
# modelled engines: runs kvroute-replay --simulate on TRACE, keeps its output in
# FOLDER, and prints the figures to reach as Markdown, each reached or MISSED.
# Fails when one is missed.
#
# ROUTING="8,16 500000,1000000,2000000 1,2,3" selects the runs: numbers of
# workers, tokens of each cache, seeds. JOBS: how many at a time.
set -eu

replay=$1
trace=$2
out=$3
table=$(dirname "$0")/routing.awk
jobs=${JOBS:-$(nproc)}
# shellcheck disable=SC2086
set -- ${ROUTING:-8,16 500000,1000000,2000000 1,2,3}
[ $# -eq 3 ] || { echo 'ROUTING="WORKERS TOKENS SEEDS"' >&2; exit 2; }
[ -r "$trace" ] || { echo "no trace: $trace" >&2; exit 2; }
mkdir -p "$out"
rm -f "$out"/*.kv

policies()
{
	printf ' --policy %s' "$@"
}

# The runs of each configuration: a name, and options. Engines lose their caches
# in turn: one of them every 120 s, or all of them every 120 s.
variants()
{
	known=$(policies balanced:capacity balanced:feedback)
	unknown=$(policies balanced:feedback)
	cat <<-END
	plain $(policies round-robin dynamo:ttl=120 dynamo:oracle \
	    balanced:ttl=120 balanced:ttl=600 balanced:capacity \
	    balanced:feedback \
	    balanced:oracle)
	resets --resets $((120 * workers)) $unknown \
	    $(policies balanced:oracle)
	worse --resets 120 $unknown $(policies balanced:oracle)
	low --reports low=0.2 $unknown
	noisy --reports noisy=0.1 $unknown
	zeros --reports zeros=0.05 $unknown
	null --reports null $unknown
	few --reports reported=0.05 $unknown
	mixed --speeds 1,2,4 $known
	common --speeds 1,2,4 --common-rate $known
	two --replicas 2 --exchange all $known
	END
}

# Prints a line for each run: its name, and options.
runs()
{
	for workers in $(echo "$1" | tr ',' ' '); do
	for tokens in $(echo "$2" | tr ',' ' '); do
	for seed in $(echo "$3" | tr ',' ' '); do
		variants | sed "s|[^ ]*|$workers-$tokens-$seed-& \
		    --workers $workers --capacity $tokens --seed $seed|"
	done
	done
	done
}

# A run that fails prints why, and its figures are missing below.
# shellcheck disable=SC2016
runs "$@" | xargs -P "$jobs" -L 1 sh -c 'replay=$0 trace=$1 file=$2/$3.kv
	shift 3
	exec "$replay" --simulate -q --format kv "$@" "$trace" > "$file"' \
	"$replay" "$trace" "$out" || :
find "$out" -name '*.kv' | sort -t - -V | xargs awk -f "$table"
