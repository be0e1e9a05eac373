#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_ranks.sh - cases of check.sh: data-parallel ranks behind one address.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} ranks_keep_their_prompts
    rank_is_sent_once_also_after_a_retry rank_header_beside_a_body
    without_a_prediction_the_engine_chooses ranks_that_cannot_be
    orders_for_ranks refused_connection_resets_all_ranks
    reload_with_other_ranks capacity_of_ranks_is_read
    shadowed_requests_name_no_rank
    ranks_that_the_engine_refuses_are_drained
    ranks_that_the_engine_does_not_publish_are_drained
    refused_prompts_drain_no_rank
    requests_that_a_rank_refuses_are_sent_again"

# A line for each request: rank, overlap, cached tokens, reason, status.
log_ranks()
{
	http_lines="log_format ranks '\$kvroute_rank \$kvroute_overlap"
	http_lines="$http_lines \$kvroute_cached \$kvroute_reason \$status';"
	location_lines="access_log $work/logs/ranks ranks; ${location_lines:-}"
}

ranks_logged()
{
	[ ! -e "$work/logs/ranks" ] || wc -l < "$work/logs/ranks"
}

is_logged_behind()
{
	[ "$(ranks_logged)" -gt "${1:-0}" ]
}

# ask_about WORD [curl option ...] - a prompt of a thousand bytes; prints the
# status. nginx writes its line of the log when the client has the response.
ask_about()
{
	word=$1
	shift
	logged=$(ranks_logged)
	awk -v w="$word" 'BEGIN {
		printf "{\"model\":\"m\",\"max_tokens\":1,\"prompt\":\""
		for (i = 0; i < 250; i++)
			printf "%s%d ", w, i
		printf "\"}"
	}' > "$work/about"
	curl -s -m 30 -o /dev/null -w '%{http_code}\n' "$@" \
	    --data-binary @"$work/about" \
	    "http://127.0.0.1:$port/v1/completions${query:-}"
	[ ! -e "$work/logs/ranks" ] || until_true 20 is_logged_behind "$logged"
}

# Engines with ranks, asked one request after the other, in one process.
ranked_up()
{
	n=$1
	ranks=$2
	shift 2
	processes=1
	server_facts="ranks=$ranks ${server_facts:-}"
	log_ranks
	start_engines "$n" --scale 0.01 --capacity 100000 --ranks "$ranks" "$@"
	start_nginx kvroute
}

# How many of the log's first fields there are.
ranks_used()
{
	cut -d ' ' -f 1 "$work/logs/ranks" | sort -u | wc -l
}

workers_listed()
{
	json '[.upstreams[0].workers[]
	    | "\(.rank) \(.state) \(.held_blocks > 0)"] | join(", ")'
}

# rank_order WORKER ACTION - prints the state then, or the error.
rank_order()
{
	curl -s -m 10 -X POST --get --data-urlencode "worker=$1" \
	    -d "action=$2" -X POST "http://127.0.0.1:$port/kvroute" |
	    jq -r '.state // .error'
}

# answers_of ENGINE - sequences that it has ended.
answers_of()
{
	curl -s "http://127.0.0.1:$(nth "$1" "$engine_ports")/metrics" |
	    awk '/^vllm:request_success_total/ { n += $NF } END { print n }'
}

# ------------------------------------------------------------------ choices

# The client's own header would be refused by the engine.
ranks_keep_their_prompts()
{
	# Equal ranks are drawn: only two of four in 16 draws is one in 10,000.
	words='a b c d e f g h i j k l m n o p'
	ranked_up 1 4
	for word in $words; do
		is "status, $word" "$(ask_about "$word" \
		    -H 'X-Data-Parallel-Rank: 99')" 200
	done
	until_true 20 no_leases
	for word in $words; do
		is "status, $word again" "$(ask_about "$word")" 200
	done
	settled
	is 'workers' "$(json '.upstreams[0].workers | length')" 4
	is 'ranks in metrics' "$(status /metrics |
	    grep -c '^kvroute_worker_requests{.*rank="[0-3]"')" 4
	finish_nginx
	above 'ranks used' "$(ranks_used)" 2
	is 'prompts that went elsewhere' "$(awk '
		NR <= 16 { rank[NR] = $1 }
		NR > 16 && ($1 != rank[NR - 16] || $2 == 0 || $3 == 0)
		' "$work/logs/ranks")" ''
	# Each rank has a cache of its own: only there could it be found.
	curl -s "http://127.0.0.1:$engine_ports/metrics" |
	    sed -n 's/^vllm:prefix_cache_hits_total{engine="\(.\)".* /\1 /p' |
	    awk '$2 > 0 { print $1 }' > "$work/hit"
	is 'ranks with hits' "$(paste -s "$work/hit")" \
	    "$(cut -d ' ' -f 1 "$work/logs/ranks" | sort -u | paste -s)"
}

# heads_are NAME - of each request that arrived, the values of that header.
heads_are()
{
	for head in "$work"/out/asked/.head*; do
		tr -d '\r' < "$head" | sed -n "s/^$1: //Ip" | paste -s -d ,
	done | paste -s -d ' '
}

rank_is_sent_once_also_after_a_retry()
{
	processes=1
	server_facts='ranks=120'
	location_lines='proxy_next_upstream http_500 non_idempotent;
	    kvroute_include_usage on; proxy_set_header X-Data-Parallel-Rank 5;'
	log_ranks
	start_recorder 500 200
	start_nginx kvroute
	i=0
	# Which of the two is first is drawn.
	while [ $i -lt 8 ] || { [ $i -lt 64 ] && ! grep -q 2 "$work/tries"; }; do
		i=$((i + 1))
		is "status $i" "$(ask_about $i -H 'x-data-parallel-rank: 7' \
		    -H 'X-DATA-PARALLEL-RANK: 8')" 200
		heads_are X-Data-Parallel-Rank > "$work/ranks"
		# the last try's is in the log
		is "ranks $i" "$(grep -cE '^[0-9]{1,3}( [0-9]{1,3})?$' \
		    "$work/ranks")" 1
		is "last rank $i" "$(sed 's/.* //' "$work/ranks")" \
		    "$(tail -n 1 "$work/logs/ranks" | cut -d ' ' -f 1)"
		is "body $i" "$(tail -n +2 "$work/out/asked/$(find \
		    "$work/out/asked" -name '[0-9]*' | wc -l)" |
		    cksum)" "$(cksum < "$work/about")"
		wc -w < "$work/ranks" >> "$work/tries"
		rm -f "$work"/out/asked/.head*
		until_true 20 no_leases
	done
	above 'requests with a retry' "$(grep -c 2 "$work/tries")" 0
	rm -f "$work/tries"
	settled
}

# The proxy module appends a body of its own to the head.
rank_header_beside_a_body()
{
	processes=1
	server_facts='ranks=3'
	location_lines='proxy_set_body "new $request_body";'
	log_ranks
	start_recorder 200
	start_nginx kvroute
	is status "$(ask_about a -H 'X-Data-Parallel-Rank: 7' \
	    -H 'X-Data-Parallel-Rankle: 9')" 200
	is 'another one' "$(heads_are X-Data-Parallel-Rankle)" 9
	is 'its rank' "$(heads_are X-Data-Parallel-Rank)" \
	    "$(cut -d ' ' -f 1 "$work/logs/ranks")"
	is body "$(tail -n +2 "$work/out/asked/1")" \
	    "new $(cat "$work/about")"
	settled
}

without_a_prediction_the_engine_chooses()
{
	location_lines='kvroute_bypass $arg_bypass;'
	ranked_up 2 3
	query='?bypass=1'
	for word in a b; do
		is "status, $word" "$(ask_about "$word" \
		    -H 'X-Data-Parallel-Rank: 99')" 200
	done
	for action in "$(nth 1 "$engine_ports")@1" "$(nth 1 "$engine_ports")"; do
		is "order to $action" "$(rank_order "127.0.0.1:$action" drain)" \
		    draining
		answered=$(answers_of 1)
		for word in a b c d; do
			is "status, $word" "$(ask_about "$word")" 200
		done
		echo $(($(answers_of 1) - answered))
	done > "$work/of_first"
	is 'of four at a server with a rank less, and with none' \
	    "$(paste -s -d ' ' "$work/of_first")" '2 0'
	query=
	is 'status of a list' "$(curl -s -m 10 -o /dev/null \
	    -w '%{http_code}' -H 'X-Data-Parallel-Rank: 99' \
	    "http://127.0.0.1:$port/v1/models")" 200
	settled
	is 'ranks in the log' "$(grep -c '^[0-9]' "$work/logs/ranks")" 0
	is 'requests in the log' "$(wc -l < "$work/logs/ranks")" 11
}

shadowed_requests_name_no_rank()
{
	kvroute_options='zone=kv:8m shadow=least_conn'
	ranked_up 1 3
	for word in a a; do
		is status "$(ask_about "$word")" 200
		until_true 20 no_leases
	done
	is 'ranks in the log' "$(grep -c '^[0-9]' "$work/logs/ranks")" 0
	is 'requests with a prediction' "$(json '.upstreams[0].shadowed | .same + .other')" 2
	above 'blocks on record' "$(json .upstreams[0].region.held_blocks)" 0
	settled
}

# ------------------------------------------------------------ configuration

# refuses_facts WHAT IS SAID - the facts in server_facts.
refuses_facts()
{
	engine_ports='8001 8002'
	port=1
	module=$(cd "$build" && pwd -P)/nginx/ngx_http_upstream_kvroute_module.so
	write_conf kvroute
	: > "$work/logs/error"
	! "$NGINX_BIN" -t -p "$work" -c "$work/nginx.conf" -e "$work/logs/error" \
	    > "$work/logs/out" 2>&1 || echo "accepted: $server_facts"
	grep -qF "$1" "$work/logs/error" "$work/logs/out" ||
	    echo "not said: $1, but $(tail -n 2 "$work/logs/error")"
}

ranks_that_cannot_be()
{
	for n in 0 1025 -1 8x ''; do
		server_facts="ranks=$n"
		refuses_facts 'ranks='
	done
	server_facts='ranks=1025'
	refuses_facts 'it is the number of data-parallel ranks behind the address, from 1 to 1024'
	server_facts='ranks=129'
	refuses_facts 'its servers have 258 ranks, more than its 256 workers: give "kvroute" workers=258'
	expected_alert='[emerg]'
}

# ------------------------------------------------------------------- orders

orders_for_ranks()
{
	ranked_up 1 3
	here_is=127.0.0.1:$engine_ports
	is 'one rank' "$(rank_order "$here_is@1" drain)" draining
	is 'states' "$(workers_listed)" \
	    '0 up false, 1 draining false, 2 up false'
	for word in a b c d e f; do
		is "status, $word" "$(ask_about "$word")" 200
	done
	is 'requests to the drained one' \
	    "$(grep -c '^1 ' "$work/logs/ranks")" 0
	is 'requests to the others' \
	    "$(grep -c '^[02] ' "$work/logs/ranks")" 6
	is 'all ranks' "$(rank_order "$here_is" drain)" draining
	is 'states' "$(json '[.upstreams[0].workers[].state] | unique[]')" \
	    draining
	is 'one is up' "$(rank_order "$here_is@1" up)" up
	is 'status' "$(ask_about new)" 200
	is 'its rank' "$(tail -n 1 "$work/logs/ranks" | cut -d ' ' -f 1)" 1
	until_true 20 no_leases
	is 'reset' "$(rank_order "$here_is" reset)" draining
	is 'blocks' "$(json .upstreams[0].region.held_blocks)" 0
	for name in "$here_is@3" "$here_is@" "$here_is@x" @1 "$here_is@1@1"; do
		is "order to $name" "$(rank_order "$name" drain)" \
		    'there is no such worker'
	done
	settled
}

# Of both its ranks.
blocks_of_the_first()
{
	json "[.upstreams[0].workers[]
	    | select(.name == \"127.0.0.1:$(nth 1 "$engine_ports")\")
	    | .held_blocks] | tostring"
}

refused_connection_resets_all_ranks()
{
	ranked_up 2 2
	words=
	for word in a b c d e f g h i j k l m n o p; do
		is "status, $word" "$(ask_about "$word")" 200
		until_true 20 no_leases
		words="$words $word"
		[ "$(blocks_of_the_first)" = '[0,0]' ] || break
	done
	fault 1 'kind=refuse&seconds=600'
	for word in $words; do
		is "status, $word" "$(ask_about "$word")" 200
	done
	until_true 20 no_leases
	is 'blocks of the one that is gone' "$(blocks_of_the_first)" '[0,0]'
	is 'refusals counted' "$(metric kvroute_nginx_refused_total)" 1
	settled
}

reload_with_other_ranks()
{
	ranked_up 1 4
	for word in a b c d e f; do
		is "status, $word" "$(ask_about "$word")" 200
	done
	until_true 20 no_leases
	held=$(json '.upstreams[0].workers[0].held_blocks')
	server_facts='ranks=2'
	reload_nginx kvroute
	is 'ranks' "$(json '[.upstreams[0].workers[].rank] | tostring')" '[0,1]'
	is 'blocks of the first' \
	    "$(json '.upstreams[0].workers[0].held_blocks')" "$held"
	for word in g h i j; do
		is "status, $word" "$(ask_about "$word")" 200
	done
	is 'ranks used' "$(tail -n 4 "$work/logs/ranks" | grep -c '^[01] ')" 4
	until_true 20 no_leases
	server_facts='ranks=3'
	reload_nginx kvroute
	is 'ranks' "$(json '[.upstreams[0].workers[].rank] | tostring')" \
	    '[0,1,2]'
	server_facts='block_tokens=16'
	reload_nginx kvroute
	is 'without' "$(json '[.upstreams[0].workers[].rank] | tostring')" \
	    '[null]'
	is status "$(ask_about a)" 200
	is 'no rank' "$(tail -n 1 "$work/logs/ranks" | grep -c '^[0-9]')" 0
	settled
}

capacity_of_ranks_is_read()
{
	server_facts='capacity=auto'
	ranked_up 2 2
	await_capacities "$(printf '100000 read 16 capacity, %.0s' 1 2 3)100000 read 16 capacity"
	settled
}

# ---------------------------------------------------------------- lacking

# configured_ranks N [option ...] - one engine with four, of which N are told.
configured_ranks()
{
	told=$1
	shift
	processes=1
	server_facts="ranks=$told ${server_facts:-}"
	log_ranks
	start_engines 1 --scale 0.01 --capacity 100000 --ranks 4 "$@"
	start_nginx kvroute
}

states_of_ranks()
{
	json '[.upstreams[0].workers | sort_by(.rank)[].state] | join(" ")'
}

# ask_words N - each of N prompts once; prints how many were refused.
ask_words()
{
	n=0
	while [ $n -lt "$1" ]; do
		n=$((n + 1))
		ask_about "${2:-w}$n"
	done | grep -c 400
}

# All of one client, at the only server: the first rank takes what others refuse.
ranks_that_the_engine_refuses_are_drained()
{
	configured_ranks 8
	is 'refused requests' "$(ask_words 100)" 0
	is states "$(states_of_ranks)" \
	    'up up up up draining draining draining draining'
	above 'lines in the log' "$(grep -c 'refuses requests to its data-para'\
'llel rank [4-7], and ranks=8 is' "$work/logs/error")" 0
	above 'counted' "$(metric kvroute_nginx_refused_ranks_total)" 0
	settled
}

ranks_that_the_engine_does_not_publish_are_drained()
{
	server_facts='capacity=auto'
	configured_ranks 8
	until_true 20 grep -q 'has 4 data-parallel ranks, and ranks=8 is' \
	    "$work/logs/error" || echo 'it is not logged'
	is 'refused requests' "$(ask_words 40)" 0
	is states "$(states_of_ranks)" \
	    'up up up up draining draining draining draining'
	is capacities "$(json '[.upstreams[0].workers[].capacity] | unique[]')" \
	    100000
	settled
}

# refusing_engine - it has ranks 0 and 1, and refuses the prompt "bad".
refusing_engine()
{
	processes=1
	server_facts='ranks=4'
	tries_lines=${http_lines:-}
	log_ranks
	upstream_ports=$(free_port)
	http_lines="$http_lines ${tries_lines:-}
	map \$http_x_data_parallel_rank \$lacks { 2 1; 3 1; default 0; }
	server {
		listen 127.0.0.1:$upstream_ports;
		default_type application/json;
		location / {
			if (\$http_x_bad) { return 400; }
			if (\$lacks) { return 400; }
			return 200 '{\"choices\":[{\"text\":\"a\"}]}';
		}
	}"
	start_nginx kvroute
}

# bad_words N - prompts that no rank takes; prints statuses that are not 400.
bad_words()
{
	n=0
	while [ $n -lt "$1" ]; do
		n=$((n + 1))
		ask_about "w$n" -H 'X-Bad: 1'
	done | grep -vx 400
}

# They are sent again, but the first rank refuses them as well.
refused_prompts_drain_no_rank()
{
	refusing_engine
	bad_words 30
	is states "$(states_of_ranks)" 'up up up up'
	is 'refused' "$(ask_words 60)" 0
	is states "$(states_of_ranks)" 'up up draining draining'
	bad_words 20
	is 'states afterwards' "$(states_of_ranks)" 'up up draining draining'
	is order "$(rank_order "127.0.0.1:$upstream_ports@2" up)" up
	is 'the order is obeyed' "$(states_of_ranks)" 'up up up draining'
	settled
}

# The client sees one status, the log each try; a retry of a retry is none.
requests_that_a_rank_refuses_are_sent_again()
{
	location_lines='proxy_next_upstream off;'
	http_lines="log_format tries '\$upstream_status';"
	location_lines="$location_lines access_log $work/logs/tries tries;"
	refusing_engine
	is 'refused' "$(ask_words 40)" 0
	above 'sent again' "$(grep -cx '400, 200' "$work/logs/tries")" 0
	is 'others' "$(grep -vcx -e '400, 200' -e 200 "$work/logs/tries")" 0
	bad_words 20
	is 'with one try' "$(tail -n 20 "$work/logs/tries" |
	    grep -vcx -e 400 -e '400, 400')" 0
	settled
}
