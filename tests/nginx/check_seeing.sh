#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_seeing.sh - cases of check.sh: operators see times, and the hits that
# the choice gave up.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} best_is_shown_beside_chosen times_are_counted
    times_of_a_held_body"

seen_format='log_format seen "$kvroute_worker $kvroute_overlap_tokens '\
'$kvroute_best_tokens $kvroute_ttft $kvroute_token_time $kvroute_ns";'

seeing_up()
{
	http_lines=$seen_format
	location_lines="access_log $work/logs/seen seen; ${1:-}"
	up
}

# seen N FIELD - of the N-th request's line.
seen()
{
	sed -n "$1p" "$work/logs/seen" | cut -d ' ' -f "$2"
}

order_of()
{
	curl -sf -m 10 -o /dev/null -X POST \
	    "http://127.0.0.1:$port/kvroute?worker=$1&action=$2" ||
	    echo "$1: no $2"
}

# say_to SESSION PROMPT [member] - a request of a session.
say_to()
{
	curl -sfN -m 20 -o /dev/null -H "X-Session: $1" \
	    "http://127.0.0.1:$port/v1/completions" \
	    -d "{\"prompt\": \"$2\", \"max_tokens\": 4${3:-}}" ||
	    echo "$1: no answer"
}

seen_is()
{
	[ "$(wc -l < "$work/logs/seen")" -eq "$1" ]
}

# Each of two engines gets the prompts that only it may have. At the end a
# session that is bound to the first has the prompt of the second.
best_is_shown_beside_chosen()
{
	engines=2
	seeing_up 'kvroute_affinity $http_x_session mode=hard;'
	one=127.0.0.1:$(nth 1 "$engine_ports")
	two=127.0.0.1:$(nth 2 "$engine_ports")
	long=$(seq -s ' ' 2000)
	order_of "$one" drain
	say_to b "$long"
	order_of "$one" up
	order_of "$two" drain
	say_to a 'nothing in common'
	order_of "$two" up
	before=$(json '.upstreams[0].predicted_tokens')
	say_to a "$long"
	until_true 20 seen_is 3 || echo "requests: $(cat "$work/logs/seen")"
	is 'worker of the third' "$(seen 3 1)" "$one"
	is 'its overlap' "$(seen 3 2)" 0
	above 'best of the third' "$(seen 3 3)" 1000
	is 'best of the first' "$(seen 1 3)" 0
	is 'best in sum' "$(json '.upstreams[0].best_tokens')" \
	    $(($(seen 3 3) + before))
	is 'best of the worker' "$(json ".upstreams[0].workers[] |
	    select(.name == \"$one\") | .best_tokens")" "$(seen 3 3)"
	is 'best of the other' "$(json ".upstreams[0].workers[] |
	    select(.name == \"$two\") | .best_tokens")" 0
	is 'metric of the index' "$(metric kvroute_best_tokens_total)" \
	    "$(seen 3 3)"
	is 'metric of workers' "$(metric kvroute_worker_best_tokens_total)" \
	    "$(seen 3 3)"
	# in the engine's tokens, beside its report
	above 'best beside reports' "$(json '.upstreams[0].usage.best_tokens')" \
	    "$(json '.upstreams[0].usage.predicted_tokens')"
	settled
}

# time_count KIND - of a histogram, by its samples.
time_count()
{
	metric "kvroute_nginx_$1_seconds_count"
}

# Checks the metrics on standard input: bounds rise and counts do not fall, the
# last bucket is the count, and the sum, which is counted by itself, lies within
# the bounds of the buckets.
buckets_add_up()
{
	sed -n -e "s/^kvroute_nginx_$1_seconds_bucket{.*le=\"\(.*\)\"} /bucket \1 /p" \
	    -e "s/^kvroute_nginx_$1_seconds_\([sc][a-z]*\){.*} /\1 - /p" |
	    awk -v kind="$1" '
	    function bad(why) { print kind ": " why }
	    $1 == "bucket" {
		here = $NF - last
		if (here < 0) bad("a bucket falls at " $2)
		if ($2 == "+Inf") {
			open = here
		} else {
			if (seen++ && $2 + 0 <= low) bad("bounds fall at " $2)
			most += here * $2
		}
		least += here * low
		low = $2 + 0
		last = $NF
	    }
	    $1 == "sum" { sum = $NF }
	    $1 == "count" { count = $NF }
	    END {
		if (seen < 5) bad("buckets: " seen)
		if (last != count) bad("last " last ", count " count)
		if (sum < least * 0.999999) bad("sum " sum " below " least)
		if (!open && sum > most * 1.000001)
			bad("sum " sum " above " most)
	    }'
}

# Each histogram has the right count, and its buckets add up.
times_are()
{
	is "first tokens $5" "$(time_count time_to_first_token)" "$1"
	is "tokens $5" "$(time_count time_per_output_token)" "$2"
	is "requests $5" "$(time_count request)" "$3"
	is "time of the module $5" "$(time_count module)" "$4"
	status /metrics > "$work/out/metrics"
	for kind in time_to_first_token time_per_output_token request module \
	    turn; do
		buckets_add_up $kind < "$work/out/metrics"
	done
}

# Two streams, one without usage, and an answer that comes whole; a request that
# the engine refuses has no tokens.
times_are_counted()
{
	engines=1
	seeing_up 'kvroute_include_usage off;'
	say_to a 'one two' ', "stream": true, "stream_options":
	    {"include_usage": true}'
	say_to a 'one two' ', "stream": true'
	say_to a 'one two'
	curl -s -m 20 -o /dev/null "http://127.0.0.1:$port/v1/completions" \
	    -d '{"prompt": 7.5, "max_tokens": "x"}'
	until_true 20 seen_is 4 || echo "requests: $(cat "$work/logs/seen")"
	times_are 2 1 4 4 first
	for i in 1 2; do
		case $(seen $i 4) in
		[0-9]*.[0-9][0-9][0-9]) ;;
		*) echo "time to first token of $i: '$(seen $i 4)'" ;;
		esac
	done
	is 'the same of no stream' "$(sed -n 3p "$work/logs/seen" |
	    cut -d ' ' -f 4,5)" '- -'
	case $(seen 1 5) in
	0.*[1-9]*) ;;
	*) echo "time for a token: '$(seen 1 5)'" ;;
	esac
	is 'the same without usage' "$(seen 2 5)" -
	above 'turns' "$(time_count turn)" 3
	above 'quantile of the module' \
	    "$(json '.upstreams[0].times.module.p99')" 0
	is 'requests in the JSON' \
	    "$(json '.upstreams[0].times.request.count')" 4
	# its clock is that of the log
	is 'sum of the module' "$(json '.upstreams[0].times.module.sum * 1e6 |
	    round')" "$(awk '{ ns += $NF } END { printf "%.0f\n", ns / 1000 }' \
	    "$work/logs/seen")"
	reload_nginx kvroute
	times_are 2 1 4 4 'after a reload'
	say_to a 'one two three' ', "stream": true'
	until_true 20 seen_is 5 || echo 'no fifth request'
	times_are 3 1 5 5 'and a request'
	settled
}

# A body read in pieces counts as time of turns, each piece for itself.
times_of_a_held_body()
{
	engines=1
	seeing_up 'client_max_body_size 64m;'
	seq -s ' ' 400000 > "$work/out/words"
	{ printf '{"max_tokens": 1, "prompt": "'; tr -d '\n' \
	    < "$work/out/words"; printf '"}'; } > "$work/out/body"
	say_to a 'short'
	until_true 20 seen_is 1 || echo 'no request'
	before=$(time_count turn)
	curl -s -m 30 -o /dev/null "http://127.0.0.1:$port/v1/completions" \
	    --data-binary "@$work/out/body"
	until_true 20 seen_is 2 || echo 'no second request'
	pieces=$(json '.upstreams[0].body_pieces')
	above 'pieces' "$pieces" 3
	above 'turns' "$(time_count turn)" $((before + 3))
	settled
}
