#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# haproxy.sh build [case] - kvroute-pick behind Debian's HAProxy, by the example:
# cases of tests/cases.sh, with three stand-in engines.
#
# shellcheck disable=SC2154
. tests/pick/common.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
find_ports
proxy=''

engine()
{
	"$build/kvroute-engine" --port "$1" --model m --scale 0.02 --for 900 \
	    > "$scratch/engine$1.log" 2>&1 &
	echo $! > "$scratch/$1.pid"
}

listens()
{
	grep -q ":$(printf %04X "$1") [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6
}

# Engines, the picker and HAProxy, on ports that are free.
up()
{
	first=$(free_port)
	second=$(free_port)
	third=$(free_port)
	front=$(free_port)
	for p in $first $second $third; do
		engine "$p"
	done
	configure 'kvroute size=64m;' 'kvroute_include_usage off;' \
	    "server 127.0.0.1:$first capacity=400000;" \
	    "server 127.0.0.1:$second capacity=400000;" \
	    "server 127.0.0.1:$third capacity=400000;"
	picker_up --secure-serving false --listen "127.0.0.1:$port"
	sed "s|/etc/haproxy|$scratch|; s|:8080|:$front|; s|:8001|:$first|g
	    s|:8002|:$second|g; s|:8003|:$third|g" examples/haproxy.cfg \
	    > "$scratch/haproxy.cfg"
	sed "s|:9080|:$port|" examples/haproxy.lua > "$scratch/haproxy.lua"
	haproxy -f "$scratch/haproxy.cfg" > "$scratch/haproxy.log" 2>&1 &
	proxy=$!
	for p in $first $second $third $front; do
		until_true 30 listens "$p" || { echo "$p: never up"
			cat "$scratch/haproxy.log"; exit; }
	done
}

finish()
{
	[ -z "$proxy" ] || kill "$proxy"
	[ -z "$picker" ] || picker_down
	grep -i 'lua' "$scratch/haproxy.log" "$log"
}

# CHAT TURN [stream] - a turn of a long chat; prints the server, and keeps the
# response.
turn()
{
	printf '{"model":"m","max_tokens":8,"stream":%s,"messages":[' \
	    "${3:-false}" > "$scratch/request"
	printf '{"role":"user","content":"chat %s: %s"}' "$1" \
	    "$(seq -s " $1 " 600)" >> "$scratch/request"
	for i in $(seq "$2"); do
		printf ',{"role":"assistant","content":"yes"},{"role":"user","content":"%s"}' \
		    "$i" >> "$scratch/request"
	done
	echo ']}' >> "$scratch/request"
	curl -s -m 20 -D "$scratch/head" -o "$scratch/answer" \
	    -H 'Content-Type: application/json' --data-binary \
	    "@$scratch/request" "http://127.0.0.1:$front/v1/chat/completions"
	tr -d '\r' < "$scratch/head" |
	    awk 'NR == 1 { status = $2 } /^x-served-by: / { print $2, status }'
}

nothing_is_left()
{
	until_is 0 state .pick.calls
	until_is 0 state '[.pool.upstreams[0].workers[].requests] | add'
}

case_chats_stay()
{
	up
	chats='a b c d e f g h i'
	for chat in $chats; do
		turn "$chat" 0
	done > "$scratch/first"
	# Equal servers are drawn.
	[ "$(sort -u "$scratch/first" | wc -l)" -gt 1 ] || echo 'one has all'
	# The report of a turn follows its response.
	until_is 9 state .pick.ended.whole
	for chat in $chats; do
		turn "$chat" 1
	done > "$scratch/second"
	is 'the same servers' "$(cat "$scratch/second")" \
	    "$(cat "$scratch/first")"
	is cached "$(jq '.usage.prompt_tokens_details.cached_tokens > 500' \
	    "$scratch/answer")" true
	until_is '[18,18]' state \
	    '[.pick.ended.whole, .pool.upstreams[0].usage.value]'
	nothing_is_left
}

case_streams()
{
	up
	turn a 0 true > "$scratch/first"
	grep -q 'data: \[DONE\]' "$scratch/answer" || echo 'it is cut'
	until_is 1 state .pick.ended.not_seen
	turn a 1 true > "$scratch/second"
	is 'the same server' "$(cat "$scratch/second")" "$(cat "$scratch/first")"
	nothing_is_left
}

# No request fails, and one alone finds the engine dead.
case_killed_engine()
{
	up
	first=$(turn a 0)
	dead=${first% *}
	is status "${first#* }" 200
	until_is 1 state .pick.ended.whole
	kill -KILL "$(cat "$scratch/${dead##*:}.pid")"
	for i in 1 2 3 4 5 6; do
		turn a "$i"
	done > "$scratch/others"
	is statuses "$(sed 's/.* //' "$scratch/others" | sort -u)" 200
	is 'at the dead one' "$(grep -c "^$dead" "$scratch/others")" 0
	is 'where they went' "$(tail -n +2 "$scratch/others" | sort -u |
	    wc -l)" 1
	nothing_is_left
}

# STATUS [HEADER] - each engine gives way to one that answers so.
answer_all()
{
	for p in $first $second $third; do
		kill -KILL "$(cat "$scratch/$p.pid")"
		python3 -c '
import socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    c = s.accept()[0]
    c.recv(65536)
    c.sendall(("HTTP/1.1 %s\r\n%sconnection: close\r\n"
        "content-length: 5\r\n\r\nwords" % (sys.argv[2],
        sys.argv[3])).encode())
    c.close()' "$p" "$1" "${2:+$2
}" &
		echo $! > "$scratch/$p.pid"
	done
	for p in $first $second $third; do
		until_true 30 listens "$p" || echo "$p: never up"
	done
}

# No Content-Type, and a text.
case_responses_without_json()
{
	up
	answer_all '200 OK'
	turn a 0 > "$scratch/first"
	until_is 1 state .pick.ended.not_seen
	answer_all '500 No' 'content-type: text/plain'
	turn a 0 > "$scratch/second"
	is status "$(sed 's/.* //' "$scratch/second")" 500
	until_is 1 state .pick.ended.whole
	for p in $first $second $third; do
		kill "$(cat "$scratch/$p.pid")"
	done
	nothing_is_left
}

# A refusal of the picker is that of HAProxy.
case_refusals()
{
	up
	configure 'kvroute size=64m;' "server 127.0.0.1:$first max_conns=1;"
	until_is 1 state .pick.servers
	curl -s -m 5 -H 'Content-Type: application/json' -d '{"prompt":"a"}' \
	    "http://127.0.0.1:$port/v1/select" > "$scratch/choice"
	turn a 0
	head -n 1 "$scratch/head" | grep -q '^HTTP/1.1 429 ' ||
	    cat "$scratch/head"
	grep -qi '^retry-after: [0-9]' "$scratch/head" || cat "$scratch/head"
	is code "$(jq .error.code "$scratch/answer")" 429
	curl -s -m 5 -X POST "http://127.0.0.1:$port/v1/calls/$(jq -r .call \
	    "$scratch/choice")/end" > /dev/null
	is 'the next one' "$(turn a 0)" "127.0.0.1:$first 200"
}

# HAProxy goes by turns then.
case_dead_picker()
{
	up
	kill -KILL "$picker"
	wait "$picker" 2> /dev/null
	picker=''
	for i in 1 2 3; do
		turn a 0
	done > "$scratch/servers"
	is servers "$(sort -u "$scratch/servers" | wc -l)" 3
	is statuses "$(sed 's/.* //' "$scratch/servers" | sort -u)" 200
}

# What a client has in these headers is not for the picker.
case_headers_of_clients()
{
	up
	is status "$(curl -s -m 20 -o /dev/null -w '%{http_code}' \
	    -H 'X-Kvroute-Allow: 10.0.0.1:1' -d '{"model":"m","prompt":"x"}' \
	    -H 'Content-Type: application/json' \
	    "http://127.0.0.1:$front/v1/completions")" 200
	until_is '[1,1,0]' state '[.pick.selects_total, .pick.ended.whole,
	    .pick.none_total]'
}

run "$2"
