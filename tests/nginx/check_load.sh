#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_load.sh - cases of check.sh: engines that publish their load.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} polled_load_is_avoided unpolled_load_is_not_seen
    polled_load_ends_when_engine_is_silent polled_load_over_a_reload
    polled_load_without_metrics polls_are_made_by_one_process
    polled_load_of_its_own polled_ranks polled_load_of_iterations
    polled_load_of_idle_iterations
    request_without_a_prompt_is_load"

# address_of N - of the N-th engine.
address_of()
{
	echo "127.0.0.1:$(nth "$1" "$engine_ports")"
}

# polled N FILTER - of the N-th engine's worker.
polled()
{
	json ".upstreams[0].workers[] | select(.name == \"$(address_of "$1")\")
	    | .polled$2"
}

polled_is()
{
	[ "$(polled "$1" "$2")" = "$3" ]
}

# Long answers of engine 1, asked past nginx: they run until the end of a case.
keep_busy()
{
	for i in 1 2 3 4 5 6; do
		curl -sN -m 300 -o /dev/null "http://$(address_of 1)/v1/completions" \
		    -d "{\"prompt\": \"busy $i\", \"max_tokens\": 6000,
		    \"stream\": true}" &
		kept_pids="$kept_pids $!"
	done
}

# ask_each N - short requests, one after the other.
ask_each()
{
	for i in $(seq "$1"); do
		curl -sf -m 20 -o /dev/null "http://127.0.0.1:$port/v1/completions" \
		    -d "{\"prompt\": \"question $i of $$\", \"max_tokens\": 2}" ||
		    echo "request $i failed"
	done
}

# taken N - requests that the N-th engine's worker got.
taken()
{
	json ".upstreams[0].workers[] | select(.name == \"$(address_of "$1")\")
	    | .lease_opens"
}

up_polled()
{
	kvroute_options="zone=kv:8m ${poll:-poll=100ms}"
	engines=2
	up --decode-ms 2000 "$@"
}

polled_load_is_avoided()
{
	up_polled
	keep_busy
	until_true 20 polled_is 1 .surplus 6 ||
	    echo "the surplus is $(polled 1 .surplus)"
	is running "$(polled 1 .running)" 6
	is waiting "$(polled 1 .waiting)" 0
	above usage "$(polled 1 .usage)" 0
	is 'surplus of the other' "$(polled 2 .surplus)" 0
	ask_each 10
	is 'requests of the busy one' "$(taken 1)" 0
	is 'requests of the other' "$(taken 2)" 10
	is 'surplus metric' "$(metric kvroute_nginx_polled_surplus)" 6
	stop_kept
	until_true 20 polled_is 1 .surplus 0 ||
	    echo "afterwards the surplus is $(polled 1 .surplus)"
	is 'requests in the end' \
	    "$(json '[.upstreams[0].workers[].requests] | add')" 0
	settled
}

# The case above can fail: without polls the busy one gets its share.
unpolled_load_is_not_seen()
{
	poll=poll=off
	up_polled
	unset poll
	keep_busy
	ask_each 10
	above 'requests of the busy one' "$(taken 1)" 0
	is polled "$(polled 1 '')" null
	stop_kept
	settled
}

polled_load_ends_when_engine_is_silent()
{
	up_polled
	keep_busy
	until_true 20 polled_is 1 .surplus 6 ||
	    echo "the surplus is $(polled 1 .surplus)"
	fault 1 'kind=stall&seconds=600'
	until_true 20 polled_is 1 '' null || echo 'it stays known'
	is 'requests of a silent engine' \
	    "$(json '[.upstreams[0].workers[].requests] | add')" 0
	until_true 20 is_logged "load of $(address_of 1) is not known: it does"\
' not answer' || echo 'nothing is said of a silent engine'
	fault 1 'kind=none'
	until_true 20 polled_is 1 .surplus 6 || echo 'it stays unknown'
	stop_kept
	settled
}

# busy_is N WHEN - the engine's running requests are seen, and count.
busy_is()
{
	until_true 20 polled_is 1 .surplus "$1" ||
	    echo "$2 the surplus is $(polled 1 .surplus), not $1"
	is "requests on record $2" \
	    "$(json '[.upstreams[0].workers[].requests] | add')" "$1"
}

# After each change of processes the load changes, too: earlier figures are no
# news. With poll=off a load that was set ends; in a file it outlives nginx, and
# ends too.
polled_load_over_a_reload()
{
	start_engines 2 --scale 0.01 --decode-ms 2000
	polling="path=$work/out/index size=8m poll=100ms"
	kvroute_options=$polling
	start_nginx kvroute
	keep_busy
	busy_is 6 'at first'
	reload_nginx kvroute
	stop_kept
	busy_is 0 'after a reload'
	keep_busy
	busy_is 6 'once more'
	kvroute_options="path=$work/out/index size=8m"
	reload_nginx kvroute
	until_true 20 no_requests || echo 'without polls the load stays'
	is 'what is polled without polls' "$(polled 1 '')" null
	kvroute_options=$polling
	reload_nginx kvroute
	busy_is 6 'with polls again'
	old=$(children "$nginx_pid")
	for pid in $old; do
		kill -KILL "$pid"
	done
	until_true 20 new_processes
	expected_alert='exited on signal 9'
	stop_kept
	busy_is 0 'after deaths'
	keep_busy
	busy_is 6 'after that'
	stop_nginx
	kvroute_options="path=$work/out/index size=8m"
	start_nginx kvroute
	until_true 20 no_requests || echo 'load of another life stays'
	stop_kept
	settled
}

no_requests()
{
	[ "$(json '[.upstreams[0].workers[].requests] | add')" = 0 ]
}

polled_load_without_metrics()
{
	up_polled --publish sglang
	until_true 20 is_logged "load of $(address_of 1) is not known: it"\
' publishes none' || echo 'nothing is said of it'
	talk --requests 24 --chats 4 --think-ms 1
	no_errors 'without metrics'
	is polled "$(polled 1 '')" null
	is lines "$(lines_with "load of $(address_of 1) is not known")" 1
	settled
}

# Each process that polls logs it for each engine, once.
polls_are_made_by_one_process()
{
	processes=4
	log_level=info
	up_polled
	unset log_level
	keep_busy
	until_true 20 polled_is 1 .surplus 6 ||
	    echo "the surplus is $(polled 1 .surplus)"
	is 'requests of all' \
	    "$(json '[.upstreams[0].workers[].requests] | add')" 6
	is 'engines that were found' \
	    "$(grep -c 'load of .* is known' "$work/logs/error")" 2
	stop_kept
	settled
}

# Requests from nginx are no surplus, however busy the engine is.
polled_load_of_its_own()
{
	up_polled
	for i in 1 2 3 4 5 6 7 8; do
		curl -sN -m 300 -o /dev/null "http://127.0.0.1:$port/v1/completions" \
		    -d "{\"prompt\": \"own $i\", \"max_tokens\": 6000,
		    \"stream\": true}" &
		kept_pids="$kept_pids $!"
	done
	until_true 20 all_run 8 || echo 'not all run:' \
	    "$(polled 1 .running) $(polled 2 .running)"
	for i in 1 2 3 4 5 6 7 8 9 10; do
		is 'surplus' "$(polled 1 .surplus) $(polled 2 .surplus)" '0 0'
		sleep 0.05
	done
	is 'requests of all' \
	    "$(json '[.upstreams[0].workers[].requests] | add')" 8
	stop_kept
	settled
}

all_run()
{
	[ "$(json '[.upstreams[0].workers[].polled.running] | add')" = "$1" ]
}

polled_ranks()
{
	server_facts='ranks=2'
	up_polled --ranks 2
	for i in 1 2 3; do
		curl -sN -m 300 -o /dev/null "http://$(address_of 1)/v1/completions" \
		    -H 'X-Data-Parallel-Rank: 1' -d "{\"prompt\": \"busy $i\",
		    \"max_tokens\": 6000, \"stream\": true}" &
		kept_pids="$kept_pids $!"
	done
	until_true 20 rank_is 1 3 || echo "the surplus is $(polled 1 .surplus)"
	is 'rank 0' "$(json ".upstreams[0].workers[] | select(.name ==
	    \"$(address_of 1)\" and .rank == 0) | .polled.surplus")" 0
	stop_kept
	settled
}

# rank_is RANK SURPLUS - of engine 1.
rank_is()
{
	[ "$(json ".upstreams[0].workers[] | select(.name ==
	    \"$(address_of 1)\" and .rank == $1) | .polled.surplus")" = "$2" ]
}

# TensorRT-LLM's list has nothing new at some polls: the last figures stay.
polled_load_of_iterations()
{
	engines=2
	kvroute_options='zone=kv:8m poll=500ms'
	up --decode-ms 70000 --publish trtllm
	keep_busy
	until_true 20 polled_is 1 .surplus 6 ||
	    echo "the surplus is $(polled 1 .surplus)"
	is running "$(polled 1 .running)" 6
	above usage "$(polled 1 .usage)" 0
	for i in $(seq 20); do
		is 'surplus while it runs' "$(polled 1 .surplus)" 6
		sleep 0.1
	done
	ask_each 2
	is 'requests of the busy one' "$(taken 1)" 0
	is 'lines of failures' \
	    "$(grep -c 'load of .* is not known' "$work/logs/error")" 0
	stop_kept
	settled
}

# In the end nothing is new: the ends are seen, and then nothing is known.
polled_load_of_idle_iterations()
{
	up_polled --publish trtllm
	keep_busy
	until_true 20 polled_is 1 .surplus 6 ||
	    echo "the surplus is $(polled 1 .surplus)"
	stop_kept
	until_true 20 no_requests || echo 'the load stays'
	until_true 20 polled_is 1 '' null || echo 'it stays known'
	is 'lines of failures' \
	    "$(grep -c 'load of .* is not known' "$work/logs/error")" 0
	keep_busy
	until_true 20 polled_is 1 .surplus 6 ||
	    echo "once more the surplus is $(polled 1 .surplus)"
	stop_kept
	settled
}

# Accepts connections, and says nothing.
start_silent()
{
	perl -MIO::Socket::INET -e '
	$| = 1;
	my @open;
	my $s = IO::Socket::INET->new(Listen => 64, LocalPort => 0,
	    LocalAddr => "127.0.0.1") or die;
	print $s->sockport, "\n";
	alarm 120;
	push @open, $_ while $_ = $s->accept' >> "$work/silent" &
	kept_pids="$kept_pids $!"
}

two_are_silent()
{
	[ "$(wc -l < "$work/silent")" = 2 ]
}

loads_are()
{
	[ "$(json '[.upstreams[0].workers[].requests] | sort | tostring')" = "$1" ]
}

# It goes to the server with the fewest connections, and counts there.
request_without_a_prompt_is_load()
{
	processes=1
	: > "$work/silent"
	start_silent
	start_silent
	until_true 20 two_are_silent
	upstream_ports=$(paste -s -d ' ' "$work/silent")
	start_nginx kvroute
	curl -s -m 60 -d '{"model":"m","input":"a"}' \
	    "http://127.0.0.1:$port/v1/embeddings" > "$work/out/1" &
	one=$!
	until_true 20 loads_are '[0,1]' || echo 'embeddings are no load'
	curl -s -m 60 -F file=@"$work/silent" \
	    "http://127.0.0.1:$port/v1/audio/transcriptions" > "$work/out/2" &
	two=$!
	until_true 20 loads_are '[1,1]' || echo 'a form is no load'
	# No load: it asks for nothing that is computed.
	curl -s -m 1 "http://127.0.0.1:$port/v1/models" > "$work/out/3"
	loads_are '[1,1]' || echo 'a list is load'
	kill $one $two
	wait $one $two 2> /dev/null
	until_true 20 loads_are '[0,0]' || echo 'load stays'
	is 'blocks on record' "$(json .upstreams[0].region.held_blocks)" 0
	stop_kept
}
