#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# events.sh REPLAY TRACES FOLDER - what events of engines are worth: runs
# kvroute-replay --simulate under conditions in which routers without events
# know less, keeps its output in FOLDER, and prints Markdown: mean time to first
# token, seconds; hits, per cent; mean error of the prediction, per cent of the
# prompts. Fails when a run is absent.
#
# SEEDS="1001 1002 1003": nothing was tuned on these. JOBS: how many runs at a
# time. RUNS="agents-*": those whose name fits. TRACES has
# conversation_trace.jsonl and agentic/. Results that are there are kept; remove
# them after a change.
set -eu

replay=$1
traces=$2
out=$3
here=$(dirname "$0")
mkdir -p "$out"

# Prints a line for each load: its name, and options. The working set of chats
# is a multiple of the small caches; that of agents is larger than theirs.
loads()
{
	cat <<-END
	chats --capacity 1000000
	chats-small --capacity 300000
	agents --capacity 1000000 --active 48 --session-count 60 \
	    --think-limit 60 --sessions $traces/agentic
	END
}

# Prints a line for each condition: its name, and options.
conditions()
{
	cat <<-END
	plain
	late --event-delay 1
	lossy --event-delay 0.2 --event-loss 1
	unreplayed --event-delay 0.2 --event-loss 0.1 --event-replay off
	unreported --silent 1
	bypass --bypass 30
	routers --replicas 4
	routers-told --replicas 4 --exchange all --exchange-delay 50
	resets --resets 240
	END
}

# Prints a line for each run: its name, seed and options.
runs()
{
	loads | while read -r load options; do
		conditions | while read -r condition more; do
			# shellcheck disable=SC2254
			case $load-$condition in
			${RUNS:-*}) ;;
			*) continue ;;
			esac
			for seed in ${SEEDS:-1001 1002 1003}; do
				# A blank at the end would join lines.
				echo "$load-$condition.$seed $seed" \
				    "$options${more:+ $more}"
			done
		done
	done
}

for seed in ${SEEDS:-1001 1002 1003}; do
	[ -s "$out/chats.$seed" ] || awk -v "seed=$seed" -f "$here/vary.awk" \
	    "$traces/conversation_trace.jsonl" | sort -s -n -k 1,1 |
	    cut -d ' ' -f 2- > "$out/chats.$seed"
done

# A run that fails says why, and its figures are missing below.
# shellcheck disable=SC2016
runs | xargs -P "${JOBS:-$(nproc)}" -L 1 sh -c 'replay=$0 out=$1 file=$1/$2.kv
	trace=$1/chats.$3 seed=$3
	case $2 in
	agents*) trace= ;;
	esac
	shift 3
	[ ! -s "$file" ] || exit 0
	"$replay" --simulate -q --format kv --seed "$seed" \
	    --policy balanced:feedback --policy balanced:capacity \
	    --policy balanced:counts --policy balanced:events \
	    --policy balanced:oracle "$@" $trace > "$file.new" &&
	    mv "$file.new" "$file"' "$replay" "$out" || :
runs | sed 's/ .*//' | while read -r name; do
	echo "run=$name"
	[ ! -s "$out/$name.kv" ] || cat "$out/$name.kv"
done | awk -f "$here/events.awk"
