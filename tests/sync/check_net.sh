#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_net.sh build [case] - daemons on machines of their own, a bus on
# another, and faults of networks and processes: cases of tests/cases.sh, on
# machines of net.sh. KILLS is the number of deaths and stops, SEED the source
# of their draws and of the losses.
#
# shellcheck disable=SC1091,SC2154
. tests/sync/net.sh

[ $# -gt 1 ] || { list redis:; list nats:; exit; }
build=$1
bus=${2%%:*}
if [ -z "${KVR_NET:-}" ]; then
	net_begin "$@"
	echo "skipped: $reason"
	exit
fi
net_make || exit

SEED=${SEED:-1}
KILLS=${KILLS:-10}
PROMPTS=100

router()
{
	n=$1
	shift
	"$build/router" "$scratch/region$n" "$@"
}

# replicas N
replicas()
{
	machines "$1"
	for i in $(seq "$count"); do
		router "$i" make s
	done
	bus_up "$bus"
}

# drive N SECONDS RATE - its pid is in drive_N; its output in drive-N.
drive()
{
	ip netns exec "m$1" "$build/drive" "$scratch/region$1" "$SEED$1" "$2" "$3" \
	    "$PROMPTS" >> "$scratch/drive$1" 2>> "$scratch/failed" &
	eval "drive_$1=$!"
}

# drive_all SECONDS RATE
drive_all()
{
	for i in $(seq "$count"); do
		drive "$i" "$@"
	done
}

driven()
{
	for i in $(seq "$count"); do
		eval "wait \$drive_$i" || echo "drive $i: exit $?"
	done
	cat "$scratch/failed"
	grep -h -v ' failed=0 ' "$scratch"/drive[0-9]
}

brought()
{
	router "$1" brought
}

# Everywhere no lease and no load is left, and all is well. A promise of 2 to 4
# s is waited for 20 s, here and below.
nothing_left()
{
	for i in $(seq "$count"); do
		within 20 0 router "$i" leases
		within 20 '0 0
0 0
0 0
0 0' router "$i" loads
		router "$i" check
	done
}

all_live_sets()
{
	for i in $(seq "$count"); do
		router "$i" live "$PROMPTS" > "$scratch/live$i"
		cmp -s "$scratch/live1" "$scratch/live$i" || return 1
	done
}

same_live_sets()
{
	until_true 20 all_live_sets && return
	for i in $(seq 2 "$count"); do
		diff "$scratch/live1" "$scratch/live$i" | head -n 5
	done
	exit 1
}

# sum_requests N - of all workers, on a replica.
sum_requests()
{
	router "$1" loads | awk '{ sum += $1 } END { print sum + 0 }'
}

# The frame about a prompt may be lost, until it is requested again. Replicas
# may differ about prompts below $PROMPTS.
told_again()
{
	router 2 finish "$(router 2 open 1002 b)"
	prints 20 router 3 holds 1002 b
}

case_losses_and_disorder() # slow
{
	replicas 3
	star_up 10 20 50 15 2000
	daemons
	drive_all 8 8
	driven
	# The losses are repaired: only open leases are open.
	for i in 1 2 3; do
		within 20 0 brought "$i"
	done
	one=$(router 1 open 1001 a)
	two=$(router 2 open 1002 b)
	for i in 1 2 3; do
		within 20 2 sum_requests "$i"
	done
	until_true 20 told_again || wrong 20 router 3 holds 1002 b
	router 1 finish "$one"
	router 2 finish "$two"
	nothing_left
	end TERM "$star_pid"
	tail -n 1 "$scratch/star" | awk '$2 == 0 || $3 == 0 {
	    print "the network lost or doubled nothing: " $0 }'
	star_pid=
}

late_peers()
{
	"$build/kvroute-sync" --status "$scratch/socket$1" |
	    grep -c '"state": "late"'
}

case_two_seconds_late() # slow
{
	replicas 2
	star_up 0 0 0 0 2000
	daemons
	one=$(router 1 open 1 a)
	until_is 1 sum_requests 2
	kill -USR1 "$star_pid"
	until_is 1 late_peers 2
	until_is 0 brought 2
	# It is known where the prompt is, and no load counts.
	two=$(router 1 open 2 b)
	until_is 20 router 2 holds 2 b
	until_is 1 late_peers 2
	until_is 0 brought 2
	kill -USR2 "$star_pid"
	until_is 0 late_peers 2
	three=$(router 1 open 3 c)
	until_is 20 router 2 holds 3 c
	until_is 3 sum_requests 2
	for lease in "$one" "$two" "$three"; do
		router 1 finish "$lease"
	done
	nothing_left
}

# A stream keeps one side's frames of that time. NATS does not keep them.
case_a_partition_heals() # slow
{
	replicas 3
	daemons
	drive_all 16 20
	sleep 2
	cut_off 1
	within 20 0 fresh 1
	within 20 1 fresh 2
	sleep 8
	router 1 open 1001 a > "$scratch/cut"
	router 2 open 1002 b >> "$scratch/cut"
	heal 1
	all_hear
	driven
	for i in 1 2 3; do
		within 20 2 sum_requests "$i"
	done
	if [ "$bus" = redis ]; then
		same_live_sets
		until_is 20 router 1 holds 1002 b
		until_is 20 router 3 holds 1001 a
	fi
	router 1 finish "$(sed -n 1p "$scratch/cut")"
	router 2 finish "$(sed -n 2p "$scratch/cut")"
	nothing_left
}

# Nothing of a router that died is left with the others.
case_the_dead_have_no_load() # slow
{
	replicas 2
	daemons
	router 1 open 1 a > /dev/null
	until_is 1 sum_requests 2
	end KILL "$daemon_1"
	daemon_1=
	within 20 0 sum_requests 2
	router 2 open 2 b > /dev/null
	daemon 1
	all_hear
	until_is 2 sum_requests 2
	cut_off 1
	within 20 1 sum_requests 2
	heal 1
	until_is 2 sum_requests 2
	until_is 2 sum_requests 1
}

# Sums end in the same way; and a router ends those that its daemon had brought.
case_the_dead_have_no_sums()
{
	replicas 2
	daemons --loads
	router 1 open 1 a > /dev/null
	router 2 open 2 b > /dev/null
	for i in 1 2; do
		until_is 2 sum_requests "$i"
	done
	drive 1 100000 1
	end KILL "$daemon_1"
	daemon_1=
	within 20 1 sum_requests 2
	within 20 0 router 1 requests b
	daemon 1 --loads
	until_is 1 router 1 requests b
	kill -TERM "$drive_1"
	wait "$drive_1" 2> /dev/null
	cat "$scratch/failed"
	until_is 2 sum_requests 2
}

case_strangers_are_counted()
{
	replicas 2
	daemons
	router 1 open 1 a > /dev/null
	until_is 1 sum_requests 2
	on bus "$build/forge" "$url" kv 4000 "$scratch/region1"
	for i in 1 2; do
		for kind in version stranger forged malformed; do
			until_is 1000 field "$i" $kind
		done
		now_is 20 router "$i" holds 1 a
		now_is 0 field "$i" old_epoch
	done
	until_is 1 sum_requests 2
}

# ------------------------------------------------------------------ deaths

# Prints a line for each: the process, KILL or STOP, seconds until then, and
# until it goes on or comes back: one in five is long enough that others take it
# for dead, or it itself sees that it did not run.
deaths()
{
	awk -v seed="$SEED" -v kills="$KILLS" -v n="$count" 'BEGIN {
		srand(seed)
		while (kills-- > 0) {
			what = int(rand() * (2 * n + 1))
			how = rand() < .5 ? "KILL" : "STOP"
			print what == 0 ? "bus 0" : what <= n ? \
			    "daemon " what : "drive " what - n, how,
			    .05 + rand() * .4, rand() < .2 ? \
			    2 + rand() * 4 : .05 + rand() * 1.2
		}
	}'
}

# death WHAT N SIGNAL SECONDS
death()
{
	variable=$1_$2
	[ "$1" != bus ] || variable=bus_pid
	eval "pid=\$$variable"
	kill -"$3" "$pid"
	if [ "$3" = STOP ]; then
		sleep "$4"
		kill -CONT "$pid"
		return
	fi
	wait "$pid" 2> /dev/null
	sleep "$4"
	case $1 in
	bus) bus_up "$bus" ;;
	daemon) daemon "$2" ;;
	drive) drive "$2" 100000 20 ;;
	esac
}

case_deaths_at_random_points() # slow
{
	replicas 3
	daemons
	drive_all 100000 20
	deaths > "$scratch/deaths"
	while read -r what who how before after; do
		sleep "$before"
		death "$what" "$who" "$how" "$after"
	done < "$scratch/deaths"
	all_hear
	for i in 1 2 3; do
		eval "kill -TERM \$drive_$i"
	done
	driven
	nothing_left
	# They go on together.
	router 1 open 1001 a > /dev/null
	until_is 20 router 3 holds 1001 a
	until_is 1 sum_requests 2
}

finish()
{
	net_clear
}

: > "$scratch/failed"
echo "SEED=$SEED KILLS=$KILLS" > "$scratch/seed.log"
run "$2"
