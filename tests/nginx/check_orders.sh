#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_orders.sh - cases of check.sh: the status location: reports, explain and
# orders.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} status_has_three_forms explaining_books_nothing
    draining_and_resetting trace_can_be_replayed
    running_requests_stay_load_after_a_reset
    running_requests_of_many_servers_are_load
    running_requests_stay_load_over_reloads
    orders_write_one_line_of_the_log texts_of_bodies_are_one_line"

status_has_three_forms()
{
	up
	talk --requests 24 --chats 4 --think-ms 1
	status /json > "$work/json" || echo 'no JSON'
	jq -e . "$work/json" > /dev/null || echo 'not JSON'
	is 'requests in JSON' "$(jq '.upstreams[0].reasons | add' \
	    "$work/json")" 24
	is 'requests in metrics' \
	    "$(metric kvroute_nginx_requests_total)" 24
	is 'workers in JSON' "$(jq '.upstreams[0].workers | length' \
	    "$work/json")" 4
	status '?format=html' > "$work/page" || echo 'no page'
	grep -q '<html' "$work/page" || echo 'the page is not HTML'
	! grep -qE '(src|href)="?(https?:)?//' "$work/page" ||
	    echo 'the page fetches something from elsewhere'
	is 'page for a browser' "$(curl -s -m 10 -H 'Accept: text/html' \
	    "http://127.0.0.1:$port/kvroute" | cksum)" \
	    "$(cksum < "$work/page")"
	settled
}

explaining_books_nothing()
{
	processes=1
	up
	"$build/kvroute-chats" --make-body 8000 > "$work/body"
	curl -s -m 10 -o /dev/null --data-binary @"$work/body" \
	    "http://127.0.0.1:$port/v1/chat/completions"
	until_true 20 no_leases
	json '.upstreams[0] | [.region, .reasons, [.workers[].lease_opens]]
	    | tostring' > "$work/before"
	curl -s -m 10 --data-binary @"$work/body" \
	    "http://127.0.0.1:$port/kvroute/explain" > "$work/explained"
	json '.upstreams[0] | [.region, .reasons, [.workers[].lease_opens]]
	    | tostring' > "$work/after"
	cmp -s "$work/before" "$work/after" ||
	    diff "$work/before" "$work/after"
	is outcome "$(jq -r .outcome "$work/explained")" prompt
	above 'blocks' "$(jq .blocks "$work/explained")" 20
	is candidates "$(jq '.candidates | length' "$work/explained")" 4
	is 'candidates with overlap' "$(jq \
	    '[.candidates[] | select(.overlap_blocks > 0)] | length' \
	    "$work/explained")" 1
	is 'overlap of the one decided for' \
	    "$(jq .decision.overlap_blocks "$work/explained")" \
	    "$(jq .blocks "$work/explained")"
	settled
}

# order WORKER ACTION
order()
{
	curl -s -m 10 -o "$work/ordered" -w '%{http_code}' -X POST \
	    "http://127.0.0.1:$port/kvroute?worker=$1&action=$2"
}

state_of()
{
	json ".upstreams[0].workers[] | select(.name == \"$1\") | .$2"
}

draining_and_resetting()
{
	up
	talk --requests 48 --chats 8 --think-ms 1
	one=127.0.0.1:$(nth 1 "$engine_ports")
	is 'status of drain' "$(order "$one" drain)" 200
	is state "$(state_of "$one" state)" draining
	before=$(state_of "$one" lease_opens)
	talk --requests 48 --chats 8 --think-ms 1 --seed 2
	no_errors 'while one is drained'
	is 'requests of the drained one' "$(state_of "$one" lease_opens)" \
	    "$before"
	reload_nginx kvroute
	is 'state after a reload' "$(state_of "$one" state)" draining
	is 'status of reset' "$(order "$one" reset)" 200
	is 'blocks after a reset' "$(state_of "$one" held_blocks)" 0
	is 'status of forget' "$(order "$one" forget)" 200
	is 'status of up' "$(order "$one" up)" 200
	is 'state afterwards' "$(state_of "$one" state)" up
	is 'an unknown worker' "$(order 127.0.0.1:1 drain)" 404
	is 'an unknown order' "$(order "$one" dance)" 400
	settled
}

trace_can_be_replayed()
{
	location_lines="kvroute_trace $work/out/trace;"
	up
	talk --requests 60 --chats 6 --think-ms 1
	lines=$((60 - $(busy)))
	finish_nginx
	is 'lines of the trace' "$(wc -l < "$work/out/trace")" $lines
	is 'lines that are JSON of this shape' "$(jq -c 'select((.timestamp
	    | type == "number") and (.input_length > 0) and (.hash_ids
	    | type == "array") and (.worker | type == "string"))' \
	    "$work/out/trace" | wc -l)" $lines
	! grep -qiE 'bah|rige' "$work/out/trace" || echo 'text in the trace'
	sort -t : -k 2n "$work/out/trace" > "$work/out/sorted"
	[ ! -x "$build/kvroute-replay" ] ||
	    "$build/kvroute-replay" --format kv "$work/out/sorted" \
	    > "$work/replayed" || echo 'kvroute-replay refuses it'
	[ ! -x "$build/kvroute-replay" ] ||
	    is 'requests replayed' "$(value "$work/replayed" requests)" $lines
}

# ------------------------------------------------------------ load that lives

# streams N [ALL] - that last, and so are load; then there are so many in all.
streams()
{
	for i in $(seq "$1"); do
		curl -sN -m 300 -o "$work/stream.$i" \
		    "http://127.0.0.1:$port/v1/completions" \
		    -d '{"model":"m","prompt":"'"$(text "$i")"'","stream":true,
		    "max_tokens":5000}' &
		kept_pids="$kept_pids $!"
	done
	until_true 20 requests_are "${2:-$1}" || echo "requests are $(requests_by)"
}

requests_by()
{
	json '[.upstreams[0].workers[].requests] | tostring'
}

# All of so many servers are reset; their requests run on.
reset_keeps_requests()
{
	before=$(requests_by)
	for engine in $(seq "$1"); do
		is order "$(order "$(address_of "$engine")" reset)" 200
	done
	is 'requests after the reset' "$(requests_by)" "$before"
}

requests_are()
{
	[ "$(json '[.upstreams[0].workers[].requests] | add')" = "$1" ]
}

running_requests_stay_load_after_a_reset()
{
	engines=2
	processes=1 # no other one holds the lock of the index
	up --decode-ms 2000
	streams 8
	reset_keeps_requests 2
	streams 8 16
	is 'by engine' "$(json '[.upstreams[0].workers[].requests] |
	    max - min < 4')" true
	stop_kept
	until_true 20 requests_are 0 || echo "requests stay: $(requests_by)"
	settled
}

# Each has a figure of its own.
running_requests_of_many_servers_are_load()
{
	engines=12
	processes=1
	up --decode-ms 2000
	streams 24
	reset_keeps_requests 12
	stop_kept
	until_true 20 requests_are 0 || echo "requests stay: $(requests_by)"
	settled
}

# A reload without a server, and one with it again, while its streams last.
running_requests_stay_load_over_reloads()
{
	engines=2
	processes=1
	up --decode-ms 2000
	streams 8
	before=$(requests_by)
	all=$engine_ports
	NOWAIT=yes
	upstream_ports=$(nth 1 "$all")
	reload_nginx kvroute
	unset upstream_ports
	reload_nginx kvroute
	unset NOWAIT
	is 'requests after two reloads' "$(requests_by)" "$before"
	stop_kept
	until_true 20 requests_are 0 || echo "requests stay: $(requests_by)"
	upstream_ports=$(nth 1 "$all")
	reload_nginx kvroute
	is 'workers without requests' \
	    "$(json '.upstreams[0].workers | length')" 1
	settled
}

orders_write_one_line_of_the_log()
{
	up
	lines=$(wc -l < "$work/logs/error")
	for name in '%22%0a2026/11/26%20forged' 'a%0d%0ab' '%1b%5b31m' '%7f' \
	    '%ff%0a'; do
		is order "$(order "$name" forget)" 404
	done
	until_true 20 is_logged forged || echo 'nothing is logged'
	is 'lines of five orders' \
	    "$(($(wc -l < "$work/logs/error") - lines))" 5
	! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177-\377]')" \
	    "$work/logs/error" || echo 'control characters are logged'
}

# Control characters of the body reach no header and no log.
texts_of_bodies_are_one_line()
{
	http_lines="log_format raw escape=none '\$kvroute_model \$kvroute_user';"
	location_lines="access_log $work/logs/raw raw;
	    add_header X-Model \$kvroute_model;"
	up
	curl -s -m 10 -D "$work/head" -o /dev/null \
	    -d '{"model":"a\r\nX-Evil: 1\u007f","user":"b\nforged","prompt":"x"}' \
	    "http://127.0.0.1:$port/v1/completions"
	until_true 20 test -s "$work/logs/raw"
	is 'lines of the log' "$(cat "$work/logs/raw")" 'a??X-Evil: 1? b?forged'
	! grep -qi '^x-evil' "$work/head" || echo 'a header is forged'
	settled
}
