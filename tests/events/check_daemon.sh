#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_daemon.sh build [case] - kvroute-events between a small publisher and a
# region: cases of tests/cases.sh.
#
# shellcheck disable=SC2154
. tests/events/common.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1

reader='' server=''
file=$scratch/region
conf=$scratch/conf
socket=$scratch/socket

region()
{
	"$build/region" "$file" "$@" 2>&1
}

# Prints a worker's state, without the parts that the pattern does not ask for.
state()
{
	region state "${1:-a:0}"
}

until_state()
{
	until_true 60 has_state "$1" || {
		echo "never '$1', but: $(state)"
		tail -n 5 "$out"
	}
}

has_state()
{
	state | grep -q "$1"
}

# [KEY: VALUE, ...]: configures the worker "a", whose engine has a replay if
# `with` is set.
configure()
{
	echo "{ \"workers\": [ { \"worker\": \"a\", \"events\": \"$pub\"$1 } ] }" \
	    > "$conf"
}

with_replay=", \"replay\": \"$back\""

# The daemon, in the background.
daemon_up()
{
	${KVR_UNDER:-} "$events" -c "$conf" --socket "$socket" "$file" \
	    >> "$out" 2>&1 3>&- 4<&- &
	reader=$!
}

daemon_down()
{
	kill -"${1:-TERM}" "$reader"
	wait "$reader" 2> /dev/null
	status=$?
	[ "${1:-}" = KILL ] || [ "$status" -eq 0 ] ||
	    echo "kvroute-events: exit $status"
	reader=''
}

# A counter of the status.
counter()
{
	"$events" --status "$socket" 2>&1 |
	    sed -n "s/.*\"$1\": \"*\([^,}\"]*\).*/\1/p" | head -n 1
}

until_counter()
{
	until_true 60 prints "$2" counter "$1" ||
	    echo "$1: never $2, but $(counter "$1")"
}

begin()
{
	: > "$out"
	rm -f "$file" "$file.lock"
	region make a:0
	configure "${1:-}"
}

finish()
{
	[ -z "$engine" ] || engine_down
	[ -z "$reader" ] || daemon_down
	[ -z "${server:-}" ] || server_down
	[ ! -e "$file" ] || region check
}

case_counts_events()
{
	begin
	engine_up
	daemon_up
	tell wait
	tell send 0 "$v1"
	until_state '^complete next 1 stored 2 removed 1 cleared 1 '
	until_counter phase live
	[ "$(counter batches)" = 1 ] || counter batches
	"$events" --metrics "$socket" > "$scratch/metrics"
	grep -q '^kvroute_events_complete{region="[^"]*",worker="a",rank="0"} 1' \
	    "$scratch/metrics" || cat "$scratch/metrics"
}

# A batch with an event of an unknown kind is no evidence about the cache.
case_a_stream_that_is_of_no_use()
{
	begin
	engine_up
	daemon_up
	tell wait
	tell send 0 92019191a5546f756368
	until_state '^complete next 1 '
	until_counter state unusable
	is reason "$(counter reason)" unknown
	until_has 'unusable: .*unknown: events are of kinds'
	"$events" --metrics "$socket" > "$scratch/metrics"
	grep -q '^kvroute_events_complete{.*} 0' "$scratch/metrics" ||
	    cat "$scratch/metrics"
	grep -q '^kvroute_events_state{.*state="unusable",reason="unknown"} 1' \
	    "$scratch/metrics" || cat "$scratch/metrics"
	tell send 1 "$v1"
	until_counter state complete
	is reason "$(counter reason)" ''
	keep 2
	send 3
	until_counter state degraded
	is reason "$(counter reason)" lost
}

# Each counts from 0: together they look like an engine that restarts.
case_two_ranks_at_one_endpoint()
{
	begin
	engine_up
	daemon_up
	tell wait
	tell send 0 "$v1"
	until_state '^complete next 1 '
	tell send 0 "${v1%00}01"
	tell send 1 "${v1%00}01"
	tell send 1 "$v1"
	until_state '^complete next 2 .* restarts 0 lost 0'
	is 'messages refused' "$(counter other_ranks)" 2
	is lines "$(grep -c 'the ranks 0 and 1 are both at' "$out")" 1
}

# Ports change hands when ranks start again: their blocks do not.
case_a_rank_at_another_ranks_endpoint()
{
	begin
	engine_up
	daemon_up
	tell wait
	tell send 0 "$v1"
	until_state '^complete next 1 .* removed 1 '
	engine_down
	engine_up
	tell wait
	tell send 0 "${v1%00}01"
	until_state '^degraded next 1 .* removed 1 '
	until_counter reason rank
	until_has 'rank 1 is at .* now'
	engine_down
	engine_up
	tell wait
	tell send 0 "93cb41d954fc41${v1#93cb41d954fc40}"
	until_state '^complete next 1 .* restarts 1 '
}

# PUB WORD...: the same for another engine, which is led by 5 and 6.
tell_second()
{
	echo "$*" >&5
	read -r ok <&6 && [ "$ok" = ok ] || echo "second publisher: $*: $ok"
}

# Each rank has a stream of its own.
case_a_rank_that_loses_a_batch()
{
	begin
	region add a:1
	engine_up
	mkfifo "$scratch/in2" "$scratch/answers2"
	timeout 900 "$build/publisher" "ipc://$scratch/pub2" \
	    < "$scratch/in2" > "$scratch/answers2" 3>&- 4<&- &
	second=$!
	exec 5> "$scratch/in2" 6< "$scratch/answers2"
	echo "{ \"workers\": [ { \"worker\": \"a\", \"events\": \"$pub\" },
	    { \"worker\": \"a\", \"rank\": 1,
	    \"events\": \"ipc://$scratch/pub2\" } ] }" > "$conf"
	daemon_up 5>&- 6<&-
	tell wait
	tell_second wait
	send 0
	tell_second send 0 "${v1%00}01"
	until_state '^complete next 1 '
	keep 1
	send 2
	tell_second send 1 "${v1%00}01"
	until_state '^degraded next 3 .* lost 1'
	until_true 60 ranks_state a:1 '^complete next 2 .* lost 0' ||
	    state a:1
	exec 5>&- 6<&-
	wait "$second" || echo "second publisher: exit $?"
}

ranks_state()
{
	state "$1" | grep -q "$2"
}

case_an_address_of_ipv6()
{
	if ! grep -q '^0\{31\}1 ' /proc/net/if_inet6 2> /dev/null; then
		echo 'skipped: there is no [::1]'
		return
	fi
	begin
	before=$pub pub='tcp://[::1]:*'
	engine_up
	echo where >&3
	read -r pub <&4
	configure ''
	daemon_up
	tell wait
	send 0
	until_state '^complete next 1 '
	pub=$before
}

# It is not read where it is unwanted; a reload changes this for later events.
case_a_window_that_slides()
{
	begin
	engine_up
	daemon_up
	tell wait
	tell send 0 "$v5"
	until_counter sliding 5
	until_state '^complete next 1 '
	is left "$(region window a:0)" 0
	configure ', "sliding": "boundary"'
	kill -HUP "$reader"
	until_counter reloads 1
	until_counter phase live
	tell send 1 "$v5"
	until_true 60 window_is 5 || echo "window: $(region window a:0)"
}

window_is()
{
	[ "$(region window a:0)" -eq "$1" ]
}

case_joins_late()
{
	begin "$with_replay"
	engine_up "$back" topic
	send 0
	send 1
	daemon_up
	tell wait
	send 2
	until_state '^complete next 3 .* removed 6 .* lost 0'
	[ "$(counter replayed_past)" -ge 2 ] || counter replayed_past
}

case_joins_late_without_replay()
{
	begin
	engine_up
	send 0
	daemon_up
	tell wait
	send 1
	send 2
	until_state '^degraded next 3 .* removed 4 .* lost 1'
	until_counter lost 1
	until_has 'batches were lost'
	tell send 3 "$v1"
	until_state '^complete next 4 '
	until_has 'complete'
}

gap()
{
	begin "$with_replay"
	engine_up "$back" "$@"
	daemon_up
	tell wait
	send 0
	until_state '^complete next 1 '
	keep 1
	keep 2
	send 3
	until_state '^complete next 4 .* removed 8 .* lost 0'
	[ "$(counter gaps)" = 1 ] || counter gaps
}

case_a_gap_is_replayed()
{
	gap
}

case_a_gap_is_replayed_with_topics()
{
	gap topic
}

case_a_gap_that_cannot_be_replayed()
{
	begin
	engine_up
	daemon_up
	tell wait
	send 0
	until_state '^complete next 1 '
	keep 1
	send 2
	until_state '^degraded next 3 .* lost 1'
}

case_restart_at_0()
{
	begin
	engine_up
	daemon_up
	tell wait
	send 0
	send 1
	until_state 'next 2 '
	life=2
	send 0
	until_state '^complete next 1 .* restarts 1 lost 0'
	until_has 'the engine has restarted'
}

case_restart_across_a_reconnect()
{
	begin "$with_replay"
	engine_up "$back"
	daemon_up
	tell wait
	send 0
	send 1
	until_state 'next 2 '
	engine_down
	life=2
	engine_up "$back"
	keep 0
	keep 1
	tell wait
	send 2
	until_state '^complete next 3 .* restarts 1 lost 0'
}

case_the_same_engine_after_a_reconnect()
{
	begin "$with_replay"
	engine_up "$back"
	daemon_up
	tell wait
	send 0
	send 1
	until_state 'next 2 '
	engine_down
	engine_up "$back"
	keep 0
	keep 1
	keep 2
	tell wait
	send 3
	until_state '^complete next 4 .* removed 8 .* restarts 0 lost 0'
	until_counter reconnects 1
}

# It goes on behind the last batch that the region has.
resume()
{
	begin "$with_replay"
	engine_up "$back"
	daemon_up
	tell wait
	send 0
	send 1
	until_state 'next 2 '
	daemon_down "$1"
	send 2
	keep 3
	daemon_up
	tell wait
	send 4
	until_state '^complete next 5 .* removed 10 .* restarts 0 lost 0'
	until_counter batches 3
	until_counter duplicates 1
}

case_the_daemon_is_restarted()
{
	resume TERM
}

case_the_daemon_is_killed()
{
	resume KILL
}

# The engine has come further meanwhile than it had: only contents differ.
case_the_engine_restarts_while_the_daemon_is_away()
{
	begin "$with_replay"
	engine_up "$back"
	daemon_up
	tell wait
	send 0
	send 1
	until_state 'next 2 '
	daemon_down
	engine_down
	life=2
	engine_up "$back"
	keep 0
	keep 1
	keep 2
	daemon_up
	tell wait
	send 3
	until_state '^complete next 4 .* restarts 1 lost 0'
}

# It could not be asked at first, and has come further than it had.
case_the_engine_restarts_out_of_reach()
{
	begin "$with_replay"
	engine_up "$back"
	daemon_up
	tell wait
	send 0
	send 1
	until_state 'next 2 '
	daemon_down
	engine_down
	daemon_up
	until_counter phase connecting
	life=2
	engine_up "$back"
	keep 0
	keep 1
	keep 2
	tell wait
	send 3
	until_state '^complete next 4 .* restarts 1 lost 0'
}

case_the_daemon_is_restarted_without_replay()
{
	begin
	engine_up
	daemon_up
	tell wait
	send 0
	until_state 'next 1 '
	daemon_down
	daemon_up
	tell wait
	send 1
	until_state '^complete next 2 .* restarts 0 lost 0'
	daemon_down
	keep 2
	daemon_up
	tell wait
	send 3
	until_state '^degraded next 4 .* restarts 0 lost 1'
}

# It has published as many batches as the one before: its number is no evidence.
case_the_engine_restarts_without_replay()
{
	begin
	engine_up
	daemon_up
	tell wait
	send 0
	send 1
	until_state '^complete next 2 '
	engine_down
	life=2
	engine_up
	keep 0
	keep 1
	tell wait
	send 2
	until_state '^degraded next 3 '
	until_counter reason reconnect
	tell send 3 "$v1"
	until_state '^complete next 4 '
}

# Its workers are believed for as long as its lease runs.
case_a_daemon_that_dies()
{
	begin
	configure ', "lease_s": 1'
	engine_up
	daemon_up
	tell wait
	send 0
	until_state '^complete next 1 '
	sleep 2
	region observe a:0
	until_state '^complete next 1 '
	daemon_down KILL
	until_true 60 is_given_up || state
	# it comes back too late
	daemon_up
	tell wait
	send 1
	until_state '^degraded next 2 '
	until_counter reason silent
}

# A router routes a request, and so notices it.
is_given_up()
{
	region observe a:0
	has_state '^degraded next 1 '
}

# How many replays run, and how many were asked for.
replays()
{
	"$events" --status "$socket" | jq -r '
	    [.. | objects | select(.replays > 0)] |
	    "\(map(select(.phase == "replaying")) | length) \(length)"'
}

all_asked()
{
	replays >> "$scratch/replays"
	tail -n 1 "$scratch/replays" | grep -q ' 10$'
}

# The others ask when these are given up: eight at most run at a time.
case_replays_take_turns()
{
	begin
	for name in b c d e f g h i j; do
		region add "$name:0"
	done
	for name in a b c d e f g h i j; do
		printf '%s{ "worker": "%s", "events": "%s", "replay": "%s" }' \
		    "$([ "$name" = a ] || echo ,)" "$name" "$pub" "$back"
	done > "$scratch/list"
	echo "{ \"workers\": [ $(cat "$scratch/list") ] }" > "$conf"
	engine_up "$back"
	tell mute
	daemon_up
	until_has attached
	until_true 60 all_asked || echo 'not all are asked for'
	awk '$1 > 8 { print "too many at a time: " $0 }' "$scratch/replays"
}

# Threads of libzmq's that do input and output.
io_threads()
{
	cat /proc/"$reader"/task/*/comm | grep -c '/IO/'
}

case_many_streams_have_several_threads()
{
	begin
	engine_up
	daemon_up
	tell wait
	[ "$(io_threads)" -eq 1 ] || io_threads
	daemon_down
	echo '{ "workers": [ { "worker": "a", "events": "'"$pub"'" },
	    { "worker": "b", "events": "tcp://127.0.0.1:9", "ranks": 1000 } ]
	    }' > "$conf"
	daemon_up
	tell wait
	[ "$(io_threads)" -eq 3 ] || io_threads
}

case_a_wrong_endpoint() # slow
{
	begin
	engine_up
	echo '{ "workers": [
	    { "worker": "a", "events": "tcp://127.0.0.1:9", "rank": 1 },
	    { "worker": "b", "events": "ipc:///nowhere/at/all" },
	    { "worker": "a", "events": "'"$pub"'" } ] }' > "$conf"
	region add a:1
	region add b:0
	daemon_up
	tell wait
	send 0
	until_state 'complete next 1 '
	until_has 'a rank 1: nothing answers at tcp://127.0.0.1:9 yet'
	until_has 'a rank 1: vLLM connects instead of listening unless'
	is 'hints of a path' "$(grep -c 'b rank 0: vLLM' "$out")" 0
	for other in a:1 b:0; do
		state "$other" | grep -q '^off next 0 ' || state "$other"
	done
	until_counter phase connecting
}

case_another_programs_messages()
{
	begin
	engine_up
	daemon_up
	tell wait
	tell raw 1
	tell raw 7
	until_counter strange 2
	tell send 0 c0
	send 1
	until_state '^degraded next 2 .* lost 1'
	until_counter malformed 1
}

case_a_region_is_waited_for()
{
	begin "$with_replay"
	rm "$file"
	engine_up "$back"
	send 0
	daemon_up
	until_has 'it is not there yet'
	region make a:0
	until_state 'complete next 1 '
}

case_a_replaced_region()
{
	begin "$with_replay"
	engine_up "$back"
	daemon_up
	tell wait
	send 0
	send 1
	until_state 'next 2 '
	"$build/region" "$file.new" make a:0
	mv "$file.new" "$file"
	rm -f "$file.new.lock"
	until_state 'complete next 2 .* removed 4 '
	send 2
	until_state 'complete next 3 '
	until_has 'it was replaced'
}

case_a_worker_comes_and_goes()
{
	begin "$with_replay"
	region remove a:0
	engine_up "$back"
	send 0
	daemon_up
	until_has 'no such worker yet'
	region add a:0
	until_state 'complete next 1 '
	region remove a:0
	send 1
	until_counter phase absent
	region add a:0
	until_state 'complete next 2 '
}

case_a_stream_that_others_ended()
{
	begin "$with_replay"
	engine_up "$back"
	daemon_up
	tell wait
	send 0
	send 1
	until_state 'next 2 '
	region off a:0
	send 2
	until_state '^complete next 3 .* removed 6 '
	region reset a:0
	send 3
	until_state '^degraded next 4 '
}

case_one_daemon_for_a_region()
{
	begin
	daemon_up
	until_has attached
	timeout 120 "$events" -c "$conf" "$file" > "$scratch/second" 2>&1 &
	second=$!
	until_true 60 grep -q 'another kvroute-events has it' \
	    "$scratch/second" || echo never
	daemon_down
	until_true 60 grep -q attached "$scratch/second" || echo 'never attached'
	kill "$second"
	wait "$second" || echo "exit $?"
}

case_a_file_is_no_socket()
{
	begin
	echo precious > "$socket"
	"$events" -c "$conf" --socket "$socket" "$file" > "$out" 2>&1
	[ $? -eq 1 ] || echo 'not exit 1'
	grep -q "$socket: File exists" "$out" || cat "$out"
	now_is precious cat "$socket"
}

case_reloads()
{
	begin
	engine_up
	echo '{ "workers": [] }' > "$conf"
	daemon_up
	until_has attached
	configure ''
	kill -HUP "$reader"
	tell wait
	send 0
	until_state 'complete next 1 '
	echo '{ "workers": ' > "$conf"
	kill -HUP "$reader"
	until_has 'stays as it was'
	configure ', "block_size": 4'
	kill -HUP "$reader"
	tell wait
	send 1
	until_state 'complete next 2 '
	kill -HUP "$reader"
	until_counter reloads 3
	send 2
	until_state 'complete next 3 '
}

# SIZE MODEL: the worker "a" with that model behind others with that block size
among_others()
{
	echo '{ "workers": ['
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
		printf '{ "worker": "b", "rank": %d, ' "$i"
		printf '"events": "ipc://%s/%d", ' "$scratch" "$i"
		printf '"block_size": %d },\n' "$1"
	done
	printf '{ "worker": "a", "events": "%s", "model": "%s" } ] }' \
	    "$pub" "$2"
}

# A stream that lost its connection would miss messages sent at once.
case_a_reload_touches_what_has_changed()
{
	begin
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
		region add "b:$i"
	done
	engine_up
	daemon_up
	tell wait
	send 0
	until_state 'complete next 1 '
	for time in 1 2 3 4 5; do
		among_others "$time" "m$time" > "$conf"
		kill -HUP "$reader"
		until_counter reloads "$time"
		send "$time"
	done
	until_state '^complete next 6 .* restarts 0 lost 0'
	is connections "$(grep -c 'a rank 0: connected' "$out")" 1
	# Each that has changed begins anew, at once.
	grep 'Address already in use' "$out"
	is reconnects "$(counter reconnects)" 0
}

# [KEY: VALUE, ... [ID]]: the worker "a" of a plane, and another one
plane()
{
	echo '{ "workers": [ { "worker": "a", "events": "'"$pub"'",
	    "engine": "dynamo", "id": '"${2:-7}${1:-}"' },
	    { "worker": "b", "events": "'"$pub"'", "engine": "dynamo",
	    "id": 12 } ] }' > "$conf"
}

# Two workers of one plane, each with a publisher of its own.
case_dynamos_plane()
{
	# the second event of the vector, which removes a block
	removed=91$(echo "$v13" | sed 's/.*\(84a9776f.*\)84a9776f.*/\1/')
	begin
	region add b:0
	plane
	engine_up
	daemon_up
	tell wait
	tell send4 7 0 "$removed"
	until_state '^complete next 1 .* removed 1 '
	tell send4 7 2 "$removed"
	until_state '^degraded next 3 .* removed 2 .* lost 1'
	tell send4 8 0 "$removed"
	until_state '^complete next 1 .* removed 3 .* restarts 1 '
	tell send4 8 1 "$v14_frame"
	until_state '^complete next 2 .* cleared 1 '
	state b:0 | grep -q '^off' || state b:0
	# another model is no restart; another id may be
	plane ', "model": "m"'
	kill -HUP "$reader"
	until_counter reloads 1
	tell send4 8 2 "$removed"
	until_state '^complete next 3 .* removed 4 .* restarts 1 '
	plane ', "model": "n"' 3
	kill -HUP "$reader"
	until_counter reloads 2
	plane
	kill -HUP "$reader"
	until_counter reloads 3
	tell send4 8 3 "$removed"
	until_state '^degraded next 5 .* removed 5 .* restarts 1 '
	# a start in the middle
	daemon_down
	daemon_up
	tell wait
	tell send4 8 4 "$removed"
	until_state '^degraded next 7 .* removed 6 '
}

# [JSON [option ...]] - starts a server of NATS with these options, on the port
# that it had before, and a client that begins with JSON.
nats_up()
{
	hello='{"verbose":false}'
	[ $# -eq 0 ] || { hello=$1 && shift; }
	nats_port=${nats_port:-$(free_port)}
	nats-server -a 127.0.0.1 -p "$nats_port" "$@" \
	    > "$scratch/nats.log" 2>&1 \
	    3>&- 4<&- &
	server=$!
	until_true 60 grep -q 'Server is ready' "$scratch/nats.log" ||
	    cat "$scratch/nats.log"
	rm -f "$scratch/in" "$scratch/answers"
	mkfifo "$scratch/in" "$scratch/answers"
	perl tests/events/nats.pl "$nats_port" "$hello" \
	    < "$scratch/in" > "$scratch/answers" &
	engine=$!
	exec 3> "$scratch/in" 4< "$scratch/answers"
}

nats_down()
{
	exec 3>&- 4<&-
	wait "$engine" || echo "nats.pl: exit $?"
	engine=''
	server_down
}

# SUBJECT PUBLISHER SEQ PAYLOAD: in the envelope of the vector.
envelope()
{
	printf 'send %s ' "$1"
	echo "$v14 $(printf '%02x %02x c5%04x' "$2" "$3" $((${#4} / 2)))$4" |
	    awk '{ head = $1; sub(/c4609184.*/, "", head)
	        sub(/5f696407/, "5f6964" $2, head)
	        sub(/6e636500/, "6e6365" $3, head); print head $4 }'
}

is_live()
{
	prints "${1:-live}" counter phase
}

case_dynamos_plane_over_nats()
{
	removed=91$(echo "$v13" | sed 's/.*\(84a9776f.*\)84a9776f.*/\1/')
	subject=namespace.ns.component.vllm.kv-events
	begin
	region add b:0
	pub=nats://127.0.0.1:$(free_port)
	nats_port=${pub##*:}
	plane ", \"topic\": \"namespace.*.component.vllm.>\""
	jq '.workers[1].topic = .workers[0].topic' "$conf" > "$conf.new"
	mv "$conf.new" "$conf"
	# a server that comes late is found
	daemon_up
	until_has 'it is tried again'
	nats_up
	until_true 60 is_live || echo 'not connected'
	tell send "$subject" "$v14"
	until_state '^complete next 1 .* cleared 1 '
	tell send "$subject" "$v14"
	tell "$(envelope "$subject" 7 1 "$removed")"
	until_state '^complete next 2 .* removed 1 cleared 1 .* lost 0'
	is duplicates "$(counter duplicates)" 1
	# a message of another subject, and an invalid one
	tell "$(envelope "${subject#namespace.}" 7 2 "$removed")"
	tell send "$subject" "$removed"
	tell send "$subject" ''
	tell "$(envelope "$subject" 7 2 "$removed")"
	until_state '^complete next 3 .* removed 2 .* lost 0'
	is strange "$(counter strange)" 2
	is malformed "$(counter malformed)" 0
	# the server goes and comes again, and nothing was sent meanwhile
	nats_down
	until_true 60 is_live connecting || echo 'still connected'
	nats_up
	until_true 60 is_live || echo 'not connected again'
	is reconnects "$(counter reconnects)" 1
	tell "$(envelope "$subject" 7 3 "$removed")"
	until_state '^complete next 4 .* removed 3 .* lost 0'
	# and something was
	nats_down
	until_true 60 is_live connecting || echo 'still connected'
	nats_up
	until_true 60 is_live || echo 'not connected again'
	tell "$(envelope "$subject" 7 5 "$removed")"
	until_state '^degraded next 6 .* removed 4 .* lost 1'
	is gaps "$(counter gaps)" 1
	# a cache that is cleared, or another publisher
	tell "$(envelope "$subject" 7 6 "$(echo "$v14" | sed 's/.*c460//')")"
	until_state '^complete next 7 .* cleared 2 '
	tell "$(envelope "$subject" 8 0 "$removed")"
	until_state '^complete next 1 .* restarts 1 '
	state b:0 | grep -q '^off' || state b:0
	nats_down
	pub=ipc://$scratch/pub
}

# LOGIN: writes the file, and waits until the daemon is connected.
logs_in()
{
	printf '%s\n' "$1" > "$scratch/login"
	daemon_up
	until_true 60 is_live || echo "$1: not connected"
	daemon_down
}

# A wrong password is no secret that is shown, and nothing is heard.
case_a_server_that_asks_who_it_is()
{
	begin
	pub=nats://127.0.0.1:$(free_port)
	nats_port=${pub##*:}
	plane ', "topic": "kv-events"'
	jq --arg f "$scratch/login" '.workers[1].topic = .workers[0].topic |
	    .workers[].login = $f' "$conf" > "$conf.new"
	mv "$conf.new" "$conf"
	echo me:it > "$scratch/login"
	"$events" -c "$conf" --check > "$out" 2>&1 && cat "$out"
	grep -q 'a rank 0: .*: cannot be connected' "$out" || cat "$out"
	nats_up '{"user":"me","pass":"s3:cr/t"}' --user me --pass s3:cr/t
	logs_in me:s3:cr/t
	echo me:secret-but-wrong > "$scratch/login"
	daemon_up
	until_has 'Authorization Violation\|authorization violation'
	is_live connecting || echo "phase $(counter phase)"
	grep -q 'secret' "$out" && echo 'it is told'
	daemon_down
	rm -f "$scratch/login"
	daemon_up
	until_has 'login: No such file'
	daemon_down
	nats_down
	nats_up '{"auth_token":"toktok"}' --auth toktok
	logs_in toktok
	nats_down
	pub=ipc://$scratch/pub
}

# The subscription may come after the first.
is_printed()
{
	tell send kv-events "$v14"
	grep -q cleared "$out"
}

case_a_dump_over_nats()
{
	nats_port=$(free_port)
	nats_up '{"user":"me","pass":"it"}' --user me --pass it
	echo me:it > "$scratch/login"
	: > "$out"
	"$events" --dump "nats://127.0.0.1:$nats_port" --topic kv-events \
	    --login "$scratch/login" > "$out" 2>&1 &
	dumps=$!
	tell send kv-events "$v14"
	until_true 60 is_printed || cat "$out"
	kill "$dumps"
	wait "$dumps" || { echo "exit $?" && cat "$out"; }
	is cleared "$(grep -c cleared "$out")" 1
	nats_down
	for wrong in '--dump nats://h' '--dump tcp://h:1 --login x'; do
		# shellcheck disable=SC2086
		"$events" $wrong > "$out" 2>&1
		[ $? -eq 2 ] || echo "$wrong: not exit 2"
	done
}

# ID: an event that removes a block.
trtllm()
{
	printf '{"event_id":%d,"window_size":64,"data":{"type":"removed",' "$1"
	printf '"block_hashes":[%d]}}' "$1"
}

answer()
{
	echo "$1" > "$scratch/kv.new"
	mv "$scratch/kv.new" "$scratch/kv_cache_events"
}

server_up()
{
	rm -f "$scratch/port" "$scratch/kv_cache_events" "$scratch/server_info"
	perl tests/events/serve.pl "$scratch" 3>&- 4<&- &
	server=$!
	until_true 60 test -s "$scratch/port" || echo 'no server'
	port=$(cat "$scratch/port")
}

server_down()
{
	kill "$server"
	wait "$server" 2> /dev/null
	server=''
}

# [KEY: VALUE, ...]: an engine that is polled
polled()
{
	echo '{ "workers": [ { "worker": "a", "engine": "trtllm",
	    "server": "http://127.0.0.1:'"$port"'/",
	    "interval_ms": 20'"${1:-}"' } ] }' > "$conf"
}

case_events_that_are_polled()
{
	begin
	server_up
	polled
	answer "[$(trtllm 0),$(trtllm 1)]"
	daemon_up
	until_state '^complete next 1 .* removed 2 .* restarts 0 lost 0'
	until_counter phase live
	answer "[$(trtllm 2)]"
	until_state '^complete next 2 .* removed 3 .* lost 0'
	answer "[$(trtllm 4)]"
	until_state '^degraded next 4 .* removed 4 .* lost 1'
	answer "[$(trtllm 0)]"
	until_state '^complete next 1 .* removed 5 .* restarts 1 lost 1'
	# a restart, behind which some were lost
	answer "[$(trtllm 1),$(trtllm 2)]"
	until_state '^complete next 2 .* removed 7 '
	answer "[$(trtllm 1)]"
	until_state '^degraded next 2 .* removed 8 .* restarts 2 lost 2'
	server_down
	until_has 'it is tried again'
}

# The smaller one of two windows slides.
case_a_window_that_is_polled()
{
	begin
	server_up
	polled ', "sliding": "boundary"'
	answer "[$(created 0 16),$(created 1 64),$(trtllm 2)]"
	daemon_up
	until_counter sliding 16
	until_true 60 window_is 16 || echo "window: $(region window a:0)"
	server_down
}

created()
{
	printf '{"event_id":%d,"window_size":%d,"data":{"type":"created"}}' \
	    "$1" "$2"
}

# Events that another process, or this one, had before are no restart.
case_a_polled_engine_goes_on()
{
	begin
	server_up
	polled
	answer "[$(trtllm 0),$(trtllm 1)]"
	daemon_up
	until_state '^complete next 1 .* removed 2 '
	polled ', "model": "m"'
	kill -HUP "$reader"
	until_counter reloads 1
	answer "[$(trtllm 2)]"
	until_state '^complete next 2 .* removed 3 .* restarts 0 lost 0'
	daemon_down
	daemon_up
	answer "[$(trtllm 3)]"
	until_state '^degraded next 4 .* removed 4 .* restarts 0 lost 1'
}

case_servers_tell_where_they_publish()
{
	begin
	region add a:1
	server_up
	echo '{ "workers": [ { "worker": "a", "engine": "sglang",
	    "server": "http://127.0.0.1:'"$port"'" } ] }' > "$conf"
	daemon_up
	until_has 'status 404'
	echo '{ "kv_events": { "publisher": "zmq", "endpoint_host": "*",
	    "endpoint_port_base": 9, "topic": "", "block_size": 4,
	    "dp_size": 2 } }' > "$scratch/server_info"
	until_has 'publishes at tcp://127.0.0.1:9, ranks: 2'
	"$events" --status "$socket" > "$scratch/status"
	grep -q '"rank": 1, "engine": "sglang", "endpoint": "tcp://127.0.0.1:10"' \
	    "$scratch/status" || cat "$scratch/status"
	# it stands elsewhere, and has another model: its streams go on
	rm "$scratch/server_info"
	echo '{ "workers": [ { "worker": "b", "events": "tcp://127.0.0.1:8" },
	    { "worker": "a", "engine": "sglang", "model": "m",
	    "server": "http://127.0.0.1:'"$port"'" } ] }' > "$conf"
	kill -HUP "$reader"
	until_counter reloads 1
	"$events" --status "$socket" > "$scratch/status"
	is ranks "$(grep -c '"engine": "sglang"' "$scratch/status")" 2
	# one of its ranks is an entry, too
	echo '{ "workers": [ { "worker": "a", "engine": "sglang",
	    "server": "http://127.0.0.1:'"$port"'" },
	    { "worker": "a", "events": "tcp://127.0.0.1:9", "rank": 1 } ] }' \
	    > "$conf"
	kill -HUP "$reader"
	until_has 'a rank 1: it is there twice'
	"$events" --status "$socket" > "$scratch/status"
	[ "$(grep -c '"rank": 1' "$scratch/status")" -eq 1 ] ||
	    cat "$scratch/status"
	server_down
}

# The address of the replay is that of the events, with a port of its own.
case_servers_tell_where_they_replay()
{
	first=$(free_port)
	pub=tcp://127.0.0.1:$first
	begin
	engine_up "tcp://127.0.0.1:$((first + 1))"
	keep 0
	keep 1
	server_up
	echo '{ "workers": [ { "worker": "a", "engine": "sglang",
	    "server": "http://127.0.0.1:'"$port"'" } ] }' > "$conf"
	echo '{ "kv_events": { "publisher": "zmq", "endpoint_host": "*",
	    "endpoint_port_base": '"$first"',
	    "replay_endpoint_port_base": '$((first + 1))' } }' \
	    > "$scratch/server_info"
	daemon_up
	until_state '^complete next 2 '
}

# Compares the output of --check, with a status of STATUS.
checks()
{
	want=$1
	shift
	"$events" -c "$conf" --check "$@" > "$out" 2>&1
	is status $? "$want"
}

# Each takes three sockets, of the 1,023 that libzmq lets a context have.
case_a_check_of_many_streams()
{
	begin
	jq -n '{ workers: [range(400) | { worker: "w\(.)",
	    events: "tcp://127.0.0.1:\(20000 + .)" }] }' > "$conf"
	checks 1
	is silent "$(grep -c 'nothing answers; vLLM connects\|refused' "$out")" \
	    400
}

case_a_check_of_all()
{
	begin "$with_replay"
	engine_up "$back"
	keep 0
	checks 0 "$file"
	until_has "$conf: 1 streams"
	until_has "$file: attached"
	until_has "a rank 0: $pub: connected, replays"
	# nothing was applied
	state | grep -q '^off next 0 ' || state
	tell mute
	checks 1
	until_has 'connected, but its replay does not answer'
	engine_down
	checks 1 "$file"
	until_has "a rank 0: $pub: nothing answers"
	region remove a:0
	checks 1 "$file"
	until_has "$file: there is no worker a rank 0 yet"
	rm "$file"
	checks 1 "$file"
	until_has "$file: No such file"
	# a daemon has it
	begin "$with_replay"
	engine_up "$back"
	daemon_up
	until_has attached
	cp "$out" "$scratch/daemon"
	checks 1 "$file"
	until_has "$file: another kvroute-events has it"
}

# One line at once, not after ten seconds, and none for each attempt.
case_a_first_connection_that_fails()
{
	begin
	nc=$(free_port)
	pub=tcp://127.0.0.1:$nc
	configure ''
	daemon_up
	until_true 5 grep -q "nothing answers at $pub yet" "$out" ||
	    echo 'not at once'
	sleep 3
	is lines "$(grep -c 'at tcp' "$out")" 1
	perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 9,
	    ReuseAddr => 1, LocalAddr => "127.0.0.1", LocalPort => shift);
	    while ($c = $s->accept) { print $c "HTTP/1.0 400 Bad\r\n\r\n";
	    close $c }' "$nc" 3>&- 4<&- &
	server=$!
	until_has "no socket of ZeroMQ answers at $pub yet"
	server_down
	pub=ipc://$scratch/pub
}

# Every mistake is reported at once.
case_configurations()
{
	begin
	cat > "$conf" <<-'END'
	{ "workers": [
	  { "events": "tcp://10.0.0.1:5557" },
	  { "worker": "b" },
	  { "worker": "c", "events": "tcp://*:5557" },
	  { "worker": "d", "events": "10.0.0.1:5557" },
	  { "worker": "e", "events": "tcp://10.0.0.1" },
	  { "worker": "f", "events": "tcp://h:1", "replay": "tcp://h:1" },
	  { "worker": "g", "events": "tcp://h:1", "engine": "tgi" },
	  { "worker": "h", "events": "tcp://h:1", "mode": "fast" },
	  { "worker": "h", "events": "tcp://h:1", "sliding": true },
	  { "worker": "h", "events": "tcp://h:1", "pages_mb": 0 },
	  { "worker": "i", "events": "tcp://h:1", "ranks": 0 },
	  { "worker": "j", "events": "tcp://h:1", "colour": "red" },
	  { "worker": "k", "events": "tcp://h:65535", "ranks": 2 },
	  { "worker": "l", "events": "tcp://h:1", "ranks": 2 },
	  { "worker": "l", "events": "tcp://h:7", "rank": 1 },
	  { "worker": "m", "events": "tcp://h:1", "engine": "dynamo" },
	  { "worker": "n", "server": "http://h:1" },
	  { "worker": "o", "server": "http://h:2", "engine": "sglang" },
	  { "worker": "o", "server": "http://h:3", "engine": "sglang" },
	  { "worker": "p", "server": "http://h:4", "engine": "sglang",
	    "ranks": 2 },
	  { "worker": "q", "server": "http://h:5", "engine": "trtllm",
	    "ranks": 2 },
	  { "worker": "r", "server": "http://h:5/", "engine": "trtllm",
	    "rank": 2, "interval_ms": 99 },
	  { "worker": "s", "server": "http://h:6", "engine": "trtllm",
	    "topic": "kv" },
	  { "worker": "t", "events": "nats://h:1" },
	  { "worker": "u", "events": "nats://h:1", "engine": "dynamo", "id": 1 },
	  { "worker": "v", "events": "nats://h:1", "engine": "dynamo", "id": 1,
	    "topic": "a..b" },
	  { "worker": "w", "events": "nats://u:p@h:1", "engine": "dynamo",
	    "id": 1, "topic": "a" },
	  { "worker": "x", "events": "nats://h:1/a", "engine": "dynamo",
	    "id": 1, "topic": "a" },
	  { "worker": "y", "events": "nats://h:99999", "engine": "dynamo",
	    "id": 1, "topic": "a" },
	  { "worker": "z", "events": "tcp://h:9", "engine": "dynamo",
	    "id": 1, "login": "/x" },
	  { "worker": "A", "events": "tcp://h:1" },
	  { "worker": "A", "events": "tcp://h:1", "rank": 1 },
	  { "worker": 7, "events": "tcp://h:1" }, 8
	], "wokers": [] }
	END
	"$events" -c "$conf" --check > "$out" 2>&1
	[ $? -eq 1 ] || echo 'not exit 1'
	for sentence in 'entry 1: "worker" is missing' \
	    'b: "events" is missing' 'c: .* to which the engine binds' \
	    'd: "events" is tcp' 'e: .* no port' 'f: .* a socket for each' \
	    'g: "engine" is one of' 'h: "mode" is' 'h: "sliding" is full, boundary' \
	    'h: "pages_mb" is a number from 1 to' \
	    'i: "ranks" is a number from 1 to 1024' 'j: there is no "colour"' \
	    'k: .* endpoints with ports' 'l: rank 1 is there twice' \
	    'm: .*"id" there' 'n: only SGLang' 'o: rank 0 is there twice' \
	    'p: .* leave "ranks" out' 'r: .* give each the same' \
	    's: what is polled has no "topic"' '"worker" is a text' \
	    't: only Dynamo' 'u: "topic" is missing' 'v: "topic" is no' \
	    'w: .* "login"' 'z: only a server of NATS' 'x: .* not nats://h:1/a' 'y: .* host or port' \
	    'A: rank 1 is at the endpoint of another one' \
	    'entry 34: it is no object' 'there is no "wokers"'; do
		grep -q -- "$sentence" "$out" || echo "not said: $sentence"
	done
	[ "$(wc -l < "$out")" -eq 31 ] || cat "$out"
	echo '{ "workers": [' > "$conf"
	"$events" -c "$conf" --check > "$out" 2>&1 && echo 'exit 0'
	grep -q 'line 2: it is cut' "$out" || cat "$out"
	"$events" -c "$scratch/none" --check > "$out" 2>&1 && echo 'exit 0'
	grep -q 'No such file' "$out" || cat "$out"
	for wrong in "-c $conf" "--check" "-c $conf --check --dump x" \
	    "-c $conf --dump x" "--socket $socket $file"; do
		# shellcheck disable=SC2086
		"$events" $wrong > "$out" 2>&1
		[ $? -eq 2 ] || echo "$wrong: not exit 2"
	done
}

v1=$(vector v1)
v5=$(vector v5)
v13=$(vector v13)
v14=$(vector v14)
v14_frame=$(vector v14_frame)

run "$2"
