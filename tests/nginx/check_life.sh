#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_life.sh - cases of check.sh: processes of nginx that end, restart or are
# stopped while others use the same index.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} terminated_under_load_and_started_again
    killed_whole_and_started_again leaving_process_is_killed
    upgrade_ends_no_requests_of_the_old
    worker_process_dies_with_the_lock
    turn_that_met_a_held_lock_is_recorded"
slow_cases="${slow_cases:-} holder_of_the_lock_is_stopped
    holder_of_the_lock_dies"

holder_pid=

# Kills a process that is not our child, or is stopped and handles no other
# signal.
end_strays()
{
	end_child "$holder_pid" -KILL
	holder_pid=
	[ ! -s "$work/orphan" ] || kill -TERM "$(cat "$work/orphan")" 2> /dev/null
	rm -f "$work/orphan"
}

# long_streams N - starts them; the number in the index is in `streams`.
long_streams()
{
	without=$(requests_without_record)
	least=$(($(requests_made) + $1))
	talk_meanwhile --requests "$1" --chats "$1" --think-ms 1 --timeout 60 \
	    --answer-tokens 2000
	until_true 20 streams_begun || echo "no $1 streams, but $(json \
	    '.upstreams[0] | [.region.leases, .late_records, .reasons]')"
	streams=$(json '.upstreams[0].region.leases')
	above 'streams with a lease' "$streams" 0
}

# A request that met a held lock may get its lease when the response begins.
requests_without_record()
{
	json '.upstreams[0] | .reasons.busy + .reasons.no_worker - .late_records'
}

streams_begun()
{
	made_least && [ "$(requests_without_record)" -eq "$without" ]
}

has_leases()
{
	[ "$(json '.upstreams[0].region.leases')" = "$1" ]
}

leases_ended()
{
	json '.upstreams[0].region.lease_reaps'
}

give_up_streams()
{
	end_child "$chats_pid" -TERM
	chats_pid=
}

# ------------------------------------------------------------- begin and end

# start_again SIGNAL - ends nginx during 16 streams and starts one with fewer
# processes on the same file.
start_again()
{
	kvroute_options="path=$work/out/index size=8m"
	processes=4
	up --scale 1
	long_streams 16
	all=$nginx_pid
	[ "$1" = TERM ] || all="$all $(children "$nginx_pid" | paste -s -d ' ')"
	# shellcheck disable=SC2086
	kill "-$1" $all
	wait "$nginx_pid"
	nginx_pid=
	give_up_streams
	processes=1
	start_nginx kvroute
}

# Each process ends its own requests before it exits.
terminated_under_load_and_started_again()
{
	start_again TERM
	is 'leases at once' "$(json '.upstreams[0].region.leases')" 0
	is 'leases ended' "$(leases_ended)" "$streams"
	is 'lines that say others had to do it' \
	    "$(grep -c 'requests of process .* that died' \
	    "$work/logs/error")" 0
	curl -s -m 20 -o /dev/null -d '{"model":"m","prompt":"abc"}' \
	    "http://127.0.0.1:$port/v1/completions" || echo 'no response'
	settled
}

# No process is left to end them but the new ones.
killed_whole_and_started_again()
{
	start_again KILL
	settled
	is 'ended for the dead' "$(leases_ended)" "$streams"
}

# After a reload one old process has all the requests.
leaving_process_is_killed()
{
	processes=1
	up --scale 1
	long_streams 8
	leaving=$(children "$nginx_pid")
	NOWAIT=1
	reload_nginx kvroute
	unset NOWAIT
	is 'leases after the reload' "$(json '.upstreams[0].region.leases')" \
	    "$streams"
	kill -9 "$leaving"
	expected_alert='exited on signal 9'
	until_true 20 has_leases 0 || echo 'leases of the dead one stay'
	is 'leases ended for it' "$(leases_ended)" "$streams"
	talk_over
	is 'streams that broke off' "$(figure broken)" 8
	settled
}

# nginx obeys USR2 only if its parent has exited.
orphan_nginx()
{
	stop_nginx
	(
		"$(command -v "$NGINX_BIN")" -p "$work" -c "$work/nginx.conf" \
		    -e "$work/logs/error" -g 'daemon off;' \
		    > "$work/logs/out" 2>&1 &
		nginx_pid=$!
		echo $nginx_pid > "$work/orphan"
		until_true 60 is_ready
	)
	nginx_pid=$(cat "$work/orphan")
}

upgraded()
{
	[ -e "$work/nginx-$port.pid.oldbin" ] &&
	    [ -s "$work/nginx-$port.pid" ] &&
	    [ "$(children "$(cat "$work/nginx-$port.pid")" | wc -l)" -eq 2 ]
}

# There may be no process to wait for it.
has_ended()
{
	[ ! -e "/proc/$1/stat" ] || grep -q ') Z' "/proc/$1/stat"
}

# upgrade_nginx - the new one is in nginx_pid, and the old one exits.
upgrade_nginx()
{
	old_pid=$nginx_pid
	kill -USR2 "$old_pid"
	until_true 20 upgraded || { echo 'no new nginx'; return 1; }
	nginx_pid=$(cat "$work/nginx-$port.pid")
	kill -QUIT "$old_pid"
}

# The old one ends with its streams, which are slow until the new one has seen
# them.
upgrade_ends_no_requests_of_the_old()
{
	kvroute_options="path=$work/out/index size=8m"
	up
	faults "$engine_ports" 'kind=slow&factor=100&seconds=600'
	orphan_nginx
	long_streams 8
	upgrade_nginx || return
	curl -s -m 20 -o /dev/null -d '{"model":"m","prompt":"abc"}' \
	    "http://127.0.0.1:$port/v1/completions" || echo 'no response'
	above 'leases of the old one' \
	    "$(json '.upstreams[0].region.leases')" 0
	faults "$engine_ports" kind=none
	talk_over
	no_errors 'in streams of the old one'
	until_true 20 has_ended "$old_pid" || echo 'the old nginx stays'
	settled
	is 'leases ended for others' "$(leases_ended)" 0
	is 'index recoveries' \
	    "$(json '.upstreams[0].region.recoveries')" 0
	stop_nginx
}

# ------------------------------------------------------ the lock of the index

# A process that only writes: it is stopped repeatedly until it holds the lock;
# then the status is 503.
start_holder()
{
	: > "$work/holder"
	"$build/hold" "$work/out/index" > "$work/holder" &
	holder_pid=$!
	until_true 20 test -s "$work/holder" || echo 'there is no writer'
	until_true 20 holder_has_the_lock || echo 'the lock is never taken'
}

# One that has the lock and changes nothing.
hold_still()
{
	: > "$work/holder"
	"$build/hold" "$work/out/index" still > "$work/holder" &
	holder_pid=$!
	until_true 20 test -s "$work/holder" || echo 'the lock is not taken'
}

holder_has_the_lock()
{
	kill -STOP "$holder_pid"
	for i in 1 2 3; do
		is_blocked || { kill -CONT "$holder_pid"; return 1; }
	done
}

is_blocked()
{
	[ "$(curl -s -m 10 -o /dev/null -w '%{http_code}' \
	    "http://127.0.0.1:$port/kvroute?format=json")" = 503 ]
}

# Requests by reason, from the log.
logged()
{
	awk -F '\t' -v reason="$1" '$1 == 200 && $2 == reason { n++ }
	    END { print n + 0 }' "$work/logs/access"
}

chooses_again()
{
	before=$(($(logged cost) + $(logged tie)))
	curl -s -m 10 -o /dev/null -d '{"model":"m","prompt":"abc"}' \
	    "http://127.0.0.1:$port/v1/completions"
	[ $(($(logged cost) + $(logged tie))) -gt "$before" ]
}

# While a stopped process holds the lock, requests go on without predictions.
blocked_life()
{
	kvroute_options="path=$work/out/index size=8m"
	log=access
	up
	talk --requests 60 --chats 6 --think-ms 1
	start_holder
	: > "$work/logs/access"
	talk --requests 60 --chats 6 --think-ms 1
	no_errors 'while the lock is held'
	is 'requests that were busy' "$(logged busy)" 60
	is 'an order' "$(order "127.0.0.1:$(nth 1 "$engine_ports")" drain)" \
	    503
	reload_nginx kvroute
	# The region exists but cannot be prepared now.
	expected_alert='kvroute of upstream "engines": region:'
	talk --requests 60 --chats 6 --think-ms 1
	no_errors 'after a reload'
}

# ask_long WORD [TOKENS] - one prompt of a chat; the overlap is in the log.
ask_long()
{
	awk -v w="$1" -v n="${2:-2}" 'BEGIN {
		printf "{\"model\":\"m\",\"max_tokens\":%d,\"prompt\":\"", n
		for (i = 0; i < 300; i++)
			printf "%s%d ", w, i
		printf "\"%s}", w ~ /^s/ ? ",\"stream\":true" : ""
	}' > "$work/long"
	is "status of $1" "$(post "http://127.0.0.1:$port" "$work/long" \
	    /v1/completions)" 200
}

turns_found()
{
	awk -F '\t' '$7 != "-" { print ($3 > 0) }' "$work/logs/access" |
	    paste -s -d ' '
}

# The status needs the lock: engines tell instead.
engines_are_busy()
{
	for engine in $engine_ports; do
		curl -s "http://127.0.0.1:$engine/metrics"
	done | awk '/^vllm:num_requests_running/ { n += $NF }
	    END { exit n == 0 }'
}

late_records_are()
{
	[ "$(json '.upstreams[0].late_records')" = "$1" ]
}

# The engine has it, so the next turn must find it there.
turn_that_met_a_held_lock_is_recorded()
{
	kvroute_options="path=$work/out/index size=8m"
	log=access
	up --decode-ms 30000
	ask_long first
	hold_still
	for word in streamed plain; do
		ask_long $word
	done
	# Its answer begins when the lock is free: it takes some seconds.
	ask_long at_commit 10 &
	asked=$!
	until_true 20 engines_are_busy || echo 'it is not asked'
	end_strays
	wait $asked
	until_true 20 chooses_again || echo 'no choices come back'
	until_true 20 late_records_are 3 || echo 'they are not counted'
	: > "$work/logs/access"
	ask_long first
	for word in streamed plain at_commit; do
		ask_long $word
	done
	ask_long unknown
	settled
	finish_nginx
	is 'overlaps' "$(turns_found)" '1 1 1 1 0'
}

holder_of_the_lock_is_stopped()
{
	blocked_life
	kill -CONT "$holder_pid"
	end_strays
	until_true 20 chooses_again || echo 'no choices come back'
	is 'an order' "$(order "127.0.0.1:$(nth 1 "$engine_ports")" drain)" \
	    200
	talk --requests 60 --chats 6 --think-ms 1
	no_errors 'afterwards'
	settled
}

# Only the change that it was making is lost.
holder_of_the_lock_dies()
{
	blocked_life
	end_strays
	until_true 20 chooses_again || echo 'no choices come back'
	settled
	above 'blocks, or index recoveries' \
	    "$(json '.upstreams[0].region | .held_blocks + .recoveries')" 0
	talk --requests 60 --chats 6 --think-ms 1
	no_errors 'afterwards'
	settled
}

# The others find out within 100 ms, also those that never wait.
worker_process_dies_with_the_lock()
{
	kvroute_options="path=$work/out/index size=8m"
	log=access
	up
	talk_meanwhile --chats 16 --think-ms 1 --timeout 60
	# shellcheck disable=SC2046
	one=$("$build/catch" "$work/out/index" $(children "$nginx_pid")) ||
	    echo 'the lock is never taken'
	give_up_streams
	until_true 20 is_blocked || echo 'the lock is free'
	kill -9 "$one"
	sleep 0.1
	expected_alert='exited on signal 9'
	: > "$work/logs/access"
	for i in 1 2 3 4 5 6 7 8 9 10; do
		curl -s -m 10 -o /dev/null -d '{"model":"m","prompt":"abc"}' \
		    "http://127.0.0.1:$port/v1/completions"
	done
	is 'requests with a choice' "$(($(logged cost) + $(logged tie)))" 10
	until_true 20 all_processes || echo 'the process is not replaced'
	talk --requests 60 --chats 6 --think-ms 1
	no_errors 'afterwards'
	settled
}
