#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_answers.sh - cases of check.sh: users get the responses of the engines,
# and engines have the expected cache hits.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} users_see_what_engines_said
    bodies_in_files_are_read_too
    usage_is_asked_for_and_taken_out_again
    prompts_find_their_beginnings
    reports_reach_the_index
    agents_send_whole_sessions
    log_tells_each_choice
    streams_cut_at_some_bytes
    shadow_chooses_like_the_stock_method
    bypass_has_no_opinion
    answers_are_part_of_the_next_prompt
    long_answers_are_left answers_are_counted_by_status
    answers_of_n_have_no_time_per_token"
slow_cases="${slow_cases:-} streams_cut_at_every_byte"

# Directly from one engine, as the reference: the checksum is over the texts of
# all responses.
checksum_without_nginx()
{
	"$build/kvroute-chats" -q --format kv --url \
	    "http://127.0.0.1:$(nth 1 "$engine_ports")" "$@" \
	    > "$work/direct"
	value "$work/direct" checksum
}

same_answers()
{
	set -- --requests 36 --chats 6 --turns 3 --think-ms 1 "$@"
	wanted=$(checksum_without_nginx "$@")
	talk "$@"
	no_errors "$*"
	is "checksum of answers ($*)" "$(figure checksum)" "$wanted"
	is "responses with usage ($*)" "$(figure usages)" 36
}

users_see_what_engines_said()
{
	up
	for endpoint in chat completions responses messages; do
		same_answers --endpoint $endpoint
		same_answers --endpoint $endpoint --no-stream
	done
	above 'prompt tokens reported' \
	    "$(json '.upstreams[0].usage.prompt_tokens')" 0
	is 'requests without opinion' "$(json '.upstreams[0].reasons
	    | [.bypass, .endpoint, .no_body, .unbuffered, .not_json, .too_deep,
	    .no_prompt, .no_worker, .failed] | add')" 0
	settled
}

bodies_in_files_are_read_too()
{
	body_buffer=1k
	up
	same_answers
	is 'bodies without a prompt' "$(json '.upstreams[0].reasons
	    | [.no_body, .not_json, .no_prompt] | add')" 0
	above 'hit ratio' "$(figure hit_ratio)" 0
	settled
}

# Clients that did not request usage must not see its events.
usage_is_asked_for_and_taken_out_again()
{
	location_lines='kvroute_include_usage on;'
	up
	set -- --requests 36 --chats 6 --turns 3 --think-ms 1
	wanted=$(checksum_without_nginx "$@" --no-usage)
	talk "$@" --no-usage
	no_errors 'in all'
	is 'checksum of answers' "$(figure checksum)" "$wanted"
	is 'events with usage alone' "$(figure usage_events)" 0
	is 'responses with usage' "$(figure usages)" 0
	is 'responses with usage' \
	    "$(json '.upstreams[0].usage.value')" 36
	same_answers
	is 'events with usage alone, asked for' "$(figure usage_events)" 36
	settled
}

hit_ratio_of()
{
	method=$1
	up
	talk --requests 300 --chats 12 --think-ms 2
	no_errors "with $1"
	figure hit_ratio > "$work/ratio"
	[ "$1" != kvroute ] || settled
	down
}

prompts_find_their_beginnings()
{
	hit_ratio_of round_robin
	before=$(cat "$work/ratio")
	hit_ratio_of kvroute
	above 'hit ratio beside that of round robin' "$(cat "$work/ratio")" \
	    "$before"
}

reports_reach_the_index()
{
	up
	talk --requests 120 --chats 6 --think-ms 1
	above 'reports that the index took' "$(json \
	    '[.upstreams[0].workers[].reports] | add')" 60
	is 'cached tokens' "$(json '.upstreams[0].usage.cached_tokens')" \
	    "$(figure cached_tokens)"
	is 'prompt tokens' "$(json '.upstreams[0].usage.prompt_tokens')" \
	    "$(figure prompt_tokens)"
	# The page's column, and its tile, are sums of the workers.
	[ "$(busy)" != 0 ] || for what in cached_tokens prompt_tokens; do
		is "$what of all workers" "$(json \
		    "[.upstreams[0].workers[].usage_$what] | add")" \
		    "$(figure $what)"
	done
	above 'tokens predicted' \
	    "$(json '[.upstreams[0].workers[].predicted_tokens] | add')" 0
	settled
}

# The same sessions of agents as directly, each under its own name.
agents_send_whole_sessions()
{
	set -- --sessions 6 --chats 3 --turns 4 --agents 2 --shrink 10 \
	    --think-ms 2 --session-header X-Session-Id
	http_lines="log_format ids '\$http_x_session_id';"
	location_lines="access_log $work/logs/ids ids;"
	for endpoint in chat messages; do
		up
		wanted=$(checksum_without_nginx --endpoint $endpoint "$@")
		sent=$(value "$work/direct" requests)
		talk --endpoint $endpoint "$@"
		no_errors "$endpoint"
		is "requests ($endpoint)" "$(figure requests)" "$sent"
		is "checksum of answers ($endpoint)" "$(figure checksum)" \
		    "$wanted"
		above "hit ratio ($endpoint)" "$(figure hit_ratio)" 0.3
		is "requests without opinion ($endpoint)" "$(json \
		    '.upstreams[0].reasons | [.bypass, .endpoint, .no_body,
		    .unbuffered, .not_json, .too_deep, .no_prompt,
		    .failed] | add')" 0
		settled
		finish_nginx
		is "sessions ($endpoint)" \
		    "$(sort -u "$work/logs/ids" | wc -l)" 6
		is "requests of sessions ($endpoint)" \
		    "$(grep -c '^ses_[0-9a-f]*$' "$work/logs/ids")" "$sent"
		rm "$work/logs/ids"
		stop_engines
	done
}

log_tells_each_choice()
{
	log=access
	up
	talk --requests 60 --chats 6 --think-ms 1
	finish_nginx
	sed -i '/\t-$/d' "$work/logs/access"
	is 'lines of requests that went to an engine' \
	    "$(wc -l < "$work/logs/access")" 60
	# Status, reason, overlap, blocks, cached, ns, worker, address.
	awk -F '\t' '
		$1 != 200 { print "status: " $0 }
		$2 !~ /^(cost|tie|busy)$/ { print "reason: " $0 }
		$2 != "busy" && ($3 !~ /^[0-9]+$/ || $3 > $4) {
			print "overlap: " $0
		}
		$5 !~ /^[0-9]+$/ { print "cached: " $0 }
		$6 !~ /^[0-9]+$/ || $6 == 0 { print "ns: " $0 }
		$2 != "busy" && $7 != $8 { print "worker: " $0 }' \
	    "$work/logs/access" | head -n 5
}

# ------------------------------------------------- streams cut anywhere

events()
{
	for word in one two three; do
		printf 'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' $word
	done
	[ "$1" = all ] && printf 'data: {"choices":[],"usage":{"prompt_tokens":%s}}\n\n' \
	    '40,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens":3'
	printf 'data: [DONE]\n\n'
}

# cuts STEP LINES - requests the stream once for each place of a cut.
cuts()
{
	location_lines=$2
	: > "$work/cut_port"
	perl "$here/cut.pl" "$work/stream" > "$work/cut_port" &
	engines_pid=$!
	until_true 20 test -s "$work/cut_port"
	upstream_ports=$(cat "$work/cut_port")
	start_nginx kvroute
	echo '{"model":"m","stream":true,"prompt":"abc"}' > "$work/body"
	end=$(wc -c < "$work/stream")
	for how in piece end broken; do
		: > "$work/curl"
		n=0
		while [ $n -le "$end" ]; do
			echo "url=http://127.0.0.1:$port/v1/completions?$how=$n"
			echo "output=$work/out/$how$n"
			n=$((n + $1))
		done > "$work/curl"
		curl -s -m 300 --data-binary @"$work/body" -K "$work/curl"
	done
}

streams_are_whole()
{
	events all > "$work/stream"
	events without > "$work/stripped"
	cuts "$1" 'kvroute_include_usage off;'
	perl "$here/cut.pl" --compare "$1" "$work/out" "$work/stream" \
	    "$work/stream"
	settled
	down
	rm -rf "$work/out"
	mkdir "$work/out"
	cuts "$1" 'kvroute_include_usage on;'
	perl "$here/cut.pl" --compare "$1" "$work/out" "$work/stream" \
	    "$work/stripped"
	above 'responses with usage' "$(json '.upstreams[0].usage.value')" 0
	settled
}

streams_cut_at_some_bytes()
{
	streams_are_whole 29
}

streams_cut_at_every_byte()
{
	streams_are_whole 1
}

# ---------------------------------------------------------- no prediction

shadow_chooses_like_the_stock_method()
{
	kvroute_options='zone=kv:8m shadow=round_robin'
	processes=1
	up
	talk --requests 80 --chats 1 --think-ms 0
	no_errors 'in all'
	is 'requests of the workers' "$(json \
	    '[.upstreams[0].workers[].lease_opens] | unique | join(" ")')" 20
	is 'requests compared' "$(json '.upstreams[0].shadowed
	    | .same + .other')" 80
	settled
}

bypass_has_no_opinion()
{
	# shellcheck disable=SC2016
	location_lines='kvroute_bypass $http_x_bypass;'
	up
	talk --requests 20 --chats 2 --think-ms 1 --header 'X-Bypass: 1'
	no_errors 'in all'
	is 'requests bypassed' "$(json '.upstreams[0].reasons.bypass')" 20
	is 'blocks on record' "$(json '.upstreams[0].region.held_blocks')" 0
	talk --requests 20 --chats 2 --think-ms 1 --header 'X-Bypass: 0'
	is 'requests bypassed' "$(json '.upstreams[0].reasons.bypass')" 20
	settled
}

# missed_with ENDPOINT [option ...] - of one chat's turns after the first, the
# most blocks of a prompt that no worker was believed to have, in `missed`.
missed_with()
{
	log=access
	kvroute_options='zone=kv:8m block=64'
	up
	talk --requests 6 --chats 1 --turns 6 --systems 1 --turn-bytes 400 \
	    --answer-tokens 300 --think-ms 20 --endpoint "$@"
	no_errors "$*"
	is "answers kept ($*)" "$(json '.upstreams[0].answers_kept')" "$kept"
	finish_nginx
	# Lines of the status have no worker.
	awk -F '\t' '$7 != "-" && n++ && $4 - $3 > most { most = $4 - $3 }
		END { print n == 6 ? most : "" }' "$work/logs/access" \
	    > "$work/missed"
	rm "$work/logs/access"
	down
}

# The new part of a turn is 400 bytes of the user, the marks of a message, and
# the block in which the last turn ended: 9 blocks. An answer has 1,000 more.
answers_are_part_of_the_next_prompt()
{
	kept=6
	for endpoint in chat responses messages; do
		for how in '' --no-stream; do
			# shellcheck disable=SC2086
			missed_with $endpoint $how
			above "limit of missed blocks ($endpoint $how)" 10 \
			    "$(cat "$work/missed")"
		done
	done
	kept=0
	location_lines='kvroute_feedback off;'
	missed_with chat
	above 'blocks missed without them' "$(cat "$work/missed")" 15
}

# answer_of BYTES - one such answer, of a server that has nothing else.
answer_of()
{
	awk -v n="$1" 'BEGIN {
		printf "{\"choices\":[{\"message\":{\"content\":\""
		for (i = 0; i < n; i += 10)
			printf "0123456789"
		printf "\"}}]}"
	}' > "$work/out/answer"
	curl -s -m 10 -o /dev/null -w '%{http_code}\n' -d '{"messages":[{
	    "role":"user","content":"a"}]}' \
	    "http://127.0.0.1:$port/v1/chat/completions"
}

# They are read in one turn of nginx's loop.
long_answers_are_left()
{
	upstream_ports=$(free_port)
	http_lines="server {
		listen 127.0.0.1:$upstream_ports;
		root $work/out;
		default_type application/json;
		error_page 404 =200 /answer;
	}"
	start_nginx kvroute
	is 'status of 250 kB' "$(answer_of 250000)" 200
	is 'status of 270 kB' "$(answer_of 270000)" 200
	settled
	is 'answers kept' "$(json '.upstreams[0].answers_kept')" 1
	is 'answers left' "$(json '.upstreams[0].answers_left')" 1
}

answers_are_counted_by_status()
{
	engines=1
	up
	talk --requests 3 --chats 1 --think-ms 1
	echo '{"model":"m","prompt":' > "$work/body"
	for n in 1 2; do
		is status "$(post "http://127.0.0.1:$port" "$work/body" \
		    /v1/completions)" 400
	done
	fault 1 'kind=error&status=503&seconds=60'
	is status "$(post "http://127.0.0.1:$port" "$work/body" \
	    /v1/completions)" 503
	is 'answers by class' "$(json '.upstreams[0].answers | [.success,
	    .redirection, .client_error, .server_error] | tostring')" \
	    '[3,0,2,1]'
	is 'metric' "$(metric kvroute_nginx_answers_client_error_total)" 2
	settled
}

# answer_times N - how many times of a token there are after such a request.
answer_times()
{
	curl -s -m 10 -o /dev/null -d "{\"model\":\"m\",\"prompt\":\"abc\",
	    \"stream\":true,\"max_tokens\":8,\"n\":$1}" \
	    "http://127.0.0.1:$port/v1/completions"
	until_true 20 no_leases
	json '.upstreams[0].times.time_per_output_token.count'
}

# Several answers share what their usage counts.
answers_of_n_have_no_time_per_token()
{
	engines=1
	up
	is 'times of one answer' "$(answer_times 1)" 1
	is 'times of two' "$(answer_times 2)" 1
	is 'times of one answer more' "$(answer_times 1)" 2
	settled
}
