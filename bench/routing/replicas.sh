#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# replicas.sh REPLAY TRACES FOLDER - what several routers lose in front of the
# same engines, by what they tell each other: runs kvroute-replay --simulate,
# keeps its output in FOLDER, and prints Markdown: hits and mean time to first
# token, each also relative to one router, and the limits of some; each reached
# or MISSED. Fails when one is missed.
#
# SEEDS="1 2 3". JOBS: how many runs at a time. RUNS="4-*": those whose name
# fits; the single router is always run. TRACES has conversation_trace.jsonl
# and agentic/. Results that are there are kept; remove them after a change.
set -eu

replay=$1
traces=$2
out=$3
table=$(dirname "$0")/replicas.awk
mkdir -p "$out"

# A name, and options. random: a balancer that knows nothing.
several()
{
	n=$1
	shift
	cat <<-END
	$n-nothing --sessions random
	$n-sticky --sessions sticky
	$n-sticky-loads --sessions sticky --exchange loads --exchange-delay 5
	$n-all --sessions random --exchange all --exchange-delay 5
	$n-prefixes --sessions random --exchange prefixes --exchange-delay 5
	$n-bookings --sessions random --exchange bookings --exchange-delay 5
	$n-prefixes-loads --sessions random --exchange prefixes+loads \
	    --exchange-delay 5
	END
}

late()
{
	for ms in 50 150 200 300 500 2000; do
		cat <<-END
		4-$ms-apply --sessions random --exchange all \
		    --exchange-delay $ms --exchange-late apply
		4-$ms --sessions random --exchange all --exchange-delay $ms
		END
	done
	for percent in 1 5 20; do
		cat <<-END
		4-lost-$percent-open --sessions random --exchange all \
		    --exchange-delay 50 --exchange-loss $percent \
		    --exchange-repair off
		4-lost-$percent --sessions random --exchange all \
		    --exchange-delay 50 --exchange-loss $percent
		END
	done
}

# Prints a line for each run: its name, and options.
runs()
{
	trace="--arrivals spread $traces/conversation_trace.jsonl"
	agents="--active 24 --think-limit 60 --sessions $traces/agentic"
	{
		echo "one $trace"
		{ several 4; late; } | sed "s|\$| --replicas 4 $trace|"
		several 16 | sed "s|\$| --replicas 16 $trace|"
		echo "agents-one $agents"
		several 4 | sed "s|^|agents-|;s|\$| --replicas 4 $agents|"
	} | while read -r name options; do
		# shellcheck disable=SC2254
		case $name in
		one | agents-one | ${RUNS:-*}) ;;
		*) continue ;;
		esac
		for seed in ${SEEDS:-1 2 3}; do
			echo "$name.$seed --seed $seed $options"
		done
	done
}

# A run that fails says why, and its figures are missing below.
# shellcheck disable=SC2016
runs | xargs -P "${JOBS:-$(nproc)}" -L 1 sh -c 'replay=$0 file=$1/$2.kv
	shift 2
	[ ! -s "$file" ] || exit 0
	"$replay" --simulate -q --format kv --policy balanced:feedback \
	    "$@" > "$file.new" && mv "$file.new" "$file"' "$replay" "$out" || :
runs | sed 's/ .*//' | while read -r name; do
	[ ! -s "$out/$name.kv" ] || { echo "run=$name"; cat "$out/$name.kv"; }
done | awk -f "$table"
