#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# windows.sh REPLAY TRACES FOLDER - routing that knows of sliding windows, and
# routing that does not, in front of modelled engines that keep them in each of
# the modes: runs kvroute-replay --simulate, keeps its output in FOLDER, and
# prints Markdown: the mean error of the prediction in per cent of the prompts,
# hits, and mean times; each figure aware / unaware. Fails when the error is
# above its limit by capacity, or a run is absent.
#
# SEEDS="1 2 3". JOBS: how many runs at a time. RUNS="agents-*": those whose name
# fits. TRACES has conversation_trace.jsonl and agentic/. Results that are there
# are kept; remove them after a change.
set -eu

replay=$1
traces=$2
out=$3
table=$(dirname "$0")/windows.awk
mkdir -p "$out"

# Prints a line for each load: its name, and options. The last two are such
# that windows should hardly matter.
loads()
{
	trace="$traces/conversation_trace.jsonl"
	agents="--active 24 --think-limit 60 --sessions $traces/agentic"
	cat <<-END
	chats 50000 --capacity 1000000 $trace
	chats-small 50000 --capacity 300000 $trace
	agents 50000 --capacity 1000000 $agents
	chats-endless 100000000 --capacity endless $trace
	agents-large 100000000 --capacity 4000000 $agents
	END
}

# Prints a line for each run: its name, and options.
runs()
{
	loads | while read -r name tails options; do
		for mode in full boundary dense dual; do
			# shellcheck disable=SC2254
			case $name-$mode in
			${RUNS:-*}) ;;
			*) continue ;;
			esac
			window=$mode
			[ $mode != dual ] || window=$mode+capacity=$tails
			for seed in ${SEEDS:-1 2 3}; do
				echo "$name-$mode.$seed --seed $seed" \
				    "--window $window $options"
				echo "$name-$mode.$seed.unaware --seed $seed" \
				    "--window $window --unaware $options"
			done
		done
	done
}

# A run that fails says why, and its figures are missing below.
# shellcheck disable=SC2016
runs | xargs -P "${JOBS:-$(nproc)}" -L 1 sh -c 'replay=$0 file=$1/$2.kv
	shift 2
	[ ! -s "$file" ] || exit 0
	"$replay" --simulate -q --format kv --policy balanced:capacity \
	    --policy balanced:feedback --policy balanced:ttl=120 \
	    "$@" > "$file.new" && mv "$file.new" "$file"' "$replay" "$out" || :
runs | sed 's/ .*//' | while read -r name; do
	echo "run=$name"
	[ ! -s "$out/$name.kv" ] || cat "$out/$name.kv"
done | awk -f "$table"
