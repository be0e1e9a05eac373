#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_names.sh - cases of check.sh: names that nginx resolves while it runs,
# from 1.27.3 on. Engines of one name have addresses of their own and one port.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

name_cases='names_come_and_go names_without_addresses names_change_under_load
    names_over_a_reload names_leave_while_the_lock_is_held names_have_facts
    names_are_polled_and_judged names_are_tried_again
    names_change_between_tries names_fill_the_table names_of_a_service
    names_in_the_log_outlive_servers'
quick_cases="${quick_cases:-} $name_cases"

# Can it? Otherwise the case is skipped.
resolves()
{
	"$NGINX_BIN" -v 2>&1 | tr '/.' '  ' |
	    awk '{ exit $4 * 1000000 + $5 * 1000 + $6 < 1027003 }' && return
	skip "$("$NGINX_BIN" -v 2>&1) resolves no names while it runs"
	return 1
}

# answer 'RECORD' ... - sets the name server's answers from now on.
answer()
{
	printf '%s\n' "$@" > "$work/out/names.new"
	mv "$work/out/names.new" "$work/out/names"
}

# addresses ADDRESS ... - those of engines.test.
addresses()
{
	for address in "$@"; do
		case $address in
		*:*) echo "engines.test AAAA $address" ;;
		*) echo "engines.test A $address" ;;
		esac
	done > "$work/out/names.new"
	mv "$work/out/names.new" "$work/out/names"
}

start_names()
{
	perl "$here/dns.pl" "$work/out/names" > "$work/out/names.port" &
	kept_pids="$kept_pids $!"
	until_true 20 test -s "$work/out/names.port"
	names_port=$(head -n 1 "$work/out/names.port")
}

is_healthy()
{
	curl -sf -m 2 -o /dev/null "http://$1:$engines_port/v1/models"
}

# start_engine_at ADDRESS [option ...] - at the port of all; sets engine_pid.
start_engine_at()
{
	at=$1
	shift
	"$build/kvroute-engine" --address "$at" --port "$engines_port" \
	    --for 900 --scale 0.01 --capacity 100000 "$@" \
	    > "$work/logs/engine" 2>&1 &
	engine_pid=$!
	kept_pids="$kept_pids $engine_pid"
	case $at in
	*:*) until_true 20 is_healthy "[$at]" ;;
	*) until_true 20 is_healthy "$at" ;;
	esac || echo "the engine at $at does not start"
}

# up_names ADDRESS ... - engines there, the name server, and nginx.
up_names()
{
	engines_port=$(free_port)
	for address in "$@"; do
		start_engine_at "$address"
	done
	start_names
	: "${server_list:=server engines.test:$engines_port resolve;}"
	http_lines="resolver 127.0.0.1:$names_port valid=1s;
	    resolver_timeout 2s; ${http_lines:-}"
	start_nginx kvroute
}

# The names of workers, as the index has them.
worker_names()
{
	json '[.upstreams[0].workers[].name] | unique | join(" ")'
}

workers_are()
{
	[ "$(worker_names)" = "$*" ]
}

# wait_for_workers NAME ... - in order; else the rest of the case is in vain.
wait_for_workers()
{
	until_true 20 workers_are "$*" && return
	echo "workers are $(worker_names), not $*"
	return 1
}

# ask_one - a request; its status, and the server that it went to.
ask_one()
{
	curl -s -m 20 -o "$work/out/said" -w '%{http_code}' \
	    "http://127.0.0.1:$port/v1/completions" \
	    -d "{\"prompt\": \"${1:-a question}\", \"max_tokens\": 2}"
}

asked_is()
{
	[ "$(ask_one)" = "$1" ]
}

# opens NAME - leases that were opened on its worker.
opens()
{
	json "[.upstreams[0].workers[] | select(.name == \"$1\") |
	    .lease_opens] | add // 0"
}

requests_reach()
{
	ask_one "a question of $(date +%s%N)" > "$work/out/status"
	[ "$(opens "$1")" -gt "$2" ]
}

names_come_and_go()
{
	resolves || return 0
	module_file=$(cd "$build" && pwd -P)/nginx/small/$module_name
	addresses 127.0.0.2
	up_names 127.0.0.2 127.0.0.3 ::1
	a=127.0.0.2:$engines_port b=127.0.0.3:$engines_port
	c="[::1]:$engines_port"
	wait_for_workers "$a" || return 0
	until_true 20 requests_reach "$a" 0 || echo 'the first is not asked'
	addresses 127.0.0.2 127.0.0.3 ::1
	wait_for_workers "$a" "$b" "$c" || return 0
	until_true 20 requests_reach "$b" 0 || echo 'a new one is not asked'
	until_true 20 requests_reach "$c" 0 || echo 'that of IPv6 is not asked'
	addresses 127.0.0.3 ::1
	wait_for_workers "$b" "$c" || return 0
	is 'requests to what is left' "$(talk --requests 40 --chats 8 \
	    --think-ms 1; figure errors)" 0
	addresses 127.0.0.2
	wait_for_workers "$a" || return 0
	is 'its record' "$(opens "$a")" 0
	until_true 20 requests_reach "$a" 0 || echo 'it is not asked again'
	addresses 127.0.0.2 127.0.0.3
	wait_for_workers "$a" "$b" || return 0
	settled
}

# For both kinds of addresses.
failed_twice()
{
	[ "$(grep -c failed "$work/out/names.port")" -ge 4 ]
}

names_without_addresses()
{
	resolves || return 0
	answer 'other.test A 127.0.0.9'
	up_names 127.0.0.2
	is 'the status without an address' "$(ask_one)" 502
	is 'workers' "$(worker_names)" ''
	addresses 127.0.0.2
	until_true 20 asked_is 200 || echo 'it is not found'
	answer 'engines.test FAIL'
	until_true 20 failed_twice || echo 'the name server is not asked'
	is 'the status while the name server fails' "$(ask_one)" 200
	answer 'other.test A 127.0.0.9'
	until_true 20 asked_is 502 || echo 'it stays'
	addresses 127.0.0.2
	until_true 20 asked_is 200 || echo 'it does not come back'
	settled
}

# addresses_in_use ADDRESS ... - waits until users are at these alone.
addresses_in_use()
{
	addresses "$@"
	names=$(for address in "$@"; do
		case $address in
		*:*) echo "[$address]:$engines_port" ;;
		*) echo "$address:$engines_port" ;;
		esac
	done | sort | xargs)
	until_true 20 are_up || echo "$names are not up"
	more 100
}

are_up()
{
	[ "$(json '[.upstreams[0].workers[] | select(.state == "up") | .name] |
	    sort | join(" ")')" = "$names" ]
}

# Streams of servers that have left end as they would; no request fails.
names_change_under_load()
{
	resolves || return 0
	module_file=$(cd "$build" && pwd -P)/nginx/small/$module_name
	kvroute_options='zone=kv:8m gray=8 poll=100ms'
	addresses 127.0.0.2 127.0.0.3 127.0.0.4
	up_names 127.0.0.2 127.0.0.3 127.0.0.4 ::1
	wait_for_workers "127.0.0.2:$engines_port" "127.0.0.3:$engines_port" \
	    "127.0.0.4:$engines_port" || return 0
	talk_meanwhile --chats 24 --think-ms 5
	for i in 1 2; do
		addresses_in_use 127.0.0.3 127.0.0.4
		addresses_in_use ::1 127.0.0.2
		addresses_in_use 127.0.0.2 127.0.0.3 127.0.0.4 ::1
	done
	talk_over
	no_errors 'while addresses change'
	settled
}

# Records of addresses that stay are kept; so are those that an answer of the
# name server leaves out for a while.
names_over_a_reload()
{
	resolves || return 0
	addresses 127.0.0.2 127.0.0.3
	up_names 127.0.0.2 127.0.0.3
	a=127.0.0.2:$engines_port b=127.0.0.3:$engines_port
	wait_for_workers "$a" "$b" || return 0
	until_true 20 requests_reach "$a" 0
	until_true 20 requests_reach "$b" 0
	before=$(opens "$a")
	reload_nginx kvroute
	is 'workers after a reload' "$(worker_names)" "$a $b"
	is 'requests on record after it' "$(opens "$a")" "$before"
	is 'the status after it' "$(ask_one)" 200
	addresses 127.0.0.3
	until_true 20 has_left "$a" || echo 'it does not leave'
	before=$(opens "$a")
	talk --requests 40 --chats 8 --think-ms 1
	no_errors 'without one of the addresses'
	is 'requests to what has left' "$(opens "$a")" "$before"
	is 'its state' "$(state_of "$a" state)" left
	reload_nginx kvroute
	is 'what it had before, after a reload' "$(opens "$a")" "$before"
	addresses 127.0.0.2 127.0.0.3
	until_true 20 requests_reach "$a" "$before" || echo 'it does not come back'
	for i in $(seq 20); do
		is 'its state' "$(state_of "$a" state)" up
	done
	kill -KILL "$(children "$nginx_pid" | head -n 1)"
	expected_alert='exited on signal 9'
	until_true 20 asked_is 200 || echo 'nothing works after a death'
	settled
}

# A process that sees an address leave, but cannot read the index then.
names_leave_while_the_lock_is_held()
{
	resolves || return 0
	kvroute_options="path=$work/out/index size=8m"
	processes=1
	addresses 127.0.0.2
	up_names 127.0.0.2
	wait_for_workers "127.0.0.2:$engines_port" || return 0
	hold_still
	addresses 127.0.0.5
	until_true 20 asked_is 502 || echo 'the address does not leave'
	sleep 2.5 # it looks for what has left each second
	is_blocked || echo 'the lock is free'
	end_strays
	until_true 20 lock_is_free || echo 'the lock stays held'
	until_true 20 has_left "127.0.0.2:$engines_port" ||
	    echo "its state is $(state_of "127.0.0.2:$engines_port" state)"
	settled
}

names_have_facts()
{
	resolves || return 0
	addresses 127.0.0.2
	server_list='server engines.test:8123 resolve weight=3;
	    kvroute_server engines.test:8123 capacity=123456 ranks=2;
	    kvroute_server 127.0.0.3:8123 capacity=777 ranks=1;'
	up_names
	wait_for_workers 127.0.0.2:8123 || return 0
	addresses 127.0.0.2 127.0.0.3
	wait_for_workers 127.0.0.2:8123 127.0.0.3:8123 || return 0
	is 'facts' "$(json '[.upstreams[0].workers[] | [.name, .rank // 0, .weight,
	    .capacity]] | sort | tojson')" '[["127.0.0.2:8123",0,3,123456],'\
'["127.0.0.2:8123",1,3,123456],["127.0.0.3:8123",0,3,777]]'
}

# all_polled N [CAPACITY] - are so many, and judged?
all_polled()
{
	[ "$(json "[.upstreams[0].workers[] | select(.polled != null and
	    .health != null and .capacity == ${2:-0})] | length")" = "$1" ]
}

names_are_polled_and_judged()
{
	resolves || return 0
	kvroute_options='zone=kv:8m poll=100ms gray=8 slow_start=1s'
	addresses 127.0.0.2
	server_list='server engines.test:PORT resolve;
	    kvroute_server engines.test:PORT capacity=auto;'
	engines_port=$(free_port)
	server_list=$(echo "$server_list" | sed "s/PORT/$engines_port/")
	for address in 127.0.0.2 127.0.0.3; do
		start_engine_at "$address"
	done
	start_names
	http_lines="resolver 127.0.0.1:$names_port valid=1s;"
	start_nginx kvroute
	until_true 20 all_polled 1 100000 || echo 'the first is not polled'
	addresses 127.0.0.2 127.0.0.3
	until_true 20 all_polled 2 100000 || echo 'the second is not polled'
	talk --requests 20 --chats 4 --think-ms 1
	no_errors 'of two'
	is 'polled in the metrics' "$(status /metrics |
	    grep -c '^kvroute_nginx_polled_running')" 2
	addresses 127.0.0.3
	until_true 20 all_polled 1 100000 || echo 'what has left is polled'
	addresses 127.0.0.2 127.0.0.3
	until_true 20 all_polled 2 100000 || echo 'what is back is not polled'
	settled
}

# One address refuses; the other is tried, also while addresses change.
names_are_tried_again()
{
	resolves || return 0
	addresses 127.0.0.2 127.0.0.5
	up_names 127.0.0.2 127.0.0.3
	wait_for_workers "127.0.0.2:$engines_port" "127.0.0.5:$engines_port" ||
	    return 0
	talk --requests 30 --chats 8 --think-ms 1
	no_errors 'with an address that refuses'
	addresses 127.0.0.5
	until_true 20 asked_is 502 || echo 'what refuses answers'
	addresses 127.0.0.5 127.0.0.3
	until_true 20 asked_is 200 || echo 'what came is not used'
	settled
}

# The engines of the first two tries stop; when they die, their addresses are no
# longer among those of the name.
names_change_between_tries()
{
	resolves || return 0
	location_lines='proxy_next_upstream error timeout non_idempotent;'
	addresses 127.0.0.2 127.0.0.3
	up_names 127.0.0.4
	for address in 127.0.0.2 127.0.0.3; do
		start_engine_at $address
		stopped="${stopped:-} $engine_pid"
	done
	wait_for_workers "127.0.0.2:$engines_port" "127.0.0.3:$engines_port" ||
	    return 0
	# shellcheck disable=SC2086
	kill -STOP $stopped
	ask_one > "$work/out/status" &
	asked_pid=$!
	until_true 20 is_running 1 || echo 'the request does not begin'
	addresses 127.0.0.4
	until_true 20 has_worker "127.0.0.4:$engines_port" ||
	    echo 'the third does not come'
	# shellcheck disable=SC2086
	kill -KILL $stopped
	wait "$asked_pid"
	is 'its status' "$(cat "$work/out/status")" 200
	unset stopped
	settled
}

has_worker()
{
	worker_names | grep -q "$1"
}

is_running()
{
	[ "$(json '[.upstreams[0].workers[].requests] | add')" = "$1" ]
}

# Servers that have left make room at once.
names_fill_the_table()
{
	resolves || return 0
	kvroute_options='zone=kv:8m workers=2 poll=100ms gray=8'
	addresses 127.0.0.2 127.0.0.3
	up_names 127.0.0.2 127.0.0.3 127.0.0.4
	wait_for_workers "127.0.0.2:$engines_port" "127.0.0.3:$engines_port" ||
	    return 0
	addresses 127.0.0.3 127.0.0.4
	wait_for_workers "127.0.0.3:$engines_port" "127.0.0.4:$engines_port" ||
	    return 0
	until_true 20 all_polled 2 || echo 'places of what has left stay'
	addresses 127.0.0.2 127.0.0.3 127.0.0.4
	until_true 20 grep -q 'no room for another worker' "$work/logs/error" ||
	    echo 'it is not said that the table is full'
	talk --requests 30 --chats 8 --think-ms 1
	no_errors 'with more addresses than places'
	is 'workers' "$(worker_names | wc -w)" 2
	settled
}

# fault_at ADDRESS FAULT
fault_at()
{
	curl -sf -m 10 -o /dev/null -X POST \
	    "http://$1:$engines_port/fault?$2" || echo "no fault at $1"
}

# A request has waited, and its server leaves, and dies; others take its memory.
names_in_the_log_outlive_servers()
{
	resolves || return 0
	kvroute_options='zone=kv:8m queue=9'
	processes=1
	queue_log
	addresses 127.0.0.2 127.0.0.3
	engines_port=$(free_port)
	server_list="server engines.test:$engines_port resolve max_conns=1
	    max_fails=0;"
	pids=
	for address in 127.0.0.2 127.0.0.3; do
		start_engine_at $address
		pids="$pids $engine_pid"
	done
	start_names
	http_lines="resolver 127.0.0.1:$names_port valid=1s; $http_lines"
	location_lines="proxy_next_upstream error timeout non_idempotent;
	    $location_lines"
	start_nginx kvroute
	wait_for_workers "127.0.0.2:$engines_port" "127.0.0.3:$engines_port" ||
	    return 0
	queue_pids='' sent=0
	fault_at 127.0.0.2 'kind=stall&seconds=600'
	fault_at 127.0.0.3 'kind=stall&seconds=600'
	send_one
	until_true 20 in_flight_is 1
	send_one
	until_true 20 in_flight_is 2 || echo 'the two are not there'
	send_to_wait 1
	for i in 2 3; do
		kill "$(echo "$queue_pids" | cut -d ' ' -f $i)"
		[ $i = 3 ] || until_true 20 waiting_is 0 || echo 'it waits on'
	done
	until_true 20 in_flight_is 1 || echo 'the third is not alone'
	case $(json '.upstreams[0].workers[] | select(.requests > 0) | .name') in
	127.0.0.2:*) at=127.0.0.2 n=2 other=127.0.0.3 ;;
	*) at=127.0.0.3 n=3 other=127.0.0.2 ;;
	esac
	addresses $other
	until_true 20 has_left "$at:$engines_port" || echo 'it stays'
	kill -KILL "$(echo "$pids" | cut -d ' ' -f $n)"
	until_true 20 reaches "$other:$engines_port" || echo 'it is not tried again'
	addresses $other 127.0.0.144 127.0.0.145 127.0.0.146 127.0.0.147
	until_true 20 has_worker 127.0.0.147 || echo 'no other comes'
	fault_at $other kind=none
	until_true 20 has_status 3 || echo 'it has no end'
	is 'its servers in the log' "$(line_of 3 4) $(line_of 3 5)" \
	    "$at:$engines_port, $other:$engines_port"
}

# reaches NAME - does its worker have a request?
reaches()
{
	[ "$(json "[.upstreams[0].workers[] | select(.name == \"$1\") |
	    .requests] | add // 0")" -gt 0 ]
}

has_left()
{
	! has_worker "$1" || [ "$(state_of "$1" state)" = left ]
}

# Ports come from the name server, too.
names_of_a_service()
{
	resolves || return 0
	start_engines 2 --scale 0.01 --capacity 100000
	one=$(nth 1 "$engine_ports") two=$(nth 2 "$engine_ports")
	answer "_llm._tcp.engines.test SRV 1 1 $one a.test" \
	    'a.test A 127.0.0.1'
	start_names
	server_list='server engines.test service=_llm._tcp resolve;
	    kvroute_server engines.test capacity=4321;'
	http_lines="resolver 127.0.0.1:$names_port valid=1s ipv6=off;"
	start_nginx kvroute
	wait_for_workers "127.0.0.1:$one" || return 0
	answer "_llm._tcp.engines.test SRV 1 1 $one a.test" \
	    "_llm._tcp.engines.test SRV 1 5 $two a.test" 'a.test A 127.0.0.1'
	until_true 30 opens_at_least 2 ||
	    echo "workers are $(worker_names)"
	is 'weights' "$(json '[.upstreams[0].workers[].weight] | sort | tojson')" \
	    '[1,5]'
	is 'capacities' "$(json '[.upstreams[0].workers[].capacity] | unique |
	    tojson')" '[4321]'
	talk --requests 30 --chats 8 --think-ms 1
	no_errors 'of a service'
	settled
}

opens_at_least()
{
	[ "$(json '.upstreams[0].workers | length')" -ge "$1" ]
}
