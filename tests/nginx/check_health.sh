#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_health.sh - cases of check.sh: engines that are gray, that break off,
# and that warm up.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} failing_engine_is_left_and_comes_back
    slow_engine_is_left_and_comes_back slow_streams_are_seen_before_they_end
    nothing_is_gray_by_default in_shadow_mode_nothing_is_gray
    of_slow_engines_none_is_gray
    gray_engine_is_used_if_there_is_no_other gray_over_a_reload
    monitors_heal_no_gray_engine slow_clients_make_no_engine_gray
    gray_is_the_engine_not_its_place a_factor_of_two
    gray_in_a_zone_without_room gray_after_reloads_that_fail
    order_makes_a_gray_engine_good
    broken_stream_counts_as_failed broken_buffered_stream_counts_as_failed
    last_engine_may_break_off clients_that_leave_break_nothing
    joining_engine_warms_up restarted_engine_warms_up
    one_bad_prompt_makes_no_engine_gray one_client_makes_no_engine_gray
    a_client_that_alternates_makes_no_engine_gray
    broken_stream_of_a_tenant
    retried_failures_make_an_engine_gray
    a_bad_prompt_disables_no_server overflow_avoids_gray_engines
    answers_of_unknown_length_make_no_engine_gray"

# ------------------------------------------------------------------- gray

# health_up [engine option ...] - an engine that takes a hundred times as long
# as others does not do so by chance, as one that takes eight times as long may.
health_up()
{
	kvroute_options="zone=kv:8m ${health:-gray=100}"
	location_lines='kvroute_affinity $http_x_s;'
	server_options=${server_options:-max_fails=0}
	sessions_up --scale 0.1 "$@"
}

# health N - of the N-th engine.
health()
{
	json ".upstreams[0].workers[] | select(.name == \"$(address_of "$1")\")
	    | .health"
}

health_is()
{
	[ "$(health "$1")" = "$2" ]
}

# Sends another request of session a, of three clients with a text each.
turn()
{
	turns=$((${turns:-0} + 1))
	speak $((1 + turns % 3)) '' -H 'X-S: a' \
	    --interface "127.0.0.$((1 + turns % 3))"
}

# Work for each engine, so that all are known. The session is on engine `home`.
begin_session()
{
	for i in $(seq 40 63); do
		is 'status of the first' "$(speak "$i")" 200
	done
	is 'first turn' "$(turn)" 200
	began
	home=0
	for i in 1 2 3 4; do
		[ "$(address_of $i)" != "$(cat "$work/began")" ] || home=$i
	done
	is 'second turn' "$(turn)" 200
	stays 'second turn'
}

# turns_until ENGINE HEALTH MOST - sends turns until it is so.
turns_until()
{
	sent=0
	until health_is "$1" "$2" || [ "$sent" -ge "$3" ]; do
		sent=$((sent + 1))
		turn > "$work/status"
		[ "$2" != good ] || sleep 0.1
	done
	is "health after $sent turns" "$(health "$1")" "$2"
}

# Turns of the session but for probes: none on the gray engine, none fails.
turns_go_elsewhere()
{
	for i in $(seq 10); do
		status=$(turn)
		[ "$(last 2)" != probe ] || continue
		is 'status elsewhere' "$status" 200
		[ "$(last 1)" != "$(address_of "$home")" ] ||
		    echo "turn $i is on the gray engine: $(last 1-)"
	done
}

# One 503 in two: without gray= half of the turns fail until it is mended.
failing_engine_is_left_and_comes_back()
{
	health_up
	begin_session
	is 'health at first' "$(health "$home")" good
	fault "$home" 'kind=error&status=503&percent=50&seconds=600'
	turns_until "$home" failing 20
	moved=$(json .upstreams[0].affinity.moved)
	turns_go_elsewhere
	# it moves once, and then is at home elsewhere
	is 'sessions that left a gray engine' \
	    "$(json '.upstreams[0].affinity | "\(.moved) \(.moved_gray)"')" \
	    "$((moved + 1)) 1"
	is 'gray in metrics' "$(metric kvroute_nginx_gray)" 1
	is 'judged gray' "$(json '.upstreams[0].grayed')" 1
	until_true 20 is_logged "worker \"$(address_of "$home")\" fails more"\
' often than the others: it is gray' || echo 'nothing is said of it'
	fault "$home" kind=none
	turns_until "$home" good 300
	above probes "$(json '.upstreams[0].reasons.probe')" 2
	is 'good again' "$(json '.upstreams[0].healed')" 1
	is 'gray in the end' "$(metric kvroute_nginx_gray)" 0
	settled
}

slow_engine_is_left_and_comes_back()
{
	health=gray=8
	health_up --scale 0.3
	begin_session
	fault "$home" 'kind=slow&factor=50&seconds=600'
	turns_until "$home" slow 60
	turns_go_elsewhere
	is 'gray in metrics' "$(metric kvroute_nginx_gray)" 1
	fault "$home" kind=none
	turns_until "$home" good 300
	is 'good again' "$(json '.upstreams[0].healed')" 1
	settled
}

# Only the beginning of each stream has come.
slow_streams_are_seen_before_they_end()
{
	health=gray=8
	health_up --scale 0.3
	begin_session
	hard='kvroute_affinity $http_x_s mode=hard;'
	location_lines="$hard access_log $work/logs/sessions sessions;"
	reload_nginx kvroute
	turn > "$work/status"
	is 'before' "$(last 1)" "$(address_of "$home")"
	fault "$home" 'kind=slow&factor=100&seconds=600'
	for i in 1 2 3; do
		curl -sN -m 300 -o /dev/null "http://127.0.0.1:$port/v1/completions" \
		    -H 'X-S: a' -d '{"model":"m","prompt":"a","stream":true,
		    "max_tokens":5000}' &
		kept_pids="$kept_pids $!"
	done
	until_true 60 health_is "$home" slow || echo 'it is not seen'
	is 'requests that run' "$(state_of "$(address_of "$home")" requests)" 3
	stop_kept
	fault "$home" kind=none
	settled
}

# The cases above can fail.
nothing_is_gray_by_default()
{
	health=' '
	health_up
	begin_session
	is health "$(health "$home")" null
	fault "$home" 'kind=error&status=503&percent=50&seconds=600'
	failed=0
	for i in $(seq 20); do
		[ "$(turn)" = 200 ] || failed=$((failed + 1))
	done
	is 'turns that failed' "$failed" 10
	is 'judged gray' "$(json '.upstreams[0].grayed')" 0
	is 'sessions that left' "$(json '.upstreams[0].affinity.moved_gray')" 0
	settled
}

# There a method of nginx chooses, which would never try it again.
in_shadow_mode_nothing_is_gray()
{
	health='shadow=least_conn gray=8'
	health_up
	faults "$engine_ports" kind=none
	fault 1 'kind=error&status=503&seconds=600'
	for i in $(seq 60); do
		[ "$(speak "$i")" = 200 ] || failed=$((${failed:-0} + 1))
	done
	above 'failed requests' "${failed:-0}" 8
	unset failed
	is 'judged gray' "$(json '.upstreams[0].grayed')" 0
	settled
}

of_slow_engines_none_is_gray()
{
	health=gray=8
	health_up --scale 0.3
	begin_session
	faults "$engine_ports" 'kind=slow&factor=20&seconds=600'
	talk --requests 60 --chats 12 --think-ms 1 --turns 2 \
	    --system-bytes 500 --answer-tokens 4
	no_errors 'of slow ones'
	is 'judged gray' "$(json '.upstreams[0].grayed')" 0
	faults "$engine_ports" 'kind=error&status=503&seconds=600'
	talk --requests 60 --chats 12 --think-ms 1 --turns 2
	is 'gray ones, at most half' \
	    "$([ "$(metric kvroute_nginx_gray)" -le 2 ] && echo yes)" yes
	faults "$engine_ports" kind=none
	settled
}

gray_engine_is_used_if_there_is_no_other()
{
	server_options='max_fails=1 fail_timeout=600s'
	health_up
	begin_session
	fault "$home" 'kind=error&status=503&percent=50&seconds=600'
	turns_until "$home" failing 20
	fault "$home" kind=none
	for i in 1 2 3 4; do
		[ $i = "$home" ] || fault $i 'kind=refuse&seconds=600'
	done
	location_lines='proxy_next_upstream error non_idempotent;'
	location_lines="$location_lines access_log $work/logs/sessions sessions;"
	reload_nginx kvroute
	is status "$(speak 2)" 200
	tail -n 1 "$work/logs/sessions" | grep -q "$(address_of "$home") [a-z]" ||
	    echo "it went elsewhere: $(last 1-)"
	settled
}

reloads_failed()
{
	[ "$(grep -c "$work/none/index" "$work/logs/error")" -ge "$1" ]
}

# Figures that they added to the zone are there for the next.
gray_after_reloads_that_fail()
{
	kvroute_options="path=$work/out/index size=8m"
	up
	kvroute_options="$kvroute_options gray=8"
	old=$(children "$nginx_pid")
	for i in $(seq 24); do
		write_conf kvroute
		sed -i '$d' "$work/nginx.conf"
		echo "upstream none { kvroute path=$work/none/index;
		    server 127.0.0.1:1; } }" >> "$work/nginx.conf"
		kill -HUP "$nginx_pid"
		until_true 20 reloads_failed "$i" && continue
		echo "reload $i finds no room"
		break
	done
	expected_alert=$work/none/index
	write_conf kvroute
	kill -HUP "$nginx_pid"
	until_true 20 new_processes || echo 'then no reload is taken' \
	    "$(grep -c 'is in use without' "$work/logs/error")"
	settled
}

gray_over_a_reload()
{
	health_up
	begin_session
	fault "$home" 'kind=error&status=503&percent=50&seconds=600'
	turns_until "$home" failing 20
	reload_nginx kvroute
	is 'health after a reload' "$(health "$home")" failing
	turns_go_elsewhere
	kvroute_options=zone=kv:8m
	reload_nginx kvroute
	is 'health without gray=' "$(health "$home")" null
	settled
}

gray_in_a_zone_without_room()
{
	up
	kvroute_options='zone=kv:8m gray=8'
	write_conf kvroute
	kill -HUP "$nginx_pid"
	until_true 20 is_logged 'is in use without "gray=" and "slow_start=":'\
' give it another name' || echo 'nothing is said of it'
	talk --requests 8 --chats 2 --think-ms 1
	no_errors 'with the old configuration'
	kvroute_options='zone=kw:8m gray=8'
	reload_nginx kvroute
	is 'health in another zone' "$(health 1)" good
	expected_alert='give it another name'
	settled
}

order_makes_a_gray_engine_good()
{
	health_up
	begin_session
	fault "$home" 'kind=error&status=503&percent=50&seconds=600'
	turns_until "$home" failing 20
	is order "$(order "$(address_of "$home")" up)" 200
	is health "$(health "$home")" good
	settled
}

# only_home_is_left - the others refuse, and nginx leaves them for long.
only_home_is_left()
{
	for i in 1 2 3 4; do
		[ $i = "$home" ] || fault $i 'kind=refuse&seconds=600'
	done
	location_lines='proxy_next_upstream error non_idempotent;'
	location_lines="$location_lines access_log $work/logs/sessions sessions;"
	reload_nginx kvroute
}

# A request without a prompt is no evidence about an engine that prompts made
# gray.
monitors_heal_no_gray_engine()
{
	server_options='max_fails=1 fail_timeout=600s'
	health_up
	begin_session
	fault "$home" 'kind=error&status=503&percent=50&seconds=600'
	turns_until "$home" failing 20
	fault "$home" kind=none
	only_home_is_left
	for i in $(seq 14); do
		is "status of look $i" "$(call /v1/models)" 200
		sleep 0.4
	done
	is 'where they went' "$(last 1)" "$(address_of "$home")"
	is 'health afterwards' "$(health "$home")" failing
	is 'probes' "$(json '.upstreams[0].reasons.probe')" 0
	settled
}

slow_client_has()
{
	[ "$(wc -c < "$work/slow3")" -ge "$1" ]
}

# nginx reads no faster than it may send: that is not the engine.
slow_clients_make_no_engine_gray()
{
	buffering='on; proxy_buffer_size 4k; proxy_buffers 4 4k;
	    proxy_busy_buffers_size 8k; proxy_max_temp_file_size 0'
	health=gray=8
	health_up
	begin_session
	location_lines="kvroute_affinity \$http_x_s mode=hard;
	    limit_rate \$http_x_rate;
	    access_log $work/logs/sessions sessions;"
	reload_nginx kvroute
	turn > "$work/status"
	is 'before' "$(last 1)" "$(address_of "$home")"
	for i in 1 2 3; do
		curl -sN -m 300 -o "$work/slow$i" \
		    "http://127.0.0.1:$port/v1/completions" -H 'X-S: a' \
		    -H 'X-Rate: 2k' -d '{"model":"m","prompt":"a","stream":true,
		    "max_tokens":5000}' &
		kept_pids="$kept_pids $!"
	done
	until_true 60 slow_client_has 10000 || echo 'a slow client gets nothing'
	is health "$(health "$home")" good
	is 'judged gray' "$(json '.upstreams[0].grayed')" 0
	is 'requests that run' "$(state_of "$(address_of "$home")" requests)" 3
	stop_kept
	settled
}

# A reload replaces an engine while its streams run, slowly: they are no
# evidence about the engine in its place.
gray_is_the_engine_not_its_place()
{
	engines=5
	health=gray=8
	health_up
	all=$engine_ports
	upstream_ports=$(echo "$all" | cut -d ' ' -f 1-4)
	location_lines="kvroute_affinity \$http_x_s mode=hard;
	    access_log $work/logs/sessions sessions;"
	reload_nginx kvroute
	begin_session
	for i in 1 2 3; do
		curl -sN -m 300 -o "$work/old$i" \
		    "http://127.0.0.1:$port/v1/completions" -H 'X-S: a' \
		    -d '{"model":"m","prompt":"a","stream":true,
		    "max_tokens":5000}' &
		kept_pids="$kept_pids $!"
	done
	until_true 20 grep -q choices "$work/old1" || echo 'no stream'
	fault "$home" 'kind=slow&factor=100&seconds=600'
	upstream_ports=$(echo "$all" | tr ' ' '\n' |
	    grep -vx "$(nth "$home" "$all")" | paste -s -d ' ')
	NOWAIT=yes
	reload_nginx kvroute
	unset NOWAIT
	before=$(json '.upstreams[0].grayed')
	had=$(wc -c < "$work/old1")
	for i in $(seq 60 89); do
		is 'status beside them' "$(speak "$i")" 200
		sleep 0.2
	done
	above 'bytes of an old stream' "$(wc -c < "$work/old1")" "$had"
	# the one that has left, with its streams, has none
	is 'health of all' "$(json '[.upstreams[0].workers[].health |
	    select(. != null)] | unique | join(" ")')" good
	is 'judged gray' "$(json '.upstreams[0].grayed')" "$before"
	stop_kept
	settled
}

# Five times as slow is gray, which 8 would not see.
a_factor_of_two()
{
	health=gray=2
	health_up --scale 0.3
	begin_session
	fault "$home" 'kind=slow&factor=12&seconds=600'
	turns_until "$home" slow 100
	turns_go_elsewhere
	fault "$home" kind=none
	settled
}

# ------------------------------------------------------------------ blame

# An engine whose answer the client chooses: 500, 503 ... by X-Status, else 200.
chosen_engines()
{
	chosen_ports="$(free_port) $(free_port) $(free_port) $(free_port)"
	http_lines="map \$http_x_status \$chosen { default 200; ~. 500; 503 503;
	    429 429; 504 504; } log_format sessions '\$upstream_addr';
	    server {"
	for p in $chosen_ports; do
		http_lines="$http_lines listen 127.0.0.1:$p;"
	done
	http_lines="$http_lines location / { default_type application/json;
	    if (\$chosen = 500) { return 500 '{}'; }
	    if (\$chosen = 503) { return 503 '{}'; }
	    if (\$chosen = 429) { return 429 '{}'; }
	    if (\$chosen = 504) { return 504 '{}'; }
	    return 200 '{\"usage\":{\"completion_tokens\":1}}'; } }"
	upstream_ports=$chosen_ports
	kvroute_options="zone=kv:8m gray=8"
	location_lines="access_log $work/logs/sessions sessions;
	    ${location_lines:-}"
	processes=1
	start_nginx kvroute
	: > "$work/logs/sessions"
}

all_are_good()
{
	is "health $1" "$(json '[.upstreams[0].workers[].health] | unique |
	    join(" ")')" good
	is "judged gray $1" "$(json '.upstreams[0].grayed')" 0
}

one_bad_prompt_makes_no_engine_gray()
{
	chosen_engines
	for i in $(seq 20); do
		is 'a good one' "$(speak "$i")" 200
	done
	for status in 500 503 429 504; do
		for i in $(seq 6); do
			is 'the bad one' "$(speak 77 '' \
			    -H "X-Status: $status")" "$status"
		done
		all_are_good "after $status"
	done
	settled
}

# With other prompts each time, while others are answered.
one_client_makes_no_engine_gray()
{
	chosen_engines
	for i in $(seq 60); do
		is 'a good one' "$(speak "$i")" 200
		is 'a bad one' "$(speak "$((i + 100))" '' -H 'X-Status: 500')" \
		    500
		is 'another' "$(speak 99 '' -H 'X-Status: 503')" 503
	done
	all_are_good 'of one client'
	settled
}

# A field that the engine cannot take, with a text that it answers otherwise.
a_client_that_alternates_makes_no_engine_gray()
{
	chosen_engines
	for i in $(seq 40); do
		is 'a bad one' "$(speak 77 '' -H 'X-Status: 500')" 500
		is 'a good one' "$(speak 77)" 200
	done
	all_are_good 'of one that alternates'
	settled
}

# The same with retries: nginx counts no failures of its servers either.
a_bad_prompt_disables_no_server()
{
	location_lines='proxy_next_upstream error timeout http_500 http_503
	    non_idempotent;'
	chosen_engines
	for i in $(seq 12); do
		is 'a bad one' "$(speak 77 '' -H 'X-Status: 500')" 500
		is 'a good one' "$(speak "$i")" 200
	done
	all_are_good 'with retries'
	is 'lines of nginx' "$(lines_with 'temporarily disabled')" 0
	settled
}

# Each is answered elsewhere.
retried_failures_make_an_engine_gray()
{
	kvroute_options='zone=kv:8m gray=8'
	location_lines='proxy_next_upstream error http_500 non_idempotent;'
	sessions_up
	for i in $(seq 16); do
		is 'before' "$(speak "$i")" 200
	done
	fault 2 'kind=error&status=500&percent=100&seconds=600'
	for i in $(seq 20 40); do
		is 'with retries' "$(speak "$i")" 200
	done
	is health "$(health 2)" failing
	is 'lines of nginx' "$(lines_with 'temporarily disabled')" 0
	settled
}

# Requests wait for engines that are full, and do not go to the one that fails.
overflow_avoids_gray_engines()
{
	engines=3
	processes=1
	kvroute_options='zone=kv:8m gray=8 queue=1000 queue_timeout=60s'
	server_options='max_conns=1 max_fails=0'
	location_lines='proxy_next_upstream error http_503 non_idempotent;'
	log=access
	up --scale 0.1
	fault 3 'kind=error&status=503&percent=100&seconds=600'
	talk --requests 40 --chats 2 --think-ms 1 --turns 2
	is health "$(health 3)" failing
	: > "$work/logs/access"
	location_lines=
	reload_nginx kvroute
	talk --requests 120 --chats 24 --think-ms 1 --turns 2
	probes=$(json '.upstreams[0].reasons.probe')
	above "requests at the engine that fails, but for $probes probes" \
	    "$((probes + 1 - $(grep -c ":$(nth 3 "$engine_ports")\$" \
	    "$work/logs/access")))" 0
	above 'requests that waited' "$(json '.upstreams[0].queued')" 50
	settled
}

# One answers long, and says nothing of it; the others are short.
answers_of_unknown_length_make_no_engine_gray()
{
	engines=2
	health=gray=8
	location_lines='kvroute_feedback off;'
	kvroute_options="zone=kv:8m gray=8"
	sessions_up --scale 0.1
	location_lines="$location_lines kvroute_affinity \$http_x_s;"
	reload_nginx kvroute
	for i in $(seq 24); do
		is short "$(call_with /v1/completions \
		    ',"max_tokens":1,"prompt":"short"' -H 'X-S: a')" 200
		[ $((i % 3)) -ne 0 ] || is long "$(call_with /v1/completions \
		    ',"max_tokens":600,"prompt":"long"' -H 'X-S: b')" 200
	done
	all_are_good 'of unknown length'
	settled
}

# ------------------------------------------------------------- broken off

# stream_of - one of 100 s; the engine that has it is in `engine`.
stream_of()
{
	curl -sN -m 300 -o "$work/stream" "http://127.0.0.1:$port/v1/completions" \
	    -d '{"model":"m","prompt":"a","stream":true,"max_tokens":5000}' &
	chats_pid=$!
	until_true 20 has_begun || echo 'no stream'
	for engine in 1 2; do
		[ "$(state_of "$(address_of "$engine")" requests)" = 0 ] || return
	done
}

has_begun()
{
	grep -q choices "$work/stream"
}

breaks_off()
{
	rm -f "$work/stream"
	stream_of
	fault "$engine" kind=die
	wait "$chats_pid"
	chats_pid=
}

broken_is()
{
	[ "$(json '.upstreams[0].broken')" = "$1" ]
}

# The next ones go to the other engine for fail_timeout.
broken_counts()
{
	engines=2
	server_options=${server_options:-max_fails=1 fail_timeout=600s}
	sessions_up --decode-ms 2000
	breaks_off
	until_true 20 broken_is 1 || is broken "$(json '.upstreams[0].broken')" 1
	: > "$work/logs/sessions"
	for i in 1 2 3 4 5 6; do
		is status "$(speak "$i")" 200
		[ "$(last 1)" != "$(address_of "$engine")" ] ||
		    echo "request $i is where a stream broke off"
	done
	until_true 20 is_logged 'upstream server temporarily disabled' ||
	    echo 'nginx does not count it'
	is 'in metrics' "$(metric kvroute_nginx_broken_total)" 1
}

broken_stream_counts_as_failed()
{
	broken_counts
	settled
}

broken_buffered_stream_counts_as_failed()
{
	buffering='on; proxy_buffer_size 4k; proxy_buffers 8 4k'
	broken_counts
	settled
}

# The failure is judged when the request is gone.
broken_stream_of_a_tenant()
{
	engines=2
	buffering='on; proxy_buffer_size 4k; proxy_buffers 8 4k'
	kvroute_options='zone=kv:8m gray=8'
	location_lines='kvroute_scope "t$http_x_t"; kvroute_include_usage on;'
	sessions_up --decode-ms 2000
	breaks_off
	until_true 20 broken_is 1 || is broken "$(json '.upstreams[0].broken')" 1
	is 'status afterwards' "$(speak 1)" 200
	is 'processes that died' "$(lines_with 'exited on signal')" 0
	settled
}

# No engine would be left.
last_engine_may_break_off()
{
	broken_counts
	first=$engine
	breaks_off
	[ "$engine" != "$first" ] || echo 'the same one again'
	until_true 20 broken_is 2 || is broken "$(json '.upstreams[0].broken')" 2
	is 'status afterwards' "$(speak 1)" 200
	is 'the last one' "$(last 1)" "$(address_of "$engine")"
	settled
}

clients_that_leave_break_nothing()
{
	engines=2
	server_options='max_fails=1 fail_timeout=600s'
	sessions_up --decode-ms 2000
	for i in 1 2 3 4; do
		rm -f "$work/stream"
		stream_of
		end_child "$chats_pid" -KILL
		chats_pid=
	done
	until_true 20 no_leases
	is broken "$(json '.upstreams[0].broken')" 0
	is 'lines of nginx' "$(lines_with 'temporarily disabled')" 0
	settled
}

# -------------------------------------------------------------- slow start

# nine_at_once - requests by engine, with all engines usable.
nine_at_once()
{
	: > "$work/logs/access"
	ask_at_once 9
	answers_are '200:9'
	until_true 20 nine_logged
	requests_by_engine
}

nine_logged()
{
	[ "$(grep -c "$(printf '\t127.0.0.1:')" "$work/logs/access")" -eq 9 ]
}

warm_up()
{
	processes=1
	start_engines 3 --scale 0.01 --capacity 100000
	kvroute_options="zone=kv:8m $1"
	server_options='max_fails=0'
	location_lines='kvroute_bypass 1;
	    proxy_next_upstream error timeout non_idempotent;'
	log=access
}

# A new one has one request at a time, and later its share.
joining_engine_warms_up()
{
	warm_up slow_start=1h
	all=$engine_ports
	upstream_ports="$(nth 1 "$all") $(nth 2 "$all")"
	start_nginx kvroute
	is 'at first' "$(health 1) $(health 2)" 'good good'
	unset upstream_ports
	reload_nginx kvroute
	is 'the new one' "$(health 3)" warming
	is 'while it is cold' "$(nine_at_once)" '4 4 1'
	is 'while it warms up' "$(nine_at_once)" '4 4 1'
	is 'the new one' "$(health 3)" warming
	is 'in metrics' "$(metric kvroute_nginx_warming)" 1
	kvroute_options='zone=kv:8m slow_start=1s'
	reload_nginx kvroute
	until_true 20 health_is 3 good || echo 'it is not warm'
	is 'when it is warm' "$(nine_at_once)" '3 3 3'
	settled
}

restarted_engine_warms_up()
{
	warm_up slow_start=1h
	start_nginx kvroute
	is 'at first' "$(nine_at_once)" '3 3 3'
	fault 2 'kind=refuse&seconds=5'
	talk --requests 12 --chats 3 --think-ms 1
	no_errors 'meanwhile'
	is 'the one that was gone' "$(health 2)" warming
	until_true 20 engine_answers "$(nth 2 "$engine_ports")"
	is 'when it is back' "$(nine_at_once)" '4 1 4'
	kvroute_options='zone=kv:8m'
	reload_nginx kvroute
	is 'without slow_start=' "$(nine_at_once)" '3 3 3'
	settled
}
