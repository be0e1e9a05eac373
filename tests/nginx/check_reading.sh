#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_reading.sh - cases of check.sh: bodies that are read in pieces. They use
# a module built with pieces of 1 kB, one in each turn of nginx's loop, which
# reads nothing while there is a file named stop in its working directory.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} bodies_in_pieces bodies_in_pieces_from_files
    bodies_in_pieces_by_other_ways bodies_read_before_the_location
    bodies_not_held body_held_and_client_leaves body_held_and_nginx_quits
    body_held_and_nginx_reloads body_held_and_nginx_terminates
    body_read_once_for_all_retries"

small_module()
{
	module_file=$(cd "$build" && pwd -P)/nginx/small/ngx_http_upstream_kvroute_module.so
	first_lines="working_directory $work/out;"
}

small_up()
{
	small_module
	up
}

# long_body ENDPOINT BYTES [SEED] - into $work/body.
long_body()
{
	"$build/kvroute-chats" --make-body "$2" --endpoint "$1" \
	    --turn-bytes 300 --answer-tokens 1 --seed "${3:-1}" --no-stream \
	    > "$work/body"
}

path_of()
{
	case $1 in
	chat) echo /v1/chat/completions ;;
	*) echo "/v1/$1" ;;
	esac
}

# send ENDPOINT curl-option ... - $work/body; prints the status.
send()
{
	path=$(path_of "$1")
	shift
	curl -s -m 60 -o /dev/null -w '%{http_code}' -H 'Expect:' \
	    --data-binary @"$work/body" "$@" \
	    "http://127.0.0.1:${to:-$port}$path"
}

send_meanwhile()
{
	send "$@" > "$work/answered" &
	sent_pid=$!
}

sent_over()
{
	wait "$sent_pid" 2> /dev/null
	is 'status of the request that was held' "$(cat "$work/answered")" \
	    "${1:-200}"
}

counts()
{
	json ".upstreams[0].$1"
}

counts_are()
{
	[ "$(counts "$1")" = "$2" ]
}

stop_reading()
{
	: > "$work/out/stop"
}

go_on_reading()
{
	rm "$work/out/stop"
}

# The body was recorded just as explain reads it, which does so in one go.
recorded_whole()
{
	curl -s -m 60 -H 'Expect:' --data-binary @"$work/body" \
	    "http://127.0.0.1:$port/kvroute/explain?uri=$(path_of "$1")" \
	    > "$work/explained"
	above "$1: blocks" "$(jq .blocks "$work/explained")" 20
	is "$1: blocks on record" "$(jq '[.candidates[].overlap_blocks] |
	    max' "$work/explained")" "$(jq .blocks "$work/explained")"
}

# in_pieces ENDPOINT curl-option ...
in_pieces()
{
	held=$(counts bodies_held)
	pieces=$(counts body_pieces)
	is "$1: status" "$(send "$@")" 200
	is "$1: requests held" $(($(counts bodies_held) - held)) 1
	above "$1: pieces" $(($(counts body_pieces) - pieces)) 8
	recorded_whole "$1"
}

bodies_in_pieces()
{
	small_up
	n=0
	for endpoint in chat completions responses messages; do
		n=$((n + 1))
		long_body $endpoint 10000 $n
		in_pieces $endpoint
		long_body $endpoint 10000 1$n
		in_pieces $endpoint -H 'Transfer-Encoding: chunked'
	done
	is 'bodies read' "$(counts bodies_read)" 8
	is 'requests' "$(counts 'reasons | add')" 8
	is 'bodies cut' "$(counts bodies_truncated)" 0
	settled
}

bodies_in_pieces_from_files()
{
	body_buffer=1k
	bodies_in_pieces
}

# HTTP/2, and an upstream that is known only when the request is there.
bodies_in_pieces_by_other_ways()
{
	to=$(free_port)
	http_lines='map $request_uri $where { default engines; }
	server {
		listen 127.0.0.1:'$to' http2;
		client_body_buffer_size 16k;
		location / { proxy_pass http://$where; }
	}'
	small_up
	long_body chat 20000
	in_pieces chat --http2-prior-knowledge
	long_body chat 20000 2
	in_pieces chat --http2-prior-knowledge -H 'Content-Length:'
	settled
	unset to
}

# A mirror has the body read before the location's upstream is known, so each
# process learns of it by its first request.
bodies_read_before_the_location()
{
	location_lines='mirror /ready;'
	processes=1
	small_up
	long_body chat 10000
	is 'first status' "$(send chat)" 200
	is 'first request held' "$(counts bodies_held)" 0
	long_body chat 10000 2
	in_pieces chat
	is 'bodies read' "$(counts bodies_read)" 2
	stop_reading
	long_body chat 10000 3
	send_meanwhile chat
	until_true 20 counts_are bodies_held 2 || echo 'the body is not held'
	go_on_reading
	sent_over
	recorded_whole chat
	settled
}

bodies_not_held()
{
	location_lines='kvroute_bypass $http_x_bypass;'
	small_up
	long_body chat 10000
	is 'status when bypassed' "$(send chat -H 'X-Bypass: 1')" 200
	is 'status of another path' "$(send nothing)" 404
	echo '{"model":"m","prompt":"abc"}' > "$work/body"
	is 'status of what nginx has read with the head' \
	    "$(send completions)" 200
	is 'requests held' "$(counts bodies_held)" 0
	is 'bodies read' "$(counts bodies_read)" 1
	down
	location_lines='proxy_request_buffering off;'
	body_buffer=1k
	small_up
	long_body chat 40000
	is 'status when not buffered' "$(send chat)" 200
	is 'requests held' "$(counts bodies_held)" 0
	is 'reason' "$(counts reasons.unbuffered)" 1
	settled
}

# leave NUMBER PORT curl-option ... - while nothing is read; then nothing is left
# to be read.
leave()
{
	n=$1
	at=$2
	shift 2
	stop_reading
	curl -s -m 60 -o /dev/null -H 'Expect:' --data-binary @"$work/body" \
	    "$@" "http://127.0.0.1:$at/v1/chat/completions" &
	sent_pid=$!
	until_true 20 counts_are bodies_held "$n" ||
	    echo 'the body is not held'
	kill "$sent_pid"
	until_true 20 counts_are clients_left "$n" ||
	    echo 'nobody saw the client leave'
	go_on_reading
	wait "$sent_pid" 2> /dev/null
}

body_held_and_client_leaves()
{
	two=$(free_port)
	http_lines='server {
		listen 127.0.0.1:'$two' http2;
		location / { proxy_pass http://engines; }
	}'
	location_lines='post_action /ready;'
	small_up
	long_body chat 10000
	leave 1 "$port"
	leave 2 "$two" --http2-prior-knowledge
	is 'requests that came to a choice' "$(counts 'reasons | add')" 0
	is 'pieces read' "$(counts body_pieces)" 0
	long_body chat 10000 2
	is 'status afterwards' "$(send chat)" 200
	recorded_whole chat
	settled
}

told_to_quit()
{
	[ "$(grep -c 'gracefully shutting down' "$work/logs/error")" -ge 2 ]
}

body_held_and_nginx_quits()
{
	small_up
	long_body chat 10000
	stop_reading
	send_meanwhile chat
	until_true 20 counts_are bodies_held 1 || echo 'the body is not held'
	kill -QUIT "$nginx_pid"
	until_true 20 told_to_quit || echo 'nginx does not quit'
	go_on_reading
	sent_over
	wait "$nginx_pid"
	nginx_pid=
}

body_held_and_nginx_reloads()
{
	small_up
	long_body chat 10000
	stop_reading
	send_meanwhile chat
	until_true 20 counts_are bodies_held 1 || echo 'the body is not held'
	NOWAIT=1 reload_nginx kvroute
	until_true 20 told_to_quit || echo 'nginx does not quit'
	go_on_reading
	sent_over
	recorded_whole chat
	until_true 20 old_gone || echo 'old processes stay'
	settled
}

# Whoever waits longer than worker_shutdown_timeout is cut off.
body_held_and_nginx_terminates()
{
	top_lines='worker_shutdown_timeout 10ms;'
	small_up
	long_body chat 10000
	stop_reading
	send_meanwhile chat
	until_true 20 counts_are bodies_held 1 || echo 'the body is not held'
	reload_nginx kvroute
	go_on_reading
	sent_over 000
	long_body chat 10000 2
	is 'status afterwards' "$(send chat)" 200
	settled
}

# One of the servers refuses connections, and a refused request is tried again.
body_read_once_for_all_retries()
{
	start_engines 1 --scale 0.01
	upstream_ports="$(free_port) $engine_ports"
	server_options='max_fails=0'
	small_module
	start_nginx kvroute
	n=0
	# Idle workers are chosen by a hash of the prompt under a new secret.
	while [ $n -lt 8 ] || { [ "$(counts retries)" -eq 0 ] &&
	    [ $n -lt 64 ]; }; do
		n=$((n + 1))
		long_body chat 10000 $n
		is 'status' "$(send chat)" 200
	done
	above 'retries' "$(counts retries)" 0
	is 'bodies read' "$(counts bodies_read)" $n
	recorded_whole chat
	settled
}
