#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_safe.sh - cases of check.sh: README's lines under faults, and the lines
# that the module asks for.
#
#	README.md --> nginx.conf --> nginx --> four engines, a process each
#	                                       the first one fails meanwhile
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} readme_lines_are_safe missing_lines_are_named
    methods_behind_kvroute_are_refused upstreams_with_too_many_servers
    start_and_test_refuse_alike refusals_have_a_sentence
    pages_of_the_operator_stay server_header_names_the_server
    comments_during_a_long_prefill long_status_is_written_aside
    engines_of_http2 sticky_servers"

# ------------------------------------------------------------ README's lines

# The lines of README.md, for these engines.
readme_lines()
{
	servers=
	for p in $engine_ports; do
		servers="$servers server 127.0.0.1:$p;"
	done
	sed -n '/^\*\*nginx\*\*/,/^\*\*C\*\*/s/^    //p' README.md |
	    sed "s|server 10.0.0.1:8000; server 10.0.0.2:8000;|$servers|
	    s|modules/\(ngx_http_[a-z_]*\.so\)|$build_path/nginx/\1|"
}

readme_conf()
{
	readme_lines > "$work/lines"
	{
		sed -n '/^load_module/p' "$work/lines"
		echo "worker_processes 2; pid $work/nginx-$port.pid;
		    error_log $work/logs/error notice;"
		[ "$(id -u)" -ne 0 ] || echo "user $(id -un) $(id -gn);"
		echo 'events { worker_connections 4096; } http {'
		for temp in client_body proxy fastcgi uwsgi scgi; do
			echo "${temp}_temp_path $work/tmp/$temp;"
		done
		echo "access_log off;"
		sed -n '/^upstream/,/}/p' "$work/lines"
		echo "server { listen 127.0.0.1:$port;
		    location = /ready { return 200; }"
		sed -n '/^location/,$p' "$work/lines"
		echo '} }'
	} > "$work/nginx.conf"
}

# one_engine PORT - in a process of its own; its id is in $one.
one_engine()
{
	"$build/kvroute-engine" --engines 1 --port "$1" --for 900 --scale 0.05 \
	    --prefill-rate 9000 --capacity 100000 > "$work/logs/engine.$1" 2>&1 &
	one=$!
	kept_pids="$kept_pids $one"
	until_true 20 engine_answers "$1" || fail "no engine at $1"
}

safe_up()
{
	build_path=$(cd "$build" && pwd -P)
	engine_ports="$(free_port) $(free_port) $(free_port) $(free_port)"
	for p in $engine_ports; do
		one_engine "$p"
		[ "$p" != "$(nth 1 "$engine_ports")" ] || first=$one
	done
	port=$(free_port)
	readme_conf
	"$NGINX_BIN" -p "$work" -c "$work/nginx.conf" -e "$work/logs/error" \
	    -g 'daemon off;' > "$work/logs/out" 2>&1 &
	nginx_pid=$!
	until_true 60 is_ready || fail "nginx does not start:" \
	    "$(tail -n 5 "$work/logs/error" "$work/logs/out")"
}

# Users before, while and after the first engine has the fault.
users_during()
{
	what=$1
	talk_meanwhile --chats 16 --think-ms 20 --systems 16 --timeout 60
	more 60
	"$2"
	more 250
	"$3"
	more 60
	talk_over
}

fault_begins() { fault 1 "$kind&seconds=600"; }
fault_ends() { fault 1 kind=none; }
engine_refuses_a_while() { fault 1 'kind=refuse&seconds=2'; }
engine_takes_again()
{
	until_true 20 engine_answers "$(nth 1 "$engine_ports")"
}
engine_is_killed() { kill -KILL "$first"; wait "$first" 2> /dev/null; }
engine_is_back() { one_engine "$(nth 1 "$engine_ports")"; first=$one; }

# Responses that had begun there are cut off; no other request fails.
killed_costs_what_ran()
{
	ran=$(json "[.upstreams[0].workers[] | select(.name ==
	    \"127.0.0.1:$(nth 1 "$engine_ports")\") | .requests] | add")
	echo "$ran" > "$work/ran"
	engine_is_killed
}

readme_lines_are_safe()
{
	processes=2
	safe_up
	for kind in error\&status=500 error\&status=503 error\&status=429 \
	    error\&status=502 error\&status=504 \
	    error\&status=500\&percent=30 slow\&factor=40 stall; do
		kind="kind=$kind"
		users_during "$kind" fault_begins fault_ends
		no_errors "$kind"
		above "requests, $kind" "$(figure requests)" 300
		json '.upstreams[0].workers[].name' | while read -r name; do
			order "$name" up > /dev/null
		done
	done
	users_during refuse engine_refuses_a_while engine_takes_again
	no_errors refuse
	users_during 'kill -9' killed_costs_what_ran engine_is_back
	is 'errors but responses that were cut off, kill -9' \
	    "$(($(figure errors) - $(figure broken)))" 0
	above 'responses that were running, and those cut off' \
	    "$(($(cat "$work/ran") + 3 - $(figure broken)))" 0
	grep -F '[warn]' "$work/logs/error" | grep -F ': add "'
	settled
}

# ----------------------------------------------------------------- warnings

# missing WHAT - of the lines, one that the log asks for.
missing()
{
	grep -F '[warn]' "$work/logs/error" | grep -qF ": add \"$1" ||
	    echo "the log does not ask for $1"
}

# advises_without LINE - README's lines but for that.
advises_without()
{
	readme_conf
	sed -i "s/$1//" "$work/nginx.conf"
	: > "$work/logs/error"
	"$NGINX_BIN" -t -p "$work" -c "$work/nginx.conf" -e "$work/logs/error" \
	    > "$work/logs/out" 2>&1 || cat "$work/logs/out" "$work/nginx.conf"
	missing "$1"
}

missing_lines_are_named()
{
	start_engines 1
	build_path=$(cd "$build" && pwd -P)
	port=$(free_port)
	readme_conf
	sed -i 's/zone engines 256k;//; s/gray=8 poll=1s//; s/keepalive[^;]*;//g
	    s/proxy_http_version 1.1;/proxy_http_version 1.0;/
	    s/proxy_[bcr][^;]*;//g; s/proxy_next_upstream error$//
	    s/^timeout http_429.*}/}/; s/^ *timeout http_429.*}/}/' \
	    "$work/nginx.conf"
	"$NGINX_BIN" -t -p "$work" -c "$work/nginx.conf" -e "$work/logs/error" \
	    > "$work/logs/out" 2>&1 || cat "$work/logs/out" "$work/nginx.conf"
	for line in 'proxy_next_upstream error timeout http_429 http_500' \
	    'proxy_buffering off;' 'proxy_http_version 1.1;' \
	    'proxy_read_timeout 600s;' 'proxy_connect_timeout 2s;' \
	    'keepalive 64; keepalive_timeout 4s;' 'gray=8" to "kvroute"' \
	    'poll=1s" to "kvroute"' 'zone NAME 256k;'; do
		missing "$line"
	done
	is 'lines of advice' "$(grep -c ': add "' "$work/logs/error")" \
	    "$(grep ': add "' "$work/logs/error" | sort -u | wc -l)"
	advises_without 'keepalive_timeout 4s;'
	# a newer one does not need it
	"$NGINX_BIN" -v 2>&1 | tr '/.' '  ' |
	    awk '{ exit $4 * 1000000 + $5 * 1000 + $6 < 1029007 }' ||
	    advises_without 'proxy_set_header Connection "";'
	stop_engines
}

# -------------------------------------------------------------- refusals

module_named()
{
	module=$(cd "$build" && pwd -P)/nginx/ngx_http_upstream_kvroute_module.so
}

methods_behind_kvroute_are_refused()
{
	module_named
	for method in 'least_conn;' 'ip_hash;' 'random;' 'hash $uri;'; do
		tried_conf "kvroute zone=kv:8m; $method" > "$work/tried"
		grep -q 'has another method behind "kvroute"' "$work/tried" ||
		    echo "$method is taken: $(cat "$work/tried")"
	done
}

upstreams_with_too_many_servers()
{
	module_named
	tried_conf 'kvroute zone=kv:8m workers=1; server 127.0.0.1:2;' \
	    > "$work/tried"
	grep -q 'its servers are 2, more than its 1 workers: .*workers=2' "$work/tried" ||
	    cat "$work/tried"
	tried_conf 'kvroute zone=kv:8m workers=2; server 127.0.0.1:2;' \
	    > "$work/tried"
	grep -q 'test is successful' "$work/tried" || cat "$work/tried"
}

# refused OPTIONS WHY - by nginx -t, which makes no file.
refused()
{
	tried_conf "kvroute $1;" > "$work/tried"
	grep -q "$2" "$work/tried" || echo "-t of $1: $(cat "$work/tried")"
	! grep -q 'test is successful' "$work/tried" || echo "-t passes $1"
}

start_and_test_refuse_alike()
{
	module_named
	at=$work/out/at
	mkdir "$at"
	touch "$at/file"
	mkdir "$at/folder"
	refused "path=$at/none/index size=8m" 'No such file or directory'
	refused "path=$at/file/index size=8m" 'Not a directory'
	refused "path=$at/folder size=8m" "$at/folder"
	refused "path=$at/index size=1k" 'too small'
	refused "path=$at/index size=64k workers=4096" 'too small'
	refused "path=$at/index size=8m affinity=1000000" 'too small'
	refused "path=$at/index size=900000g" 'No space left on device'
	refused "path=/proc/index size=8m" '/proc/index'
	is 'files made' "$(ls "$at")" "$(printf 'file\nfolder')"
	# A region that is there, and made for other options.
	processes=1
	upstream_ports=$(free_port)
	kvroute_options="path=$at/region size=8m"
	start_nginx kvroute
	stop_nginx
	sum=$(cksum < "$at/region")
	refused "path=$at/region size=9m" "$at/region"
	refused "path=$at/region size=8m block=64" "$at/region"
	is 'the region afterwards' "$(cksum < "$at/region")" "$sum"
}

# ---------------------------------------------------- what clients are told

# told STATUS SENTENCE [curl option ...] - of one request.
told()
{
	expected=$1
	sentence=$2
	shift 2
	is 'status' "$(curl -s -m 20 -o "$work/refusal" -w '%{http_code}' "$@" \
	    "http://127.0.0.1:$port/v1/completions")" "$expected"
	is 'sentence' "$(jq -r .error.message "$work/refusal" 2>&1)" \
	    "$sentence"
}

refusals_have_a_sentence()
{
	http_lines='map $http_x_salt $salt { default $http_x_salt; }'
	location_lines='kvroute_salt $salt; proxy_connect_timeout 1s;'
	up
	told 400 'the body is not one whole JSON object' -H 'X-Salt: a' -d '{'
	told 415 'the body is compressed' -H 'X-Salt: a' \
	    -H 'Content-Encoding: gzip' -d '{}'
	faults "$engine_ports" 'kind=stall&seconds=600'
	sed -i 's/proxy_read_timeout 600s/proxy_read_timeout 1s/' \
	    "$work/nginx.conf"
	reload_file
	told 504 'no server has answered in time' -d '{"prompt":"a"}'
	stop_engines
	told 502 'no server could answer' -d '{"prompt":"a"}'
	told 502 'no server could answer' -d '{"prompt":"b"}'
	settled
}

# What an engine answers passes, and so does a page of error_page.
pages_of_the_operator_stay()
{
	http_lines='server { listen 127.0.0.1:'$(free_port)'; }'
	location_lines='error_page 502 @busy;'
	up
	faults "$engine_ports" 'kind=error&status=500&seconds=600'
	is 'of an engine' "$(curl -s -m 10 -d '{"prompt":"a"}' \
	    "http://127.0.0.1:$port/v1/completions" | jq -r .error.code)" 500
	faults "$engine_ports" kind=none
	location_lines='error_page 502 /ready;'
	reload_nginx kvroute
	stop_engines
	is 'of an operator' "$(curl -s -m 10 -o "$work/page" \
	    -w '%{http_code}' -d '{"prompt":"a"}' \
	    "http://127.0.0.1:$port/v1/completions")" 502
	! grep -q error "$work/page" || echo "it is replaced: $(cat "$work/page")"
	settled
}

server_header_names_the_server()
{
	location_lines='kvroute_server_header on;'
	log=access
	up
	for i in 1 2 3 4; do
		curl -s -m 10 -D "$work/head" -o /dev/null \
		    -d '{"model":"m","max_tokens":1,"prompt":"'"$(text "$i")"'"}' \
		    "http://127.0.0.1:$port/v1/completions"
		until_true 20 has_lines "$i"
		is 'the header' "$(tr -d '\r' < "$work/head" |
		    sed -n 's/^X-Kvroute-Server: //p')" \
		    "$(sed -n "${i}p" "$work/logs/access" | cut -f 8)"
	done
	location_lines=
	reload_nginx kvroute
	! curl -s -m 10 -D - -o /dev/null -d '{"prompt":"a"}' \
	    "http://127.0.0.1:$port/v1/completions" | grep -qi x-kvroute ||
	    echo 'without the directive, too'
	settled
}

has_lines()
{
	[ "$(grep -c 127.0.0.1: "$work/logs/access")" -ge "$1" ]
}

comments_during_a_long_prefill()
{
	location_lines='kvroute_comments 1s; kvroute_include_usage on;'
	engines=1
	up --scale 1 --prefill-rate 300
	curl -sN -m 60 -o "$work/stream" "http://127.0.0.1:$port/v1/completions" \
	    -d '{"model":"m","prompt":"'"$(text 1)"'","stream":true,
	    "max_tokens":40}'
	above 'comments' "$(grep -c '^: prefill$' "$work/stream")" 1
	is 'comments behind the first event' "$(sed '1,/^data/d' \
	    "$work/stream" | grep -c '^:')" 0
	is 'its end' "$(grep -c '^data: \[DONE\]' "$work/stream")" 1
	upstream_ports=$(free_port)
	http_lines="server { listen 127.0.0.1:$upstream_ports; location / {
	    proxy_pass http://127.0.0.1:$engine_ports; proxy_buffering off;
	    add_header Content-Encoding gzip; } }"
	reload_nginx kvroute
	curl -sN -m 60 -o "$work/stream" "http://127.0.0.1:$port/v1/completions" \
	    -d '{"model":"m","prompt":"'"$(text 3)"'","stream":true,
	    "max_tokens":2}'
	is 'comments in one that is compressed' \
	    "$(grep -c '^:' "$work/stream")" 0
	unset upstream_ports
	location_lines=
	reload_nginx kvroute
	curl -sN -m 60 -o "$work/stream" "http://127.0.0.1:$port/v1/completions" \
	    -d '{"model":"m","prompt":"'"$(text 2)"'","stream":true,
	    "max_tokens":2}'
	is 'comments without the directive' "$(grep -c '^:' "$work/stream")" 0
	settled
}

# asides_ran - asks for metrics until a thread beside the loops of nginx has run
# for 50 ms: they do nothing else.
asides_ran()
{
	status /metrics > "$work/metrics"
	for worker in $(pgrep -P "$nginx_pid"); do
		for thread in /proc/"$worker"/task/*; do
			[ "${thread##*/}" = "$worker" ] || cat "$thread/stat"
		done
	done | awk '{ ticks += $14 + $15 } END { exit ticks < 5 }'
}

# Of 1,000 ranks: while it is written, others are answered.
long_status_is_written_aside()
{
	engines=1
	kvroute_options='zone=kv:64m workers=1024 gray=8 poll=1s'
	server_facts=ranks=1000
	up
	status /metrics > "$work/metrics" || echo 'no metrics'
	is 'samples of a metric' \
	    "$(grep -c '^kvroute_worker_requests{' "$work/metrics")" 1000
	status /json > "$work/json" || echo 'no JSON'
	is 'workers in JSON' "$(jq '.upstreams[0].workers | length' \
	    "$work/json")" 1000
	until_true 60 asides_ran || echo 'no thread writes it'
	for i in $(seq 8); do
		curl -s -m 30 -o "$work/m.$i" \
		    "http://127.0.0.1:$port/kvroute/metrics" &
		kept_pids="$kept_pids $!"
		curl -s -m 30 -r 0-100 "http://127.0.0.1:$port/kvroute/json" |
		    head -c 100 > "$work/part" # it leaves
	done
	reload_nginx kvroute
	for pid in $kept_pids; do
		wait "$pid"
	done
	kept_pids=
	is 'whole ones over a reload' "$(grep -c '^kvroute_worker_requests{' \
	    "$work"/m.? | grep -c ':1000$')" 8
	settled
}

# ------------------------------------------------------------ newer versions

# is_from VERSION NUMBER - of nginx; otherwise the case is skipped.
is_from()
{
	"$NGINX_BIN" -v 2>&1 | tr '/.' '  ' | awk -v least="$2" '
	    { exit $4 * 1000000 + $5 * 1000 + $6 < least }' && return
	skip "$("$NGINX_BIN" -v 2>&1) is older than $1"
	return 1
}

# Engines behind HTTP/2: another server of the same nginx is in front of each.
engines_of_http2()
{
	is_from 1.29.4 1029004 || return
	start_engines 2 --scale 0.01
	upstream_ports="$(free_port) $(free_port)"
	for i in 1 2; do
		http_lines="${http_lines:-} server { http2 on;
		    listen 127.0.0.1:$(nth $i "$upstream_ports");
		    location / { proxy_buffering off;
		    proxy_pass http://127.0.0.1:$(nth $i "$engine_ports"); } }"
	done
	location_lines='kvroute_include_usage on;'
	start_nginx kvroute
	sed -i '/location .v1/,/}/s/proxy_http_version 1.1/proxy_http_version 2/' \
	    "$work/nginx.conf"
	grep -q 'proxy_http_version 2' "$work/nginx.conf" || echo 'no HTTP/2'
	reload_file
	talk --requests 40 --chats 4 --think-ms 1
	no_errors 'over HTTP/2'
	above 'requests with an opinion' \
	    "$(json '.upstreams[0].reasons | .cost + .tie')" 30
	settled
}

# Where requests of the log went; nginx has answered /ready itself.
servers_logged()
{
	awk -F '\t' 'NF > 7 && $8 != "-" { print $8 }' "$work/logs/access"
}

are_logged()
{
	[ "$(servers_logged | wc -l)" -ge "$1" ]
}

# sticky_calls N - requests of one client with a cookie; how many went to each
# server. nginx may write a line after the client has the response.
sticky_calls()
{
	: > "$work/logs/access"
	for i in $(seq "$1"); do
		curl -s -m 10 -o /dev/null -c "$work/jar" -b "$work/jar" \
		    -d '{"model":"m","max_tokens":1,"prompt":"'"$(text "$i")"'"}' \
		    "http://127.0.0.1:$port/v1/completions"
	done
	until_true 20 are_logged "$1" || echo 'lines are missing'
	servers_logged | sort | uniq -c | sort -rn | awk '{ print $1 }' |
	    paste -s -d ' '
}

# The directive of nginx chooses the server, and kvroute books it there.
sticky_servers()
{
	is_from 1.29.6 1029006 || return
	log=access
	processes=1
	start_engines 4 --scale 0.01
	kvroute_options='zone=kv:8m; sticky cookie kv'
	start_nginx kvroute
	is 'requests of one client' "$(sticky_calls 12)" 12
	above 'by the session' "$(json '.upstreams[0].reasons.affinity')" 10
	rm "$work/jar"
	is 'requests of another' "$(sticky_calls 12)" 12
	settled
}
