#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_capacity.sh - cases of check.sh: capacities that are read off engines.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} capacity_is_read_in_every_dialect
    capacity_told_read_and_unknown windows_told windows_read
    capacity_of_engine_that_is_silent
    capacity_of_engine_that_comes_up_later capacity_changes_with_engine
    capacity_after_failed_requests capacity_outlives_reload
    capacity_in_awkward_responses capacity_counts_the_memory_of_the_host"

# capacities - of all servers, in order of their ports.
capacities()
{
	json '[.upstreams[0].workers | sort_by(.name)[]
	    | "\(.capacity) \(.capacity_source) \(.block_tokens) \(.retain)"]
	    | join(", ")'
}

capacities_are()
{
	[ "$(capacities)" = "$1" ]
}

# await_capacities EXPECTED
await_capacities()
{
	until_true 30 capacities_are "$1" || is capacities "$(capacities)" "$1"
}

lines_with()
{
	grep -cF "$1" "$work/logs/error"
}

is_logged()
{
	grep -qF "$1" "$work/logs/error"
}

# start_engine PORT CAPACITY - one more, at a port that was free.
start_engine()
{
	"$build/kvroute-engine" --port "$1" --capacity "$2" --scale 0.01 \
	    --for 600 > "$work/logs/engine-$1" 2>&1 &
	one_engine=$!
	kept_pids="$kept_pids $one_engine"
	until_true 20 engine_answers "$1" || echo "no engine at $1"
}

stop_engine()
{
	kill "$one_engine"
	wait "$one_engine" 2> /dev/null
}

end_engines()
{
	stop_nginx
	stop_kept
}

# Nothing but notices: no error, and no other line of the library.
capacity_is_read_in_every_dialect()
{
	for dialect in vllm sglang sglang-old; do
		server_facts='capacity=auto'
		engines=2
		up --capacity 50000 --block 32 --publish $dialect
		await_capacities '49984 read 32 capacity, 49984 read 32 capacity'
		is 'notices' "$(lines_with "capacity of $(address 1) is 49984")" 1
		is 'errors' "$(grep -E '\[(warn|error)\]' "$work/logs/error" |
		    grep -vF ': add "')" ''
		talk --requests 24 --chats 4 --think-ms 1
		no_errors "of $dialect"
		settled
		stop_nginx
		stop_engines
		: > "$work/logs/error"
	done
}

capacity_told_read_and_unknown()
{
	start_engines 2 --scale 0.01 --capacity 50000
	first=$(printf '%s\n' "$(address 1)" "$(address 2)" | sort | head -n 1)
	second=$(printf '%s\n' "$(address 1)" "$(address 2)" | sort | tail -n 1)
	server_list="server $first; server $second;
	    kvroute_server $first capacity=auto block_tokens=64;
	    kvroute_server $second capacity=1234;"
	start_nginx kvroute
	await_capacities '50000 read 64 capacity, 1234 told 0 capacity'
	# It was read, and is no longer asked for: unknown. The other one had
	# its capacity set, is asked now, and publishes nothing: unknown too.
	server_list="server $first; server $second;
	    kvroute_server $second capacity=auto;"
	fault 1 'kind=error&seconds=60&status=404'
	fault 2 'kind=error&seconds=60&status=404'
	reload_nginx kvroute
	until_true 20 is_logged "capacity of $second is not known: it"\
' publishes none, status 404' ||
	    echo 'nothing is said of an engine that publishes nothing'
	await_capacities '0 null 0 ttl, 0 null 0 ttl'
	settled
}

# A reload changes them; read ones stay.
windows_told()
{
	start_engines 2 --scale 0.01 --capacity 50000
	first=$(address 1)
	second=$(address 2)
	server_list="server $first; server $second;
	    kvroute_server $first capacity=auto window=1024 window_mode=dense
	        window_layers=5;
	    kvroute_server $second window_mode=dual window=512
	        window_capacity=4000 window_interval=2048;"
	start_nginx kvroute
	until_true 30 test "$(state_of "$first" capacity)" = 50000 || :
	is 'modes' "$(state_of "$first" window_mode) $(state_of "$second" \
	    window_mode)" 'dense dual'
	is 'windows' "$(state_of "$first" window) $(state_of "$second" \
	    window)" '1024 512'
	talk --requests 24 --chats 4 --think-ms 1
	no_errors 'with windows'
	server_list="server $first; server $second;
	    kvroute_server $first capacity=auto window=128
	        window_mode=boundary;
	    kvroute_server $second window=128 window_mode=dense
	        window_layers=5;"
	reload_nginx kvroute
	is 'after a reload' "$(state_of "$first" window_mode) $(state_of \
	    "$first" window) $(state_of "$second" window_mode) $(state_of \
	    "$second" window)" 'boundary 128 dense 128'
	settled
}

# facts_of SERVER - that windows have there.
facts_of()
{
	json ".upstreams[0].workers[] | select(.name == \"$1\")
	    | \"\(.window_mode) \(.window) \(.window_capacity)\""
}

facts_are()
{
	[ "$(facts_of "$1")" = "$2" ]
}

# await_facts SERVER EXPECTED
await_facts()
{
	until_true 30 facts_are "$1" "$2" || is "facts of $1" "$(facts_of "$1")" \
	    "$2"
}

# A configured window is not read, and a read one outlives a reload.
windows_read()
{
	start_engines 2 --scale 0.01 --capacity 50000 --publish-window 4096
	first=$(address 1)
	second=$(address 2)
	server_list="server $first; server $second;
	    kvroute_server $first capacity=auto window_mode=boundary;
	    kvroute_server $second capacity=auto window_mode=boundary window=128;"
	start_nginx kvroute
	await_facts "$first" 'boundary 4096 0'
	await_capacities '50000 read 16 capacity, 50000 read 16 capacity'
	is told "$(facts_of "$second")" 'boundary 128 0'
	talk --requests 24 --chats 4 --think-ms 1
	no_errors 'with windows'
	fault 1 'kind=stall&seconds=600'
	reload_nginx kvroute
	is 'after a reload' "$(facts_of "$first")" 'boundary 4096 0'
	server_list="server $first; server $second;
	    kvroute_server $first capacity=auto;
	    kvroute_server $second capacity=auto;"
	reload_nginx kvroute
	is 'without' "$(facts_of "$first"), $(facts_of "$second")" \
	    'full 0 0, full 0 0'
	# Now nothing else changes.
	server_list="server $first; server $second;
	    kvroute_server $second capacity=auto window_mode=boundary;"
	reload_nginx kvroute
	await_facts "$second" 'boundary 4096 0'
	settled
	stop_nginx
	stop_engines
	: > "$work/logs/error"
	start_engines 2 --scale 0.01 --capacity 50000 --publish sglang \
	    --publish-window 9000
	first=$(address 1)
	second=$(address 2)
	server_list="server $first; server $second;
	    kvroute_server $first capacity=auto window_mode=dual window=512;
	    kvroute_server $second capacity=auto window_mode=dual window=512
	        window_capacity=4000;"
	start_nginx kvroute
	await_facts "$first" 'dual 512 9000'
	await_capacities '50000 read 16 capacity, 50000 read 16 capacity'
	is 'told of two memories' "$(facts_of "$second")" 'dual 512 4000'
	server_list="server $first; server $second;
	    kvroute_server $first capacity=auto window_mode=dual;
	    kvroute_server $second capacity=auto window_mode=dual window=512;"
	reload_nginx kvroute
	await_facts "$second" 'dual 512 9000'
	settled
}

# An ask that waits delays no request: all of them end before its deadline.
capacity_of_engine_that_is_silent()
{
	processes=1
	start_engines 2 --scale 0.01 --capacity 50000
	fault 2 'kind=stall&seconds=600'
	server_list="server $(address 1); server $(address 2) down;
	    kvroute_server $(address 2) capacity=auto;"
	start_nginx kvroute
	talk --requests 200 --chats 8 --think-ms 1
	no_errors 'meanwhile'
	is 'asks that have ended' "$(lines_with 'it does not answer')" 0
	is 'capacity meanwhile' "$(state_of "$(address 2)" capacity)" 0
	until_true 30 is_logged "capacity of $(address 2) is not known: it does"\
' not answer' || echo 'nothing is said of a silent engine'
	is 'capacity afterwards' "$(state_of "$(address 2)" capacity)" 0
	is 'retention' "$(state_of "$(address 2)" retain)" ttl
	settled
	# The next ask is under way, and must not be left open.
	sleep 1.5
	finish_nginx
}

# Also by a process that takes the place of one that died.
capacity_of_engine_that_comes_up_later()
{
	processes=1
	late=$(free_port)
	start_engines 1 --scale 0.01 --capacity 50000
	server_list="server $(address 1); server 127.0.0.1:$late backup;
	    kvroute_server 127.0.0.1:$late capacity=auto;"
	start_nginx kvroute
	until_true 20 is_logged "capacity of 127.0.0.1:$late is not known" ||
	    echo 'nothing is said of an engine that is not there'
	sleep 4
	is 'lines about it' \
	    "$(lines_with "capacity of 127.0.0.1:$late is not known")" 1
	old=$(children "$nginx_pid")
	kill_one_process
	until_true 20 new_processes
	start_engine "$late" 70000
	until_true 30 late_is 70000 || echo 'its capacity is' \
	    "$(state_of "127.0.0.1:$late" capacity)"
	is 'its source' "$(state_of "127.0.0.1:$late" capacity_source)" read
	settled
	end_engines
}

# Requests fail, and the other one takes them, so it is asked again.
capacity_changes_with_engine()
{
	late=$(free_port)
	start_engines 1 --scale 0.01 --capacity 50000
	start_engine "$late" 90000
	server_list="server $(address 1); server 127.0.0.1:$late max_fails=0;
	    kvroute_server 127.0.0.1:$late capacity=auto;"
	location_lines='proxy_next_upstream error timeout non_idempotent;'
	start_nginx kvroute
	until_true 20 late_is 90000 || echo 'it is not read at first'
	stop_engine
	talk --requests 60 --chats 8 --think-ms 1 --turns 1
	no_errors 'while it is down'
	until_true 20 is_logged "capacity of 127.0.0.1:$late is as before" ||
	    echo 'nothing is said of an engine that has gone'
	is 'capacity while it is down' \
	    "$(state_of "127.0.0.1:$late" capacity)" 90000
	start_engine "$late" 30000
	until_true 30 late_is 30000 || echo 'its capacity stays' \
	    "$(state_of "127.0.0.1:$late" capacity)"
	talk --requests 60 --chats 8 --think-ms 1
	no_errors 'afterwards'
	settled
	end_engines
}

# Restarted while there were no requests: no connection is refused. It is asked
# again because requests to it fail later, which resets nothing.
capacity_after_failed_requests()
{
	late=$(free_port)
	start_engines 1 --scale 0.01 --capacity 50000
	start_engine "$late" 90000
	server_list="server 127.0.0.1:$late max_fails=0;
	    server $(address 1) backup;
	    kvroute_server 127.0.0.1:$late capacity=auto;"
	location_lines='proxy_next_upstream http_503 non_idempotent;'
	start_nginx kvroute
	until_true 20 late_is 90000 || echo 'it is not read at first'
	stop_engine
	start_engine "$late" 30000
	curl -sf -m 10 -o /dev/null -X POST \
	    "http://127.0.0.1:$late/fault?kind=error&status=503&seconds=2" ||
	    echo 'it takes no fault'
	talk --requests 20 --chats 4 --think-ms 1
	no_errors 'while it fails'
	until_true 30 late_is 30000 || echo 'its capacity stays' \
	    "$(state_of "127.0.0.1:$late" capacity)"
	is 'records that were reset' "$(json '.upstreams[0].refused')" 0
	settled
	end_engines
}

late_is()
{
	[ "$(state_of "127.0.0.1:$late" capacity)" = "$1" ]
}

# With engines that cannot be read again, and with a file, after a restart.
capacity_outlives_reload()
{
	server_facts='capacity=auto'
	kvroute_options="path=$work/out/index size=8m"
	engines=1
	up --capacity 50000
	await_capacities '50000 read 16 capacity'
	fault 1 'kind=stall&seconds=600'
	reload_nginx kvroute
	is 'after a reload' "$(capacities)" '50000 read 16 capacity'
	stop_nginx
	start_nginx kvroute
	is 'after a restart' "$(capacities)" '50000 read 16 capacity'
	settled
}

# Much, in pieces, and cut.
capacity_in_awkward_responses()
{
	start_engines 1 --scale 0.01
	perl "$here/publish.pl" > "$work/out/published" &
	kept_pids="$kept_pids $!"
	until_true 20 test -s "$work/out/published" || echo 'it does not start'
	late=$(cat "$work/out/published")
	server_list="server $(address 1); server 127.0.0.1:$late down;
	    kvroute_server 127.0.0.1:$late capacity=auto;"
	start_nginx kvroute
	until_true 20 late_is 654321 || echo 'its capacity is' \
	    "$(state_of "127.0.0.1:$late" capacity)"
	is block "$(state_of "127.0.0.1:$late" block_tokens)" 4
	settled
	end_engines
}

# published CPU_BLOCKS GIB - vLLM's line, with memory of the host.
published()
{
	printf 'vllm:cache_config_info{block_size="16",engine="0",%s} 1.0\n' \
	    "kv_offloading_size=\"$2\",num_cpu_blocks=\"$1\",num_gpu_blocks=\"1000\",prefix_match_unit=\"64\"" \
	    > "$work/out/metrics"
}

capacity_counts_the_memory_of_the_host()
{
	upstream_ports=$(free_port)
	http_lines="server {
		listen 127.0.0.1:$upstream_ports;
		root $work/out;
	}"
	server_facts='capacity=auto'
	# Swap space does not count.
	published 4000 None
	start_nginx kvroute
	await_capacities '16000 read 64 capacity'
	stop_nginx
	# How many tokens those are is not known; the others are.
	published None 8.0
	start_nginx kvroute
	until_true 30 is_logged 'has room for 8589934592 bytes more' ||
	    echo 'it is not logged'
	await_capacities '16000 read 64 capacity'
	settled
}
