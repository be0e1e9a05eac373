#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_door.sh build [case] - kvroute-pick's JSON over HTTP: cases of
# tests/cases.sh.
#
# shellcheck disable=SC2154
. tests/pick/common.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
find_ports
url=http://127.0.0.1:$port
request='{"model":"m","messages":[{"role":"user","content":"hello"}]}'

# PATH [option of curl ...]
post()
{
	path=$1
	shift
	curl -s -m 20 -X POST "$@" "$url$path"
}

# [option of curl ...] - the answer to a select.
choose()
{
	post /v1/select -d "$request" -H 'Content-Type: application/json' "$@"
}

# The same, but the code.
code()
{
	"$@" -o "$scratch/body" -w '%{http_code}'
}

up()
{
	configure 'kvroute size=64m;' "${servers:-$three}"
	picker_up --secure-serving false --listen "127.0.0.1:$port" "$@"
}

requests_open()
{
	state '[.pool.upstreams[0].workers[].requests] | add'
}

case_a_whole_call()
{
	up
	choose > "$scratch/choice"
	id=$(jq -r .call "$scratch/choice")
	is targets "$(jq '.targets | length' "$scratch/choice")" 3
	is reason "$(jq -r '.reason | length > 0' "$scratch/choice")" true
	now_is 1 requests_open
	now_is '{}' post "/v1/calls/$id/response" -d '{"choices":[],' \
	    -H 'Content-Type: application/json'
	is report "$(post "/v1/calls/$id/end" -d '"usage":{"prompt_tokens":20,
	    "completion_tokens":3,"total_tokens":23,
	    "prompt_tokens_details":{"cached_tokens":16}}}' |
	    jq -c '[.prompt, .cached, .completion]')" '[20,16,3]'
	now_is 0 requests_open
	is 'a second end' "$(code post "/v1/calls/$id/end")" 404
	now_is '[0,1,1]' state '[.pick.calls, .pick.ended.whole, .pick.selects_total]'
}

case_ways_to_end()
{
	up
	for how in whole client_left engine_broke given_up not_seen; do
		id=$(choose | jq -r .call)
		is "$how" "$(code post "/v1/calls/$id/end" \
		    -H "x-kvroute-how: $how")" 200
	done
	now_is '[1,1,1,1,1]' state '[.pick.ended[]]'
	id=$(choose | jq -r .call)
	is 'no such way' "$(code post "/v1/calls/$id/end" \
	    -H 'x-kvroute-how: nonsense')" 400
	now_is 1 requests_open
}

case_failed_servers()
{
	up
	choose > "$scratch/choice"
	id=$(jq -r .call "$scratch/choice")
	first=$(jq -r '.targets[0]' "$scratch/choice")
	post "/v1/calls/$id/failed" -H 'x-kvroute-failure: refused' \
	    > "$scratch/second"
	is 'the same call' "$(jq -r .call "$scratch/second")" "$id"
	is 'the first again' "$(jq --arg f "$first" '[.targets[] |
	    select(. == $f)] | length' "$scratch/second")" 0
	post "/v1/calls/$id/failed" -H 'x-kvroute-failure: status' \
	    -H 'x-kvroute-status: 503' > /dev/null
	is 'the third' "$(code post "/v1/calls/$id/failed")" 503
	is 'the call' "$(code post "/v1/calls/$id/failed")" 404
	now_is 0 requests_open
}

case_edits()
{
	servers="kvroute_include_usage on;
$three"
	up
	choose -d '' -d '{"stream":true,"model":"m","messages":[]}' > /dev/null
	request='{"stream":true,"model":"m","messages":[{"role":"user","content":"x"}]}'
	choose | jq -c '[.edits[] | select(.text // "" | test("include_usage"))
	    | has("at"), has("cut")]' > "$scratch/edits"
	is edits "$(cat "$scratch/edits")" '[true,true]'
}

# A stream whose usage was asked for by an edit is learned from.
case_streams()
{
	up
	request='{"stream":true,"model":"m","messages":[{"role":"user","content":"x"}]}'
	id=$(choose | jq -r .call)
	head='data: {"choices":[{"index":0,"delta":{"content":"a"}}]}'
	usage='data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23,"prompt_tokens_details":{"cached_tokens":16}}}'
	printf '%s\n\n' "$head" | post "/v1/calls/$id/response" \
	    --data-binary @- -H 'Content-Type: text/event-stream' > /dev/null
	is report "$(printf '%s\n\n' "$usage" 'data: [DONE]' |
	    post "/v1/calls/$id/end" --data-binary @- |
	    jq -c '[.prompt, .cached, .completion]')" '[20,16,3]'
}

case_tokens()
{
	up
	request=$(seq -s , 1 3000 | sed 's/.*/[&]/')
	id=$(choose -H 'x-kvroute-tokens: 1' \
	    -H 'x-kvroute-path: /v1/completions' | jq -r .call)
	is 'the end' "$(code post "/v1/calls/$id/end")" 200
	request='[1,'
	is 'no list' "$(code choose -H 'x-kvroute-tokens: 1')" 400
	now_is 0 requests_open
}

case_told()
{
	up
	is 'subset of one' "$(choose -H 'x-kvroute-allow: 127.0.0.1:9102' |
	    jq -c .targets)" '["127.0.0.1:9102"]'
	is 'empty subset' "$(code choose -H 'x-kvroute-allow: 10.0.0.1:1')" 503
	is 'bypass' "$(choose -H 'x-kvroute-bypass: 1' | jq -r .reason)" bypass
}

case_server_that_is_not_known()
{
	up
	id=$(choose | jq -r .call)
	is response "$(code post "/v1/calls/$id/response" -d '{' \
	    -H 'x-kvroute-served: 10.0.0.9:1')" 400
	is end "$(code post "/v1/calls/$id/end" -d '{}' \
	    -H 'x-kvroute-served: 10.0.0.9:1')" 400
	now_is 1 requests_open
	is known "$(code post "/v1/calls/$id/end" -d '{}' \
	    -H 'x-kvroute-served: 127.0.0.1:9102')" 200
	now_is 0 requests_open
}

case_prefill()
{
	servers='server 127.0.0.1:9101 role=decode;
server 127.0.0.1:9102 role=prefill;'
	up
	is short "$(choose | jq -c '[.targets, .prefill]')" \
	    '[["127.0.0.1:9101"],null]'
	request='{"model":"m","messages":[{"role":"user","content":"'$(seq -s \
	    ' ' 1000)'"}]}'
	choose > "$scratch/choice"
	is long "$(jq -c '[.targets, .prefill]' "$scratch/choice")" \
	    '[["127.0.0.1:9101"],"127.0.0.1:9102"]'
	is header "$(jq -r '.edits[].header // empty | select(test("prefill"))' \
	    "$scratch/choice")" 'x-prefiller-host-port: 127.0.0.1:9102'
	now_is 3 requests_open
	post "/v1/calls/$(jq -r .call "$scratch/choice")/end" > /dev/null
	now_is 1 requests_open
	is split "$(curl -s "$url/metrics" | grep '^kvroute_http_split_total')" \
	    'kvroute_http_split_total{upstream="pool"} 1'
}

case_salt_without_a_body()
{
	up
	request='{broken'
	is salt "$(code choose -H 'x-kvroute-salt: a')" 400
	now_is 0 requests_open
	now_is 0 state .pick.calls
}

case_servers()
{
	up
	is put "$(code curl -s -m 5 -X PUT "$url/v1/servers/127.0.0.1:9104" \
	    -d 'capacity=1000')" 200
	now_is 4 state .pick.servers
	is 'bad fact' "$(code curl -s -m 5 -X PUT "$url/v1/servers/127.0.0.1:9105" \
	    -d 'colour=red')" 400
	is 'no address' "$(code curl -s -m 5 -X PUT "$url/v1/servers/nonsense" -d '')" 400
	is delete "$(code curl -s -m 5 -X DELETE \
	    "$url/v1/servers/127.0.0.1:9104")" 200
	is again "$(code curl -s -m 5 -X DELETE \
	    "$url/v1/servers/127.0.0.1:9104")" 404
	is get "$(code curl -s -m 5 "$url/v1/servers/127.0.0.1:9101")" 405
	now_is 3 state .pick.servers
	is 'encoded name' "$(code curl -s -m 5 -X PUT \
	    "$url/v1/servers/%5B::1%5D:9104" -d '')" 200
	now_is true state '[.pool.upstreams[0].workers[].name] |
	    any(. == "[::1]:9104")'
	is 'encoded end' "$(code curl -s -m 5 -X PUT \
	    "$url/v1/servers/127.0.0.1:9104%00" -d '')" 400
}

# The file does not take back what the API has added.
case_servers_of_both_sources()
{
	up
	curl -s -m 5 -X PUT "$url/v1/servers/127.0.0.1:9104" -d '' > /dev/null
	configure 'server 127.0.0.1:9101;'
	until_is 2 state .pick.servers
}

# Facts of the API stay, and so do its deletions.
case_servers_of_the_api_first()
{
	up
	curl -s -m 5 -X PUT "$url/v1/servers/127.0.0.1:9101" \
	    -d 'max_conns=1' > /dev/null
	curl -s -m 5 -X DELETE "$url/v1/servers/127.0.0.1:9102" > /dev/null
	now_is 2 state .pick.servers
	configure "$three" 'server 127.0.0.1:9105;'
	until_is 3 state .pick.servers
	is first "$(code choose -H 'x-kvroute-allow: 127.0.0.1:9101')" 200
	is second "$(code choose -H 'x-kvroute-allow: 127.0.0.1:9101')" 429
	is deleted "$(code choose -H 'x-kvroute-allow: 127.0.0.1:9102')" 503
	is again "$(code curl -s -m 5 -X DELETE \
	    "$url/v1/servers/127.0.0.1:9102")" 404
	configure 'server 127.0.0.1:9105;'
	until_is 2 state .pick.servers
	configure 'server 127.0.0.1:9102;' 'server 127.0.0.1:9105;'
	until_is 3 state .pick.servers
}

case_calls_without_an_end()
{
	up --call-limit 2
	choose > /dev/null
	choose > /dev/null
	now_is 2 requests_open
	until_is 2 state .pick.faded_total
	now_is '[0,2]' state '[.pick.calls, .pick.ended.not_seen]'
}

case_full()
{
	servers='server 127.0.0.1:9101 max_conns=1;'
	up
	id=$(choose | jq -r .call)
	is full "$(code choose -D "$scratch/head")" 429
	grep -qi '^retry-after: [0-9]' "$scratch/head" || echo 'no Retry-After'
	post "/v1/calls/$id/end" > /dev/null
	is 'room again' "$(code choose)" 200
}

# N - a select in the background, as $scratch/choice.N; one more waits then.
wait_for_one()
{
	choose > "$scratch/choice.$1" &
	until_is "$1" state .pick.waiting
}

# N - the choice of that select has come; its call ends.
end_choice()
{
	until_true 60 test -s "$scratch/choice.$1" || echo "no answer to $1"
	post "/v1/calls/$(jq -r .call "$scratch/choice.$1")/end" > /dev/null
}

case_waits_in_order()
{
	servers='kvroute_queue 8;
server 127.0.0.1:9101 max_conns=1;'
	up
	choose > "$scratch/choice.0"
	for n in 1 2 3; do
		wait_for_one $n
	done
	for n in 0 1 2 3; do
		end_choice $n
		[ $n = 3 ] || until_is $((2 - n)) state .pick.waiting
	done
	now_is '[0,4,4]' state '[.pick.calls, .pick.ended.whole, .pick.routed_total]'
}

# Its place is free at once, and nothing of it is left.
case_leaves_while_it_waits()
{
	servers='kvroute queue=1;
server 127.0.0.1:9101 max_conns=1;'
	up
	choose > "$scratch/choice.0"
	choose > /dev/null &
	leaver=$!
	until_is 1 state .pick.waiting
	is 'the line is full' "$(code choose)" 429
	kill -KILL "$leaver"
	until_is '[0,1]' state '[.pick.waiting, .pick.calls]'
	wait_for_one 1
	end_choice 0
	end_choice 1
	until_is '[0,2]' state '[.pick.calls, .pick.ended.whole]'
}

case_waits_too_long()
{
	servers='kvroute queue=8 queue_timeout=100ms;
server 127.0.0.1:9101 max_conns=1;'
	up
	choose > /dev/null
	is late "$(code choose -D "$scratch/head")" 429
	grep -qi '^retry-after: [0-9]' "$scratch/head" || echo 'no Retry-After'
	now_is '[1,1]' state '[.pool.upstreams[0].reasons.queue_timeout,
	    .pool.upstreams[0].queued]'
	now_is 1 state .pick.calls
}

# A second trial waits as the first does, and other requests for it do not.
case_waits_for_a_second_server()
{
	servers='kvroute queue=8;
server 127.0.0.1:9101 max_conns=1;
server 127.0.0.1:9102 max_conns=1;'
	up
	choose > "$scratch/choice.0"
	id=$(choose | jq -r .call)
	post "/v1/calls/$id/failed" -H 'x-kvroute-failure: broke' \
	    > "$scratch/choice.1" &
	until_is 1 state .pick.waiting
	is 'an end' "$(code post "/v1/calls/$id/end")" 409
	end_choice 0
	until_true 60 test -s "$scratch/choice.1" || echo 'no second server'
	is 'the same call' "$(jq -r .call "$scratch/choice.1")" "$id"
	is 'the end' "$(code post "/v1/calls/$id/end")" 200
}

worker()
{
	state ".pool.upstreams[0].workers[0] | $1"
}

# Without an engine the server is used all the same.
case_engine_is_asked()
{
	engine_port=$(free_port)
	servers="kvroute poll=100ms;
server 127.0.0.1:$engine_port capacity=auto;"
	up
	is 'no engine' "$(code choose)" 200
	now_is null worker .polled
	"$build/kvroute-engine" --port "$engine_port" --model m \
	    --capacity 123456 > "$scratch/engine.log" 2>&1 &
	engine=$!
	until_is 123456 worker .capacity
	until_is 0 worker .polled.running
	is added "$(code curl -s -m 5 -X PUT \
	    "$url/v1/servers/127.0.0.1:9104" -d 'capacity=auto')" 200
	kill "$engine"
	wait "$engine" 2> /dev/null
}

case_unix_socket()
{
	configure "$three"
	picker_up --secure-serving false --listen "unix:$scratch/socket"
	url=http://door
	id=$(choose --unix-socket "$scratch/socket" | jq -r .call)
	is end "$(code post "/v1/calls/$id/end" \
	    --unix-socket "$scratch/socket")" 200
	is mode "$(stat -c %a "$scratch/socket")" 660
	"$build/kvroute-pick" -c "$conf" --metrics-port 0 --grpc-port "$port" \
	    --grpc-health-port 0 --listen "unix:$scratch/socket" \
	    2> "$scratch/said" && echo 'two have one socket'
	kill -KILL "$picker"
	wait "$picker" 2> /dev/null
	picker_up --secure-serving false --listen "unix:$scratch/socket"
	is 'a socket that was left' "$(code choose --unix-socket \
	    "$scratch/socket")" 200
	picker_down
	[ ! -e "$scratch/socket" ] || echo 'the socket is left'
}

case_strange_requests()
{
	up
	is path "$(code post /v1/nothing)" 404
	is call "$(code post /v1/calls/00/end)" 404
	is verb "$(code post /v1/calls/000000000000000000000000/x)" 404
	is get "$(code curl -s -m 5 "$url/v1/select")" 404
	now_is 2 state .pick.unknown_total
	request='{broken'
	is body "$(code choose)" 200
}

run "$2"
