#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_lines.sh - cases of check.sh: directives of the configuration, and
# nginx's errors for invalid ones.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} wrong_lines_are_named two_upstreams_at_once
    file_that_is_no_index file_that_others_may_write
    file_that_worker_processes_cannot_reach file_without_room
    prompts_are_kept_apart"

# --------------------------------------------------------------- wrong lines

# Lines of an upstream block, or after a | of a location; then the error.
wrong_lines()
{
	cat <<-'END'
	kvroute; # invalid number of arguments in "kvroute" directive
	kvroute zone=kv; # invalid parameter "zone=kv": it is NAME:SIZE, the shared memory of the index
	kvroute zone=:8m; # invalid parameter "zone=:8m"
	kvroute zone=kv:; # invalid parameter "zone=kv:"
	kvroute zone=kv:many; # invalid parameter "zone=kv:many"
	kvroute zone=kv:8k; # has a zone that is too small
	kvroute zone=kv:32k; # zone: The region is too small for these options
	kvroute path=; # invalid parameter "path=": it is the file of the index
	kvroute zone=kv:8m path=kv; # needs "zone=NAME:SIZE" or "path=FILE"
	kvroute block=256; # needs "zone=NAME:SIZE" or "path=FILE"
	kvroute zone=kv:8m size=8m; # has "size=" without "path="
	kvroute path=kv size=none; # invalid parameter "size=none"
	kvroute zone=kv:8m block=15; # invalid parameter "block=15": it is the bytes of a block, from 16 to 262144
	kvroute zone=kv:8m block=many; # invalid parameter "block=many"
	kvroute zone=kv:8m workers=0; # invalid parameter "workers=0"
	kvroute zone=kv:8m workers=4097; # invalid parameter "workers=4097": it is how many workers the index has room for, from 1 to 4096
	kvroute zone=kv:8m ttl=0; # invalid parameter "ttl=0": it is how long a cache keeps a prompt, from 1ms
	kvroute zone=kv:8m ttl=366d; # invalid parameter "ttl=366d": it is how long a cache keeps a prompt, from 1ms to 365d
	kvroute zone=kv:8m "ttl=1m block=32"; # invalid parameter "ttl=1m block=32": it contains a blank
	kvroute zone=kv:8m block=262145; # invalid parameter "block=262145": it is the bytes of a block, from 16 to 262144
	kvroute zone=kv:8m unit=tokens; # invalid parameter "unit=tokens": the parameters of "kvroute" are
	kvroute zone=kv:8m ttl=soon; # invalid parameter "ttl=soon"
	kvroute zone=kv:8m policy=balanced; # invalid parameter "policy=balanced": the parameters of "kvroute" are zone=, path=, size=
	kvroute zone=kv:8m balanced_bound=2; # invalid parameter "balanced_bound=2": the parameters of "kvroute" are
	kvroute zone=kv:8m retain=auto; # invalid parameter "retain=auto": the parameters
	kvroute zone=kv:8m rank_header=X-Rank; # invalid parameter "rank_header=X-Rank": the parameters
	kvroute zone=kv:8m shadow=hash; # invalid parameter "shadow=hash": it is the method that chooses: least_conn or round_robin
	kvroute zone=kv:8m affinity=-1; # invalid parameter "affinity=-1"
	kvroute zone=kv:8m affinity=16777217; # invalid parameter "affinity=16777217": it is the number of places for sessions and state, from 0 to 16777216
	kvroute zone=kv:8m affinity=many; # invalid parameter "affinity=many"
	kvroute zone=kv:8m affinity=1000000; # zone: The region is too small for these options
	kvroute zone=kv:8m secret=; # invalid parameter "secret="
	kvroute path=kv journal=64; # "journal=64": it is the size of the journal, a power of two, from 64k to 1g
	kvroute path=kv journal=0; # "journal=0": it is the size of the journal, a power of two
	kvroute path=kv journal=3m; # "journal=3m": it is the size of the journal, a power of two
	kvroute zone=kv:8m poll=on; # "poll=on": it is "off", or the time from one poll to the next, from 100ms to 1m
	kvroute zone=kv:8m poll=0; # "poll=0": it is "off", or the time from one poll
	kvroute zone=kv:8m poll=99ms; # "poll=99ms": it is "off", or the time from one poll
	kvroute zone=kv:8m poll=61s; # "poll=61s": it is "off", or the time from one poll
	kvroute zone=kv:8m poll_path=metrics; # "poll_path=metrics": it is a path of an engine, which begins with "/" and has no spaces, of at most 200 bytes
	kvroute zone=kv:8m poll_path=; # invalid parameter "poll_path="
	kvroute zone=kv:8m "poll_path=/a b"; # "poll_path=/a b": it is a path of an engine
	kvroute zone=kv:8m gray=on; # "gray=on": it is "off", or how many times slower than the others a server may be, from 2 to 100
	kvroute zone=kv:8m gray=1; # "gray=1": it is "off", or how many times
	kvroute zone=kv:8m gray=101; # "gray=101": it is "off", or how many times
	kvroute zone=kv:8m slow_start=500ms; # "slow_start=500ms": it is "off", or how long a new server has a reduced load, from 1s to 1h
	kvroute zone=kv:8m slow_start=2h; # "slow_start=2h": it is "off", or how long
	kvroute zone=kv:8m queue=0; # "queue=0": it is "off", or how many requests may wait while all servers are full, from 1 to 65536
	kvroute zone=kv:8m queue=65537; # "queue=65537": it is "off", or how many requests
	kvroute zone=kv:8m queue=all; # "queue=all": it is "off", or how many requests
	kvroute zone=kv:8m queue=; # invalid parameter "queue="
	kvroute queue=100; # needs "zone=NAME:SIZE" or "path=FILE"
	kvroute zone=kv:8m queue_timeout=10s; # has "queue_timeout=" without "queue="
	kvroute zone=kv:8m queue=off queue_timeout=10s; # has "queue_timeout=" without "queue="
	kvroute zone=kv:8m queue=9 queue_timeout=9ms; # "queue_timeout=9ms": it is the longest wait, from 10ms to 1h
	kvroute zone=kv:8m queue=9 queue_timeout=61m; # "queue_timeout=61m": it is the longest wait
	kvroute zone=kv:8m queue=9 queue_timeout=soon; # "queue_timeout=soon": it is the longest wait
	kvroute path=kv journal=2g; # "journal=2g": it is the size of the journal, a power of two
	kvroute path=kv journal=much; # "journal=much": it is the size of the journal, a power of two
	kvroute journal=4m zone=kv:8m; # has "journal=" without "path=": kvroute-sync reads a file
	kvroute journal=4m path=kv; # has "journal=" without "secret=": all machines need the same one
	kvroute zone=kv:8m colour=red; # invalid parameter "colour=red": the parameters of "kvroute" are zone=
	kvroute zone=kv:8m gray; # invalid parameter "gray": the parameters of "kvroute" are
	kvroute zone=kv:8m; kvroute zone=kw:8m; # is duplicate
	kvroute zone=engines:8m; # "engines"
	kvroute_server 127.0.0.1:1; # invalid number of arguments
	kvroute_server 127.0.0.1:1 capacity=0; # invalid parameter "capacity=0": it is "auto", or the tokens of KV cache
	kvroute_server 127.0.0.1:1 capacity=automatic; # invalid parameter "capacity=automatic"
	kvroute_server 127.0.0.1:1 sequences=7; # invalid parameter "sequences=7"
	kvroute_server 127.0.0.1:1 state=down; # invalid parameter "state=down": the parameters of "kvroute_server" are
	kvroute_server 127.0.0.1:1 speed=9; # invalid parameter "speed=9": the parameters of "kvroute_server" are capacity=, role=, prefill_rate=
	kvroute_server 127.0.0.1:1 eviction=none; # invalid parameter "eviction=none": it is the order of evictions: released or leaf
	kvroute_server 127.0.0.1:1 block_tokens=-1; # invalid parameter "block_tokens=-1"
	kvroute_server 127.0.0.1:1 prefill_rate=fast; # invalid parameter "prefill_rate=fast": it is tokens a second, from 1
	kvroute_server 127.0.0.1:1 max_batched=512; # invalid parameter "max_batched=512": the parameters of
	kvroute_server 127.0.0.1:1 window=0; # invalid parameter "window=0"
	kvroute_server 127.0.0.1:1 window=many; # invalid parameter "window=many"
	kvroute_server 127.0.0.1:1 window_mode=half; # invalid parameter "window_mode=half": it is the part of windows that the engine keeps: full or boundary or dense or dual
	kvroute_server 127.0.0.1:1 window_layers=101; # invalid parameter "window_layers=101": it is the layers with a window for each layer without, from 0 to 100
	kvroute_server 127.0.0.1:1 window_size=1; # invalid parameter "window_size=1"
	kvroute_server 127.0.0.1:1 window_align=64; # invalid parameter "window_align=64": the parameters of
	kvroute_server 127.0.0.1:1 window_interval=0; # invalid parameter "window_interval=0"
	kvroute_server 127.0.0.1:1 window_capacity=auto; # invalid parameter "window_capacity=auto": it is the tokens of the memory for windows, from 1
	kvroute_server 127.0.0.1:1 window_mode=auto; # invalid parameter "window_mode=auto"
	kvroute_server 127.0.0.1:1 window_mode=dense; # "window_mode=" needs "window=" or "capacity=auto"
	kvroute_server 127.0.0.1:1 window=1024; # facts about windows need "window_mode=boundary", "dense" or "dual"
	kvroute_server 127.0.0.1:1 window=1024 window_mode=dense window_capacity=5000; # "window_capacity=" needs "window_mode=dual"
	kvroute_server 127.0.0.1:port capacity=1; # invalid port in "127.0.0.1:port"
	|kvroute zone=kv:8m; # "kvroute" directive is not allowed here
	|kvroute_status on; # invalid number of arguments
	|kvroute_status; kvroute_status; # is duplicate
	|kvroute_endpoint chats; # invalid value "chats"
	|kvroute_ignore_line; # invalid number of arguments
	|kvroute_ignore_line '['; # in "["
	|kvroute_ignore_line a; kvroute_ignore_line off; # conflicts with another line
	|kvroute_ignore_line off; kvroute_ignore_line a; # conflicts with "off"
	|kvroute_max_body much; # "kvroute_max_body" directive invalid value
	|kvroute_feedback yes; # it must be "on" or "off"
	|kvroute_include_usage 1; # it must be "on" or "off"
	|kvroute_scope a b; # invalid number of arguments
	|kvroute_scope $nothing; # unknown "nothing" variable
	|kvroute_affinity; # invalid number of arguments
	|kvroute_affinity mode=hard; # "kvroute_affinity" directive has no value
	|kvroute_affinity x_session_id; # invalid parameter "x_session_id": has no variable
	|kvroute_affinity ''; # has no variable
	|kvroute_affinity $nothing; # unknown "nothing" variable
	|kvroute_affinity auto mode=best; # "mode=best": it is how a session is bound: hard or hash
	|kvroute_affinity auto mode=; # "mode=": it is how a session is bound
	|kvroute_affinity auto ttl=0; # "ttl=0": it is how long a session that sends nothing is remembered, from 1ms to 30d
	|kvroute_affinity auto ttl=31d; # "ttl=31d": it is how long a session
	|kvroute_affinity auto ttl=soon; # "ttl=soon": it is how long a session
	|kvroute_affinity auto off; # "off": is for itself
	|kvroute_affinity off; kvroute_affinity auto; # is duplicate
	|kvroute_responses; # invalid number of arguments
	|kvroute_responses yes; # "yes": it is on, off, or ttl= with a time of at most 30 days
	|kvroute_responses ttl=0; # "ttl=0": it is how long an id that is not used is remembered, from 1ms to 30d
	|kvroute_responses on ttl=1h; # invalid number of arguments
	|kvroute_responses on; kvroute_responses off; # is duplicate
	|kvroute_bypass; # invalid number of arguments
	|kvroute_trace; # invalid number of arguments
	|kvroute_answers off; # unknown directive "kvroute_answers"
	|kvroute_trace file sample=101%; # "sample=101%": it is the share of requests, from 0.0001% to 100%
	|kvroute_trace file simple=1%; # "simple=1%": the parameters of "kvroute_trace" are sample=
	|kvroute_trace file sample=; # sample=
	END
}

# tried_conf UPSTREAM_LINES [LOCATION_LINES] - the output of nginx -t.
tried_conf()
{
	cat > "$work/tried.conf" <<-END
	pid $work/tried.pid;
	load_module $module;
	events { }
	http {
		access_log off;
		upstream engines {
			zone engines 256k;
			$1
			server 127.0.0.1:1;
		}
		${3:-}
		server {
			listen 127.0.0.1:1;
			location / { proxy_pass http://engines; }
			location /l { ${2:-} }
		}
	}
	END
	"$NGINX_BIN" -t -p "$work/out" -c "$work/tried.conf" \
	    -e "$work/out/tried" 2>&1 && echo 'it is taken'
}

# The text after the last # must be in the output.
try_line()
{
	lines=${1%%; #*}';'
	words=${1##*; # }
	case $lines in
	'|'*) said=$(tried_conf 'kvroute zone=kv:8m;' "${lines#|}") ;;
	kvroute_server*) said=$(tried_conf "kvroute zone=kv:8m; $lines") ;;
	*) said=$(tried_conf "$lines") ;;
	esac
	case $said in
	*"it is taken"*) echo "it is taken: $lines" ;;
	*"$words"*) ;;
	*) echo "of '$lines' is said: $said" ;;
	esac
}

find_module()
{
	module=$(cd "$build" && pwd -P)/nginx/ngx_http_upstream_kvroute_module.so
}

other_upstream()
{
	echo "upstream others { zone others 256k; $1 server 127.0.0.1:2; }"
}

wrong_lines_are_named()
{
	find_module
	is 'a right line' "$(tried_conf 'kvroute zone=kv:8m;' |
	    tail -n 1)" 'it is taken'
	wrong_lines | while read -r line; do
		try_line "$line"
	done
	tried_conf 'kvroute zone=kv:8m;' '' \
	    "$(other_upstream 'kvroute zone=kv:8m;')" > "$work/said"
	grep -qF 'zone "kv" is already used by upstream' "$work/said" ||
	    echo "of one zone for two is said: $(cat "$work/said")"
	tried_conf 'kvroute path=kv;' '' \
	    "$(other_upstream 'kvroute path=kv;')" > "$work/said"
	grep -qF 'has the path of another upstream' "$work/said" ||
	    echo "of one file for two is said: $(cat "$work/said")"
	[ ! -e "$work/out/kv" ] || echo 'nginx -t makes files'
}

# ----------------------------------------------------------------- upstreams

two_upstreams_at_once()
{
	start_engines 2 --scale 0.01
	server_list="server $(address 1);"
	http_lines="upstream others {
		zone others 256k;
		kvroute zone=kw:2m block=128;
		server $(address 2);
	}"
	# shellcheck disable=SC2016
	location_lines='if ($http_x_other) { proxy_pass http://others; }'
	start_nginx kvroute
	curl -s -m 20 -o /dev/null -d '{"model":"m","prompt":"abc"}' \
	    "http://127.0.0.1:$port/v1/completions"
	curl -s -m 20 -o /dev/null -d '{"model":"m","prompt":"abc"}' \
	    -H 'X-Other: 1' "http://127.0.0.1:$port/v1/completions"
	curl -s -m 20 -o /dev/null -d '{"model":"m","prompt":"abc"}' \
	    -H 'X-Other: 1' "http://127.0.0.1:$port/v1/completions"
	until_true 20 no_leases
	is 'upstreams in JSON' "$(json '[.upstreams[] | .name + " " + .policy
	    + " " + (.block | tostring) + " " + (.reasons | add | tostring)]
	    | sort | join(", ")')" 'engines balanced 256 1, others balanced 128 2'
	is 'requests in metrics' "$(status /metrics | awk '
	    /^kvroute_nginx_requests_total\{/ {
		match($0, /upstream="[a-z]*"/)
		n[substr($0, RSTART, RLENGTH)] += $NF
	    }
	    END { for (u in n) print u, n[u] }' | sort |
	    paste -s -d ' ')" 'upstream="engines" 1 upstream="others" 2'
	is 'one of them' "$(status '/json?upstream=others' |
	    jq -r '.upstreams[].workers[].name')" "$(address 2)"
	is 'order to one of two' "$(order "$(address 2)" drain)" 400
	is 'order with its name' \
	    "$(order "$(address 2)" 'drain&upstream=others')" 200
	is 'order with another name' \
	    "$(order "$(address 2)" 'drain&upstream=engines')" 404
	settled
}

# -------------------------------------------------------------- region files

# does_not_start WORDS - nginx exits with these words in its log.
does_not_start()
{
	: "${port:=$(free_port)}"
	write_conf kvroute
	: > "$work/logs/error"
	timeout 20 "$NGINX_BIN" -p "$work" -c "$work/nginx.conf" \
	    -e "$work/logs/error" -g 'daemon off;' > "$work/logs/out" 2>&1
	is 'exit code of nginx' $? 1
	grep -qF "$1" "$work/logs/error" ||
	    echo "not said: $1, but $(cat "$work/logs/error")"
	expected_alert='kvroute of upstream "engines"'
}

# Each is refused and left unchanged.
file_that_is_no_index()
{
	kvroute_options="path=$work/out/index size=2m"
	engines=1
	up
	talk --requests 6 --chats 2 --think-ms 1
	stop_nginx
	cp "$work/out/index" "$work/out/whole"
	kvroute_options="path=$work/out/index size=2m block=128"
	does_not_start "$work/out/index: The region, the prompt or the scope"
	kvroute_options="path=$work/out/index size=2m"
	truncate -s 500000 "$work/out/index"
	does_not_start "$work/out/index: This memory is no region"
	is 'bytes of a short file' "$(wc -c < "$work/out/index")" 500000
	cp "$work/out/whole" "$work/out/index"
	printf 'x' | dd of="$work/out/index" bs=1 seek=2 conv=notrunc \
	    2> /dev/null
	does_not_start "$work/out/index: This memory is no region"
	echo 'shopping list' > "$work/out/index"
	does_not_start "$work/out/index: This memory is no region"
	is 'a file of another owner' "$(cat "$work/out/index")" \
	    'shopping list'
	cp "$work/out/whole" "$work/out/index"
	start_nginx kvroute
	above 'blocks of the whole one' \
	    "$(json '.upstreams[0].region.held_blocks')" 0
	settled
}

# reload_is_refused WORDS [N] - the N-th line with these words is in the log,
# and the old processes go on.
reload_is_refused()
{
	old=$(children "$nginx_pid")
	write_conf kvroute
	kill -HUP "$nginx_pid"
	until_true 20 has_lines "$1" "${2:-1}" ||
	    echo "not said: $1, but $(grep emerg "$work/logs/error")"
	is 'processes' "$(children "$nginx_pid")" "$old"
}

has_lines()
{
	[ "$(lines_with "$1")" -ge "$2" ]
}

# A start, a reload and nginx -t are refused. Only a process that is begun anew
# is without it, for as long as that lasts.
all_have_the_index()
{
	for pid in $(children "$nginx_pid"); do
		grep -qF "$work/out/index" "/proc/$pid/maps" || return 1
	done
}

file_that_others_may_write()
{
	kvroute_options="path=$work/out/index size=2m"
	up
	until_true 20 all_have_the_index ||
	    echo 'a process does not open the index'
	chmod 666 "$work/out/index"
	expected_alert='Others may write the file
exited on signal 9'
	case $(tried_conf "kvroute $kvroute_options;") in
	*'Others may write the file'*) ;;
	*) echo 'nginx -t takes it' ;;
	esac
	reload_is_refused 'Others may write the file'
	talk --requests 12 --chats 2 --think-ms 1
	no_errors 'after the reload'
	is 'requests without an index' "$(json .upstreams[0].reasons.failed)" 0
	kill_one_process
	expected_alert='Others may write the file
exited on signal 9'
	until_true 20 is_logged 'region: Others may write the file' ||
	    echo 'the new process takes it'
	talk --requests 12 --chats 2 --think-ms 1
	no_errors 'with a process that has no index'
	chmod 600 "$work/out/index"
	until_true 20 is_logged 'the region is there now' ||
	    echo 'the new process stays without an index'
	reload_nginx kvroute
	settled
	stop_nginx
	chmod 660 "$work/out/index"
	does_not_start 'Others may write the file'
	expected_alert='Others may write the file
exited on signal 9'
}

# lock_file FILE - user, group, mode and size of its lock file.
lock_file()
{
	stat -c '%U %G %a %s' "$1.lock"
}

# The master may, the others may not: it does not start. They get a file in a
# folder that they may not write.
file_that_worker_processes_cannot_reach()
{
	[ "$(id -u)" -eq 0 ] || { skip 'root only'; return; }
	worker_user='nobody nogroup'
	folder=$(mktemp -d) || return
	kvroute_options="path=$folder/index size=2m"
	start_engines 1 --scale 0.01
	find_module
	does_not_start "$folder/index, for the worker processes: "
	chmod 755 "$folder"
	rm -f "$folder/index"
	start_nginx kvroute
	is 'owner of the file' "$(stat -c %U "$folder/index")" nobody
	is 'its lock file' "$(lock_file "$folder/index")" 'nobody nogroup 600 0'
	is 'the index is used' "$(json .upstreams[0].attached)" true
	is 'status' "$(ask)" 200
	settled
	stop_nginx
	# of a region that was root's, and lost its lock file
	chown root:root "$folder/index"
	rm "$folder/index.lock"
	start_nginx kvroute
	is 'its lock file' "$(lock_file "$folder/index")" 'nobody nogroup 600 0'
	reload_nginx kvroute
	is 'the index is used' "$(json .upstreams[0].attached)" true
	is 'status' "$(ask)" 200
	settled
	rm -rf "$folder"
}

# The old configuration goes on.
file_without_room()
{
	folder=/dev/shm
	file=$folder/kvroute-test-$$
	fallocate -l 9000g "$file" 2>&1 | grep -q 'No space left' ||
	    { rm -f "$file"; skip "there is room in $folder"; return; }
	rm -f "$file"
	up
	http_lines="upstream others { kvroute path=$file size=9000000m;
	    server $(address 1); }"
	expected_alert="$file: "
	reload_is_refused "$file: "
	[ ! -e "$file" ] || echo 'a file is left'
	[ ! -e "$file.lock" ] || echo 'a lock file is left'
	talk --requests 12 --chats 2 --think-ms 1
	no_errors 'after the reload'
	above 'requests with an opinion' \
	    "$(json '.upstreams[0].reasons | .cost + .tie')" 0
	settled
	stop_nginx
	does_not_start "$file: "
	expected_alert="$file: "
}

# --------------------------------------------------------------------- scope

# overlaps - of the requests in the log, in order: 0 none, 1 all of the prompt.
overlaps()
{
	awk -F '\t' '$3 ~ /^[0-9]+$/ {
		printf "%s", $3 == 0 ? 0 : $3 == $4 ? 1 : "?"
	}' "$work/logs/access"
}

# say MODEL [MEMBERS [HEADER]] - the same prompt in another scope.
say()
{
	curl -s -m 30 -o "$work/out/said" -H "${3:-X-None: 1}" -d '{"model":"'"$1"'",
	    "max_tokens":1,"prompt":"'"$prompt"'"'"${2:-}"'}' \
	    "http://127.0.0.1:$port/v1/completions"
	until_true 20 no_leases
	is "engine's word on $*" "$(jq '.usage.prompt_tokens_details
	    | .cached_tokens > 0' "$work/out/said")" "$wanted"
}

# Each twice: the first of a kind shares nothing, the second all. The router
# separates tenants, the engine does not.
prompts_are_kept_apart()
{
	processes=1
	engines=1
	log=access
	# shellcheck disable=SC2016
	http_lines='map $kvroute_model $weights {
		volatile;
		default $kvroute_model;
		~^little- little;
	}'
	# shellcheck disable=SC2016
	location_lines='set $early "$weights";
	    kvroute_model $weights; kvroute_scope $http_x_tenant;'
	up
	for wanted in false true; do
		say m
		say n
		say m ',"cache_salt":"s"'
		say m ',"cache_salt":"t"'
		say little-one
	done
	wanted=true
	say m '' 'X-Tenant: a'
	say m '' 'X-Tenant: b'
	say m '' 'X-Tenant: a'
	say m '' 'X-Tenant: b'
	wanted=false
	say little-two
	is 'scopes in the index' "$(json '.upstreams[0].region.blocks')" \
	    $((7 * $(curl -s -m 10 -d '{"prompt":"'"$prompt"'"}' \
	    "http://127.0.0.1:$port/kvroute/explain?uri=/v1/completions" |
	    jq .blocks)))
	settled
	finish_nginx
	is 'overlaps' "$(overlaps)" 000001111100111
}
