#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_gateway.sh build [case] - the example gateway when clients or engines
# break the rules: cases of tests/cases.sh.
#
# shellcheck disable=SC2034,SC2154
. tests/events/common.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
gateways='' engine='' user=''

finish()
{
	[ -z "$user" ] || { kill "$user"; wait "$user" 2> /dev/null; }
	gateways_down
	[ -z "$engine" ] || { kill "$engine"; wait "$engine" 2> /dev/null; }
	user='' engine=''
	[ ! -e "$index" ] || "$build/region" "$index" check
	rm -f "$index" "$scratch/port"
	cat "$scratch/gateway.log" 2> /dev/null
}

# HOW
broken_up()
{
	perl tests/events/broken.pl "$1" "$scratch/port" &
	engine=$!
	until_true 60 test -s "$scratch/port" || echo 'no engine'
	port=$(cat "$scratch/port")
}

good_up()
{
	"$build/kvroute-engine" --for 600 --scale 0.001 \
	    > "$scratch/port" 2> "$scratch/engine.log" &
	engine=$!
	until_true 60 test -s "$scratch/port" || echo 'no engine'
	port=$(head -n 1 "$scratch/port")
}

prompt="{\"max_tokens\":2,\"prompt\":[$(seq -s , 100)]}"

# [BODY [option ...]] - prints the status of the response; 000: none.
ask()
{
	body=${1:-$prompt}
	[ $# -eq 0 ] || shift
	curl -s -m 60 -o "$scratch/answer" -w '%{http_code}' "$@" \
	    "http://127.0.0.1:$entry/v1/completions" -d "$body"
}

running()
{
	"$build/region" "$index" running "127.0.0.1:$port:0"
}

runs()
{
	[ "$(running)" -eq "$1" ]
}

# The gateway goes on, and nothing of the request is left.
case_engines_do_not_answer()
{
	for how in silent cut rubbish; do
		broken_up "$how"
		gateway_up "$port"
		is "$how" "$(ask)" 502
		is "$how, again" "$(ask)" 502
		is "$how, running" "$(running)" 0
		finish
	done
}

case_an_engine_asks_for_a_type()
{
	broken_up typed
	gateway_up "$port"
	is status "$(ask "$prompt" -H 'Content-Type: text/plain')" 200
}

case_an_engine_is_not_there()
{
	port=$(free_port)
	gateway_up "$port"
	is refused "$(ask)" 502
	is 'refused again' "$(ask)" 502
	is running "$(running)" 0
}

# An engine's error is passed on; tokens that it did not compute are not cached
# there.
case_an_engine_is_out_of_order()
{
	good_up
	gateway_up "$port"
	curl -sf -X POST \
	    "http://127.0.0.1:$port/fault?kind=error&status=503&seconds=600"
	is status "$(ask)" 503
	is running "$(running)" 0
	curl -sf -X POST "http://127.0.0.1:$port/fault?kind=none"
	is 'in order' "$(ask)" 200
	is 'nothing cached' \
	    "$(jq .usage.prompt_tokens_details.cached_tokens \
	    "$scratch/answer")" 0
	is running "$(running)" 0
}

# No engine has them.
case_clients_send_rubbish()
{
	good_up
	gateway_up "$port"
	for body in '{"prompt":[1,2' '{"prompt":"text"}' '{"prompt":[1,-1]}' \
	    '{"prompt":[4294967296]}' '{"prompt":[1,"a"]}' '{"prompt":[1.5]}' \
	    '{"prompt":[[1]]}' '{"prompt":null}' '{"prompts":[1]}' '[]' '7' \
	    'null' ' ' "$(printf '%100s' '' | tr ' ' '[')"; do
		is "$body" "$(ask "$body")" 400
	done
	is GET "$(ask "$prompt" -G)" 405
	is path "$(curl -s -m 60 -o "$scratch/answer" -w '%{http_code}' \
	    "http://127.0.0.1:$entry/v1/chat/completions" -d "$prompt")" 404
	is requests "$("$build/region" "$index" routed \
	    "127.0.0.1:$port:0")" 0
	is good "$(ask)" 200
	is requests "$("$build/region" "$index" routed \
	    "127.0.0.1:$port:0")" 1
}

case_ends_while_a_request_runs()
{
	broken_up hold
	gateway_up "$port"
	ask > "$scratch/status" &
	user=$!
	until_true 60 runs 1 || echo 'it does not run'
	gateways_down
	! wait "$user" || echo 'the client got an answer'
	user=''
	is running "$(running)" 0
}

case_engines_of_earlier_runs()
{
	gateway_up 1 2
	gateways_down
	gateway_up 2 3
	is workers "$("$build/region" "$index" workers | sort |
	    paste -s -d ' ')" '127.0.0.1:2 127.0.0.1:3'
	# An equal one changes nothing.
	gateway_up 3 2
	is workers "$("$build/region" "$index" workers | sort |
	    paste -s -d ' ')" '127.0.0.1:2 127.0.0.1:3'
}

run "$2"
