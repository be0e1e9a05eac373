#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh BUILD - end-to-end cases and faults of nginx with the module, engines
# and users. A case is a function that prints its failures; each runs in a
# process of its own, with its own folder, ports, nginx and engines, beside
# JOBS - 1 others, and has 15 minutes. Nothing is asserted about time.
#
# CHECK_NGINX=quick skips slow cases; T=name,name picks cases; VALGRIND=1 runs
# nginx under valgrind, and its reports fail the case. SUITE names the target
# that repeats a failure.
#
# check.sh --case BUILD NAME - runs one.
#
# In BUILD/nginx: `failed`, a line for each case that failed; `times`, seconds
# of the clock and of the processor that each case took.
# shellcheck disable=SC1091,SC2034,SC2154
set -u

this_case=
if [ "$1" = --case ]; then
	this_case=$3
	shift
fi
build=$1
here=$(dirname "$0")
. "$here/setup.sh"
. "$here/check_answers.sh"
. "$here/check_bodies.sh"
. "$here/check_capacity.sh"
. "$here/check_conformance.sh"
. "$here/check_faults.sh"
. "$here/check_health.sh"
. "$here/check_models.sh"
. "$here/check_names.sh"
. "$here/check_orders.sh"
. "$here/check_passing.sh"
. "$here/check_peers.sh"
. "$here/check_queue.sh"
. "$here/check_ranks.sh"
. "$here/check_roles.sh"
. "$here/check_reading.sh"
. "$here/check_safe.sh"
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

suite=${SUITE:-nginx}
results=$build/nginx
slow=$([ "${CHECK_NGINX:-all}" = quick ] || echo yes)

# ----------------------------------------------------------------- for cases

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

# no_errors WHAT - fails and lists them, if it has any.
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

# The same in the background, until `talk_over`, while something else is done to
# nginx.
talk_meanwhile()
{
	"$build/kvroute-chats" --url "http://127.0.0.1:$port" -q --format kv \
	    --seconds 600 "$@" > "$work/figures" &
	chats_pid=$!
}

# more N - waits until there have been so many requests since now.
more()
{
	least=$(($(requests_made) + $1))
	until_true 20 made_least || echo "users make no $1 requests"
}

requests_made()
{
	json '.upstreams[0].reasons | add'
}

made_least()
{
	[ "$(requests_made)" -ge "$least" ]
}

# Requests that are under way end as they do.
talk_over()
{
	kill -USR1 "$chats_pid" 2> /dev/null
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
	until status_has "$1" || [ $asked -eq 100 ]; do
		asked=$((asked + 1))
		sleep 0.05
	done
}

# False: the index was busy. Other errors of jq are the filter's.
status_has()
{
	status /json > "$work/status" || return
	jq -r "if .upstreams[0].region.bytes > 0 then . else
	    \"\" | halt_error(9) end | $1" "$work/status"
	[ $? -ne 9 ]
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
	until_true 20 processes_are "${processes:-2}" ||
	    echo "number of worker processes is not ${processes:-2}:" \
	    "$(children "$nginx_pid" | wc -l)"
}

# Processes from before a reload may take a moment to end.
processes_are()
{
	[ "$(children "$nginx_pid" | wc -l)" -eq "$1" ]
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

# Prints valgrind's reports about processes that have ended.
complaints()
{
	for file in "$work"/logs/valgrind.*; do
		[ -s "$file" ] && head -n 40 "$file"
	done
	rm -f "$work"/logs/valgrind.*
}

# ----------------------------------------------------------------- one case

# setup.sh calls this, too: the case ends here.
fail()
{
	echo "$*" >> "$work/problems"
	exit 1
}

# report - writes the result of the case.
report()
{
	words=$(echo "$this_case" | tr _ ' ')
	again="make check-$suite T=$this_case"
	if [ -e "$work/skipped" ]; then
		echo 0 0 1 >> "$results/tally"
		printf '    skipped  %s: %s\n' "$words" "$(cat "$work/skipped")"
	elif [ -s "$work/problems" ]; then
		echo 0 1 0 >> "$results/tally"
		echo "$suite: $words: $(head -n 1 "$work/problems") -- $again" \
		    >> "$results/failed"
		printf '    FAILED   %s: %s -- %s\n' "$suite" "$words" "$again"
		head -n 40 "$work/problems" | sed 's/^/             /'
	else
		echo 1 0 0 >> "$results/tally"
	fi > "$work/report"
	cat "$work/report"
}

# seconds - of the clock, and of processors in this case's processes.
seconds()
{
	times > "$work/used"
	awk -v clock=$(($(date +%s) - began_at)) -F '[ms ]+' '
		{ used += 60 * ($1 + $3) + $2 + $4 }
		END { printf "%d %.1f ", clock, used }' "$work/used"
	echo "$this_case"
}

# An interrupted case has no result.
case_end()
{
	code=$?
	trap '' HUP INT TERM
	end_strays
	down
	stop_kept
	if [ $code -lt 128 ]; then
		{ alerts; complaints; } >> "$work/problems"
		# The shell may report a child that was killed on purpose.
		sed -i '/^\(Killed\|Terminated\)$/d' "$work/problems"
		report
		seconds >> "$results/times"
	fi
	setup_end
	exit 0
}

if [ -n "$this_case" ]; then
	began_at=$(date +%s)
	expected_alert=
	setup_begin
	trap case_end EXIT
	[ -z "${VALGRIND:-}" ] || under="valgrind -q --leak-check=no \
	    --log-file=$work/logs/valgrind.%p"
	mkdir "$work/out"
	if grep -qx "$this_case" "$results/known"; then
		"$this_case"
	else
		echo "there is no case $this_case"
	fi > "$work/problems" 2>&1
	exit 0
fi

# ---------------------------------------------------------------- all cases

# The longest cases begin first.
longest='tenants_share_a_full_index tenants_are_driven_out_unshared
    tenants_of_others_take_their_share bodies_of_every_kind
    bodies_in_pieces_from_files bodies_in_pieces polled_load_of_iterations
    what_one_sends_the_other_knows slow_clients_make_no_engine_gray
    names_change_under_load'

# cases NAME ... - in the order in which they are begun.
ordered()
{
	longest=" $(echo "$longest" | xargs) "
	for turn in longest others; do
		for case in "$@"; do
			case $longest in
			*" $case "*) [ $turn = others ] || echo "$case" ;;
			*) [ $turn = longest ] || echo "$case" ;;
			esac
		done
	done
}

# No further case begins; running ones go on to their ends.
interrupted()
{
	trap '' HUP INT TERM
	running=$(for pid in $(children "$runner"); do children "$pid"; done)
	kill "$runner" 2> /dev/null
	# shellcheck disable=SC2086
	[ -z "$running" ] || kill $running 2> /dev/null
	for pid in $running; do
		until_true 20 has_gone "$pid"
	done
	exit 130
}

has_gone()
{
	! kill -0 "$1" 2> /dev/null
}

# failed WHAT [CASE] - adds a failure that no case has reported.
failed()
{
	echo 0 1 0 >> "$results/tally"
	echo "$suite: $1 -- make check-$suite${2:+ T=$2}" >> "$results/failed"
}

if [ -n "${VALGRIND:-}" ] && ! command -v valgrind > /dev/null; then
	echo 'there is no valgrind' >&2
	exit 1
fi
mkdir -p "$results"
: > "$results/tally"
: > "$results/failed"
: > "$results/times"
trap interrupted HUP INT TERM
echo "$quick_cases $slow_cases" | tr -s ' \n\t' '\n' > "$results/known"
# shellcheck disable=SC2046
ordered $(echo "${T:-$quick_cases ${slow:+$slow_cases}}" | tr ',' ' ') \
    > "$results/cases"
# One that is killed stops no others.
# shellcheck disable=SC2016
xargs -P "${JOBS:-$(($(nproc) * 3))}" -n 1 sh -c \
    'timeout -k 10 900 sh "$0" --case "$@" || true' "$0" "$build" \
    < "$results/cases" &
runner=$!
wait "$runner" || failed 'not all cases have ended'
# A case that is ended by a signal, or by its time, makes no report.
sed 's/.* //' "$results/times" > "$results/ended"
grep -vxF -f "$results/ended" "$results/cases" | while read -r case; do
	failed "$case has no result" "$case"
done
sort -rn -o "$results/times" "$results/times"
printf '  %-14s %4d tests\n' "$suite" "$(wc -l < "$results/cases")"
[ ! -s "$results/failed" ] || sed 's/^/FAILED  /' "$results/failed"
sh mk/tally.sh "$results/tally"
