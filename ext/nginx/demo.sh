#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh BUILD - runs the same chats through nginx by round robin, by nginx's
# hash of the beginning of the body, and by kvroute, and prints cache hits and
# the time to the first token. Takes half a minute and leaves nothing behind.
# shellcheck disable=SC1091,SC2034,SC2154
set -u

build=$1
users=${DEMO_USERS:-64}
seconds=${DEMO_SECONDS:-8}
. "$(dirname "$0")/../../tests/nginx/setup.sh"

# Three times as fast as real engines. A cache holds about fifteen chats, so
# four caches hold all chats if none is stored twice.
engines()
{
	start_engines 4 --scale 0.3 --prefill-rate 9000 --capacity 40000
}

percent()
{
	awk -v share="$1" 'BEGIN { print share * 100 }'
}

row()
{
	printf '%-22s %8.1f %% %10.0f ms %10.0f ms %10d %8d\n' "$1" \
	    "$(percent "$(value "$work/figures" hit_ratio)")" \
	    "$(value "$work/figures" first_mean_ms)" \
	    "$(value "$work/figures" first_p90_ms)" \
	    "$(value "$work/figures" requests)" \
	    "$(value "$work/figures" errors)"
}

# run METHOD NAME
run()
{
	engines
	start_nginx "$1"
	chats --chats "$users" --seconds "$seconds" --warm-up 1 --systems 12 \
	    --turns 8 --turn-bytes 600 --format kv > "$work/figures"
	row "$2"
	stop_nginx
	stop_engines
}

setup_begin
echo "4 engines behind nginx with two worker processes; $users users chat for" \
    "$seconds s each time"
printf '\n%-22s %10s %13s %13s %10s %8s\n' method 'hit ratio' 'TTFT mean' \
    'TTFT p90' requests errors
run round_robin 'round robin'
run hash 'hash on 4096 bytes'
run kvroute kvroute
cat <<'END'

hit ratio: prompt tokens that the engines found in their caches, as they report.
TTFT: from sending a request to the first text of the response. The engines are
stand-ins with service times like those of real ones, scaled down.
END
