#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_engines.sh build [case] - kvroute-events reads the events of
# kvroute-engine: cases of tests/cases.sh.
#
# shellcheck disable=SC2034,SC2154
. tests/events/common.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
engine='' reader=''

# [option ...] - an engine of one rank with 40 blocks, and one of nothing.
engine_up()
{
	rm -f "$scratch/port"
	${KVR_UNDER:-} "$build/kvroute-engine" --for 900 --scale 0.01 \
	    --capacity 656 --events "$pub" --events-replay "$back" "$@" \
	    > "$scratch/port" 2> "$scratch/log" &
	engine=$!
	until_true 60 test -s "$scratch/port" || echo 'it does not start'
	url=http://127.0.0.1:$(head -n 1 "$scratch/port")
}

# [option ...] - prints the events from the first batch on.
dump()
{
	: > "$out" # else what another case has left may be taken for its
	"$events" --dump "$pub-0" "$@" > "$out" 2>&1 &
	reader=$!
}

replayed()
{
	dump --replay-endpoint "$back-0" "$@"
}

stop_reader()
{
	kill -TERM "$reader"
	wait "$reader" || echo "kvroute-events: exit $?"
	reader=''
}

finish()
{
	[ -z "$reader" ] || stop_reader
	[ -n "$engine" ] || return 0
	kill "$engine"
	wait "$engine" || echo "kvroute-engine: exit $?"
	engine=''
	cat "$scratch/log"
}

ids()
{
	seq -s , "$1" "$2" | sed 's/.*/[&]/'
}

# prompt FIRST LAST TOKENS [member]
prompt()
{
	curl -s -m 60 "$url/v1/completions" \
	    -d "{\"prompt\":$(ids "$1" "$2"),\"max_tokens\":$3${4:-}}" |
	    jq -c .usage.prompt_tokens_details.cached_tokens
}

# held FIRST LAST member
held()
{
	curl -s -m 60 "$url/cached" -d "{\"prompt\":$(ids "$1" "$2")}" |
	    jq ".ranks[0].$3"
}

# All batches of the engine have been printed.
all_read()
{
	next=$(held 1 16 events)
	until_true 60 grep -q "^batch $((next - 1)) " "$out" ||
	    echo "never: batch $((next - 1))"
}

# Blocks stored and removed, in all.
totals()
{
	awk '$1 == "stored" || $1 == "removed" || $1 == "cleared" {
	    for (i = 2; i <= NF && length($i) == 16; i++) n[$1]++
	    if ($1 == "cleared") n[$1]++ }
	    END { print n["stored"] + 0, n["removed"] + 0, n["cleared"] + 0 }' \
	    "$out"
}

load()
{
	prompt 1 64 40
	prompt 1 64 1 ',"cache_salt":"s"'
	prompt 1 64 1
	prompt 1000 1500 1
	curl -sf -m 60 -X POST "$url/flush_cache"
	prompt 1 64 1
}

forms()
{
	engine_up --events-form "$1"
	replayed
	is hits "$(load | paste -s -d ' ')" '0 0 48 0 0'
	all_read
	stop_reader
	# 4 and 2 of the first, 4 salted, 31, and 4 again; 42 do not fit
	is "$1" "$(totals)" "45 2 $2"
	is salt "$(grep -c 'salt s' "$out")" 1
	grep -q '^end complete' "$out" || tail -n 1 "$out"
}

case_as_vllm()
{
	forms vllm 1
}

case_as_vllm_of_old()
{
	forms vllm-arrays 1
}

case_as_sglang()
{
	forms sglang 2
}

case_as_sglang_of_old()
{
	forms sglang-arrays 2
}

case_copies()
{
	engine_up --events-copies
	replayed
	prompt 1 64 1 > "$scratch/hits"
	prompt 1 64 1 >> "$scratch/hits"
	is hits "$(paste -s -d ' ' "$scratch/hits")" '0 48'
	all_read
	stop_reader
	is totals "$(totals)" '5 1 0'
	is held "$(held 1 64 held)" 64
}

case_stored_again()
{
	engine_up --events-full
	replayed
	prompt 1 64 1 > "$scratch/hits"
	prompt 1 64 1 >> "$scratch/hits"
	all_read
	stop_reader
	is totals "$(totals)" '7 0 0'
}

# A reader that keeps to the full group learns the same as without the other.
case_another_group()
{
	engine_up --events-window 40
	replayed
	prompt 1 64 1 > "$scratch/hits"
	prompt 1 96 1 >> "$scratch/hits"
	all_read
	stop_reader
	is totals "$(totals)" '6 0 0'
	grep -q 'dropped group' "$out" || echo 'no event of another group'
	replayed --all-groups
	all_read
	stop_reader
	# Sparse blocks are not stored; 3 of the second group are removed.
	is 'all groups' "$(totals)" '6 3 0'
}

case_one_batch_in_two_is_lost()
{
	engine_up --events-lose 2
	replayed
	until_true 60 grep -q . "$scratch/port"
	for first in 1 1001 2001 3001 4001; do
		prompt "$first" $((first + 31)) 1 > "$scratch/hits"
	done
	all_read
	stop_reader
	is totals "$(totals)" '10 0 0'
	grep -q '^end complete .* lost 0 ' "$out" || tail -n 1 "$out"
}

case_a_late_reader_without_replay()
{
	engine_up
	prompt 1 64 1 > "$scratch/hits"
	dump
	# It sends until the reader hears something: before, the reader may not
	# be there.
	n=1
	while [ "$n" -lt 1000 ] && ! grep -q '^batch' "$out"; do
		prompt $((n * 1000)) $((n * 1000 + 15)) 1 > "$scratch/hits"
		n=$((n + 1))
	done
	stop_reader
	grep -q '^lost 0 to' "$out" || cat "$out"
	grep -q '^end incomplete' "$out" || tail -n 1 "$out"
}

case_restarts_are_seen()
{
	engine_up
	replayed
	prompt 1 64 1 > "$scratch/hits"
	all_read
	curl -sf -m 60 -X POST "$url/fault?kind=restart&seconds=0.2"
	until_true 60 curl -sf "$url/health" || echo 'it does not come back'
	is 'after a restart' "$(prompt 1 64 1)" 0
	until_true 60 grep -q '^restarted' "$out" || echo 'no restart'
	until_true 60 grep -q '^  stored' "$out"
	stop_reader
	grep -q '^end complete .* restarts 1 ' "$out" || tail -n 1 "$out"
	is hashes "$(grep '^  stored' "$out" | cut -d ' ' -f 4 | sort -u |
	    wc -l)" 2
}

case_server_info_tells_where()
{
	port=$(free_port)
	engine_up --publish sglang
	is none "$(curl -s -m 60 "$url/server_info" | jq -c .kv_events)" null
	finish
	engine_up --publish sglang --events "tcp://127.0.0.1:$port"
	is tcp "$(curl -s -m 60 "$url/server_info" | jq -c .kv_events)" \
	    '{"publisher":"zmq","endpoint_host":"127.0.0.1",'\
"\"endpoint_port_base\":$port,"'"topic":"","block_size":16,"dp_size":1}'
	finish
	engine_up --publish sglang --events "tcp://127.0.0.1:$port" \
	    --events-replay "tcp://127.0.0.1:$((port + 1))"
	is replay "$(curl -s -m 60 "$url/server_info" |
	    jq .kv_events.replay_endpoint_port_base)" $((port + 1))
}

# FORM BATCHES CLEARED - after a reset, before the next request.
cleared()
{
	engine_up --events-form "$1"
	replayed
	prompt 1 64 1 > "$scratch/hits"
	before=$(held 1 16 events)
	curl -sf -m 60 -X POST "$url/flush_cache"
	is "$1: batches" $(($(held 1 16 events) - before)) "$2"
	all_read
	stop_reader
	is "$1: totals" "$(totals)" "4 0 $3"
	finish
}

case_sglang_publishes_a_reset_at_once()
{
	cleared sglang 1 2
	cleared sglang-arrays 0 1
	cleared vllm 0 0
}

case_wrong_options()
{
	for options in '--events-lose 2' '--events nowhere' \
	    '--events ipc:///x --events-form x' '--events-keep 0' \
	    '--events ipc:///x --events-form sglang --events-window 5'; do
		# shellcheck disable=SC2086
		"$build/kvroute-engine" --for 1 $options > "$out" 2>&1 &&
		    echo "$options: exit 0"
		[ -s "$out" ] || echo "$options: not a word"
	done
}

run "$2"
