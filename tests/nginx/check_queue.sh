#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_queue.sh - cases of check.sh: requests that wait while all servers are
# full.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} full_servers_are_waited_for
    waiting_has_an_end full_queues_answer_503 clients_that_leave_give_up_their_place
    all_processes_share_the_places older_requests_of_another_process_go_first
    state_of_another_process_goes_first all_wanted_servers_are_left_alone
    retries_of_another_process_go_first unknown_ids_do_not_overtake
    places_of_a_dead_process_are_free
    requests_wait_over_a_reload engines_that_fail_are_not_waited_for
    waiting_requests_try_the_next_server waiting_for_a_local_socket
    waiting_for_an_engine_with_tls state_waits_for_its_worker
    state_waits_behind_no_other_worker more_go_than_in_one_turn
    drained_servers_are_not_for_waiting_requests
    shadowed_requests_wait_too more_users_than_places_at_engines
    without_a_limit_nobody_waits state_of_a_failing_worker_is_reached"

# --------------------------------------------------------- common functions

# A line for each request: its number, status, reason, address, time waited.
queue_log()
{
	http_lines="log_format queue '\$http_x_n \$status \$kvroute_reason"
	http_lines="$http_lines \$upstream_addr \$kvroute_queue_time"
	http_lines="$http_lines \$upstream_response_time';
	    ${more_lines:-}"
	location_lines="access_log $work/logs/queue queue; ${location_lines:-}"
	: > "$work/logs/queue"
}

# queue_up OPTIONS [engine option ...] - kvroute's, beside the zone.
queue_up()
{
	kvroute_options="zone=kv:8m $1"
	shift
	processes=${processes:-1}
	engines=${engines:-1}
	server_options=${server_options:-max_conns=1 max_fails=0}
	queue_log
	up "$@"
	queue_pids=
	sent=0
}

# send_one [curl option ...] - one more request, which goes on in the background.
send_one()
{
	sent=$((sent + 1))
	curl -s -m 60 -o /dev/null -w '%{http_code}\n' -H "X-N: $sent" \
	    -d '{"model":"m","max_tokens":1,"prompt":"'"$prompt"'"}' "$@" \
	    "http://127.0.0.1:${queue_port:-$port}/v1/completions" \
	    > "$work/out/sent.$sent" &
	sent_pid=$!
	queue_pids="$queue_pids $sent_pid"
}

waiting()
{
	json '.upstreams[0].queue.waiting'
}

waiting_is()
{
	[ "$(waiting)" = "$1" ]
}

# Sends a request that must wait, as the N-th one that does.
send_to_wait()
{
	n=$1
	shift
	send_one "$@"
	until_true 20 waiting_is "$n" || is 'waiting' "$(waiting)" "$n"
}

in_flight_is()
{
	[ "$(json '[.upstreams[0].workers[].requests] | add')" = "$1" ]
}

# A request that found the lock held, as processes that start may hold it, is at
# its engine, and booked nowhere.
are_there()
{
	[ "$(json '.upstreams[0] | ([.workers[].requests] | add) +
	    .reasons.busy')" = "$1" ]
}

# Engines stall, and each server has a request.
all_are_busy()
{
	faults "$engine_ports" 'kind=stall&seconds=600'
	for p in $engine_ports; do
		send_one
		until_true 20 are_there "$sent" || echo "$sent is not there"
	done
}

# Prints the status of a request that was sent.
sent_status()
{
	cat "$work/out/sent.$1"
}

has_status()
{
	[ -s "$work/out/sent.$1" ]
}

all_answered()
{
	for pid in $queue_pids; do
		wait "$pid"
	done
	queue_pids=
}

# Prints the numbers with this status, in the order of the log.
logged_in_order()
{
	until_true 20 queue_logged
	awk -v s="$1" '$2 == s { print $1 }' "$work/logs/queue" |
	    paste -s -d ' '
}

queue_logged()
{
	[ "$(wc -l < "$work/logs/queue")" -ge "$sent" ]
}

# line_of N FIELD
line_of()
{
	until_true 20 grep -q "^$1 " "$work/logs/queue"
	awk -v n="$1" -v f="$2" '$1 == n { print $f }' "$work/logs/queue"
}

let_go()
{
	faults "$engine_ports" kind=none
	all_answered
}

# ------------------------------------------------------------------- waiting

# In order; and one too many is refused.
full_servers_are_waited_for()
{
	queue_up 'queue=3 queue_timeout=50s'
	all_are_busy
	for i in 1 2 3; do
		send_to_wait $i
	done
	is 'bookings while they wait' \
	    "$(json '.upstreams[0].region.leases')" 1
	is 'places' "$(json '.upstreams[0].queue.most')" 3
	is 'waiting in metrics' "$(metric kvroute_nginx_waiting)" 3
	send_one
	wait "$sent_pid" 2> /dev/null
	is 'one too many' "$(sent_status 5)" 503
	is 'its status in the log' "$(line_of 5 2)" 503
	is 'its reason' "$(line_of 5 3)" queue_full
	is 'that it waited' "$(line_of 5 5)" -
	let_go
	is 'order' "$(logged_in_order 200)" '1 2 3 4'
	is 'reason of one that waited' "$(line_of 4 3)" "$(line_of 1 3)"
	is 'address of one that waited' "$(line_of 4 4)" "$(address_of 1)"
	above 'time of the last' "$(line_of 4 5)" 0
	is 'time of the first' "$(line_of 1 5)" -
	is 'waited' "$(json '.upstreams[0] | "\(.queued) \(.times.queue.count)
	    \(.reasons.queue_full) \(.reasons | add)"' | paste -s -d ' ' |
	    tr -s ' \t' ' ')" '3 3 1 5'
	is 'retries' "$(json '.upstreams[0].retries')" 0
	is 'waiting at last' "$(waiting)" 0
	is 'lines of nginx' "$(lines_with 'no live upstreams')" 1
	settled
}

# One too many is told when to come back.
full_queues_answer_503()
{
	queue_up 'queue=1 queue_timeout=50s'
	all_are_busy
	send_to_wait 1
	curl -s -m 10 -D "$work/head" -o "$work/refusal" -d '{"model":"m",
	    "prompt":"a"}' "http://127.0.0.1:$port/v1/completions"
	is 'when to come back' "$(tr -d '\r' < "$work/head" |
	    sed -n 's/^Retry-After: //p')" 1
	is 'the sentence' "$(jq -r .error.message "$work/refusal")" \
	    'all servers are full, and no more requests may wait'
	is 'its code' "$(jq -r .error.code "$work/refusal")" queue_full
	is 'its length' "$(tr -d '\r' < "$work/head" |
	    sed -n 's/^Content-Length: //p')" "$(wc -c < "$work/refusal")"
	let_go
	settled
}

waiting_has_an_end()
{
	queue_up 'queue=3 queue_timeout=300ms'
	all_are_busy
	send_one
	wait "$sent_pid" 2> /dev/null
	is status "$(sent_status 2)" 503
	is reason "$(line_of 2 3)" queue_timeout
	above 'time that it waited' "$(line_of 2 5)" 0.2
	is 'time of a server' "$(line_of 2 6)" 0.000
	is_logged 'while waiting for a server that is not full' ||
	    echo 'the log does not say what it waited for'
	is counted "$(json '.upstreams[0].reasons.queue_timeout')" 1
	is 'waiting at last' "$(waiting)" 0
	let_go
	is 'the first' "$(sent_status 1)" 200
	send_one
	all_answered
	is 'afterwards' "$(sent_status 3)" 200
	settled
}

clients_that_leave_give_up_their_place()
{
	queue_up 'queue=1'
	all_are_busy
	send_to_wait 1
	sleep 0.3
	kill "$sent_pid"
	wait "$sent_pid" 2> /dev/null
	until_true 20 waiting_is 0 || echo 'it waits on'
	is 'status in the log' "$(line_of 2 2)" 499
	above 'time that it waited' "$(line_of 2 5)" 0.2
	is 'time of a server' "$(line_of 2 6)" 0.000
	send_to_wait 1
	let_go
	is 'the one that came later' "$(sent_status 3)" 200
	is 'clients that left' "$(json '.upstreams[0].clients_left')" 1
	settled
}

# ----------------------------------------------------------------- processes

# Whichever process has them; each then serves its own, the oldest first of all.
all_processes_share_the_places()
{
	processes=3
	module_file=$(cd "$build" && pwd -P)/nginx/small/ngx_http_upstream_kvroute_module.so
	queue_up 'queue=8'
	all_are_busy
	for i in 1 2 3 4 5 6 7 8; do
		send_to_wait $i
	done
	for i in 1 2 3; do
		send_one
		wait "$sent_pid"
		is 'one too many' "$(sent_status "$sent")" 503
	done
	let_go
	is 'order' "$(logged_in_order 200)" '1 2 3 4 5 6 7 8 9'
	is 'waiting at last' "$(waiting)" 0
	settled
}

# Each of two processes has the requests that come while the other is stopped.
# This module gives one that is stopped a minute. queue_of_two LOG [ENGINES]
queue_of_two()
{
	processes=2
	module_file=$(cd "$build" && pwd -P)/nginx/small/ngx_http_upstream_kvroute_module.so
	kvroute_options='zone=kv:8m queue=8'
	server_options='max_conns=1 max_fails=0'
	engines=${2:-1}
	"$1"
	up
	one=$(children "$nginx_pid" | head -n 1)
	two=$(children "$nginx_pid" | tail -n 1)
	queue_pids=
	sent=0
}

# only PROCESS OTHER - runs.
only()
{
	kill -CONT "$1"
	kill -STOP "$2"
	until_true 20 is_stopped "$2"
}

is_stopped()
{
	awk '{ sub(/.*\) /, ""); exit $1 != "T" }' "/proc/$1/stat"
}

older_requests_of_another_process_go_first()
{
	queue_of_two queue_log
	only "$one" "$two"
	all_are_busy
	only "$two" "$one"
	send_to_wait 1
	only "$one" "$two"
	faults "$engine_ports" kind=none
	until_true 20 has_status 1 || echo 'the first one does not end'
	send_to_wait 2
	kill -CONT "$two"
	all_answered
	is order "$(logged_in_order 200)" '1 2 3'
	settled
}

four_logged()
{
	[ "$(wc -l < "$work/logs/sessions")" -ge 4 ]
}

# The state's server is free, and others may not have it.
state_of_another_process_goes_first()
{
	queue_of_two log_sessions
	only "$one" "$two"
	first 1
	next_in_flight
	only "$two" "$one"
	next_of "$id" > "$work/out/next" &
	next_pid=$!
	until_true 20 waiting_is 1 || echo 'it does not wait'
	only "$one" "$two"
	fault_first 'kind=none'
	wait "$stalled_pid"
	send_to_wait 2
	kill -CONT "$two"
	all_answered
	wait "$next_pid"
	is 'statuses' "$(cat "$work/out/next") $(sent_status 1)" '200 200'
	until_true 20 four_logged
	is 'reasons, in order' "$(tail -n 2 "$work/logs/sessions" |
	    cut -d ' ' -f 2-3 | paste -s -d ' ')" 'affinity hit cost none'
	settled
}

# Answers that engine 1 and engine 2 keep: sets id_1 and id_2.
answers_of_two()
{
	id_1='' id_2='' turn=0
	while [ -z "$id_1" ] || [ -z "$id_2" ]; do
		turn=$((turn + 1))
		[ $turn -lt 40 ] || { echo 'all go to one engine'; return 1; }
		first $turn
		[ "$(cat "$work/began")" = "$(address_of 1)" ] && id_1=$id ||
		    id_2=$id
	done
	until_true 20 no_leases || echo 'they do not end'
}

# go_on ID FILE [curl option ...] - the next turn; its status is in that file.
go_on()
{
	of=$1 file=$2
	shift 2
	curl -s -m 60 -o /dev/null -w '%{http_code}\n' "$@" -d "{\"model\":\"m\",
	    \"input\":\"go on\",\"max_output_tokens\":1,
	    \"previous_response_id\":\"$of\"}" \
	    "http://127.0.0.1:$port/v1/responses" > "$work/out/$file"
}

# Engines stall, and each has a turn.
two_are_busy()
{
	faults "$engine_ports" 'kind=stall&seconds=600'
	go_on "$id_1" busy.1 &
	go_on "$id_2" busy.2 &
	queue_pids="$queue_pids $!"
	until_true 20 in_flight_is 2 || echo 'they are not there'
}

# Also that of the second one in its queue.
all_wanted_servers_are_left_alone()
{
	queue_of_two log_sessions 2
	only "$one" "$two"
	answers_of_two || return 0
	two_are_busy
	only "$two" "$one"
	go_on "$id_1" next.1 &
	until_true 20 waiting_is 1 || echo 'the first does not wait'
	go_on "$id_2" next.2 &
	until_true 20 waiting_is 2 || echo 'the second does not wait'
	only "$one" "$two"
	fault 2 kind=none
	until_true 20 test -s "$work/out/busy.2" || echo 'a turn does not end'
	send_to_wait 3
	is 'the one that came later' "$(sent_status 1)" ''
	fault 1 kind=none
	kill -CONT "$two"
	all_answered
	until_true 20 test -s "$work/out/next.1"
	is 'statuses' "$(sent_status 1) $(cat "$work/out/next.1" \
	    "$work/out/next.2" | paste -s -d ' ')" '200 200 200'
	settled
}

# It has failed at the first engine and waits for the other one; later ones fail
# there, too, and find the other one free.
retries_of_another_process_go_first()
{
	location_lines='proxy_next_upstream error non_idempotent;'
	queue_of_two queue_log 2
	only "$one" "$two"
	fault 1 'kind=refuse&seconds=600'
	fault 2 'kind=stall&seconds=600'
	send_one
	until_true 20 in_flight_is 1 || echo 'the first is not there'
	only "$two" "$one"
	send_to_wait 1
	above retries "$(json '.upstreams[0].retries')" 0
	only "$one" "$two"
	fault 2 kind=none
	until_true 20 has_status 1 || echo 'the first one does not end'
	send_to_wait 2
	kill -CONT "$two"
	all_answered
	is order "$(logged_in_order 200)" '1 2 3'
	settled
}

# A request that can go anywhere gets no precedence from an id.
unknown_ids_do_not_overtake()
{
	queue_of_two queue_log
	only "$one" "$two"
	all_are_busy
	only "$two" "$one"
	send_to_wait 1
	only "$one" "$two"
	faults "$engine_ports" kind=none
	until_true 20 has_status 1 || echo 'the first one does not end'
	go_on nobody_knows_it next -H 'X-N: 3' &
	until_true 20 waiting_is 2 || echo 'it does not wait'
	kill -CONT "$two"
	all_answered
	sent=3
	until_true 20 queue_logged
	is order "$(cut -d ' ' -f 1 "$work/logs/queue" | paste -s -d ' ')" \
	    '1 2 3'
	settled
}

# nginx itself takes the requests of a dead process for connections that are
# there, until a reload.
places_of_a_dead_process_are_free()
{
	queue_up 'queue=2 queue_timeout=40s'
	all_are_busy
	send_to_wait 1
	send_to_wait 2
	kill -KILL "$(children "$nginx_pid")"
	all_answered
	expected_alert='exited on signal 9'
	until_true 30 waiting_is 0 || echo "still waiting: $(waiting)"
	sent=0
	send_to_wait 1
	send_to_wait 2
	send_one
	wait "$sent_pid" 2> /dev/null
	is 'one too many' "$(sent_status 3)" 503
	kvroute_options='zone=kv:8m queue=2 queue_timeout=100ms'
	faults "$engine_ports" kind=none
	end_child "$(echo "$queue_pids" | cut -d ' ' -f 2)" -TERM
	end_child "$(echo "$queue_pids" | cut -d ' ' -f 3)" -TERM
	until_true 20 waiting_is 0 || echo 'they wait on'
	reload_nginx kvroute
	send_one
	all_answered
	is 'after a reload' "$(sent_status "$sent")" 200
	settled
}

requests_wait_over_a_reload()
{
	queue_up 'queue=3'
	all_are_busy
	send_to_wait 1
	send_to_wait 2
	NOWAIT=yes
	reload_nginx kvroute
	unset NOWAIT
	is 'waiting after a reload' "$(waiting)" 2
	faults "$engine_ports" kind=none
	send_one
	all_answered
	for i in 1 2 3 4; do
		is "status of $i" "$(sent_status $i)" 200
	done
	until_true 60 old_gone || echo 'the old process stays'
	is 'waiting at last' "$(waiting)" 0
	settled
}

# ------------------------------------------------------------------ failures

# None is left: 502 at once, as without a queue.
engines_that_fail_are_not_waited_for()
{
	server_options='max_conns=1 max_fails=1 fail_timeout=600s'
	engines=2
	queue_up 'queue=3'
	all_are_busy
	send_to_wait 1
	send_to_wait 2
	faults "$engine_ports" kind=die
	all_answered
	for i in 1 2 3 4; do
		is "status of $i" "$(sent_status $i)" 502
	done
	send_one
	all_answered
	is 'status of the next' "$(sent_status 5)" 502
	is 'its reason' "$(line_of 5 3)" no_worker
	is 'waiting at last' "$(waiting)" 0
	faults "$engine_ports" kind=none
	settled
}

# The connection is refused; another server is free by then.
waiting_requests_try_the_next_server()
{
	engines=2
	location_lines='proxy_next_upstream error non_idempotent;
	    proxy_next_upstream_timeout 1s; proxy_connect_timeout 900ms;'
	queue_up 'queue=3'
	all_are_busy
	send_to_wait 1
	sleep 1.2
	fault 1 'kind=refuse&seconds=600'
	fault 2 kind=none
	all_answered
	is 'status of one that waited' "$(sent_status 3)" 200
	is 'it went to the other' "$(awk '$1 == 3 { print $5 }' \
	    "$work/logs/queue")" "$(address_of 2)"
	settled
}

# Where connect() succeeds, or fails, at once.
waiting_for_a_local_socket()
{
	start_engines 1 --scale 0.01
	server_list="server unix:$work/out/engine max_conns=1 max_fails=0;"
	more_lines="server {
		listen unix:$work/out/engine;
		access_log off;
		keepalive_timeout 0;
		location / { proxy_pass http://$(address_of 1);
		    proxy_read_timeout 600s; }
	}"
	kvroute_options='zone=kv:8m queue=3'
	location_lines='proxy_next_upstream off;'
	processes=1
	queue_log
	unset more_lines
	start_nginx kvroute
	queue_pids=
	sent=0
	all_are_busy
	send_to_wait 1
	send_to_wait 2
	let_go
	is 'statuses' "$(sent_status 1) $(sent_status 2) $(sent_status 3)" \
	    '200 200 200'
	faults "$engine_ports" 'kind=stall&seconds=600'
	send_one
	until_true 20 in_flight_is 1
	send_to_wait 1
	mv "$work/out/engine" "$work/out/elsewhere"
	let_go
	is 'status without a socket' "$(sent_status 5)" 502
	is 'waiting at last' "$(waiting)" 0
	is_logged "connect() to unix:$work/out/engine failed" ||
	    echo 'the log does not say why'
	is_logged 'refuses connections: its record is reset' ||
	    echo 'it is not taken for refused'
	mv "$work/out/elsewhere" "$work/out/engine"
	expected_alert="connect() to unix:$work/out/engine failed"
	settled
}

waiting_for_an_engine_with_tls()
{
	command -v openssl > /dev/null || { skip 'no openssl'; return; }
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=engine \
	    -keyout "$work/out/key" -out "$work/out/certificate" 2> /dev/null
	start_engines 1 --scale 0.01
	tls_port=$(free_port)
	more_lines="server {
		listen 127.0.0.1:$tls_port ssl;
		ssl_certificate $work/out/certificate;
		ssl_certificate_key $work/out/key;
		access_log off;
		location / { proxy_pass http://$(address_of 1);
		    proxy_read_timeout 600s; }
	}
	server {
		listen unix:$work/out/front;
		access_log $work/logs/queue queue;
		location / {
			proxy_pass https://engines;
			proxy_read_timeout 600s;
		}
	}"
	kvroute_options='zone=kv:8m queue=3'
	upstream_ports=$tls_port
	server_options='max_conns=1 max_fails=0'
	processes=1
	queue_log
	unset more_lines
	start_nginx kvroute
	queue_pids=
	sent=0
	faults "$engine_ports" 'kind=stall&seconds=600'
	send_one --unix-socket "$work/out/front"
	until_true 20 in_flight_is 1 || echo 'it is not there'
	send_to_wait 1 --unix-socket "$work/out/front"
	send_to_wait 2 --unix-socket "$work/out/front"
	let_go
	is 'order' "$(logged_in_order 200)" '1 2 3'
	settled
}

# --------------------------------------------------------- who may go where

# The other engines are free, and of no use to it; others go to them.
state_waits_for_its_worker()
{
	server_options='max_conns=1'
	kvroute_options='zone=kv:8m queue=3'
	sessions_up
	first 1
	next_in_flight
	next_of "$id" > "$work/out/next" &
	next_pid=$!
	until_true 20 waiting_is 1 || echo 'it does not wait'
	for i in 2 3 4; do
		is "status without state, $i" "$(curl -s -m 30 -o /dev/null \
		    -w '%{http_code}' -d "{\"model\":\"m\",\"max_tokens\":1,
		    \"prompt\":\"$i\"}" "http://127.0.0.1:$port/v1/completions")" \
		    200
	done
	is 'waiting' "$(waiting)" 1
	fault_first 'kind=none'
	wait "$stalled_pid"
	wait "$next_pid"
	is 'status of the turn in flight' "$(cat "$work/stalled-status")" 200
	is 'status of the one that waited' "$(cat "$work/out/next")" 200
	until_true 20 grep -q 'affinity hit' "$work/logs/sessions"
	is 'where it went' "$(grep ' affinity hit ' "$work/logs/sessions" |
	    cut -d ' ' -f 1 | sort -u)" "$(cat "$work/began")"
	is 'state busy' "$(json '.upstreams[0].reasons.state_busy')" 0
	settled
}

# Many wait for one engine, and then one for the other, which is free first.
state_waits_behind_no_other_worker()
{
	engines=2
	server_options='max_conns=1 max_fails=0'
	kvroute_options='zone=kv:8m queue=200'
	queue_pids=''
	sessions_up
	answers_of_two || return 0
	two_are_busy
	i=0
	while [ $i -lt 70 ]; do
		i=$((i + 1))
		go_on "$id_1" next.$i &
		queue_pids="$queue_pids $!"
	done
	until_true 40 waiting_is 70 || echo "$(waiting) wait"
	go_on "$id_2" other &
	until_true 20 waiting_is 71 || echo 'the other one does not wait'
	fault 2 kind=none
	until_true 20 test -s "$work/out/other" || echo 'it starves'
	is 'its status' "$(cat "$work/out/other")" 200
	is 'waiting' "$(waiting)" 70
	let_go
	is 'statuses' "$(cat "$work"/out/next.* | sort -u)" 200
	settled
}

more_go_than_in_one_turn()
{
	server_options='max_conns=70 max_fails=0'
	queue_up 'queue=200'
	faults "$engine_ports" 'kind=stall&seconds=600'
	while [ $sent -lt 140 ]; do
		send_one
	done
	until_true 40 waiting_is 70 || echo "$(waiting) wait"
	let_go
	is 'statuses' "$(cat "$work"/out/sent.* | sort | uniq -c |
	    tr -s ' ')" ' 140 200'
	is 'that waited' "$(json .upstreams[0].times.queue.count)" 70
	settled
}

drained_servers_are_not_for_waiting_requests()
{
	engines=2
	queue_up 'queue=3'
	is order "$(order "$(address_of 2)" drain)" 200
	faults "$engine_ports" 'kind=stall&seconds=600'
	send_one
	until_true 20 in_flight_is 1
	send_to_wait 1
	is order "$(order "$(address_of 2)" up)" 200
	until_true 20 in_flight_is 2 || echo 'it waits on'
	let_go
	is 'where they went' "$(line_of 1 4) $(line_of 2 4)" \
	    "$(address_of 1) $(address_of 2)"
	settled
}

# The stock method has been at the backup before, in vain.
shadowed_requests_wait_too()
{
	start_engines 2 --scale 0.01
	server_list="server $(address_of 1) max_conns=1 max_fails=0;
	    server $(address_of 2) max_conns=1 max_fails=0 backup;"
	kvroute_options='zone=kv:8m queue=3 shadow=round_robin'
	processes=1
	queue_log
	start_nginx kvroute
	queue_pids=
	sent=0
	all_are_busy
	send_to_wait 1
	fault 1 kind=none
	until_true 20 has_status 3 || echo 'it waits on'
	is 'where it went' "$(line_of 3 4)" "$(address_of 1)"
	let_go
	is order "$(logged_in_order 200)" '1 3 2'
	is shadowed "$(json '.upstreams[0].shadowed | .same + .other')" 3
	settled
}

# Sessions and all, by two processes, with users that leave.
more_users_than_places_at_engines()
{
	processes=2
	engines=3
	location_lines='kvroute_affinity $http_x_session_id;'
	queue_up 'queue=64'
	talk --requests 90 --chats 16 --think-ms 1 --turns 3
	no_errors 'with a queue'
	above waited "$(json '.upstreams[0].queued')" 9
	is 'refused' "$(json '.upstreams[0].reasons | .queue_full +
	    .queue_timeout')" 0
	above 'cached tokens' "$(json '.upstreams[0].usage.cached_tokens')" 0
	is 'waiting at last' "$(waiting)" 0
	settled
}

# The cases above can fail; and a server without a limit is never full.
without_a_limit_nobody_waits()
{
	queue_up ''
	all_are_busy
	send_one
	wait "$sent_pid" 2> /dev/null
	is 'status without a queue' "$(sent_status 2)" 502
	is 'queue' "$(json '.upstreams[0].queue')" null
	is 'in metrics' "$(status /metrics | grep -c kvroute_nginx_waiting)" 0
	let_go
	kvroute_options='zone=kv:8m queue=3'
	server_options=' '
	reload_nginx kvroute
	is_logged '"queue=" of upstream "engines" has no effect: no server of'\
' it has "max_conns="' || echo 'nothing is said of it'
	sent=0
	faults "$engine_ports" 'kind=stall&seconds=600'
	send_one
	send_one
	until_true 20 in_flight_is 2 || echo 'they are not there'
	is 'waiting' "$(waiting)" 0
	let_go
	is 'statuses' "$(sent_status 1) $(sent_status 2)" '200 200'
	settled
}

# It is idle, and only it can answer; others are full.
state_of_a_failing_worker_is_reached()
{
	engines=2
	location_lines='proxy_next_upstream error http_503 non_idempotent;'
	kvroute_options='zone=kv:8m gray=8 queue=9 queue_timeout=20s'
	server_options='max_conns=1 max_fails=0'
	sessions_up
	queue_pids='' sent=0
	answers_of_two || return 0
	fault 1 'kind=error&status=503&seconds=600'
	for i in $(seq 20); do
		prompt=$(text "$i") send_one
		wait "$sent_pid"
	done
	is health "$(json ".upstreams[0].workers[] |
	    select(.name == \"$(address_of 1)\") | .health")" failing
	fault 1 kind=none
	fault 2 'kind=stall&seconds=600'
	until in_flight_is 1 || [ $((i += 1)) -gt 30 ]; do
		send_one
		sleep 0.2
	done
	go_on "$id_1" gray.1
	is status "$(cat "$work/out/gray.1")" 200
	let_go
	settled
}
