#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_faults.sh - cases of check.sh: engines, clients and processes of nginx
# that fail under load.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} engine_refuses engine_stalls
    engine_dies_in_mid_stream engine_answers_with_errors
    engines_restart_empty clients_leave_at_every_stage
    clients_that_leave_are_counted
    reload_under_load reload_changes_servers process_killed_under_load"
slow_cases="${slow_cases:-} process_killed_again_and_again
    process_stopped_for_5_s index_in_a_file_survives"

load='--chats 16 --think-ms 5 --timeout 60'

# Without max_fails=0 nginx would skip the address for ten seconds. An engine
# that exits also closes nginx's keepalive connections; a request on one of them
# is retried elsewhere only if nginx may repeat a POST.
engine_refuses()
{
	location_lines='proxy_next_upstream error timeout non_idempotent;'
	server_options='max_fails=0'
	up
	# shellcheck disable=SC2086
	talk_meanwhile $load
	more 100
	fault 1 'kind=refuse&seconds=1'
	until_true 20 is_reset || echo 'it is not reset'
	until_true 20 engine_answers "$(nth 1 "$engine_ports")"
	more 100
	talk_over
	no_errors 'in all'
	settled
}

is_reset()
{
	[ "$(json '.upstreams[0].refused')" -gt 0 ]
}

# The others take the load until it continues.
engine_stalls()
{
	up
	# shellcheck disable=SC2086
	talk_meanwhile $load
	more 100
	fault 1 'kind=stall&seconds=60'
	others=$(requests_of_others)
	until_true 20 others_took 60 || echo 'others take' \
	    "$(($(requests_of_others) - others)) requests meanwhile"
	fault 1 'kind=none'
	talk_over
	no_errors 'in all'
	settled
}

requests_of_others()
{
	json "[.upstreams[0].workers[]
	    | select(.name != \"127.0.0.1:$(nth 1 "$engine_ports")\")
	    | .lease_opens] | add"
}

others_took()
{
	[ $(($(requests_of_others) - others)) -ge "$1" ]
}

# The engine's requests in flight fail, and no others.
engine_dies_in_mid_stream()
{
	up --scale 0.1
	# shellcheck disable=SC2086
	talk_meanwhile $load --answer-tokens 300
	more 40
	until_true 20 first_engine_dies_at_work || echo 'no response is cut off'
	more 40
	talk_over
	above 'incomplete responses' "$(figure broken)" 0
	is errors "$(figure errors)" "$(figure broken)"
	above 'complete responses' "$(figure counted)" "$(figure broken)"
	settled
}

# It may have answered all of them by the time that it dies.
first_engine_dies_at_work()
{
	first_engine_has_work && fault 1 'kind=die' &&
	    grep -q 'upstream prematurely closed' "$work/logs/error"
}

first_engine_has_work()
{
	[ "$(state_of "127.0.0.1:$(nth 1 "$engine_ports")" requests)" -gt 1 ]
}

# A response with status 500 is passed on, and nothing is learned from it.
engine_answers_with_errors()
{
	engines=1
	up
	fault 1 'kind=error&status=503&seconds=60'
	talk --requests 20 --chats 2 --think-ms 1
	is 'errors' "$(figure http_5xx)" 20
	is 'blocks on record' "$(json '.upstreams[0].region.held_blocks')" 0
	fault 1 'kind=none'
	talk --requests 20 --chats 2 --think-ms 1
	no_errors 'afterwards'
	above 'blocks afterwards' \
	    "$(json '.upstreams[0].region.held_blocks')" 0
	settled
}

# The same chats before and after all caches are lost, and once more. A refused
# connection resets the record of the engine.
engines_restart_empty()
{
	server_options='max_fails=0'
	up
	set -- --requests 96 --chats 8 --think-ms 1 --turns 4
	talk "$@"
	talk "$@"
	before=$(figure hit_ratio)
	holders=$(json '[.upstreams[0].workers[] | select(.held_blocks > 0)]
	    | length')
	above 'workers with blocks on record' "$holders" 0
	for i in 1 2 3 4; do
		fault $i 'kind=restart&seconds=2'
	done
	talk --requests 1 --chats 1
	is 'errors of the one without an engine' "$(figure errors)" 1
	is 'workers that refused' "$(json '.upstreams[0].refused')" \
	    "$holders"
	is 'blocks on record' "$(json '.upstreams[0].region.held_blocks')" 0
	for p in $engine_ports; do
		until_true 20 engine_answers "$p" || echo 'no restart'
	done
	talk "$@"
	above 'hit ratio before beside that after' "$before" \
	    "$(figure hit_ratio)"
	talk "$@"
	above 'hit ratio once recovered' "$(figure hit_ratio)" \
	    "$(awk -v b="$before" 'BEGIN { print b * 0.9 }')"
	settled
}

engine_answers()
{
	curl -sf -m 2 -o /dev/null "http://127.0.0.1:$1/health"
}

clients_leave_at_every_stage()
{
	location_lines='kvroute_include_usage on;'
	up --scale 0.05
	for stage in half-body sent headers first-event bytes; do
		talk --requests 40 --chats 8 --think-ms 1 --abort $stage \
		    --abort-percent 50 --abort-bytes 700 --no-usage
		no_errors "of those that stayed ($stage)"
		above "those that left ($stage)" "$(figure left)" 0
	done
	talk --requests 40 --chats 8 --think-ms 1 --abort sent --no-stream
	is 'all left' "$(figure left)" 40
	talk --requests 16 --chats 4 --think-ms 1
	no_errors 'afterwards'
	settled
}

# ask_and_leave N BODY - clients that wait three seconds for the whole response.
ask_and_leave()
{
	i=0
	leaving=
	while [ $i -lt "$1" ]; do
		i=$((i + 1))
		curl -s -m 3 -o /dev/null -d "$2" \
		    "http://127.0.0.1:$port/v1/completions" &
		leaving="$leaving $!"
	done
	# shellcheck disable=SC2086
	wait $leaving
}

left_are()
{
	[ "$(json '.upstreams[0].clients_left')" = "$1" ]
}

# While an engine is silent, and in the middle of a stream; not those that stay.
clients_that_leave_are_counted()
{
	engines=1
	up --scale 1
	talk --requests 4 --chats 2 --think-ms 1 --answer-tokens 4
	is 'clients that left, at first' "$(json '.upstreams[0].clients_left')" 0
	ask_and_leave 3 '{"model":"m","stream":true,"max_tokens":5000,"prompt":"a"}'
	until_true 20 left_are 3 || is 'clients that left a stream' \
	    "$(json '.upstreams[0].clients_left')" 3
	fault 1 'kind=stall&seconds=60'
	ask_and_leave 2 '{"model":"m","prompt":"a"}'
	until_true 20 left_are 5 || is 'clients that left' \
	    "$(json '.upstreams[0].clients_left')" 5
	fault 1 'kind=none'
	is 'the same in metrics' \
	    "$(metric kvroute_nginx_clients_left_total)" 5
	talk --requests 4 --chats 2 --think-ms 1 --answer-tokens 4
	no_errors afterwards
	is 'clients that left, at last' "$(json '.upstreams[0].clients_left')" 5
	settled
}

reload_under_load()
{
	up --scale 0.05
	# shellcheck disable=SC2086
	talk_meanwhile $load
	for i in 1 2 3; do
		more 60
		blocks=$(json '.upstreams[0].region.held_blocks')
		reload_nginx kvroute
	done
	above 'blocks before the last reload' "$blocks" 0
	talk_over
	no_errors 'in all'
	is 'requests counted' "$(json '.upstreams[0].reasons | add')" \
	    "$(figure requests)"
	is 'index recoveries' \
	    "$(json '.upstreams[0].region.recoveries')" 0
	settled
}

reload_changes_servers()
{
	up
	all=$engine_ports
	upstream_ports="$(nth 1 "$all") $(nth 2 "$all") $(nth 3 "$all")"
	reload_nginx kvroute
	is 'workers, one removed' "$(json '.upstreams[0].workers | length')" 3
	# shellcheck disable=SC2086
	talk_meanwhile $load
	more 60
	kept=127.0.0.1:$(nth 2 "$all")
	blocks=$(state_of "$kept" held_blocks)
	upstream_ports="$(nth 2 "$all") $(nth 3 "$all") $(nth 4 "$all")"
	server_options='weight=2'
	reload_nginx kvroute
	above 'blocks of a server that stays' \
	    "$(state_of "$kept" held_blocks)" "$((blocks - 1))"
	is 'workers afterwards' \
	    "$(json '[.upstreams[0].workers[].name] | sort | join(" ")')" \
	    "$(for p in $upstream_ports; do echo "127.0.0.1:$p"; done |
	    sort | paste -s -d ' ')"
	talk_over
	no_errors 'in all'
	settled
}

# Only its own connections are lost.
kill_one_process()
{
	kill -9 "$(children "$nginx_pid" | head -n 1)"
	expected_alert='exited on signal 9'
}

all_processes()
{
	[ "$(children "$nginx_pid" | wc -l)" -eq 2 ]
}

process_killed_under_load()
{
	up --scale 0.05
	# shellcheck disable=SC2086
	talk_meanwhile $load
	more 60
	blocks=$(json '.upstreams[0].region.held_blocks')
	kill_one_process
	until_true 20 all_processes
	more 60
	after=$(json '.upstreams[0].region | .held_blocks + 1000000 * .recoveries')
	above 'blocks, or index recoveries' "$after" \
	    "$((blocks / 2))"
	talk_over
	is errors "$(figure errors)" "$(figure broken)"
	above 'complete responses' "$(figure counted)" "$(figure broken)"
	settled
}

process_killed_again_and_again()
{
	up --scale 0.05
	# shellcheck disable=SC2086
	talk_meanwhile $load
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		more 100
		kill_one_process
		until_true 20 all_processes
	done
	talk_over
	is errors "$(figure errors)" "$(figure broken)"
	above 'complete responses' "$(figure counted)" "$(figure broken)"
	talk --requests 60 --chats 6 --think-ms 1
	no_errors 'afterwards'
	settled
}

# The other one continues and takes all new connections.
process_stopped_for_5_s()
{
	up
	talk --requests 60 --chats 6 --think-ms 1
	stopped=$(children "$nginx_pid" | head -n 1)
	kill -STOP "$stopped"
	talk --seconds 5 --chats 6 --think-ms 1
	no_errors 'meanwhile'
	above 'requests meanwhile' "$(figure requests)" 50
	kill -CONT "$stopped"
	talk --requests 60 --chats 6 --think-ms 1
	no_errors 'afterwards'
	settled
}

index_in_a_file_survives()
{
	kvroute_options="path=$work/out/index size=8m"
	up
	set -- --requests 96 --chats 8 --think-ms 1 --turns 4
	talk "$@"
	until_true 20 no_leases
	blocks=$(json '.upstreams[0].region.held_blocks')
	above 'blocks on record' "$blocks" 0
	stop_nginx
	start_nginx kvroute
	is 'blocks after a restart' \
	    "$(json '.upstreams[0].region.held_blocks')" "$blocks"
	talk "$@"
	no_errors 'in all'
	settled
}
