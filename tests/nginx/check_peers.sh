#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_peers.sh - cases of check.sh: usable servers, by nginx's parameters and
# by orders at run time.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} weights_without_an_opinion
    full_servers_are_left_out down_server_keeps_its_record
    backup_is_for_when_others_are_gone one_address_twice
    server_on_a_local_socket drained_servers_are_the_last_to_ask
    drain_outlives_a_restart orders_from_pages_are_refused"
slow_cases="${slow_cases:-} seventy_servers"

# servers_up N LINE ... - engines, with server parameters for the first ones,
# one line each. Their requests are in the log.
servers_up()
{
	start_engines "$1" --scale 0.01 --capacity 100000
	shift
	server_list=
	i=0
	for parameters in "$@"; do
		i=$((i + 1))
		server_list="$server_list
		server $(address $i) $parameters;"
	done
	log=access
	start_nginx kvroute
}

# address I - prints that of an engine.
address()
{
	echo "127.0.0.1:$(nth "$1" "$engine_ports")"
}

# Sends the same prompt each time; prints the status.
ask()
{
	curl -s -m 30 -o /dev/null -w '%{http_code}\n' \
	    -d '{"model":"m","max_tokens":1,"prompt":"'"$prompt"'"}' \
	    "http://127.0.0.1:$port/v1/completions"
}

# A thousand bytes: some blocks.
prompt=$(awk 'BEGIN { for (i = 0; i < 250; i++) printf "%03d ", i }')

# ask_at_once N - sends requests that get no response while engines stall.
ask_at_once()
{
	faults "$engine_ports" 'kind=stall&seconds=60'
	before=$(json '.upstreams[0].reasons | add')
	i=0
	while [ $i -lt "$1" ]; do
		[ $i -eq 0 ] || echo next
		printf 'url=http://127.0.0.1:%s/v1/completions\n' "$port"
		printf 'data={"model":"m","max_tokens":1,"prompt":"%s"}\n' \
		    "$prompt" | sed 's/"/\\"/g; s/=\(.*\)/="\1"/'
		printf 'output=/dev/null\nwrite-out=%%{http_code}\\n\n'
		i=$((i + 1))
	done > "$work/curl"
	curl -s -m 50 -Z --parallel-immediate --parallel-max "$1" \
	    -K "$work/curl" > "$work/statuses" 2> "$work/out/curl" &
	chats_pid=$!
	until_true 20 all_asked $((before + $1)) ||
	    echo "not all were asked: $(json '.upstreams[0].reasons | add')"
}

all_asked()
{
	[ "$(json '.upstreams[0].reasons | add')" -ge "$1" ]
}

# answers_are '200:N ...' - once the engines go on: statuses and their numbers.
answers_are()
{
	faults "$engine_ports" kind=none
	wait "$chats_pid"
	chats_pid=
	is answers "$(sort "$work/statuses" | uniq -c |
	    awk '{ print $2 ":" $1 }' | paste -s -d ' ')" "$1"
}

# faults 'PORT ...' QUERY
faults()
{
	for p in $1; do
		curl -sf -m 10 -o /dev/null -X POST \
		    "http://127.0.0.1:$p/fault?$2" || echo "no fault: $2"
	done
}

# Ends nginx and keeps in the log the requests to engines, one line each.
finish_log()
{
	finish_nginx
	sed -i '/\t-$/d' "$work/logs/access"
}

# Requests by responding engine, in the order of engines.
requests_by_engine()
{
	for p in $engine_ports; do
		awk -F '\t' -v a="127.0.0.1:$p" '$8 == a { n++ }
		    END { print n + 0 }' "$work/logs/access"
	done | paste -s -d ' '
}

# ------------------------------------------------------ parameters of server

weights_without_an_opinion()
{
	processes=1
	location_lines='kvroute_bypass 1;'
	servers_up 5 '' weight=2 weight=3 'weight=5 max_conns=1' down
	ask_at_once 13
	answers_are '200:13'
	settled
	finish_log
	is 'requests by weights 1, 2, 3, one at most, none' \
	    "$(requests_by_engine)" '2 4 6 1 0'
}

# Regardless of where the prompt is cached.
full_servers_are_left_out()
{
	processes=1
	servers_up 4 max_conns=1 max_conns=1 max_conns=1 max_conns=1
	is 'status of the first' "$(ask)" 200
	ask_at_once 5
	answers_are '200:4 502:1'
	settled
	finish_log
	sed -i 1d "$work/logs/access"
	is 'requests of each' "$(requests_by_engine)" '1 1 1 1'
}

# explained ADDRESS - blocks of the prompt predicted to be there.
explained()
{
	curl -s -m 10 -d '{"model":"m","max_tokens":1,"prompt":"'"$prompt"'"}' \
	    "http://127.0.0.1:$port/kvroute/explain?uri=/v1/completions" |
	    jq ".candidates[] | select(.worker == \"$1\") | .overlap_blocks"
}

down_server_keeps_its_record()
{
	processes=1
	servers_up 2 '' down
	is 'status of the first' "$(ask)" 200
	until_true 20 no_leases
	above 'blocks where it went' "$(explained "$(address 1)")" 0
	server_list="server $(address 1) down; server $(address 2);"
	reload_nginx kvroute
	is 'status of the second' "$(ask)" 200
	until_true 20 no_leases
	above 'blocks where it went' "$(explained "$(address 2)")" 0
	server_list="server $(address 1); server $(address 2) down;"
	reload_nginx kvroute
	above 'blocks of the one that was down' \
	    "$(explained "$(address 1)")" 0
	is 'status of the third' "$(ask)" 200
	settled
	finish_log
	is 'requests by engine' "$(requests_by_engine)" '2 1'
	is 'overlap of the third' "$(awk -F '\t' 'NR == 3 {
	    print ($3 > 0 && $7 == $8) }' "$work/logs/access")" 1
}

# The first one fails once and is skipped for fail_timeout.
backup_is_for_when_others_are_gone()
{
	processes=1
	servers_up 2 'max_fails=1 fail_timeout=600s' backup
	is 'status of the first' "$(ask)" 200
	faults "$(nth 1 "$engine_ports")" 'kind=error&status=500&seconds=60'
	is 'error of the second' "$(ask)" 500
	faults "$(nth 1 "$engine_ports")" 'kind=die&seconds=0'
	faults "$(nth 1 "$engine_ports")" 'kind=refuse&seconds=1'
	is 'status of the third' "$(ask)" 200
	is 'status of the fourth' "$(ask)" 200
	until_true 20 engine_answers "$(nth 1 "$engine_ports")"
	is 'status of the fifth' "$(ask)" 200
	is 'choices made again' "$(json '.upstreams[0].retries')" 1
	is 'choices without opinion' "$(json '.upstreams[0].reasons
	    | [.busy, .no_worker, .failed] | add')" 0
	above 'blocks of the backup' "$(explained "$(address 2)")" 0
	settled
	finish_log
	is 'servers, in order' "$(cut -f 8 "$work/logs/access" |
	    sed "s/$(address 1)/1/; s/$(address 2)/2/" | paste -s -d ' ')" \
	    '1 1 1, 2 2 2'
}

# Two lines for one engine: each has its own limit.
one_address_twice()
{
	processes=1
	start_engines 1 --scale 0.01
	server_list="server $(address 1) max_conns=1;
	    server $(address 1) max_conns=1;"
	log=access
	start_nginx kvroute
	is 'workers' "$(json '.upstreams[0].workers | length')" 1
	ask_at_once 3
	answers_are '200:2 502:1'
	settled
}

server_on_a_local_socket()
{
	http_lines="server {
		listen unix:$work/out/engine;
		default_type application/json;
		location / { return 200 '{\"choices\":[],\"usage\":{
		    \"prompt_tokens\":300,\"completion_tokens\":1,
		    \"prompt_tokens_details\":{\"cached_tokens\":16}}}'; }
	}"
	processes=1
	server_list="server unix:$work/out/engine;"
	log=access
	start_nginx kvroute
	is 'status of the first' "$(ask)" 200
	is 'status of the second' "$(ask)" 200
	is 'its name' "$(json '.upstreams[0].workers[].name')" \
	    "unix:$work/out/engine"
	is 'cached tokens' \
	    "$(json '.upstreams[0].usage.cached_tokens')" 32
	is 'order to it' "$(order "unix:$work/out/engine" drain)" 200
	settled
	finish_log
	above 'overlap of the second' \
	    "$(sed -n 2p "$work/logs/access" | cut -f 3)" 0
}

# Seventy servers: more than a word has bits. Each takes one request; then all
# but the last refuse, and it is found.
seventy_servers()
{
	processes=1
	location_lines='proxy_next_upstream error timeout non_idempotent;'
	log=access
	start_engines 70 --scale 0.01
	server_options='max_conns=1 max_fails=0'
	start_nginx kvroute
	ask_at_once 71
	answers_are '200:70 502:1'
	finish_log
	is 'requests of each' "$(requests_by_engine | tr ' ' '\n' | sort |
	    uniq -c | awk '{ print $1 "x" $2 }')" 70x1
	start_nginx kvroute
	is 'status of the first' "$(ask)" 200
	last=$(json '[.upstreams[0].workers[] | select(.lease_opens == 0)
	    | .name][0]')
	faults "$(echo " $engine_ports " | sed "s/ ${last#*:} / /")" \
	    'kind=refuse&seconds=20'
	is 'status of the second' "$(ask)" 200
	above 'servers that refused' "$(json '.upstreams[0].retries')" 0
	settled
	finish_log
	is 'server of the second' "$(tail -n 1 "$work/logs/access" |
	    cut -f 8 | sed 's/.*, //')" "$last"
}

# ----------------------------------------------------------- orders at run time

# A drained server is used if there is no other.
drained_servers_are_the_last_to_ask()
{
	processes=1
	servers_up 2 max_fails=0 max_fails=0
	is 'order to the first' "$(order "$(address 1)" drain)" 200
	is 'with one drained' "$(ask)" 200
	is 'order to the second' "$(order "$(address 2)" drain)" 200
	is 'with both drained' "$(ask)" 200
	is 'choices without opinion' \
	    "$(json '.upstreams[0].reasons.no_worker')" 1
	is 'order to the second' "$(order "$(address 2)" up)" 200
	faults "$(nth 2 "$engine_ports")" 'kind=refuse&seconds=1'
	is 'with one drained and one gone' "$(ask)" 200
	settled
	finish_log
	is 'servers, but for the one with both drained' \
	    "$(cut -f 8 "$work/logs/access" | sed -e 2d \
	    -e "s/$(address 1)/1/; s/$(address 2)/2/" | paste -s -d ' ')" \
	    '2 2, 1'
}

drain_outlives_a_restart()
{
	kvroute_options="path=$work/out/index size=2m"
	servers_up 2 '' ''
	is 'order to the first' "$(order "$(address 1)" drain)" 200
	finish_nginx
	start_nginx kvroute
	is 'state' "$(state_of "$(address 1)" state)" draining
	is 'state of the other' "$(state_of "$(address 2)" state)" up
	reload_nginx kvroute
	is 'state after a reload' "$(state_of "$(address 1)" state)" draining
	is 'status' "$(ask)" 200
	is 'requests of the drained one' \
	    "$(state_of "$(address 1)" lease_opens)" 0
	settled
}

orders_from_pages_are_refused()
{
	servers_up 1 ''
	is 'with an Origin' "$(curl -s -m 10 -o "$work/ordered" -X POST \
	    -w '%{http_code}' -H 'Origin: http://127.0.0.1' \
	    "http://127.0.0.1:$port/kvroute?worker=$(address 1)&action=drain")" \
	    403
	is 'member of the response' "$(jq -r 'keys[]' "$work/ordered")" error
	is 'state' "$(state_of "$(address 1)" state)" up
	is 'without one' "$(order "$(address 1)" drain)" 200
	is 'state' "$(state_of "$(address 1)" state)" draining
	settled
}
