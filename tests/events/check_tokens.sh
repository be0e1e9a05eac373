#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_tokens.sh build [case] - the example gateway, kvroute-events, four
# engines: a router of tokens learns the engines' content from events. Cases of
# tests/cases.sh.
#
#	here -> two gateways -> engines --events--> kvroute-events
#	              '--- region file ----------------'
#
# shellcheck disable=SC2034,SC2154
. tests/events/common.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
status=$scratch/status

# ---------------------------------------------------------------- programs ---

# [option ...] - four engines of 22 blocks each, and one that holds nothing.
engines_up()
{
	rm -f "$scratch/ports" "$index" "$scratch"/*.log
	pids='' daemon='' gateways=''
	"$build/kvroute-engine" --engines 4 --for 3600 --scale 0.001 \
	    --capacity 368 --events "$pub" --events-replay "$back" "$@" \
	    > "$scratch/ports" 2> "$scratch/engines.log" &
	pids=$!
	until_true 60 all_ports || echo 'the engines do not start'
	ports=$(paste -s -d ' ' "$scratch/ports")
}

all_ports()
{
	[ "$(wc -l < "$scratch/ports")" -eq 4 ]
}

# ["no replay"]
daemon_up()
{
	rank=0
	for port in $ports; do
		jq -nc --arg w "127.0.0.1:$port" --arg e "$pub-$rank" \
		    --arg r "$back-$rank" '{worker: $w, events: $e, replay: $r}'
		rank=$((rank + 1))
	done | jq -s "{workers: .}${1:+ | del(.workers[].replay)}" \
	    > "$scratch/conf"
	"$events" -c "$scratch/conf" --socket "$status" "$index" \
	    >> "$scratch/daemon.log" 2>&1 &
	daemon=$!
}

daemon_down()
{
	kill "$daemon"
	wait "$daemon" || echo "kvroute-events: exit $?"
	daemon=''
}

gateways_up()
{
	# shellcheck disable=SC2086
	gateway_up $ports
	first=$entry
	# shellcheck disable=SC2086
	gateway_up $ports
	second=$entry
}

finish()
{
	[ -z "$daemon" ] || daemon_down
	gateways_down
	kill "$pids"
	wait "$pids" || echo "kvroute-engine: exit $?"
	cat "$scratch"/gateway.log "$scratch"/engines.log 2> /dev/null
}

# ---------------------------------------------------------------- requests ---

# Request n: the next turn of one of 6 chats, of two system prompts. No whole
# number of blocks, since an engine always computes a last token.
body()
{
	chat=$(($1 % 6))
	from=$((1000 * (chat % 2) + 1)) # shared
	own=$((10000 * (chat + 1) + 100000 * ($1 / 48)))
	awk -v a="$from" -v b="$own" -v n=$((21 + $1 / 6 % 8 * 16)) 'BEGIN {
	    printf "{\"max_tokens\":5,\"prompt\":["
	    for (i = 0; i < 64; i++) printf "%d,", a + i
	    for (i = 1; i < n; i++) printf "%d,", b + i
	    print b "]}" }'
}

# Asks each engine for its cached tokens of the body, and the number of its next
# batch.
ask_engines()
{
	# shellcheck disable=SC2046,SC2086
	curl -s -m 10 $(printf 'http://127.0.0.1:%s/cached ' $ports) \
	    -d "@$scratch/body" |
	    jq -r '"\(.ranks[0].held) \(.ranks[0].events)"' |
	    paste -d ' ' "$scratch/ports" - > "$scratch/held"
}

state()
{
	"$build/region" "$index" state "127.0.0.1:$1:0" 2>> "$scratch/state.log"
}

drained()
{
	while read -r port _ next; do
		case "$(state "$port")" in
		*" next $next "*) ;;
		*) return 1 ;;
		esac
	done < "$scratch/held"
}

# A lost last batch is missed only when the next one comes.
nudge()
{
	while read -r port _ next; do
		case "$(state "$port")" in *" next $next "*) continue ;; esac
		curl -s -m 30 "http://127.0.0.1:$port/v1/completions" -d \
		    "{\"prompt\":[$(seq -s , $((900000 + $1 * 100)) \
		    $((900016 + $1 * 100)))],\"max_tokens\":1}" > /dev/null
	done < "$scratch/held"
}

settle()
{
	round=0
	while [ "$round" -lt 60 ]; do
		ask_engines
		tries=20
		while [ "$tries" -gt 0 ]; do
			! drained || return 0
			tries=$((tries - 1))
			sleep 0.05
		done
		round=$((round + 1))
		nudge "$round"
	done
	return 1
}

through()
{
	curl -s -m 30 -D "$scratch/headers" -o "$scratch/answer" \
	    "http://127.0.0.1:$1/v1/completions" -d "@$scratch/body"
	tr -d '\r' < "$scratch/headers" > "$scratch/said"
	grep -q '^HTTP/1.1 200' "$scratch/said" || echo "request $n: no answer"
}

said()
{
	sed -n "s/^X-$1//p" "$scratch/said"
}

# Rounds tokens down to whole blocks of the index: an engine with smaller ones
# may have more.
whole()
{
	echo $(($1 / step * step))
}

# The gateway's belief about each engine equals the engine's content.
same()
{
	while read -r port held _; do
		held=$(whole "$held")
		is "request $n: engine $port" \
		    "$(said "Overlap: 127.0.0.1:$port=")" \
		    "$([ "$held" -eq 0 ] || echo "$held")"
	done < "$scratch/held"
	is "request $n: chosen" "$(said 'Predicted: ')" \
	    "$(whole "$(jq .usage.prompt_tokens_details.cached_tokens \
	    "$scratch/answer")")"
}

# Every fifth goes past the gateways, to each engine in turn.
past()
{
	[ $(($1 % 5)) -eq 4 ] || return 1
	port=$(echo "$ports" | cut -d ' ' -f $(($1 / 5 % 4 + 1)))
	curl -sf -m 30 "http://127.0.0.1:$port/v1/completions" \
	    -d "@$scratch/body" > "$scratch/answer" || echo "request $1 fails"
}

# FIRST LAST
blind()
{
	n=$1
	while [ "$n" -le "$2" ]; do
		body "$n" > "$scratch/body"
		past "$n" ||
		    through "$([ $((n % 2)) -eq 0 ] && echo "$first" ||
		    echo "$second")"
		n=$((n + 1))
	done
}

# FIRST LAST: the same, but nothing is asked before events have arrived.
exact()
{
	n=$1 hits=0
	while [ "$n" -le "$2" ]; do
		body "$n" > "$scratch/body"
		settle || { echo "request $n: not drained"; return; }
		if ! past "$n"; then
			through "$([ $((n % 2)) -eq 0 ] && echo "$first" ||
			    echo "$second")"
			same
			[ "$(said 'Predicted: ')" = 0 ] || hits=$((hits + 1))
		fi
		n=$((n + 1))
	done
	[ "$hits" -gt 0 ] || echo 'nothing was cached'
}

# PATH: to each engine.
tell_engines()
{
	for port in $ports; do
		curl -sf -m 10 -X POST "http://127.0.0.1:$port/$1" ||
		    echo "engine $port: not $1"
	done
}

# A prompt that is like no other, and the same for the same number.
fresh()
{
	echo "{\"max_tokens\":1,\"prompt\":[$(seq -s , $((9000000 + $1 * 1000)) \
	    $((9000100 + $1 * 1000)))]}" > "$scratch/body"
}

# FIRST LAST: no prediction fails a request, and they are better than none,
# although a fifth of the requests has no events.
useful()
{
	n=$1 off=0 hit=0 all=0
	while [ "$n" -le "$2" ]; do
		body "$n" > "$scratch/body"
		case $((n % 5)) in
		0) tell_engines 'fault?kind=none' ;;
		4) tell_engines 'fault?kind=lose&seconds=600' ;;
		esac
		through "$second"
		predicted=$(said 'Predicted: ')
		tokens=$(jq .usage.prompt_tokens "$scratch/answer")
		cached=$(jq .usage.prompt_tokens_details.cached_tokens \
		    "$scratch/answer")
		[ "$predicted" -le "$tokens" ] ||
		    echo "request $n: $predicted of $tokens tokens"
		off=$((off + (predicted > cached ? predicted - cached :
		    cached - predicted)))
		hit=$((hit + cached)) all=$((all + tokens))
		n=$((n + 1))
	done
	[ $((4 * off)) -le $((3 * hit)) ] ||
	    echo "wrong by $off, and $hit of $all tokens were cached"
}

# STATE NUMBER: so many workers.
states()
{
	is "$1" "$(for port in $ports; do state "$port"; done |
	    grep -c "^$1 ")" "$2"
}

sum()
{
	for port in $ports; do state "$port"; done | tr ' ' '\n' |
	    awk -v want="$1" 'last == want { n += $1 } { last = $1 }
	    END { print n + 0 }'
}

# PORT: a first batch that is missed is followed by others.
heard_anew()
{
	fresh $((tries + 10))
	curl -sf -m 30 "http://127.0.0.1:$1/v1/completions" \
	    -d "@$scratch/body"
	restarted
}

restarted()
{
	[ "$(sum restarts)" -eq 1 ]
}

# Sums a count of the daemon over all workers.
counted()
{
	"$events" --metrics "$status" | awk -v name="kvroute_events_$1{" \
	    'index($0, name) == 1 { n += $NF } END { print n + 0 }'
}

at_least_one()
{
	[ "$2" -gt 0 ] || echo "$1: none"
}

# LAST: the index agrees with each engine about the prompts up to this one.
sound()
{
	"$build/region" "$index" check
	n=$(($1 > 11 ? $1 - 11 : 0)) found=0
	while [ "$n" -le "$1" ]; do
		body "$n" > "$scratch/body"
		settle || { echo "prompt $n: not drained"; return; }
		jq '.prompt[]' "$scratch/body" |
		    "$build/region" "$index" match > "$scratch/matched"
		while read -r port held _; do
			held=$(whole "$held")
			is "prompt $n: engine $port" "$(sed -n \
			    "s/^127.0.0.1:$port //p" "$scratch/matched")" \
			    "$([ "$held" -eq 0 ] || echo "$held")"
			found=$((found + held))
		done < "$scratch/held"
		n=$((n + 1))
	done
	at_least_one 'tokens of these prompts' "$found"
}

up()
{
	engines_up "$@"
	gateways_up
	daemon_up
}

# ------------------------------------------------------------------- cases ---

case_complete() # slow
{
	up
	exact 0 59
	states complete 4
	at_least_one 'blocks removed' "$(sum removed)"
	is lost "$(sum lost)" 0
	sound 59
}

# SGLang's pages of a token, or of four, in the index's blocks of 16.
pages_of()
{
	step=16
	# In larger caches only pages within blocks would leave.
	up --block "$1" --events-form "$2" --capacity 288
	exact 0 39
	states complete 4
	at_least_one 'blocks removed' "$(sum removed)"
	is orphans "$(counted orphans_total)" 0
	for port in $ports; do break; done
	curl -sf -m 10 -X POST \
	    "http://127.0.0.1:$port/fault?kind=restart&seconds=0.2"
	until_true 60 curl -sf -m 2 "http://127.0.0.1:$port/health" ||
	    echo 'it does not come back'
	until_true 60 heard_anew "$port" || echo 'no restart was noticed'
	exact 40 49
	states complete 4
	is lost "$(sum lost)" 0
	sound 49
	step=1
}

case_pages_of_one() # slow
{
	pages_of 1 sglang
}

case_pages_of_four() # slow
{
	pages_of 4 sglang-arrays
}

case_losses_are_replayed() # slow
{
	up --events-lose 5
	blind 0 29
	exact 30 39
	states complete 4
	at_least_one gaps "$(counted gaps_total)"
	at_least_one replays "$(counted replays_total)"
	is lost "$(sum lost)" 0
	is orphans "$(counted orphans_total)" 0
	sound 39
}

case_joins_late() # slow
{
	engines_up
	gateways_up
	blind 0 39
	daemon_up
	exact 40 54
	states complete 4
	at_least_one 'batches of before' "$(counted replayed_past_total)"
	is lost "$(sum lost)" 0
	sound 54
}

case_an_engine_restarts() # slow
{
	up
	exact 0 9
	for port in $ports; do break; done
	curl -sf -m 10 -X POST \
	    "http://127.0.0.1:$port/fault?kind=restart&seconds=0.2"
	until_true 60 curl -sf -m 2 "http://127.0.0.1:$port/health" ||
	    echo 'it does not come back'
	# The first batch shows that it is another.
	body 20 > "$scratch/body"
	curl -sf -m 30 "http://127.0.0.1:$port/v1/completions" \
	    -d "@$scratch/body" > "$scratch/answer" || echo 'no answer'
	# Else the number of its first life may pass for that of its second.
	until_true 60 restarted || echo 'no restart was noticed'
	exact 20 39
	is restarts "$(sum restarts)" 1
	states complete 4
	is lost "$(sum lost)" 0
	sound 39
}

case_routers_restart() # slow
{
	up
	exact 0 9
	gateways_down
	gateways_up
	exact 20 29
	daemon_down
	blind 30 49
	daemon_up
	exact 50 59
	states complete 4
	is lost "$(sum lost)" 0
	sound 59
}

# Each engine has published something that was heard.
all_heard()
{
	fresh $((tries + 10))
	for port in $ports; do
		curl -sf -m 30 "http://127.0.0.1:$port/v1/completions" \
		    -d "@$scratch/body"
		case "$(state "$port")" in off*) return 1 ;; esac
	done
}

# Each engine computes a new prompt.
compute_new()
{
	fresh "$1"
	for port in $ports; do
		curl -sf -m 30 "http://127.0.0.1:$port/v1/completions" \
		    -d "@$scratch/body" > "$scratch/answer" ||
		    echo "engine $port: no answer"
	done
}

# Each engine publishes something that is not, and then something that is.
lose_some()
{
	tell_engines 'fault?kind=lose&seconds=600'
	compute_new "$1"
	tell_engines 'fault?kind=none'
	settle || echo 'not drained'
}

# The whole cache is gone, and the next batch of events reports it.
clear_all()
{
	tell_engines flush_cache
	compute_new 90
	settle || echo 'not drained'
}

case_losses_without_replay() # slow
{
	engines_up
	gateways_up
	daemon_up 'no replay'
	n=-1
	# The first batch may have been before the daemon.
	until_true 60 all_heard || echo 'not all are heard'
	clear_all
	states complete 4
	exact 0 9
	# Blocks without an event are not there: it is complete, as far as is
	# known.
	tell_engines 'fault?kind=lose&seconds=600'
	fresh 1
	through "$first"
	through "$second"
	is 'while complete' "$(said 'Predicted: ')" 0
	lose_some 2
	states degraded 4
	at_least_one lost "$(sum lost)"
	is replays "$(counted replays_total)" 0
	# Now blocks may be there without an event.
	tell_engines 'fault?kind=lose&seconds=600'
	fresh 3
	through "$first"
	through "$second"
	at_least_one 'predicted while degraded' "$(said 'Predicted: ')"
	is 'and so it is' "$(jq .usage.prompt_tokens_details.cached_tokens \
	    "$scratch/answer")" 96
	useful 60 119
	states degraded 4
	tell_engines 'fault?kind=none'
	"$build/region" "$index" check
	clear_all
	states complete 4
	exact 120 129
	sound 129
	# A restart is as good, if all since then is heard.
	lose_some 4
	states degraded 4
	lost=$(sum lost)
	for port in $ports; do break; done
	curl -sf -m 10 -X POST \
	    "http://127.0.0.1:$port/fault?kind=restart&seconds=0.2"
	until_true 60 curl -sf -m 2 "http://127.0.0.1:$port/health" ||
	    echo 'it does not come back'
	until_true 60 heard_anew "$port" || echo 'no restart was noticed'
	settle || echo 'not drained'
	states complete "$([ "$(sum lost)" -eq "$lost" ] && echo 1 || echo 0)"
	clear_all
	states complete 4
	exact 140 149
	sound 149
}

daemon='' gateways='' pids='' step=1
run "$2"
