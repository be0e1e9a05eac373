#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lua.sh build [case] - examples/kvroute.lua in Debian's nginx, by the lines of
# examples/kvroute-lua.conf: cases of tests/cases.sh, which have two worker
# processes and two engines of their own. One case is without nginx.
#
# shellcheck disable=SC2154
. tests/cases.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
engines=
nginx_pid=

# engine - starts one; its address is added to $engines.
engine()
{
	out=$(mktemp -p "$scratch")
	"$build/kvroute-engine" --port 0 --model m --scale 0.02 --for 900 \
	    > "$out" 2> "$scratch/engine.log" &
	echo $! > "$out.pid"
	until_true 60 test -s "$out" || echo 'an engine does not start'
	address=127.0.0.1:$(grep -oE '[0-9]+$' "$out" | head -n 1)
	mv "$out.pid" "$scratch/$address.pid"
	engines="$engines $address"
}

conf()
{
	# shellcheck disable=SC2086
	set -- $engines
	echo "user root; pid $scratch/nginx.pid; error_log $scratch/nginx.log;"
	sed "/^worker_processes/s/auto/2/
	    s|modules/\(.*\.so\)|/usr/lib/nginx/modules/\1|
	    s|10\.0\.0\.1:8000|$1|; s|10\.0\.0\.2:8000|$2|
	    s|/usr/local/include/|$PWD/include/|
	    s|/etc/nginx/|$PWD/examples/|; s|/run/kvroute|$scratch/region|
	    s|listen 8080|listen $port|
	    s|^http {|http { access_log off;|" examples/kvroute-lua.conf
}

start()
{
	engine
	engine
	port=$(free_port)
	url=http://127.0.0.1:$port
	conf > "$scratch/nginx.conf"
	LD_LIBRARY_PATH=$build nginx -p "$scratch" -c "$scratch/nginx.conf" \
	    -g 'daemon off;' > "$scratch/nginx.out" 2>&1 &
	nginx_pid=$!
	until_true 60 metrics_answer || {
		cat "$scratch/nginx.log" "$scratch/nginx.out"
		exit 1
	}
}

metrics_answer()
{
	curl -sf -m 5 -o /dev/null "$url/metrics"
}

# Any line of the log that is an error is a failure.
stop()
{
	kill "$nginx_pid"
	wait "$nginx_pid" || echo "nginx ended with $?"
	! grep -E '\[(error|crit|alert|emerg)\]' "$scratch/nginx.log" |
	    grep -v 'while connecting to upstream\|reading response header\|reading upstream'
}

leases()
{
	curl -s -m 10 "$url/metrics" |
	    sed -n 's/^kvroute_leases\({.*}\)* //p'
}

reported()
{
	curl -s -m 10 "$url/metrics" |
	    sed -n 's/^kvroute_usage_prompt_tokens_total\({.*}\)* //p'
}

# words NAME - a text of 2 kB.
words()
{
	seq -f "$1%g" -s ' ' 300
}

# chat TEXT [member] - prints it as a body.
chat()
{
	jq -nc --arg text "$1" '{model: "m", max_tokens: 8,
	    messages: [{role: "user", content: $text}]}' |
	    sed "s/^{/{${2:+$2,}/"
}

# ask BODY [curl option ...]
ask()
{
	body=$1
	shift
	printf '%s' "$body" | curl -sN -m 60 "$@" "$url/v1/chat/completions" \
	    -H 'content-type: application/json' --data-binary @-
}

cached()
{
	ask "$(chat "$(words "$1") $2")" |
	    jq .usage.prompt_tokens_details.cached_tokens
}

# ---------------------------------------------------------------- cases ---

case_conformance()
{
	LD_LIBRARY_PATH=$build luajit tests/lua/conformance.lua "$build"
}

case_chats_stay()
{
	start
	for chat in one two three four; do
		is "first of $chat" "$(cached $chat '')" 0
		for turn in a b c; do
			[ "$(cached $chat $turn)" -gt 0 ] ||
			    echo "turn $turn of $chat is not cached"
		done
	done
	until_is 0 leases
	[ "$(reported)" -gt 0 ] || echo 'no usage was learned'
	stop
}

case_streams_are_as_without()
{
	start
	body=$(chat "$(words stream)" '"stream":true')
	ask "$body" > "$scratch/got"
	grep -q '^data: \[DONE\]' "$scratch/got" || echo 'the stream does not end'
	grep -q '"usage":{' "$scratch/got" && echo 'usage is in the stream'
	asked=$(chat "$(words stream)" \
	    '"stream":true,"stream_options":{"include_usage":true}')
	ask "$asked" | grep -q '"usage": *{' || echo 'usage was asked for'
	# shellcheck disable=SC2086
	set -- $engines
	curl -sN "http://$1/v1/chat/completions" -d "$body" > "$scratch/want"
	# An engine that is late sends several tokens in an event.
	for file in got want; do
		sed 's/"id":"[^"]*"//; s/"created":[0-9]*//; s/,"usage":null//
		    s/"content":"[^"]*"/"content"/; /^$/d' "$scratch/$file" |
		    uniq > "$scratch/$file.plain"
		sed -n 's/^data: {/{/p' "$scratch/$file" |
		    jq -j '.choices[0].delta.content' > "$scratch/$file.text"
	done
	cmp "$scratch/got.plain" "$scratch/want.plain"
	cmp "$scratch/got.text" "$scratch/want.text"
	[ -s "$scratch/got.text" ] || echo 'there is no text'
	until_is 0 leases
	[ "$(reported)" -gt 0 ] || echo 'no usage was learned'
	stop
}

case_killed_engine_is_avoided()
{
	start
	for chat in a b c d; do
		cached "$chat" '' > /dev/null
	done
	# shellcheck disable=SC2086
	set -- $engines
	kill -KILL "$(cat "$scratch/$1.pid")"
	for chat in a b c d a b c d; do
		is "chat $chat" "$(ask "$(chat "$(words $chat)")" \
		    -o /dev/null -w '%{http_code}')" 200
	done
	kill -KILL "$(cat "$scratch/$2.pid")"
	is 'without engines' "$(ask "$(chat "$(words a)")" \
	    -o /dev/null -w '%{http_code}')" 502
	until_is 0 leases
	stop
}

case_clients_that_leave()
{
	start
	ask "$(chat "$(words leave)" '"stream":true' |
	    sed 's/"max_tokens":8/"max_tokens":60000/')" -m 1 > /dev/null
	until_is 0 leases
	stop
}

case_status_of_an_engine_is_repeated()
{
	start
	# shellcheck disable=SC2086
	set -- $engines
	curl -sf -X POST "http://$1/fault?kind=error&seconds=60&status=503"
	for chat in e f g h; do
		is "chat $chat" "$(ask "$(chat "$(words $chat)")" \
		    -o /dev/null -w '%{http_code}')" 200
	done
	until_is 0 leases
	stop
}

case_other_requests_pass()
{
	start
	is models "$(curl -s -m 9 -o /dev/null -w '%{http_code}' \
	    "$url/v1/models")" 200
	is 'no json' "$(ask '{"messages":' -o /dev/null -w '%{http_code}')" 400
	head -c 3000000 /dev/zero | tr '\0' x > "$scratch/long"
	is 'a long body' "$(chat "$(words long)" |
	    jq -c --rawfile x "$scratch/long" '. + {unknown: $x}' |
	    curl -s -m 60 "$url/v1/chat/completions" --data-binary @- \
	    -o /dev/null -w '%{http_code}')" 200
	until_is 0 leases
	stop
}

run "$2"
