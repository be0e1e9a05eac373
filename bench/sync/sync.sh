#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# sync.sh BUILD TRACES - figures of replicas on the real stack, as Markdown, in
# less than five minutes: what applying costs, what daemons and buses carry and
# how late, and the hits of four routers beside those of one. Daemons and bus
# are in namespaces of their own: ../../tests/sync/net.sh.
#
# PARTS="cost flow hits late_start" chooses. Of hits: engines are SPEED times as
# fast as in life, requests come for HITS seconds, and SEED draws which router
# gets one; ARMS="lossy nats" chooses what is compared with one router. A line
# of flow takes FLOW seconds.
#
# shellcheck disable=SC1091,SC2154
set -u
export LC_ALL=C

build=$(cd "$1" && pwd)
traces=$(cd "$2" 2> /dev/null && pwd)
here=$(cd "$(dirname "$0")" && pwd)
scratch=$build/sync-bench
. "$here/../../tests/sync/net.sh"
SPEED=${SPEED:-10}
HITS=${HITS:-120}
FLOW=${FLOW:-6}
ARMS=${ARMS:-nothing redis lossy nats loads}
SEED=${SEED:-1}

if [ -z "${KVR_NET:-}" ]; then
	rm -rf "$scratch"
	mkdir -p "$scratch"
	net_begin "$@"
	echo "bench-sync: skipped: $reason"
	exit
fi
net_make || exit
trap net_clear EXIT

# value FILE NAME - of lines name=value.
value()
{
	sed -n "s/^$2=//p" "$1"
}

# -------------------------------------------------------------------- cost

part_cost()
{
	cat <<-'END'

	Applying the requests of others, thread CPU in one run:

	| blocks | made here, us | published, us | applied there, us | x | bytes |
	|---|---|---|---|---|---|
	END
	for blocks in 94 188 752; do
		"$build/sync-cost" $blocks 20000 > "$scratch/cost" || exit
		awk -F = '{ v[$1] = $2 } END {
			printf "| %d | %.1f | %.1f | %.1f | %.2f%s | %d |\n",
			    v["blocks"], v["local_us"], v["publish_us"],
			    v["apply_us"], v["ratio"], v["ratio"] <= 1.5 ? \
			    " (<= 1.5)" : " (<= 1.5, MISSED)", v["bytes"]
		}' "$scratch/cost"
	done
}

# -------------------------------------------------------------------- flow

# counter NAME - of what the first daemon has published.
counter()
{
	"$build/kvroute-sync" --status "$scratch/socket1" |
	    jq ".[0].published.$1"
}

cpu()
{
	awk '{ print ($14 + $15) * 10 }' "/proc/$1/stat"
}

# flow RATE BLOCKS
flow()
{
	frames=$(counter frames)
	bytes=$(counter bytes)
	records=$(counter records)
	overruns=$(counter overruns)
	cpu1=$(cpu "$daemon_1")
	cpu2=$(cpu "$daemon_2")
	"$build/sync-flow" run "$FLOW" "$1" "$2" "$scratch/region1" \
	    "$scratch/region2" > "$scratch/flow" || exit
	frames=$(($(counter frames) - frames))
	bytes=$(($(counter bytes) - bytes))
	records=$(($(counter records) - records))
	overruns=$(($(counter overruns) - overruns))
	awk -F = -v bus="$bus" -v blocks="$2" -v s="$FLOW" \
	    -v frames=$frames -v bytes=$bytes -v records=$records \
	    -v overruns=$overruns -v cpu1=$(($(cpu "$daemon_1") - cpu1)) \
	    -v cpu2=$(($(cpu "$daemon_2") - cpu2)) '{ v[$1] = $2 } END {
		printf "| %s | %d | %.0f | %.0f | %.0f | %.2f | %.2f | %.2f " \
		    "| %d | %.1f | %.1f | %d | %d |\n", bus, blocks, v["rate"],
		    frames / s, records / s, bytes / s / 1e6,
		    100 * v["arrived"], 100 * v["full"], overruns, v["p50_ms"], v["p99_ms"],
		    cpu1 / s / 10, cpu2 / s / 10
	}' "$scratch/flow"
}

part_flow()
{
	cat <<-'END'

	What one router does, at another one, through two daemons and a bus.
	Latency is from the opening of a lease to its being there:

	| bus | blocks | requests/s | frames/s | records/s | MB/s | arrived, % | in full, % | overruns | p50, ms | p99, ms | CPU of the sender, % | of the receiver, % |
	|---|---|---|---|---|---|---|---|---|---|---|---|---|
	END
	machines 2
	for bus in redis nats; do
		rm -f "$scratch"/region*
		"$build/sync-flow" make "$scratch/region1" "$scratch/region2"
		bus_up $bus
		daemons
		flow 100 94
		flow 1000 94
		flow 5000 94
		flow 1000 752
		flow 3000 752
		net_clear
	done
}

# -------------------------------------------------------------------- hits

# arm INPUT NAME ROUTERS DEALING [option ...] - makes regions and, if there are
# options, "-" for none, begins daemons.
arm()
{
	arm=$2-${1##*/}
	routers=$3
	waiting="$waiting $arm:$4:$1"
	shift 4
	regions=
	for i in $(seq "$routers"); do
		regions="$regions $scratch/$arm.$i"
	done
	# shellcheck disable=SC2086
	"$build/traffic" make "$SPEED" $regions
	[ $# -gt 0 ] || return 0
	[ "$1" != - ] || shift
	for i in $(seq "$routers"); do
		ip netns exec "m$i" "$build/kvroute-sync" \
		    "--${url%%:*}" "$url" "$@" "$arm=$scratch/$arm.$i" \
		    >> "$scratch/daemons.log" 2>&1 &
		pids="$pids $!"
	done
}

# wanted ARM
wanted()
{
	case " one $ARMS " in
	*" $1 "*) ;;
	*) return 1 ;;
	esac
}

# lossy INPUT - four routers, each with a bus name of its own, and between these
# a network that loses 1 % of the frames on each way, doubles 2 %, and is 50 to
# 70 ms late in the engines' time, so that frames overtake each other.
lossy()
{
	arm=lossy-${1##*/}
	waiting="$waiting $arm:random:$1"
	regions=
	names=
	for i in 1 2 3 4; do
		regions="$regions $scratch/$arm.$i"
		names="$names $arm.$i"
	done
	# shellcheck disable=SC2086
	"$build/traffic" make "$SPEED" $regions
	# shellcheck disable=SC2086
	ip netns exec bus "$build/star" "$SEED" 10 20 $((50 / SPEED)) \
	    $((20 / SPEED)) 0 "$url" $names > "$scratch/$arm.star" &
	stars="$stars $!"
	until_true 60 grep -q ready "$scratch/$arm.star" ||
	    give_up 'the star does not start' "$scratch/$arm.star"
	# No daemon can ask another one through it.
	for i in 1 2 3 4; do
		ip netns exec "m$i" "$build/kvroute-sync" "--${url%%:*}" "$url" \
		    --replay 0 "$arm.$i=$scratch/$arm.$i" \
		    >> "$scratch/daemons.log" 2>&1 &
		pids="$pids $!"
	done
}

# All at a time: so they meet the same machine, and the bounds of minutes.
run_arms()
{
	sleep 2 # until all have said HELLO
	running=
	for run in $waiting; do
		arm=${run%%:*}
		run=${run#*:}
		"$build/traffic" run "$SPEED" "$HITS" "$SEED" \
		    "${run%%:*}" "${run#*:}" "$scratch/$arm".[0-9] \
		    > "$scratch/$arm.kv" &
		running="$running $!"
	done
	for pid in $running; do
		wait "$pid" || echo "traffic: exit $?"
	done
	for pid in $pids; do
		end KILL "$pid"
	done
	for pid in $stars; do
		end TERM "$pid"
	done
}

# limit ARM - what is asked of its hits.
limit()
{
	case $1 in
	redis | nats) echo .99 ;;
	lossy) echo .98 ;;
	loads) echo .92 ;;
	*) echo 0 ;;
	esac
}

# table TITLE INPUT
table()
{
	printf '\n%s, %s s at %s times the speed of life:\n\n' "$1" \
	    "$HITS" "$SPEED"
	echo '| routers | requests | failed | hits | x one router'"'"'s |' \
	    'TTFT mean, s | x one router'"'"'s |'
	echo '|---|---|---|---|---|---|---|'
	for arm in one $ARMS; do
		{ sed 's/^/one_/' "$scratch/one-${2##*/}.kv"
		cat "$scratch/$arm-${2##*/}.kv"; } | awk -F = -v arm="$arm" \
		    -v limit="$(limit "$arm")" '{ v[$1] = $2 } END {
			x = v["hits"] / v["one_hits"]
			printf "| %s | %d | %d | %.4f | %.3f%s | %.3f | %.3f " \
			    "|\n", arm, v["requests"], v["failed"], v["hits"],
			    x, limit == 0 ? "" : " (>= " limit \
			    (x < limit ? ", MISSED)" : ")"),
			    v["first_mean_s"], v["first_mean_s"] / \
			    v["one_first_mean_s"]
		}'
	done
}

part_hits()
{
	[ -n "$traces" ] || { echo 'hits: skipped: no traces'; return; }
	talks=$traces/conversation_trace.jsonl
	agents=$traces/agentic
	waiting='' pids='' stars=''
	machines 4
	bus_up redis
	redis_pid=$bus_pid
	for input in "$talks" "$agents"; do
		arm "$input" one 1 random
		! wanted nothing || arm "$input" nothing 4 random
		! wanted redis || arm "$input" redis 4 random -
		! wanted lossy || lossy "$input"
		! wanted loads || arm "$input" loads 4 sticky --loads
	done
	bus_up nats
	for input in "$talks" "$agents"; do
		! wanted nats || arm "$input" nats 4 random -
	done
	run_arms
	end KILL "$redis_pid"
	net_clear
	table 'The conversation trace' "$talks"
	table 'Sessions of agents, 24 at a time' "$agents"
	wanted lossy || return 0
	for input in "$talks" "$agents"; do
		tail -n 1 "$scratch/lossy-${input##*/}.star" |
		    awk -v input="${input##*/}" '{ print "\nFrames between " \
		        "lossy routers, " input ": " $1 " sent, " $2 " lost, " \
		        $3 " doubled." }'
	done
}

# -------------------------------------------------------------- late start

# BLOCKS=1000000 of them.
part_late_start()
{
	printf '\nA late start, over each bus:\n\n'
	sh "$here/late_start.sh" "$build"
}

for part in ${PARTS:-cost flow hits late_start}; do
	"part_$part"
done
