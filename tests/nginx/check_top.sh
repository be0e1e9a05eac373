#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_top.sh - cases of check.sh: kvroute-top shows the state of nginx.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} top_shows_a_fleet top_shows_a_region
    top_shows_health top_in_a_terminal top_says_what_is_wrong"

status_url()
{
	echo "http://127.0.0.1:$port/kvroute"
}

# top ARGUMENT ... - in batch mode.
top()
{
	"$build/kvroute-top" --batch --interval 0.2 "$@" > "$work/out/top" \
	    2> "$work/out/top_wrong" < /dev/null
}

# top_line WORD - the last line that begins so.
top_line()
{
	sed -n "s/^$1  *//p" "$work/out/top" | tail -n 1
}

# top_cell COLUMN ENGINE - of the last table.
top_cell()
{
	awk -v name="$1" -v worker="127.0.0.1:$(nth "$2" "$engine_ports")" '
	    $1 == "WORKER" { for (i = 1; i <= NF; i++) if ($i == name) at = i }
	    $1 == worker { cell = $at }
	    END { print cell }' "$work/out/top"
}

# The table equals the status.
top_shows_a_fleet()
{
	up
	# shellcheck disable=SC2086
	talk $load --turns 3
	no_errors 'of users'
	curl -sf -m 10 -o /dev/null -X POST \
	    "$(status_url)?worker=127.0.0.1:$(nth 3 "$engine_ports")&action=drain" ||
	    echo 'no order'
	top --count 1 "$(status_url)" || cat "$work/out/top_wrong"
	is 'workers' "$(top_line Workers)" \
	    '4: 3 up, 1 draining, 0 down, 0 overloaded'
	is 'state' "$(top_cell STATE 3)" draining
	is 'state of another' "$(top_cell STATE 1)" up
	is 'upstream' "$(top_line Upstream | cut -d , -f 1-2)" \
	    'engines, policy balanced'
	is 'prompts' "$(top_line Prompts | grep -oE '[0-9]+ % [bp]' | paste -s)" \
	    "$(json '.upstreams[0] | "\(100 * .best_tokens / .prompt_tokens |
	        round) % b\t\(100 * .predicted_tokens / .prompt_tokens |
	        round) % p"')"
	is 'best' "$(top_cell BEST% 1)" "$(json '.upstreams[0].workers[] |
	    select(.name == "127.0.0.1:'"$(nth 1 "$engine_ports")"'") | 100 *
	    .best_tokens / .prompt_tokens | round')"
	is 'seen' "$(top_cell SEEN% 1)" "$(json '.upstreams[0].workers[] |
	    select(.name == "127.0.0.1:'"$(nth 1 "$engine_ports")"'") | 100 *
	    .usage_cached_tokens / .usage_prompt_tokens | round')"
	# Rates cover the time between two readings, when nothing came.
	top --count 2 --sort req "$(status_url)" || cat "$work/out/top_wrong"
	is 'tables' "$(grep -c '^WORKER' "$work/out/top")" 2
	is 'rate' "$(top_cell REQ/S 1)" 0
	is 'predicted of nothing' "$(top_cell PRED% 1)" -
	is 'requests' "$(top_line Requests)" '0 open, 0/s, 0/s again, 0/s failed'
}

# The same without nginx, from the file, which it leaves as it is.
top_shows_a_region()
{
	kvroute_options="path=$work/out/index size=8m"
	up
	# shellcheck disable=SC2086
	talk $load --turns 3
	top --count 1 "$(status_url)" || cat "$work/out/top_wrong"
	sed -n '/^WORKER/,$p' "$work/out/top" > "$work/out/by_url"
	top --count 1 "$work/out/index" || cat "$work/out/top_wrong"
	sed -n '/^WORKER/,$p' "$work/out/top" | cmp - "$work/out/by_url"
	is 'upstream' "$(top_line Upstream | cut -d , -f 1-2)" \
	    'index, policy balanced'
	stop_nginx
	cp "$work/out/index" "$work/out/copy"
	top --count 1 "$work/out/index" || cat "$work/out/top_wrong"
	cmp "$work/out/index" "$work/out/copy"
	is 'workers' "$(top_line Workers | cut -d : -f 1)" 4
}

# It shows a gray engine, the session that left it, and the rest when it is
# good.
top_shows_health()
{
	health_up
	begin_session
	top --count 1 "$(status_url)" || cat "$work/out/top_wrong"
	is 'workers' "$(top_line Workers)" \
	    '4: 4 up, 0 draining, 0 down, 0 overloaded, 0 gray, 0 warming'
	is 'sessions' "$(top_line Sessions)" \
	    '1 known, turns: 100 % stayed, 0 % moved'
	fault "$home" 'kind=error&status=503&percent=50&seconds=600'
	turns_until "$home" failing 20
	turns_go_elsewhere
	top --count 1 "$(status_url)" || cat "$work/out/top_wrong"
	is 'workers with a gray one' "$(top_line Workers)" \
	    '4: 4 up, 0 draining, 0 down, 0 overloaded, 1 gray, 0 warming'
	is 'state of the gray one' "$(top_cell STATE "$home")" failing
	top_line Sessions | grep -q ' % left gray$' ||
	    echo "no session left it: $(top_line Sessions)"
	is order "$(order "$(address_of "$home")" up)" 200
	top --count 1 "$(status_url)" || cat "$work/out/top_wrong"
	is 'state when it is good' "$(top_cell STATE "$home")" up
	settled
}

# Keys change the view; the terminal is left as it was.
top_in_a_terminal()
{
	up
	{
		sleep 1
		printf '>>h'
		sleep 1
		printf 'q'
	} | TERM=xterm script -qec "stty cols 120 rows 30; stty -a | head -n 1
	    $build/kvroute-top --interval 0.2 $(status_url); echo left \$?" \
	    "$work/out/typed" > /dev/null
	for text in 'WORKER' 'CACHE%' "127.0.0.1:$(nth 4 "$engine_ports")" \
	    'sorted by WORKER' 'REQ: requests booked' 'left 0'; do
		tr -d '\r' < "$work/out/typed" | grep -qF "$text" ||
		    echo "the terminal has no '$text'"
	done
}

# top_fails TEXT ARGUMENT ...
top_fails()
{
	text=$1
	shift
	! top --count 1 "$@" || echo "no failure: $*"
	grep -qF -- "$text" "$work/out/top_wrong" ||
	    echo "no '$text' in: $(cat "$work/out/top_wrong")"
}

top_says_what_is_wrong()
{
	up
	top_fails 'No such file' "$work/out/none"
	echo text > "$work/out/text"
	top_fails "$work/out/text: " "$work/out/text"
	top_fails 'status 404: is kvroute_status there?' \
	    "http://127.0.0.1:$(nth 1 "$engine_ports")/none"
	top_fails 'it is not JSON' "$(status_url)/metrics?"
	top_fails 'connect' "http://127.0.0.1:$(free_port)/kvroute"
	top_fails 'no such upstream' --upstream other "$(status_url)"
	top_fails 'not one of WORKER STATE' --sort other "$(status_url)"
	top_fails 'not from 0.1' --interval 0 "$(status_url)"
	! "$build/kvroute-top" "$(status_url)" < /dev/null \
	    2> "$work/out/top_wrong" > /dev/null || echo 'no terminal, no error'
	grep -q 'no terminal: see --batch' "$work/out/top_wrong" ||
	    cat "$work/out/top_wrong"
}
