#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_events.sh build [case] - kvroute-events on the sockets of a small
# publisher: cases of tests/cases.sh.
#
# shellcheck disable=SC2154
. tests/events/common.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1

# The tool, in the background. It must not keep the publisher's input open.
dump()
{
	${KVR_UNDER:-} timeout 120 "$events" --dump "$pub" "$@" > "$out" 2>&1 \
	    3>&- 4<&- &
	reader=$!
}

ended()
{
	wait "$reader" || echo "kvroute-events: exit $?"
	reader=''
}

# Prints the output without events, times and counters.
shape()
{
	grep -v '^  ' "$1" | sed -e 's/ events.*//' \
	    -e 's/^end \([a-z]*\) .*\( lost [0-9]*\) .*/\1\2/' |
	    paste -s -d ' '
}

ck_shape()
{
	got=$(shape "$out")
	[ "$got" = "$1" ] || echo "got '$got', expected '$1'"
}

# The record of an output prints it again.
ck_record()
{
	"$events" --replay "$scratch/record" > "$scratch/again" ||
	    echo "replay: exit $?"
	diff "$out" "$scratch/again"
}

case_prints_events()
{
	engine_up
	dump --batches 2 --tokens
	tell wait
	tell send 0 "$v1"
	tell send 1 "$v5"
	ended
	diff - "$out" <<-'END'
	batch 0 events 3 time 1700000000.000
	  stored 84b146b151d55111 d43b57df56b58fb1 parent - block_size 4 tokens 8: 1 2 3 4 5 6 7 8 tier device rank 0
	  removed d43b57df56b58fb1 tier device rank 0
	  cleared rank 0
	batch 1 events 0 time 1700000000.000
	  dropped group 1
	end complete batches 2 duplicates 0 gaps 0 lost 0 restarts 0 replays 0 refused 0
	END
}

gap()
{
	engine_up "$back" "$@"
	dump --replay-endpoint "$back" --batches 5 --record "$scratch/record"
	tell wait
	send 0
	until_has '^batch 0'
	keep 1
	keep 2
	send 3
	send 4
	ended
	ck_shape 'batch 0 batch 1 batch 2 batch 3 batch 4 complete lost 0'
	ck_record
}

case_a_gap_is_replayed()
{
	gap
}

case_a_gap_is_replayed_with_topics()
{
	gap topic
}

case_a_gap_without_replay()
{
	engine_up
	dump --batches 3
	tell wait
	send 0
	keep 1
	send 2
	send 3
	ended
	ck_shape 'batch 0 lost 1 to 1 batch 2 batch 3 incomplete lost 1'
}

case_joins_late()
{
	engine_up "$back" topic
	send 0
	send 1
	dump --replay-endpoint "$back" --batches 3
	tell wait
	send 2
	ended
	ck_shape 'batch 0 batch 1 batch 2 complete lost 0'
}

case_the_replay_has_not_all()
{
	engine_up "$back"
	keep 4
	dump --replay-endpoint "$back" --batches 2
	tell wait
	send 5
	ended
	ck_shape 'lost 0 to 3 batch 4 batch 5 incomplete lost 4'
}

case_a_mute_replay_is_given_up()
{
	engine_up "$back"
	tell mute
	dump --replay-endpoint "$back" --batches 2
	tell wait
	send 3
	send 4
	ended
	ck_shape 'lost 0 to 2 batch 3 batch 4 incomplete lost 3'
}

# The next engine has come as far as the last one: only contents differ.
case_a_restart_while_away()
{
	engine_up "$back" topic
	dump --replay-endpoint "$back" --batches 5 --record "$scratch/record"
	tell wait
	send 0
	send 1
	until_has '^batch 1'
	engine_down
	life=2
	engine_up "$back" topic
	keep 0
	keep 1
	tell wait
	send 2
	ended
	ck_shape 'batch 0 batch 1 restarted batch 0 batch 1 batch 2 complete lost 0'
	ck_record
}

case_the_same_engine_comes_back()
{
	engine_up "$back" topic
	dump --replay-endpoint "$back" --batches 4
	tell wait
	send 0
	send 1
	until_has '^batch 1'
	engine_down
	engine_up "$back" topic
	keep 0
	keep 1
	keep 2
	tell wait
	send 3
	ended
	ck_shape 'batch 0 batch 1 batch 2 batch 3 complete lost 0'
}

case_a_restart_without_replay()
{
	engine_up
	dump --batches 3
	tell wait
	send 0
	send 1
	until_has '^batch 1'
	engine_down
	life=2
	engine_up
	tell wait
	send 0
	ended
	ck_shape 'batch 0 batch 1 restarted batch 0 complete lost 0'
}

case_messages_that_are_none()
{
	engine_up
	dump --batches 2
	tell wait
	tell raw 1
	tell raw 3
	tell raw 9
	tell send 0 c0
	send 1
	ended
	ck_shape \
	    'batch 0 malformed batch 1 complete lost 0 strange messages 3'
}

case_dynamo()
{
	engine_up
	dump --format dynamo --batches 3 --record "$scratch/record"
	tell wait
	tell send4 7 0 "$v14_frame"
	tell send4 8 1 "$v14_frame"
	tell send4 7 1 "$v13"
	ended
	grep -v '^ ' "$out" | sed -e 's/ events.* time .*//' \
	    -e 's/ batches .* publisher/ publisher/' > "$scratch/lines"
	diff - "$scratch/lines" <<-'END'
	batch 0 publisher 7
	lost 0 to 0 publisher 8
	batch 1 publisher 8
	batch 1 publisher 7
	end complete publisher 7
	end complete publisher 8
	END
	ck_record
}

case_trtllm()
{
	echo '[{"event_id":0,"window_size":512,"data":{"type":"created"}},
	    {"event_id":1,"window_size":4096,"data":{"type":"created"}},
	    {"event_id":2,"window_size":512,"data":{"type":"removed",
	    "block_hashes":[1]}},{"event_id":3,"window_size":4096,
	    "data":{"type":"removed","block_hashes":[2]}}]' |
	    "$events" --json - > "$out" || echo "exit $?"
	printf '  removed %016x window 4096\n  dropped group 1\n' 2 |
	    diff - "$out"
	echo '[{}' | "$events" --json - > "$out" 2>&1 && echo 'exit 0'
	grep -q 'no JSON' "$out" || cat "$out"
}

case_records()
{
	engine_up
	dump --batches 1 --record "$scratch/record"
	tell wait
	send 0
	ended
	[ "$(stat -c %a "$scratch/record")" = 600 ] || ls -l "$scratch/record"
	"$events" --dump "$pub" --record "$scratch/record" > "$out" 2>&1 &&
	    echo 'it wrote over a record'
	size=$(stat -c %s "$scratch/record")
	for bytes in 10 40 $((size - 1)); do
		head -c "$bytes" "$scratch/record" > "$scratch/cut"
		"$events" --replay "$scratch/cut" > "$out" 2>&1
		[ $? -eq 1 ] || echo "$bytes bytes: not exit 1"
		grep -qE 'is cut|no record' "$out" || cat "$out"
	done
	# a kind that there is not
	{ head -c 24 "$scratch/record"; printf '\011'
	    tail -c +26 "$scratch/record"; } > "$scratch/cut"
	"$events" --replay "$scratch/cut" > "$out" 2>&1 && echo 'exit 0'
	grep -q 'no record' "$out" || cat "$out"
}

case_options()
{
	for wrong in '' '--dump x --replay y' '--replay y --topic z' \
	    '--json x --batches 3' '--dump x --batches 0' '--dump x y' \
	    '--dump x --format z' '--replay y --record z' \
	    '--dump x --format dynamo --replay-endpoint y'; do
		# shellcheck disable=SC2086
		"$events" $wrong > "$out" 2>&1
		[ $? -eq 2 ] || echo "$wrong: not exit 2"
	done
	"$events" --dump nowhere > "$out" 2>&1
	[ $? -eq 1 ] || echo 'an endpoint that is none: not exit 1'
	"$events" --replay "$scratch/none" > "$out" 2>&1
	[ $? -eq 1 ] || echo 'a file that is not there: not exit 1'
}

case_told_to_end()
{
	engine_up
	dump
	tell wait
	send 0
	until_has '^batch 0'
	kill -TERM "$reader"
	ended
	ck_shape 'batch 0 complete lost 0'
}

finish()
{
	[ -z "$engine" ] || engine_down
	[ -z "$reader" ] || { kill "$reader"; wait "$reader"; }
}

v1=$(vector v1)
v5=$(vector v5)
v13=$(vector v13)
v14_frame=$(vector v14_frame)

run "$2"
