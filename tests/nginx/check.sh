#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh BUILD - end-to-end cases and faults of nginx with the module, engines
# and users. A case is a function that prints its failures; each has its own
# nginx and engines. Nothing is asserted about time.
#
# CHECK_NGINX=quick skips slow cases; T=name,name picks cases; VALGRIND=1 runs
# nginx under valgrind, and its reports fail the case.
# shellcheck disable=SC1091,SC2034,SC2154
set -u

build=$1
here=$(dirname "$0")
. "$here/setup.sh"
. "$here/check_answers.sh"
. "$here/check_bodies.sh"
. "$here/check_capacity.sh"
. "$here/check_faults.sh"
. "$here/check_health.sh"
. "$here/check_models.sh"
. "$here/check_names.sh"
. "$here/check_orders.sh"
. "$here/check_passing.sh"
. "$here/check_peers.sh"
. "$here/check_queue.sh"
. "$here/check_ranks.sh"
. "$here/check_reading.sh"
. "$here/check_seeing.sh"
. "$here/check_sessions.sh"
. "$here/check_sync.sh"
. "$here/check_tenants.sh"
. "$here/check_load.sh"
. "$here/check_lines.sh"
. "$here/check_life.sh"
. "$here/check_fleet.sh"
. "$here/check_install.sh"
. "$here/check_top.sh"

tally=$build/nginx/tally
slow=$([ "${CHECK_NGINX:-all}" = quick ] || echo yes)

fail()
{
	echo "    FAILED   $*" >&3
	echo 0 1 0 >> "$tally"
	exit 1
}

exec 3>&1

# ------------------------------------------------------------ what cases use

# up [engine option ...] - starts four fast engines and nginx before them.
up()
{
	start_engines "${engines:-4}" --scale 0.01 --capacity 100000 "$@"
	start_nginx "${method:-kvroute}"
}

down()
{
	end_sync
	stop_nginx
	stop_engines
	unset engines method log http_lines location_lines server_options \
	    server_facts kvroute_options body_buffer upstream_ports processes \
	    server_list first_lines top_lines buffering module_file \
	    worker_user router_options
}

# is WHAT VALUE EXPECTED
is()
{
	[ "$2" = "$3" ] || echo "$1 is '$2', not '$3'"
}

# skip WHY - the case cannot run here.
skip()
{
	echo "$*" > "$work/skipped"
}

# above WHAT VALUE LIMIT
above()
{
	awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && a + 0 > b + 0) }' ||
	    echo "$1 is '$2', not above $3"
}

figure()
{
	value "$work/figures" "$1"
}

# no_errors WHAT - fails and lists them, if there are any.
no_errors()
{
	[ "$(figure errors)" = 0 ] ||
	    echo "errors ($1):" "$(sed -n '/^requests/,/^left/p' \
	    "$work/figures" | grep -v '=0$' | paste -s -d ' ')"
}

# Runs users; the results are in figures.
talk()
{
	chats -q --format kv "$@" > "$work/figures"
}

# The same in the background, while something else is done to nginx.
talk_meanwhile()
{
	"$build/kvroute-chats" --url "http://127.0.0.1:$port" -q --format kv \
	    "$@" > "$work/figures" &
	chats_pid=$!
}

talk_over()
{
	wait "$chats_pid"
	chats_pid=
}

# fault ENGINE 'kind=refuse&seconds=1' - of the first, the second, ...
fault()
{
	curl -sf -m 10 -o /dev/null -X POST \
	    "http://127.0.0.1:$(nth "$1" "$engine_ports")/fault?$2" ||
	    echo "engine $1 takes no fault: $2"
}

nth()
{
	echo "$2" | cut -d ' ' -f "$1"
}

no_leases()
{
	[ "$(json '.upstreams[0].region.leases')" = 0 ]
}

# json FILTER - of the status. Under load another process may hold the index's
# lock: then it is requested again.
json()
{
	asked=0
	until status_is_whole > /dev/null || [ $asked -eq 100 ]; do
		asked=$((asked + 1))
		sleep 0.05
	done
	jq -r "$1" "$work/status"
}

status_is_whole()
{
	status /json > "$work/status" &&
	    jq -e '.upstreams[0].region.bytes > 0' "$work/status"
}

# Requests without a prediction, because another process held the lock.
busy()
{
	json '.upstreams[0].reasons | .busy + .no_worker'
}

# After every case: no booking is left, and all nginx processes run.
settled()
{
	until_true 20 no_leases ||
	    echo "leases stay: $(json '.upstreams[0].region.leases')"
	is 'number of worker processes' \
	    "$(children "$nginx_pid" | wc -l)" "${processes:-2}"
}

# Unexpected lines of the error log, the end of nginx included; a case names
# those that it causes, one a line.
alerts()
{
	[ ! -e "$work/logs/error" ] ||
	    grep -E '\[(emerg|alert|crit)\]|exited on signal' \
	    "$work/logs/error" | grep -vF "${expected_alert:-no such text}" |
	    head -n 5
}

# What valgrind reported of the processes that have ended.
complaints()
{
	for file in "$work"/logs/valgrind.*; do
		[ -s "$file" ] && head -n 40 "$file"
	done
	rm -f "$work"/logs/valgrind.*
}

# ------------------------------------------------------------------ running

if [ -n "${VALGRIND:-}" ]; then
	command -v valgrind > /dev/null || fail 'no valgrind'
fi

run()
{
	total=$((total + 1))
	expected_alert=
	"$1" > "$work/problems" 2>&1
	# The shell may report a child that was killed on purpose.
	sed -i '/^\(Killed\|Terminated\)$/d' "$work/problems"
	end_strays
	down
	{ alerts; complaints; } >> "$work/problems"
	if [ -e "$work/skipped" ]; then
		echo 0 0 1 >> "$tally"
		printf '    skipped  %s: %s\n' "$(echo "$1" | tr _ ' ')" \
		    "$(cat "$work/skipped")"
		rm "$work/skipped"
	elif [ -s "$work/problems" ]; then
		echo 0 1 0 >> "$tally"
		printf '    FAILED   %s:\n' "$(echo "$1" | tr _ ' ')"
		head -n 40 "$work/problems" | sed 's/^/             /'
	else
		echo 1 0 0 >> "$tally"
	fi
	rm -rf "$work/logs" "$work/out"
	mkdir "$work/logs" "$work/out"
}

setup_begin
[ -z "${VALGRIND:-}" ] || under="valgrind -q --leak-check=no \
    --log-file=$work/logs/valgrind.%p"
mkdir -p "$work/out" "$build/nginx"
: > "$tally"
total=0
for case in $(echo "${T:-$quick_cases ${slow:+$slow_cases}}" | tr ',' ' '); do
	[ ! -t 2 ] || printf '\r%-70s\r' "  $case" >&2
	run "$case"
done
[ ! -t 2 ] || printf '\r%70s\r' '' >&2
printf '  %-14s %4d tests\n' nginx "$total"
sh mk/tally.sh "$tally"
