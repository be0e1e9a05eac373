#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_fleet.sh build [case] - nginx with the module, kvroute-events, four
# engines: a router of bytes learns from events, end to end: a case of
# tests/cases.sh.
#
#	users -> nginx -> engines --events--> kvroute-events
#	           '--- region file ---------------'
#
# Variables of setup.sh:
# shellcheck disable=SC2034,SC2154
. tests/cases.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
# shellcheck source=tests/nginx/setup.sh
. tests/nginx/setup.sh
daemon=''

finish()
{
	[ -z "$daemon" ] || end_child "$daemon" -TERM
	setup_end
}

# The daemon's file: the engines by their places in nginx.
write_daemon_conf()
{
	n=0
	for p in $engine_ports; do
		printf '%s{ "worker": "127.0.0.1:%s",
		    "events": "ipc://%s/pub-%d",
		    "replay": "ipc://%s/back-%d",
		    "sliding": "boundary" }' \
		    "$([ "$n" -eq 0 ] || echo ,)" "$p" "$work" "$n" "$work" "$n"
		n=$((n + 1))
	done > "$work/list"
	echo "{ \"workers\": [ $(cat "$work/list") ] }" > "$work/events.json"
}

start_daemon()
{
	"$build/kvroute-events" -c "$work/events.json" "$work/out/index" \
	    >> "$work/logs/events" 2>&1 &
	daemon=$!
}

# Prints one fact of all workers' status, as one line, in their order.
each()
{
	status /metrics | sed -n "s/^kvroute_worker_events_$1{.*} //p" |
	    sort -g | paste -s -d ' '
}

# Workers whose stream is in this state.
in_state()
{
	status /metrics | grep '^kvroute_worker_events_state{' |
	    grep "state=\"$1\"" | awk '$NF == 1' | wc -l
}

# The region has all that engines have published.
drained()
{
	next=$(for p in $engine_ports; do
		curl -s -m 10 "http://127.0.0.1:$p/cached" -d '{"prompt":[1]}' |
		    jq '.ranks[0].events'
	done | sort -g | paste -s -d ' ')
	[ "$(each next)" = "$next" ]
}

all_restarted()
{
	[ "$(metric kvroute_worker_events_restarts_total)" -ge 1 ]
}

talk()
{
	round=$((round + 1))
	chats -q --format kv --requests 120 --chats 8 --think-ms 1 \
	    --seed "$round" > "$work/figures" || echo 'users were not served'
}

all_counted()
{
	case " $(each capacity_tokens) " in *' 0 '*) return 1 ;; esac
}

windows()
{
	status /json | jq -r '[.upstreams[0].workers[]
	    | "\(.window_mode) \(.window)"] | unique | join(", ")'
}

windows_are()
{
	[ "$(windows)" = "$1" ]
}

case_fleet() # slow
{
	setup_begin
	mkdir -m 777 "$work/out"
	start_engines 4 --scale 0.01 --capacity 8192 --publish none \
	    --events "ipc://$work/pub" --events-replay "ipc://$work/back" \
	    --events-window 512
	kvroute_options="path=$work/out/index size=8m"
	start_nginx kvroute
	write_daemon_conf
	start_daemon
	round=0
	# Until each engine has made room often enough to be counted.
	while [ "$round" -lt 20 ] && { [ "$round" -eq 0 ] || ! all_counted; }; do
		talk
		until_true 60 drained ||
		    echo "not drained: $(each next), not $next"
	done
	is complete "$(in_state complete)" 4
	is lost "$(metric kvroute_worker_events_lost_total)" 0
	# 8192 tokens each; an engine counts room for tokens to come, too.
	is capacities "$(each capacity_tokens | wc -w)" 4
	for tokens in $(each capacity_tokens); do
		[ "$tokens" -gt 4096 ] && [ "$tokens" -le 8192 ] ||
		    echo "capacity: $tokens of 8192 tokens"
	done
	# A router of events that ends and comes again goes on.
	end_child "$daemon" -TERM
	talk
	start_daemon
	until_true 60 drained || echo "not drained: $(each next), not $next"
	is 'complete again' "$(in_state complete)" 4
	first=${engine_ports%% *}
	curl -sf -m 10 -X POST \
	    "http://127.0.0.1:$first/fault?kind=restart&seconds=0.2"
	until_true 60 curl -sf -m 2 "http://127.0.0.1:$first/health" ||
	    echo 'the engine does not come back'
	talk
	until_true 60 all_restarted || echo 'a restart was not noticed'
	until_true 60 drained || echo "not drained: $(each next), not $next"
	is 'complete after a restart' "$(in_state complete)" 4
	is restarts "$(metric kvroute_worker_events_restarts_total)" 1
	# The window of the second group in the events is set.
	until_true 60 windows_are 'boundary 512' || echo "windows: $(windows)"
}

run "$2"
