#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_sync.sh build [case] - two daemons on two regions with a real bus between
# them: cases of tests/cases.sh.
#
# shellcheck disable=SC2119,SC2154
. tests/sync/daemons.sh

# NATS has no log.
[ $# -gt 1 ] || { list redis:; list nats: | grep -v in_a_log |
    grep -v no_log; exit; }
build=$1
bus=${2%%:*}

bus_up()
{
	case $bus in
	redis)
		url=unix://$scratch/redis.sock
		redis-server --port 0 --unixsocket "$scratch/redis.sock" \
		    --save '' --appendonly no --daemonize no \
		    --dir "$scratch" > "$scratch/redis.out" 2>&1 &
		;;
	nats)
		url=nats://127.0.0.1:$port
		nats-server -a 127.0.0.1 -p "$port" > "$scratch/nats.out" 2>&1 &
		;;
	esac
	bus_pid=$!
}

case_requests_are_seen()
{
	begin
	both
	lease=$(router "$one" open 1 b)
	until_is 20 router "$two" holds 1 b
	until_is 1 router "$two" requests b
	now_is 0 router "$two" requests a
	router "$one" finish "$lease"
	until_is 0 router "$two" requests b
	now_is 20 router "$two" holds 1 b
	lease=$(router "$two" open 2 c)
	until_is 20 router "$one" holds 2 c
}

case_a_killed_daemon_ends() # slow
{
	begin
	both
	router "$one" open 1 b > /dev/null
	until_is 1 router "$two" requests b
	end KILL "$first_pid"
	within 20 0 router "$two" requests b
	within 20 '"silent"' field second state
	# The next one ends the leases that it had applied.
	router "$two" open 2 c > /dev/null
	daemon first "$one"
	until_is 1 fresh first
	router "$two" open 3 c > /dev/null
	until_is 20 router "$one" holds 3 c
}

case_a_stopped_daemon_leaves_nothing()
{
	begin
	both
	router "$two" open 1 b > /dev/null
	until_is 1 router "$one" requests b
	now_is 0 router "$one" silent
	end TERM "$first_pid"
	now_is 0 router "$one" requests b
	now_is 20 router "$one" holds 1 b
	# The router need not wait to see that it has gone.
	now_is 1 router "$one" silent
}

case_what_runs_is_seen_by_a_late_starter()
{
	begin
	daemon first "$one"
	until_is true field first connected
	lease=$(router "$one" open 1 b)
	until_is 1 field first own_leases
	daemon second "$two" --replay 0
	until_is 1 router "$two" requests b
	# Begun anew, it counts once, and ends.
	end KILL "$first_pid"
	daemon first "$one"
	until_is 1 fresh first
	until_is 1 fresh second
	until_is 1 router "$two" requests b
	router "$one" finish "$lease"
	until_is 0 router "$two" requests b
}

case_no_log_into_a_region_in_use()
{
	begin
	daemon first "$one"
	until_is true field first connected
	router "$one" open 1 b > /dev/null
	until_is 1 field first own_leases
	router "$two" open 2 c > /dev/null
	daemon second "$two"
	until_is 1 fresh second
	now_is 0 router "$two" holds 1 b
	now_is 0 field second replayed
	grep -q 'has prefixes: it learns from now on' "$scratch/second.log" ||
	    cat "$scratch/second.log"
}

case_the_bus_restarts()
{
	begin
	both
	end KILL "$bus_pid"
	until_is false field first connected
	# Routing goes on.
	router "$one" open 1 b > /dev/null
	bus_up
	until_is true field first connected
	until_is true field second connected
	until_is 1 fresh first
	until_is 1 fresh second
	router "$one" open 2 c > /dev/null
	until_is 20 router "$two" holds 2 c
}

case_without_a_bus()
{
	begin
	end KILL "$bus_pid"
	daemon first "$one"
	until_is false field first connected
	bus_up
	daemon second "$two"
	until_is 1 fresh first
	until_is 1 fresh second
}

two_strangers()
{
	[ "$(field second stranger)" -ge 2 ]
}

# Counts this line in the log.
says()
{
	grep -c "$1" "$scratch/first.log"
}

# One line at once, and one when it changes; not one for each attempt.
case_a_failure_has_a_word()
{
	begin
	end KILL "$bus_pid"
	daemon first "$one"
	within 5 1 says 'the bus cannot be used'
	until_true 60 has_failed 4 || echo 'not tried again'
	now_is 1 says 'the bus'
	now_is 0 says ': connected'
	bus_up
	until_is 1 says ': connected'
	end KILL "$bus_pid"
	until_true 60 has_said 3 || says 'the bus'
	bus_up
	until_is 2 says ': connected'
	"$build/kvroute-sync" --metrics "$scratch/first.sock" |
	    grep -q '^kvroute_sync_connected{.*} 1' || echo 'no metric'
}

# The end of a connection, and then none can be made.
has_said()
{
	[ "$(says 'the bus')" -ge "$1" ]
}

has_failed()
{
	[ "$(field first failures)" -ge "$1" ]
}

case_a_check_of_all()
{
	begin
	until_true 60 "$build/kvroute-sync" "--$bus" "$url" --check "$one"
	checks 0 "x=$one" "y=$two"
	prints_that "x: $one: attached"
	prints_that 'y: the bus: connected, reads, writes'
	both
	checks 1 "$one"
	prints_that 'another kvroute-sync has it'
	# Running ones have heard nothing of it.
	now_is 1 fresh first
	now_is 0 field first malformed
	end TERM "$first_pid"
	rm "$one"
	checks 1 "$one"
	prints_that 'No such file'
	router "$one" make s
	end KILL "$bus_pid"
	checks 1 "$one"
	prints_that 'the bus: it cannot be connected: [a-z]*: [A-Z]'
}

case_a_check_of_permissions_in_a_log()
{
	begin
	until_true 60 "$build/kvroute-sync" "--$bus" "$url" --check "$one"
	redis_cli acl setuser kv on '>x' '~kvroute' '~kvroute:*' +xadd +xread \
	    +xrange +xrevrange +time +select +expire +unlink
	url=unix://kv:x@$scratch/redis.sock
	checks 0 "$one"
	for command in xread xadd xrange expire time unlink; do
		redis_cli acl setuser kv "-$command"
		checks 1 "$one"
		prints_that "the bus: .*NOPERM.*'$command'"
		redis_cli acl setuser kv "+$command"
	done
	checks 0 "$one"
}

redis_cli()
{
	redis-cli -s "$scratch/redis.sock" "$@" > "$scratch/cli" 2>&1
	prints OK cat "$scratch/cli" || cat "$scratch/cli"
}

case_another_secret()
{
	begin t
	daemon first "$one"
	daemon second "$two"
	until_is true field first connected
	until_is true field second connected
	router "$one" open 1 b > /dev/null
	until_true 60 two_strangers || echo 'no stranger was counted'
	now_is 0 router "$two" requests b
	now_is 0 fresh second
}

case_frames_with_macs()
{
	begin
	printf 'ssssssssssssssssssssssssssssssss' > "$scratch/secret"
	both --secret "$scratch/secret"
	lease=$(router "$one" open 1 b)
	until_is 1 router "$two" requests b
	now_is 20 router "$two" holds 1 b
	router "$one" finish "$lease"
	until_is 0 router "$two" requests b
	# One that begins anew is heard again.
	end KILL "$second_pid"
	daemon second "$two" --secret "$scratch/secret"
	until_is 1 fresh first
	until_is 1 fresh second
	router "$one" open 2 c > /dev/null
	until_is 1 router "$two" requests c
}

case_sums_of_loads()
{
	begin t
	both --loads
	router "$one" open 1 b > /dev/null
	until_is 1 router "$two" requests b
	now_is 0 router "$two" holds 1 b
	end KILL "$first_pid"
	within 20 0 router "$two" requests b
}

case_loads_of_regions_without_journals()
{
	begin
	rm "$one" "$two"
	router "$one" make -
	router "$two" make -
	both --loads
	router "$one" open 1 b > /dev/null
	until_is 1 router "$two" requests b
	# The peer is shown, and its requests.
	until_is 1 fresh second
	until_is 1 field second requests
}

# Daemons with these options.
starts_late()
{
	daemon first "$one" "$@"
	until_is true field first ready
	lease=$(router "$one" open 1 b)
	router "$one" finish "$lease"
	router "$one" open 2 c > /dev/null
	until_is 1 field first own_leases
	daemon second "$two" "$@"
	until_is true field second ready
	now_is '"done"' field second late_start
	now_is 20 router "$two" holds 1 b
	now_is 20 router "$two" holds 2 c
	until_is 1 fresh second
	now_is 1 field first answers
	grep -q 'ready: 40 blocks from' "$scratch/second.log" ||
	    echo 'the log does not say so'
	# A replica that learnt it so can pass it on, too.
	end TERM "$first_pid"
	rm "$one"
	router "$one" make s
	daemon first "$one" "$@"
	until_is true field first ready
	now_is 20 router "$one" holds 1 b
}

case_a_late_start()
{
	begin
	starts_late
}

case_a_late_start_with_a_secret()
{
	begin
	printf 'ssssssssssssssssssssssssssssssss' > "$scratch/secret"
	starts_late --secret "$scratch/secret"
}

case_a_late_start_alone()
{
	begin
	daemon first "$one"
	until_is true field first connected
	router "$one" open 1 b > /dev/null
	until_is 1 field first own_leases
	end TERM "$first_pid"
	daemon second "$two"
	until_is true field second ready
	[ "$bus" != redis ] || now_is 20 router "$two" holds 1 b
}

case_missed_in_a_restart()
{
	begin
	both
	router "$two" open 2 c > /dev/null
	end TERM "$second_pid"
	router "$one" open 1 b > /dev/null
	until_is 1 field first own_leases
	daemon second "$two"
	until_is 20 router "$two" holds 1 b
}

case_one_daemon_a_region()
{
	begin
	both
	"$build/kvroute-sync" "--$bus" "$url" "$one" > "$scratch/out" 2>&1 &&
	    echo 'a second daemon began'
	grep -q 'another kvroute-sync has it' "$scratch/out" ||
	    cat "$scratch/out"
}

case_a_region_is_made_anew()
{
	begin
	both
	rm "$one"
	router "$two" open 1 b > /dev/null
	until_is 1 field second own_leases
	# The routers may still have it.
	now_is 0 grep -c 'is another file now' "$scratch/first.log"
	router "$one" make s
	until_is 1 grep -c 'is another file now' "$scratch/first.log"
	wait "$first_pid" 2> /dev/null
	now_is 1 echo $?
	daemon first "$one"
	until_is 1 fresh first
	until_is 20 router "$one" holds 1 b
	until_is 1 router "$one" requests b
}

# stop_within REGION - a process of it, whose pid is in $churn_pid, stands still
# in the middle of a change. One that stands still while it opens the region
# would let nobody else open it.
stop_within()
{
	"$build/router" "$1" churn > "$scratch/churn" &
	churn_pid=$!
	until_is open cat "$scratch/churn"
	until_true 60 is_within "$1" || echo 'never stopped'
}

is_within()
{
	kill -STOP "$churn_pid"
	[ "$(router "$1" busy)" != 1 ] || return 0
	kill -CONT "$churn_pid"
	return 1
}

# One daemon serves two regions. A call waits for the lock for 30 s elsewhere.
case_a_stopped_router_stops_no_other_region() # slow
{
	begin
	rm -f "$three"
	router "$three" make s
	daemon first "y=$two" "x=$one"
	daemon second "y=$three"
	until_is 1 fresh first
	until_is 1 fresh second
	stop_within "$one"
	lease=$(router "$three" open 1 b)
	within 20 1 router "$two" requests b
	sleep 3
	within 20 1 router "$two" requests b
	within 20 1 fresh first
	router "$three" finish "$lease"
	within 20 0 router "$two" requests b
	end KILL "$churn_pid"
}

case_a_file_is_no_socket()
{
	begin
	echo precious > "$scratch/first.sock"
	daemon first "$one"
	wait "$first_pid" 2> /dev/null
	now_is 1 echo $?
	first_pid=''
	now_is precious cat "$scratch/first.sock"
	grep -q 'first.sock: File exists' "$scratch/first.log" ||
	    cat "$scratch/first.log"
}

case_metrics()
{
	begin
	both
	router "$two" open 1 b > /dev/null
	until_is 1 field first leases
	until_is 320 field first prefill_tokens
	"$build/kvroute-sync" --metrics "$scratch/first.sock" > "$scratch/out"
	grep -q '^kvroute_sync_applied_frames_total{name="kvroute",' \
	    "$scratch/out" || cat "$scratch/out"
	for line in 'peer_fresh{.*,origin="[0-9a-f]*"} 1' \
	    'peer_lag_seconds{.*"} [0-9]*\.[0-9]*' 'peer_lost{.*"} 0' \
	    'peer_leases{.*"} 1' 'peer_unseen{.*"} 0' \
	    'peer_requests{.*"} 1' 'peer_prefill_tokens{.*"} 320' \
	    'peer_frames_total{.*"} [1-9][0-9]*' \
	    'peer_dropped_total{.*"} [0-9]*' \
	    'applied_missed_total{.*"} 0' 'applied_reordered_total{.*"} 0'; do
		now_is 1 grep -c "^kvroute_sync_$line\$" "$scratch/out"
	done
	grep -o 'kvroute_sync_[a-z_]*' examples/grafana.json > "$scratch/names"
	until_true 1 test -s "$scratch/names" || echo 'the dashboard has none'
	while read -r name; do
		grep -q "^$name{" "$scratch/out" || echo "no metric $name"
	done < "$scratch/names"
	"$build/kvroute-sync" --status "$scratch/first.sock" |
	    jq -e '.[0].peers[0] | .state == "fresh" and .requests == 1 and
	    .frames > 0 and (.dropped | type) == "number"' > /dev/null ||
	    echo 'the status lacks a figure of the peer'
}

port=$(free_port)
run "$2"
