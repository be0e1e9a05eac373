#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_orders.sh - cases of check.sh: the status location: reports, explain and
# orders.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} status_has_three_forms explaining_books_nothing
    draining_and_resetting trace_can_be_replayed"

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
