#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh BUILD - runs sessions of agents through nginx by least_conn, by its
# hash of the beginning of the body, by its hash of the session's id, and by
# kvroute, and prints cache hits and the time to the first token. Takes
# about two minutes and leaves nothing behind.
#
# In a round each method has the same sessions, and is given them to the end.
# Each round has other sessions, and begins with another method. DEMO_ROUNDS
# and DEMO_SESSIONS are the numbers of both.
# shellcheck disable=SC1091,SC2034,SC2154
set -u

build=$1
sessions=${DEMO_SESSIONS:-32}
rounds=${DEMO_ROUNDS:-3}
methods='least_conn hash session kvroute'
. "$(dirname "$0")/../../tests/nginx/setup.sh"

# All lengths are half of those of real agents, and so are memory and speed of
# the engines. Then all of it is sixty times as fast.
engines()
{
	start_engines 4 --scale 0.016 --prefill-rate 4500 --capacity 150000
}

users()
{
	chats --sessions "$sessions" --chats "$sessions" --turns 9 --agents 4 \
	    --shrink 2 --think-ms 100 --session-header X-Session-Id \
	    --seed "$1" --format kv > "$work/figures"
}

name_of()
{
	case $1 in
	hash) echo 'hash of 4096 bytes' ;;
	session) echo 'hash of session id' ;;
	*) echo "$1" ;;
	esac
}

# figures ROUND METHOD - adds the line of a run.
figures()
{
	for name in hit_ratio first_mean_ms first_p90_ms requests errors \
	    prompt_tokens seconds; do
		value "$work/figures" $name
	done | paste -s -d ' ' | sed "s/^/$1 $2 /" >> "$work/runs"
}

show_run()
{
	tail -n 1 "$work/runs" | awk -v name="$(name_of "$2")" '{
		printf "round %d  %-18s %6.1f %% %8.0f ms %8.0f ms %8d %6d\n",
		    $1, name, 100 * $3, $4, $5, $6, $7
	}'
}

# run ROUND METHOD
run()
{
	engines
	start_nginx "$2"
	users "$1"
	stop_nginx
	stop_engines
	[ -n "$(value "$work/figures" requests)" ] || fail 'no figures of users'
	figures "$@"
	show_run "$@"
}

# order ROUND - of the methods: each is the first in turn.
order()
{
	echo "$methods" | tr ' ' '\n' | awk -v round="$1" '
		{ name[NR - 1] = $1 }
		END {
			for (i = 0; i < NR; i++)
				print name[(i + round - 1) % NR]
		}'
}

# row METHOD - means of its runs, and from the lowest to the highest.
row()
{
	awk -v method="$1" -v name="$(name_of "$1")" '
		function add(i, value) {
			sum[i] += value
			if (n == 1 || value < low[i])
				low[i] = value
			if (n == 1 || value > high[i])
				high[i] = value
		}
		function cell(i, form) {
			return sprintf(form " (" form "-" form ")",
			    sum[i] / n, low[i], high[i])
		}
		$2 == method {
			n++
			add(1, 100 * $3)
			add(2, $4)
			add(3, $5)
			requests += $6
			errors += $7
		}
		END {
			printf "%-18s %16s %16s %16s %5d %6d\n", name,
			    cell(1, "%.0f"), cell(2, "%.0f"), cell(3, "%.0f"),
			    requests, errors
		}' "$work/runs"
}

table()
{
	printf '\n%-18s %16s %16s %16s %5s %6s\n' 'mean (low-high)' \
	    'hits, %' 'TTFT mean, ms' 'TTFT p90, ms' sent errors
	for method in $methods; do
		row "$method"
	done
}

setup_begin
began=$(date +%s)
cat <<END
4 engines behind nginx with two worker processes; $sessions agents at work, with
tools and sub-agents, each time to the end of their sessions. $rounds rounds.

END
printf '%-8s %-18s %8s %11s %11s %8s %6s\n' '' method hits 'TTFT mean' \
    'TTFT p90' requests errors
for round in $(seq "$rounds"); do
	for method in $(order "$round"); do
		run "$round" "$method"
	done
done
table
cat <<END

Done in $(($(date +%s) - began)) s. In a round all methods have the same sessions.
hits: prompt tokens that the engines found in their caches, as they report.
TTFT: from sending a request to the first token of the answer. The engines are
stand-ins with service times like those of real ones, scaled down.
END
