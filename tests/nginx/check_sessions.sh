#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_sessions.sh - cases of check.sh: sessions stay together, and requests go
# to the engine that keeps the state they continue.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} auto_takes_what_clients_send
    auto_leaves_users_and_parents_alone modes_of_sessions
    routers_with_one_secret_agree tenants_have_sessions_of_their_own
    sessions_are_no_scope answers_go_on_where_they_are
    conversations_go_on_where_they_are conversations_of_ranks
    streams_name_their_answers
    answers_that_are_not_kept_are_not_bound state_of_a_removed_worker_is_lost
    state_of_a_refusing_worker_is_lost state_on_a_server_that_is_down
    state_on_a_backup state_on_a_full_worker state_on_a_failed_worker
    drained_worker_keeps_its_state
    state_while_the_lock_is_held
    ids_are_kept_while_the_lock_is_held bindings_that_wait_are_bounded
    state_of_ranks mirrored_requests_have_no_session
    deleting_what_is_not_bound_binds_nothing shadow_learns_where_state_is
    nothing_changes_without_keys ids_are_in_the_log
    secrets_that_cannot_be sessions_over_a_reload
    a_file_keeps_its_table small_zones_have_room"

# ----------------------------------------------------------- common functions

# A line for each request: address, reason, affinity, overlap, status, rank.
log_sessions()
{
	http_lines="log_format sessions '\$upstream_addr \$kvroute_reason"
	http_lines="$http_lines \$kvroute_affinity \$kvroute_overlap \$status"
	http_lines="$http_lines \$kvroute_rank \$kvroute_ns';"
	location_lines="access_log $work/logs/sessions sessions;
	    ${location_lines:-}"
}

# sessions_up [engine option ...]
sessions_up()
{
	processes=1
	log_sessions
	up "$@"
	: > "$work/logs/sessions"
}

logged_more()
{
	[ "$(wc -l < "$work/logs/sessions")" -gt "$lines" ]
}

# call PATH [curl option ...] - prints the status; the response is in $said, its
# line in the log's last.
call()
{
	path=$1
	shift
	lines=$(wc -l < "$work/logs/sessions")
	curl -s -m 30 -o "$work/said" -w '%{http_code}\n' "$@" \
	    "http://127.0.0.1:$port$path"
	until_true 20 logged_more || echo "no line in the log: $path"
}

# call_with PATH MEMBERS [curl option ...]
call_with()
{
	path=$1
	members=$2
	shift 2
	call "$path" -d "{\"model\":\"m\"$members}" "$@"
}

# text N - four kilobytes that have nothing in common with those of another N.
text()
{
	awk -v n="$1" 'BEGIN {
		for (i = 0; i < 512; i++)
			printf "%02d%05d ", n, (i * 7919 + n * 104729) % 99991
	}'
}

# speak N [MEMBERS [curl option ...]] - a completion of text N.
speak()
{
	of=$1
	members=${2:-}
	shift
	[ $# -eq 0 ] || shift
	call_with /v1/completions \
	    ",\"max_tokens\":1,\"prompt\":\"$(text "$of")\"$members" "$@"
}

# last FIELD ... - of the last line of the log.
last()
{
	tail -n 1 "$work/logs/sessions" | cut -d ' ' -f "$1"
}

# Keeps the address for `stays`.
began()
{
	last 1 > "$work/began"
}

# stays WHAT - the last request went where the first one did.
stays()
{
	is "$1: address" "$(last 1)" "$(cat "$work/began")"
}

outcomes()
{
	json '.upstreams[0].affinity | "\(.hit) \(.new) \(.moved) \(.gone)"'
}

# Other requests, so that no server is next by chance.
others()
{
	for other in 1 2 3; do
		speak "$((40 + other + ${1:-0}))" > "$work/status"
	done
}

# ------------------------------------------------------------------- keys

# kept_by N MEMBERS [curl option ...] - two requests with nothing in common.
kept_by()
{
	of=$1
	shift
	is "status ($*)" "$(speak "$of" "$@")" 200
	is "first ($*)" "$(last 3)" new
	began
	others "$of"
	is "status ($*)" "$(speak "$((of + 20))" "$@")" 200
	is "second ($*)" "$(last 3)" hit
	stays "$*"
}

auto_takes_what_clients_send()
{
	location_lines='kvroute_affinity auto;'
	sessions_up
	n=0
	for header in X-Session-Affinity X-Session-Id X-Claude-Code-Agent-Id \
	    X-Claude-Code-Session-Id Thread-Id Session-Id; do
		n=$((n + 1))
		kept_by $n '' -H "$header: by-$header"
	done
	kept_by 7 ',"session_id":"by-session_id"'
	kept_by 8 ',"prompt_cache_key":"by-prompt_cache_key"'
	is 'outcomes' "$(outcomes)" '8 8 0 0'
	# Two agents of one name, of two sessions.
	kept_by 17 '' -H 'X-Claude-Code-Session-Id: one' \
	    -H 'X-Claude-Code-Agent-Id: agent'
	kept_by 18 '' -H 'X-Claude-Code-Session-Id: two' \
	    -H 'X-Claude-Code-Agent-Id: agent'
	# The first one counts; the others are new.
	is 'status of two' "$(speak 9 ',"prompt_cache_key":"other"' \
	    -H 'X-Session-Id: by-X-Session-Id' -H 'Session-Id: another')" 200
	is 'of two' "$(last 3)" hit
	is 'an empty one' "$(speak 10 ',"session_id":"by-session_id"' \
	    -H 'X-Session-Affinity;')" 200
	is 'behind an empty one' "$(last 3)" hit
	settled
}

auto_leaves_users_and_parents_alone()
{
	location_lines='kvroute_affinity auto;'
	sessions_up
	for i in 1 2; do
		speak $i ',"user":"u","safety_identifier":"s","metadata":{
		    "user_id":"m"}' -H 'X-Parent-Session-Id: p' \
		    -H 'X-Codex-Parent-Thread-Id: p' \
		    -H 'X-Claude-Code-Parent-Agent-Id: p' > "$work/status"
		is "request $i" "$(last 3)" none
	done
	is outcomes "$(outcomes)" '0 0 0 0'
	down
	location_lines='kvroute_affinity $http_x_parent_session_id $kvroute_user
	    ttl=1h;'
	sessions_up
	kept_by 1 ',"user":"u"'
	kept_by 2 ',"safety_identifier":"s"'
	kept_by 3 ',"metadata":{"user_id":"m"}'
	kept_by 4 ',"user":"u"' -H 'X-Parent-Session-Id: p'
	settled
}

# Text 1 is on one server by its session, text `far` on another by itself.
two_places()
{
	speak 1 '' -H 'X-S: a' > "$work/status"
	began
	for far in 10 11 12 13 14 15 16 17; do
		speak "$far" > "$work/status"
		[ "$(last 1)" = "$(cat "$work/began")" ] || return
	done
	echo 'all texts are on one server'
}

modes_of_sessions()
{
	location_lines='kvroute_affinity $http_x_s;'
	sessions_up
	two_places
	speak 3 '' -H 'X-S: a' > "$work/status"
	stays 'hard, another text'
	is 'hard, another text' "$(last 2-3)" 'affinity hit'
	speak "$far" '' -H 'X-S: a' > "$work/status"
	stays 'hard, a text of elsewhere'
	is 'hard, a text of elsewhere' "$(last 2-3)" 'affinity hit'
	down
	location_lines='kvroute_affinity $http_x_s mode=hash;'
	sessions_up
	speak 1 '' -H 'X-S: a' > "$work/status"
	began
	is 'hash' "$(last 2-3)" 'affinity none'
	speak 3 '' -H 'X-S: a' > "$work/status"
	stays 'hash, another text'
	is 'bindings' "$(metric kvroute_affinity_bindings)" 0
	settled
}

# Where each of 24 keys goes; a text for each, and none was sent before.
places_of_keys()
{
	for key in $(seq 24); do
		speak "$key" '' -H "X-S: $key" > "$work/status"
		last 1
	done | paste -s -d ' '
}

routers_with_one_secret_agree()
{
	awk 'BEGIN { for (i = 0; i < 32; i++) printf "%02x", i * 7
	    printf "\n" }' > "$work/out/one"
	printf '0123456789abcdefghijklmnopqrstuv' > "$work/out/other"
	chmod 600 "$work/out/one" "$work/out/other"
	processes=1
	location_lines='kvroute_affinity $http_x_s mode=hash;'
	log_sessions
	kvroute_options="zone=kv:8m secret=$work/out/one"
	start_engines 4 --scale 0.01 --capacity 100000
	for router in 1 2 3; do
		[ $router -lt 3 ] ||
		    kvroute_options="zone=kv:8m secret=$work/out/other"
		start_nginx kvroute
		: > "$work/logs/sessions"
		places_of_keys > "$work/out/places$router"
		settled
		stop_nginx
	done
	start_nginx kvroute
	is 'places of two routers' "$(cat "$work/out/places2")" \
	    "$(cat "$work/out/places1")"
	above 'servers with keys' "$(tr ' ' '\n' < "$work/out/places1" |
	    sort -u | wc -l)" 2
	! cmp -s "$work/out/places1" "$work/out/places3" ||
	    echo 'another secret makes no difference'
}

tenants_have_sessions_of_their_own()
{
	location_lines='kvroute_affinity $http_x_s mode=hard;
	    kvroute_scope $http_x_tenant;'
	sessions_up
	speak 1 '' -H 'X-S: a' -H 'X-Tenant: one' > "$work/status"
	speak 2 '' -H 'X-S: a' -H 'X-Tenant: two' > "$work/status"
	is 'of another tenant' "$(last 3)" new
	speak 3 '' -H 'X-S: a' > "$work/status"
	is 'of no tenant' "$(last 3)" new
	speak 4 '' -H 'X-S: a' -H 'X-Tenant: one' > "$work/status"
	is 'of the same' "$(last 3)" hit
	call_with /v1/responses ',"input":"a"' -H 'X-Tenant: one' \
	    > "$work/status"
	id=$(jq -r .id "$work/said")
	call "/v1/responses/$id" -H 'X-Tenant: two' > "$work/status"
	is 'an answer of another tenant' "$(last 3)" new
	call "/v1/responses/$id" -H 'X-Tenant: one' > "$work/status"
	is 'an answer of the same' "$(last 3)" hit
	settled
}

# Another session finds this one's prompts.
sessions_are_no_scope()
{
	location_lines='kvroute_affinity $http_x_s;'
	sessions_up
	speak 1 '' -H 'X-S: a' > "$work/status"
	began
	until_true 20 no_leases
	speak 1 '' -H 'X-S: b' > "$work/status"
	stays 'the text of another session'
	is 'affinity' "$(last 3)" new
	above 'overlap' "$(last 4)" 10
	settled
}

# ------------------------------------------------------------------- state

# first N [MEMBERS [curl option ...]] - a response; its id is in `id`.
first()
{
	input=$(text "$1")
	members=${2:-}
	shift
	[ $# -eq 0 ] || shift
	is 'status of a first turn' "$(call_with /v1/responses \
	    ",\"input\":\"$input\",\"max_output_tokens\":4$members" "$@")" 200
	id=$(jq -r .id "$work/said" 2> "$work/no-json")
	began
}

# next_of ID [MEMBERS] - prints the status.
next_of()
{
	call_with /v1/responses ",\"input\":\"go on\",\"max_output_tokens\":4,
	    \"previous_response_id\":\"$1\"${2:-}"
}

answers_go_on_where_they_are()
{
	sessions_up
	for n in 1 2 3 4 5 6 7 8; do
		first $n
		others $n
		is "status of turn 2, $n" "$(next_of "$id")" 200
		is "turn 2, $n" "$(last 2-3)" 'affinity hit'
		stays "turn 2, $n"
		is "status of turn 3, $n" \
		    "$(next_of "$(jq -r .id "$work/said")")" 200
		stays "turn 3, $n"
	done
	is 'ids bound' "$(json '.upstreams[0].affinity.bound')" 24
	is 'status of a path' "$(call "/v1/responses/$id")" 200
	is 'the path of an answer' "$(last 2-3)" 'affinity hit'
	stays 'the path of an answer'
	is 'status of items' "$(call "/v1/responses/$id/input_items")" 200
	is 'status of cancel' "$(call "/v1/responses/$id/cancel" -X POST)" 400
	stays 'the path of cancel'
	is 'status of an unknown id' "$(next_of resp_unknown)" 404
	is 'an unknown id' "$(last 3)" new
	is 'state lost' "$(json '.upstreams[0].reasons.state_lost')" 0
	settled
	down
	location_lines='kvroute_responses off;'
	sessions_up
	for n in 1 2 3 4 5 6 7 8; do
		first $n
		others $n
		next_of "$id"
		is "affinity if off, $n" "$(last 3)" none
	done > "$work/statuses"
	above 'turns that fail without' \
	    "$(grep -c '^404$' "$work/statuses")" 0
	is 'outcomes if off' "$(outcomes)" '0 0 0 0'
	settled
}

# conversations_go_on [engine option ...]
conversations_go_on()
{
	sessions_up "$@"
	for n in 1 2 3 4; do
		is 'status of a new one' "$(call_with /v1/conversations '')" 200
		id=$(jq -r .id "$work/said")
		began
		others $n
		is "status by name, $n" "$(call_with /v1/responses \
		    ",\"input\":\"a\",\"conversation\":\"$id\"")" 200
		stays "by name, $n"
		is "by name, $n" "$(last 2-3)" 'affinity hit'
		is "status as an object, $n" "$(call_with /v1/responses \
		    ",\"conversation\":{\"id\":\"$id\"},\"input\":\"b\"")" 200
		stays "as an object, $n"
		is "status of items, $n" \
		    "$(call "/v1/conversations/$id/items")" 200
		stays "items, $n"
		is "status of more items, $n" "$(call \
		    "/v1/conversations/$id/items" -d '{"items":[{
		    "role":"user","content":"c"}]}')" 200
		is "status at the end, $n" \
		    "$(call "/v1/conversations/$id" -X DELETE)" 200
		stays "the end, $n"
		sleep 0.1
		is "status after the end, $n" \
		    "$(call "/v1/conversations/$id/items")" 404
		is "after the end, $n" "$(last 3)" new
	done
	settled
}

conversations_go_on_where_they_are()
{
	conversations_go_on
}

# One is made without a prompt, so no rank is chosen.
conversations_of_ranks()
{
	server_facts='ranks=4'
	conversations_go_on --ranks 4
}

streams_name_their_answers()
{
	sessions_up
	for n in 1 2 3 4; do
		first $n ',"stream":true'
		id=$(sed -n 's/^data: //p' "$work/said" | head -n 1 |
		    jq -r .response.id)
		others $n
		is "status, $n" "$(next_of "$id" ',"stream":true')" 200
		stays "turn 2 of stream $n"
	done
	settled
}

answers_that_are_not_kept_are_not_bound()
{
	sessions_up
	first 1 ',"store":false'
	is 'ids bound' "$(json '.upstreams[0].affinity.bound')" 0
	is 'status of its next turn' "$(next_of "$id")" 404
	is 'its next turn' "$(last 3)" new
	settled
}

# ---------------------------------------------------------- state is lost

state_of_a_removed_worker_is_lost()
{
	sessions_up
	first 1
	gone=$(sed 's/.*://' "$work/began")
	upstream_ports=$(echo "$engine_ports" | tr ' ' '\n' |
	    grep -v "^$gone\$" | paste -s -d ' ')
	reload_nginx kvroute
	is 'status' "$(next_of "$id")" 404
	is 'its next turn' "$(last 2-3)" 'state_lost gone'
	is 'status of its path' "$(call "/v1/responses/$id")" 404
	is 'its path' "$(last 2-3)" 'state_lost gone'
	is 'state lost' "$(json '.upstreams[0].reasons.state_lost')" 2
	is 'outcomes' "$(outcomes)" '0 0 0 2'
	settled
}

# The engine that refuses is reset; the next try finds that.
state_of_a_refusing_worker_is_lost()
{
	sessions_up
	first 1
	gone=$(sed 's/.*://' "$work/began")
	n=1
	for p in $engine_ports; do
		[ "$p" = "$gone" ] && fault $n 'kind=refuse&seconds=600'
		n=$((n + 1))
	done
	is 'status' "$(next_of "$id")" 404
	is 'the reason of the last try' \
	    "$(tail -n 1 "$work/logs/sessions" | grep -c state_lost)" 1
	is 'state lost' "$(json '.upstreams[0].reasons.state_lost')" 1
	is 'retries' "$(json '.upstreams[0].retries')" 1
	settled
}

state_on_a_server_that_is_down()
{
	sessions_up
	first 1
	with_first down ''
	is 'status' "$(next_of "$id")" 404
	is 'its next turn' "$(last 2-3)" 'state_lost moved'
	with_first '' ''
	is 'status when it is back' "$(next_of "$id")" 200
	stays 'when it is back'
	settled
}

# with_first PARAMETER OTHERS - reloads with a parameter for the server that
# has the first turn, and one for the others.
with_first()
{
	server_list=$(for p in $engine_ports; do
		if [ "127.0.0.1:$p" = "$(cat "$work/began")" ]; then
			echo "server 127.0.0.1:$p $1;"
		else
			echo "server 127.0.0.1:$p $2;"
		fi
	done)
	reload_nginx kvroute
}

# As nginx has it: a backup is for when there is no other.
state_on_a_backup()
{
	sessions_up
	first 1
	with_first backup ''
	is 'status beside others' "$(next_of "$id")" 404
	is 'beside others' "$(last 2-3)" 'state_lost moved'
	with_first backup down
	is 'status without others' "$(next_of "$id")" 200
	stays 'without others'
	is 'without others' "$(last 2-3)" 'affinity hit'
	settled
}

# fault_first 'kind=...' - of the engine that has the first turn.
fault_first()
{
	n=1
	for p in $engine_ports; do
		[ "127.0.0.1:$p" != "$(cat "$work/began")" ] || fault $n "$1"
		n=$((n + 1))
	done
}

# Waits until the first turn's engine, which stalls, has a second one.
next_in_flight()
{
	until_true 20 no_leases || echo 'the first turn does not end'
	fault_first 'kind=stall&seconds=600'
	curl -s -m 60 -o "$work/stalled" -w '%{http_code}\n' -d "{\"model\":
	    \"m\",\"input\":\"go on\",\"previous_response_id\":\"$id\"}" \
	    "http://127.0.0.1:$port/v1/responses" > "$work/stalled-status" &
	stalled_pid=$!
	until_true 20 one_lease || echo 'no second turn is under way'
}

one_lease()
{
	[ "$(json '.upstreams[0].region.leases')" = 1 ]
}

# The other engines could only answer that there is no such id.
state_on_a_full_worker()
{
	server_options='max_conns=1'
	sessions_up
	first 1
	next_in_flight
	is 'status of a turn' "$(next_of "$id")" 502
	is 'a turn' "$(last 2-3)" 'state_busy none'
	is 'status of a path' "$(call "/v1/responses/$id")" 502
	is 'a path' "$(last 2-3)" 'state_busy none'
	is 'status without state' "$(speak 2)" 200
	is 'state busy' "$(json '.upstreams[0].reasons.state_busy')" 2
	is 'state lost' "$(json '.upstreams[0].reasons.state_lost')" 0
	fault_first 'kind=none'
	wait "$stalled_pid"
	is 'status of the turn in flight' "$(cat "$work/stalled-status")" 200
	is 'status afterwards' "$(next_of "$id")" 200
	is 'afterwards' "$(last 2-3)" 'affinity hit'
	stays 'afterwards'
	settled
}

state_on_a_failed_worker()
{
	server_options='max_fails=1 fail_timeout=600s'
	sessions_up
	first 1
	next_in_flight
	fault_first 'kind=die'
	wait "$stalled_pid"
	is 'status of the turn that failed' "$(cat "$work/stalled-status")" 502
	is 'status of a turn' "$(next_of "$id")" 502
	is 'a turn' "$(last 2-3)" 'state_busy none'
	is 'state lost' "$(json '.upstreams[0].reasons.state_lost')" 0
	# nginx forgets failures.
	reload_nginx kvroute
	is 'status afterwards' "$(next_of "$id")" 200
	stays 'afterwards'
	settled
}

drained_worker_keeps_its_state()
{
	sessions_up
	first 1
	is 'state' "$(curl -s -m 10 -X POST \
	    "http://127.0.0.1:$port/kvroute?worker=$(cat \
	    "$work/began")&action=drain" | jq -r .state)" draining
	others
	[ "$(last 1)" != "$(cat "$work/began")" ] ||
	    echo 'a drained worker gets requests'
	is 'status' "$(next_of "$id")" 200
	stays 'state on a drained worker'
	settled
}

state_while_the_lock_is_held()
{
	kvroute_options="path=$work/out/index size=8m"
	sessions_up
	first 1
	bound=$id
	place=$(cat "$work/began")
	start_holder
	first 2
	is 'a first turn' "$(last 2)" busy
	late=$id
	echo "$place" > "$work/began"
	next_of "$bound" > "$work/status"
	# If the holder was stopped between two changes, the table can be read.
	case "$(last 2-3) $(cat "$work/status")" in
	'state_busy none 502') ;;
	'affinity hit 200') stays 'state that can be found' ;;
	*) echo "state while the lock is held: $(last 2-3,5)" ;;
	esac
	kill -CONT "$holder_pid"
	end_strays
	until_true 20 lookups_work || echo 'the lock stays held'
	is 'status of what was bound late' "$(next_of "$late")" 200
	is 'what was bound late' "$(last 3)" hit
	is 'status of what was bound before' "$(next_of "$bound")" 200
	above 'delayed writes' "$(json '.upstreams[0].delayed_writes')" 0
	settled
}

# With a file, a process looks for its workers again each second. Their ids are
# known meanwhile.
ids_are_kept_while_the_lock_is_held()
{
	kvroute_options="path=$work/out/index size=8m"
	sessions_up
	first 1
	hold_still
	sleep 2.5
	for n in 1 2 3 4; do
		is "status, $n" "$(next_of "$id")" 200
		is "turn 2, $n" "$(last 2-3)" 'affinity hit'
		stays "turn 2, $n"
	done
	end_strays
	until_true 20 lock_is_free || echo 'the lock stays held'
	settled
}

# A process that is stopped with the lock may stay so for hours.
bindings_that_wait_are_bounded()
{
	kvroute_options="path=$work/out/index size=8m"
	sessions_up
	first 1
	start_holder
	talk --endpoint responses --no-stream --requests 1200 --chats 20 \
	    --turns 2 --think-ms 1
	no_errors 'while the lock is held'
	kill -CONT "$holder_pid"
	end_strays
	until_true 20 lock_is_free || echo 'the lock stays held'
	waited=$(json '.upstreams[0].delayed_writes')
	[ "$waited" -le 512 ] || echo "delayed writes: $waited"
	settled
}

lock_is_free()
{
	! is_blocked
}

lookups_work()
{
	call "/v1/responses/$late" > "$work/status"
	[ "$(last 3)" = hit ]
}

# All ranks of an engine have its answers, but only one has the blocks.
state_of_ranks()
{
	server_facts='ranks=4'
	engines=2
	location_lines='kvroute_affinity auto;'
	sessions_up --ranks 4
	for n in 1 2 3 4; do
		first $n
		rank=$(last 6)
		others $n
		is "status, $n" "$(next_of "$id")" 200
		is "rank, $n" "$(last 6)" "$rank"
		stays "turn 2, $n"
		kept_by $((10 + n)) '' -H "X-Session-Id: $n"
	done
	settled
}

# A mirrored request has the headers and the body of its request.
mirrored_requests_have_no_session()
{
	location_lines='kvroute_affinity $http_x_s;
	    mirror /v1/mirror/v1/completions;
	    location = /v1/mirror/v1/completions {
		internal;
		proxy_pass http://engines/v1/completions;
	    }'
	sessions_up
	speak 1 '' -H 'X-S: a' > "$work/status"
	until_true 20 no_leases || echo 'leases stay'
	began
	is 'outcomes of the first' "$(outcomes)" '0 1 0 0'
	speak 2 '' -H 'X-S: a' > "$work/status"
	stays 'the second'
	is 'outcomes of both' "$(outcomes)" '1 1 0 0'
	settled
	is 'requests with their mirrors' \
	    "$(json '[.upstreams[0].reasons[]] | add')" 4
}

deleting_what_is_not_bound_binds_nothing()
{
	engines=1
	sessions_up
	id=$(curl -s -m 10 -d '{"model":"m"}' \
	    "http://127.0.0.1:$engine_ports/v1/conversations" | jq -r .id)
	is 'status' "$(call "/v1/conversations/$id" -X DELETE)" 200
	is 'its id' "$(last 3)" new
	settled
	is 'bindings' "$(metric kvroute_affinity_bindings)" 0
}

# ------------------------------------------------------------------ the rest

# A reload that ends the trial keeps the answers that were made in it.
shadow_learns_where_state_is()
{
	kvroute_options='zone=kv:8m shadow=round_robin'
	location_lines='kvroute_affinity auto;'
	sessions_up
	first 1
	next_of "$id" > "$work/status"
	[ "$(last 1)" != "$(cat "$work/began")" ] ||
	    echo 'round robin is not followed'
	kvroute_options='zone=kv:8m'
	reload_nginx kvroute
	is 'status' "$(next_of "$id")" 200
	stays 'after the trial'
	settled
}

# choices LINES - address, reason and overlap of each request of some chats.
choices()
{
	location_lines=$1
	log_sessions
	start_nginx kvroute
	: > "$work/logs/sessions"
	speak 1 > "$work/status"
	speak 2 > "$work/status"
	for endpoint in chat responses messages completions; do
		talk --requests 12 --chats 1 --turns 4 --seed 5 --think-ms 5 \
		    --no-stream --endpoint $endpoint
		no_errors "$endpoint"
	done
	is "outcomes ($1)" "$(outcomes)" '0 0 0 0'
	is "state lost ($1)" "$(json '.upstreams[0].reasons.state_lost')" 0
	settled
	finish_nginx
	cut -d ' ' -f 1,2,4,5 "$work/logs/sessions"
}

# Servers and secret are the same; reports of engines, and their times, play no
# part.
nothing_changes_without_keys()
{
	printf '0123456789abcdefghijklmnopqrstuv' > "$work/out/secret"
	chmod 600 "$work/out/secret"
	processes=1
	kvroute_options="zone=kv:8m secret=$work/out/secret"
	start_engines 4 --scale 0.01 --capacity 100000 --usage none
	choices 'kvroute_affinity off; kvroute_responses off;' \
	    > "$work/out/off"
	choices 'kvroute_affinity $http_x_s;' > "$work/out/on"
	is 'requests' "$(wc -l < "$work/out/off")" 50
	cmp -s "$work/out/off" "$work/out/on" ||
	    diff "$work/out/off" "$work/out/on" | head -n 10
}

ids_are_in_the_log()
{
	http_lines="log_format ids '\$kvroute_cache_key \$kvroute_session"
	http_lines="$http_lines \$kvroute_user \$kvroute_previous_response"
	http_lines="$http_lines \$kvroute_conversation \$kvroute_affinity';"
	location_lines="access_log $work/logs/ids ids;"
	processes=1
	up
	curl -s -m 10 -o /dev/null -d '{"prompt_cache_key":"k","user":"u",
	    "session_id":"s","previous_response_id":"p","input":"a"}' \
	    "http://127.0.0.1:$port/v1/responses"
	curl -s -m 10 -o /dev/null -d '{"conversation":{"id":"c"},"input":"a",
	    "safety_identifier":"i"}' "http://127.0.0.1:$port/v1/responses"
	# Without a prompt, and without a body.
	curl -s -m 10 -o /dev/null -d '{"prompt_cache_key":"k"}' \
	    "http://127.0.0.1:$port/v1/chat/completions"
	curl -s -m 10 -o /dev/null "http://127.0.0.1:$port/v1/models"
	settled
	finish_nginx
	is 'all of them' "$(sed -n 1p "$work/logs/ids")" 'k s u p - new'
	is 'the others' "$(sed -n 2p "$work/logs/ids")" '- - i - c new'
	is 'without a prompt' "$(sed -n 3p "$work/logs/ids")" 'k - - - - none'
	is 'without a body' "$(sed -n 4p "$work/logs/ids")" '- - - - - none'
}

# secret_is_refused WHY - the one in out/secret.
secret_is_refused()
{
	tried_conf "kvroute zone=kv:8m secret=$work/out/secret;" \
	    > "$work/tried"
	grep -qF "$1" "$work/tried" || echo "not '$1': $(cat "$work/tried")"
}

secrets_that_cannot_be()
{
	find_module
	secret_is_refused 'the file cannot be opened'
	mkdir "$work/out/secret"
	secret_is_refused 'it is no file'
	rmdir "$work/out/secret"
	(umask 077 && : > "$work/out/secret")
	secret_is_refused 'neither 32 bytes nor 64 hexadecimal digits'
	for bytes in 31 33 63 65 200; do
		awk -v n=$bytes 'BEGIN { while (n-- > 0) printf "a" }' \
		    > "$work/out/secret"
		secret_is_refused 'neither 32 bytes nor 64 hexadecimal digits'
	done
	awk 'BEGIN { while (n++ < 63) printf "a"; printf "g" }' \
	    > "$work/out/secret"
	secret_is_refused 'neither 32 bytes nor 64 hexadecimal digits'
	awk 'BEGIN { while (n++ < 64) printf "0" }' > "$work/out/secret"
	secret_is_refused 'the secret is zero'
	awk 'BEGIN { while (n++ < 64) printf "a"; printf "\n" }' \
	    > "$work/out/secret"
	secret_is_refused 'it is taken'
	! grep -q 'other users' "$work/tried" || echo 'a safe file is not safe'
	chmod 644 "$work/out/secret"
	secret_is_refused 'other users may read or write the secret'
	secret_is_refused 'it is taken'
	expected_alert='[emerg]'
}

sessions_over_a_reload()
{
	location_lines='kvroute_affinity $http_x_s;'
	sessions_up
	speak 1 '' -H 'X-S: a' > "$work/status"
	began
	reload_nginx kvroute
	speak 2 '' -H 'X-S: a' > "$work/status"
	is 'after a reload' "$(last 3)" hit
	stays 'after a reload'
	kvroute_options='zone=kv:8m affinity=7'
	write_conf kvroute
	kill -HUP "$nginx_pid"
	until_true 20 grep -q 'affinity or secret: give it another name' \
	    "$work/logs/error" || echo 'another table is taken'
	expected_alert='in use with another block'
	speak 3 '' -H 'X-S: a' > "$work/status"
	is 'after a refused reload' "$(last 3)" hit
	kvroute_options='zone=kw:8m affinity=0'
	reload_nginx kvroute
	speak 4 '' -H 'X-S: a' > "$work/status"
	is 'without a table' "$(last 3)" none
	first 5
	is 'ids bound without a table' \
	    "$(json '.upstreams[0].affinity.bound')" 0
	settled
}

# By default the table follows from size=, which plays no part once there is a
# file.
a_file_keeps_its_table()
{
	kvroute_options="path=$work/out/index size=2m"
	location_lines='kvroute_affinity $http_x_s;'
	sessions_up
	speak 1 '' -H 'X-S: a' > "$work/status"
	began
	kvroute_options="path=$work/out/index size=2m"
	reload_nginx kvroute
	speak 2 '' -H 'X-S: a' > "$work/status"
	is 'after a reload' "$(last 3)" hit
	stays 'after a reload'
	settled
}

# The share is of the rest that the tables for workers leave.
small_zones_have_room()
{
	find_module
	tried_conf 'kvroute zone=kv:1080k;' > "$work/tried"
	grep -qF 'it is taken' "$work/tried" || cat "$work/tried"
	tried_conf 'kvroute zone=kv:1080k affinity=1600;' > "$work/tried"
	grep -qF 'zone: The region is too small' "$work/tried" ||
	    echo 'the zone has more room than was thought'
	expected_alert='[emerg]'
}
