#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# demo_sync.sh BUILD - two routers before the same four engines, first alone,
# then with kvroute-sync between them, and prints cache hits and the time to the
# first token. A third nginx sends requests to both in turn, so that a session
# does not stay at one. Leaves nothing behind.
#
# DEMO_SESSIONS is the number of sessions.
# shellcheck disable=SC1091,SC2034,SC2154
set -u

build=$1
sessions=${DEMO_SESSIONS:-24}
. "$(dirname "$0")/../../tests/nginx/setup.sh"
sync_pids=
redis_pid=

demo_end()
{
	end_sync
	setup_end
}

end_sync()
{
	for pid in $sync_pids $redis_pid; do
		end_child "$pid" -TERM
	done
	sync_pids=
	redis_pid=
}

hears_one()
{
	"$build/kvroute-sync" --status "$work/sync$1" |
	    grep -q '"state": "fresh"'
}

start_sync()
{
	redis-server --port 0 --unixsocket "$work/redis" --save '' \
	    --appendonly no --daemonize no --dir "$work" \
	    > "$work/logs/redis" 2>&1 &
	redis_pid=$!
	until_true 20 test -S "$work/redis" || fail 'redis-server does not start'
	for n in 1 2; do
		"$build/kvroute-sync" --redis "unix://$work/redis" \
		    --socket "$work/sync$n" "$work/index$n" \
		    >> "$work/logs/sync" 2>&1 &
		sync_pids="$sync_pids $!"
	done
	for n in 1 2; do
		until_true 20 hears_one $n || fail "kvroute-sync does not" \
		    "start: $(cat "$work/logs/sync")"
	done
}

start_routers()
{
	routers=
	rm -f "$work"/index*
	for n in 1 2; do
		kvroute_options="path=$work/index$n size=16m journal=4m \
		    secret=$work/secret"
		start_nginx kvroute
		keep_nginx
		routers="$routers $port"
	done
}

# run NAME [yes] - with exchange or without.
run()
{
	start_engines 4 --scale 0.016 --prefill-rate 4500 --capacity 150000
	start_routers
	[ -z "${2:-}" ] || start_sync
	upstream_ports=$routers
	start_nginx round_robin
	chats --sessions "$sessions" --chats "$sessions" --turns 9 --agents 4 \
	    --shrink 2 --think-ms 100 --seed 1 --format kv > "$work/figures"
	unset upstream_ports
	end_sync
	stop_nginx
	stop_kept
	stop_engines
	printf '%-18s %6.1f %% %8.0f ms %8.0f ms %8d %6d\n' "$1" \
	    "$(value "$work/figures" hit_ratio | awk '{ print 100 * $1 }')" \
	    "$(value "$work/figures" first_mean_ms)" \
	    "$(value "$work/figures" first_p90_ms)" \
	    "$(value "$work/figures" requests)" \
	    "$(value "$work/figures" errors)"
}

command -v redis-server > /dev/null ||
    { echo 'demo-sync: skipped: no redis-server (make deps-sync)'; exit 0; }
[ -x "$build/kvroute-sync" ] ||
    { echo 'demo-sync: skipped: kvroute-sync was not built'; exit 0; }
setup_begin
trap demo_end EXIT
(umask 077 && printf '0123456789abcdefghijklmnopqrstuv' > "$work/secret")
cat <<END
4 engines behind two routers, which get the requests of $sessions sessions in turn.

END
printf '%-18s %8s %11s %11s %8s %6s\n' '' hits 'TTFT mean' 'TTFT p90' \
    requests errors
run 'each alone'
run 'with exchange' yes
