#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# bench.sh BUILD - what the module gains and costs, compared with least_conn
# where that applies: one nginx with each method runs at the same time, and they
# are queried in turns, so that disturbances of the machine affect both. Medians
# of the rounds are shown.
#
# BENCH="hits crowd documents slow cpu module rate stop stream memory" selects
# parts; ROUNDS=9; BENCH_REQUESTS=1000000 is the number of requests of the last
# part.
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2317
set -u

build=$1
parts=${BENCH:-hits crowd documents slow cpu module rate stop stream memory}
rounds=${ROUNDS:-9}
missed=0
. "$(dirname "$0")/../../tests/nginx/setup.sh"

# ------------------------------------------------------------------- numbers

calculate()
{
	awk "BEGIN { printf \"%.${2:-3}f\", $1 }"
}

median()
{
	sort -g | awk '{ v[NR] = $1 } END {
		low = v[int((NR + 1) / 2)]
		high = v[int(NR / 2) + 1]
		printf "%.3f\n", (low + high) / 2
	}'
}

# figure WHAT VALUE LIMIT below|above - prints a figure and checks its limit.
figure()
{
	if awk -v a="$2" -v b="$3" -v how="$4" 'BEGIN {
	    exit !(a != "" && (how == "above" ? a + 0 >= b : a + 0 <= b)) }'
	then
		verdict=reached
	else
		verdict=MISSED
		missed=1
	fi
	case $4 in above) sign='>=' ;; *) sign='<=' ;; esac
	printf '%-58s %10s  %s %-8s %s\n' "$1" "$2" "$sign" "$3" "$verdict"
}

told()
{
	printf '%-58s %10s\n' "$1" "$2"
}

heading()
{
	printf '\n%s\n' "$1"
}

# ----------------------------------------------------------------- hit ratio

# hits NAME METHOD ENGINES CAPACITY RATE - sends the same requests to each.
hits()
{
	start_engines "$3" --scale 0.2 --capacity "$4" --prefill-rate "$5" \
	    --sequences $((2048 / $3))
	start_nginx "$2"
	chats --chats 64 --requests "${HIT_REQUESTS:-6000}" --systems 64 \
	    --turns 8 --turn-bytes 800 --think-ms 50 --format kv \
	    > "$work/$1"
	printf '%-22s %8s %12s %12s %10s\n' "$1" \
	    "$(value "$work/$1" hit_ratio)" \
	    "$(value "$work/$1" first_mean_ms)" \
	    "$(value "$work/$1" first_p90_ms)" \
	    "$(value "$work/$1" errors)"
	stop_nginx
	stop_engines
}

bench_hits()
{
	heading 'Reported hit ratio, 8 engines of 40,000 tokens, and one of 320,000'
	printf '%-22s %8s %12s %12s %10s\n' method 'hits' 'TTFT mean' \
	    'TTFT p90' errors
	hits round_robin round_robin 8 40000 9000
	hits least_conn least_conn 8 40000 9000
	hits hash hash 8 40000 9000
	hits kvroute kvroute 8 40000 9000
	server_facts='capacity=40000 prefill_rate=45000'
	hits kvroute_told kvroute 8 40000 9000
	server_facts=
	hits one_engine round_robin 1 320000 72000
	for name in kvroute kvroute_told; do
		ratio=$(value "$work/$name" hit_ratio)
		figure "$name / one engine with all the memory" "$(calculate \
		    "$ratio / $(value "$work/one_engine" hit_ratio)")" \
		    0.95 above
		figure "$name / round robin" "$(calculate \
		    "$ratio / $(value "$work/round_robin" hit_ratio)")" 2 above
		first=$(value "$work/$name" first_mean_ms)
		figure "$name / least_conn, mean until the first token" \
		    "$(calculate "$first / \
		    $(value "$work/least_conn" first_mean_ms)")" 1 below
	done
}

# ------------------------------------------------------- engines under load

# Engines as `kvroute-replay --simulate` has them at its most exact.
loaded_engines()
{
	start_engines "$@" --batch 2048 --reads own --attention 53000 --preempt
}

# One system prompt for all, and more users than slots: what is cached is the
# same everywhere, so a method can only lose, by waiting.
crowd()
{
	loaded_engines 4 --scale 0.2 --sequences 8 --capacity 200000
	start_nginx "$1"
	chats -q --chats 40 --requests "${CROWD_REQUESTS:-1600}" --systems 1 \
	    --system-bytes 20000 --think-ms 50 --format kv > "$work/$1" ||
	    echo "errors with $1" >&2
	stop_nginx
	stop_engines
	echo "$(value "$work/$1" first_p50_ms)" \
	    "$(value "$work/$1" first_p90_ms)" "$(value "$work/$1" seconds)" \
	    "$(value "$work/$1" hit_ratio)" >> "$work/crowd_$1"
}

# crowd_median METHOD COLUMN
crowd_median()
{
	cut -d ' ' -f "$2" "$work/crowd_$1" | median
}

# The medians of some rounds: the machine disturbs TTFT.
bench_crowd()
{
	heading 'One system prompt of 20 kB, 40 users, 4 engines of 8 slots'
	i=0
	while [ "$i" -lt $(((rounds + 2) / 3)) ]; do
		crowd least_conn
		crowd kvroute
		i=$((i + 1))
	done
	printf '%-22s %12s %12s %10s %8s\n' method 'TTFT p50' 'TTFT p90' \
	    seconds hits
	for name in least_conn kvroute; do
		printf '%-22s %12s %12s %10s %8s\n' "$name" \
		    "$(crowd_median "$name" 1)" "$(crowd_median "$name" 2)" \
		    "$(crowd_median "$name" 3)" "$(crowd_median "$name" 4)"
	done
	for column in 1 2; do
		figure "TTFT p$((10 + column * 40)), kvroute / least_conn" \
		    "$(calculate "$(crowd_median kvroute "$column") / \
		    $(crowd_median least_conn "$column")")" 1.1 below
	done
}

# documents NAME METHOD ENGINES CAPACITY - one request at a time.
documents()
{
	loaded_engines "$3" --scale 0.02 --sequences 8 --capacity "$4"
	start_nginx "$2"
	chats -q --chats 1 --requests "${DOCUMENT_REQUESTS:-900}" \
	    --systems 60 --system-bytes 20000 --turns 1 --think-ms 0 \
	    --answer-tokens 8 --format kv > "$work/$1" ||
	    echo "errors with $1" >&2
	printf '%-22s %8s %12s\n' "$1" "$(value "$work/$1" hit_ratio)" \
	    "$(value "$work/$1" first_mean_ms)"
	stop_nginx
	stop_engines
}

# A document has 6,900 tokens, so an engine has room for 20 and all of them for
# each once, with a third to spare.
bench_documents()
{
	heading '60 documents of 20 kB, one request at a time, 4 engines'
	printf '%-22s %8s %12s\n' method 'hits' 'TTFT mean'
	documents least_conn least_conn 4 140000
	documents kvroute kvroute 4 140000
	documents one_engine round_robin 1 560000
	figure 'hits, kvroute / one engine with all the memory' \
	    "$(calculate "$(value "$work/kvroute" hit_ratio) / \
	    $(value "$work/one_engine" hit_ratio)")" 0.9 above
}

# finished - of all engines, then of the first one.
finished()
{
	for p in $engine_ports; do
		curl -s -m 10 "http://127.0.0.1:$p/metrics" |
		    awk '/^vllm:request_success_total/ { print $2 }'
	done | awk '{ sum += $1 } NR == 1 { one = $1 }
	    END { print sum, one + 0 }'
}

# window SECONDS - the first engine's part of what finishes in this time,
# relative to an equal part.
window()
{
	before=$(finished)
	sleep "$1"
	echo "$before $(finished)" |
	    awk '{ print ($3 > $1 ? 4 * ($4 - $2) / ($3 - $1) : 0) }'
}

reaches()
{
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'
}

# slow METHOD - $back: seconds until the engine has half of its share again.
slow()
{
	loaded_engines 4 --scale 0.2 --sequences 8 --capacity 100000
	start_nginx "$1"
	"$build/kvroute-chats" --url "http://127.0.0.1:$port" -q --chats 40 \
	    --seconds 200 --systems 8 --think-ms 200 --format kv \
	    > "$work/slow" &
	chats_pid=$!
	fault='kind=slow&factor=20&seconds=25'
	sleep 5
	told "$1: share of an engine before, of its part" "$(window 10)"
	curl -sf -m 10 -o /dev/null -X POST \
	    "http://127.0.0.1:${engine_ports%% *}/fault?$fault"
	sleep 15
	told "$1: while it is 20 times slower" "$(window 10)"
	back=0
	share=0
	while [ "$back" -lt 120 ] && ! reaches "$share" 0.5; do
		share=$(window 10)
		back=$((back + 10))
	done
	told "$1: afterwards, in the last 10 s seen" "$share"
	reaches "$share" 0.5 || back=never
	end_child "$chats_pid" -TERM
	chats_pid=
	stop_nginx
	stop_engines
}

# Router and engines share a clock here: the engines are fast, but the fault and
# what is learnt of it take as long as they say.
bench_slow()
{
	heading 'An engine of 4 is 20 times slower for 25 s'
	slow least_conn
	told 'least_conn: seconds until it has half of its share' "$back"
	slow kvroute
	[ "$back" != never ] || back=1000
	figure 'kvroute: seconds until it has half of its share' "$back" 120 \
	    below
}

# ------------------------------------------------- beside least_conn, in turns

# An nginx that responds to everything at once, instead of engines.
start_answers()
{
	http_lines='server {
		listen unix:'$work'/answers;
		client_max_body_size 64m;
		keepalive_requests 100000000;
		default_type application/json;
		location / { return 200 '\''{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":2000,"prompt_tokens_details":{"cached_tokens":1000},"completion_tokens":1}}'\''; }
	}'
	upstream_ports=1
	processes=1
	start_nginx round_robin
	keep_nginx
	http_lines=
	server_list="server unix:$work/answers;"
}

# pair - starts an nginx with each method, and keeps them.
pair()
{
	processes=1
	start_nginx least_conn
	least_port=$port
	least_pids=$(children "$nginx_pid" | paste -s -d ,)
	keep_nginx
	start_nginx kvroute
	kvroute_port=$port
	kvroute_pids=$(children "$nginx_pid" | paste -s -d ,)
	keep_nginx
}

# A third one, which parses and hashes as kvroute must, then uses least_conn.
floor()
{
	start_nginx floor
	floor_port=$port
	floor_pids=$(children "$nginx_pid" | paste -s -d ,)
	keep_nginx
}

# turns FIGURE option ... - a line a round, of each method: least_conn, kvroute.
turns()
{
	wanted=$1
	shift
	i=0
	while [ "$i" -lt "$rounds" ]; do
		port=$least_port
		chats -q --format kv --pid "$least_pids" "$@" > "$work/a" ||
		    echo 'errors with least_conn' >&2
		port=$kvroute_port
		chats -q --format kv --pid "$kvroute_pids" "$@" > "$work/b" ||
		    echo 'errors with kvroute' >&2
		echo "$(value "$work/a" "$wanted") $(value "$work/b" "$wanted")"
		i=$((i + 1))
	done > "$work/turns"
	least=$(cut -d ' ' -f 1 "$work/turns" | median)
	kvroute=$(cut -d ' ' -f 2 "$work/turns" | median)
	added=$(awk '{ print $2 - $1 }' "$work/turns" | median)
	ratio=$(awk '{ print $2 / $1 }' "$work/turns" | median)
}

make_bodies()
{
	"$build/kvroute-chats" --make-body 2000 > "$work/body2"
	"$build/kvroute-chats" --make-body 8000 > "$work/body8"
	for kb in 100 400 2000; do
		"$build/kvroute-chats" --make-body "${kb}000" \
		    --turn-bytes 2000 > "$work/body$kb"
	done
	"$build/kvroute-chats" --make-body 600 --turn-bytes 100 \
	    > "$work/body0"
}

# asked METHOD FILE REQUESTS - CPU time per request, us, of a busy process.
asked()
{
	eval "port=\$$1_port pids=\$$1_pids"
	chats -q --format kv --pid "$pids" --body "$2" --vary --chats 16 \
	    --requests "$3" > "$work/a" || echo "errors with $1" >&2
	value "$work/a" cpu_us
}

# beside NAME FILE REQUESTS LIMIT - CPU time as a multiple of least_conn's.
beside()
{
	i=0
	while [ "$i" -lt $((rounds * 3)) ]; do
		echo "$(asked least "$2" "$3") $(asked kvroute "$2" "$3")"
		i=$((i + 1))
	done > "$work/turns"
	figure "$1: CPU time, kvroute / least_conn" "$(awk '
		{ a += $1; b += $2 } END { print b / a }' "$work/turns")" \
	    "$4" below
}

# cost NAME FILE REQUESTS - in many short turns: the machine may be half as fast
# a minute later. Differences of noisy numbers are summed, not their ratios.
cost()
{
	i=0
	while [ "$i" -lt $((rounds * 3)) ]; do
		echo "$(asked least "$2" "$3") $(asked floor "$2" "$3")" \
		    "$(asked kvroute "$2" "$3")"
		i=$((i + 1))
	done > "$work/turns"
	mean='{ n++; a += $1; b += $2; c += $3 } END { print'
	told "$1: us of CPU time a request, least_conn" \
	    "$(awk "$mean a / n }" "$work/turns")"
	told "$1: and YAJL over the body and the hash" \
	    "$(awk "$mean b / n }" "$work/turns")"
	told "$1: kvroute" "$(awk "$mean c / n }" "$work/turns")"
	figure "$1: added by kvroute / by YAJL and the hash" \
	    "$(awk "$mean (c - a) / (b - a) }" "$work/turns")" 1.5 below
	loop=$("$build/floor" -e chat -r 500 "$2" |
	    awk '$2 ~ /^[0-9]+$/ { print $6 / 1e3 }')
	told "$1: body to hashed blocks in a loop of its own, us" "$loop"
	told "$1: added by kvroute / that" \
	    "$(awk "$mean (c - a) / n / $loop }" "$work/turns")"
}

bench_cpu()
{
	heading 'CPU time of the process of nginx'
	start_answers
	pair
	floor
	cost '8 kB' "$work/body8" 8000
	cost '400 kB' "$work/body400" 300
	beside '2 kB' "$work/body2" 8000 1.6
	beside '8 kB' "$work/body8" 8000 1.5
	beside '100 kB' "$work/body100" 1000 1.4
	stop_kept
}

# By the module's own clock, from the log.
bench_module()
{
	heading 'Time in the module, 8 kB'
	start_answers
	log=access
	start_nginx kvroute
	log=
	chats -q --format kv --body "$work/body8" --vary --chats 4 \
	    --requests 50000 > "$work/a" || echo 'errors' >&2
	stop_nginx
	awk -F '\t' '$6 ~ /^[0-9]+$/ { print $6 / 1e3 }' \
	    "$work/logs/access" | sort -g > "$work/us"
	told 'us, p50' "$(sed -n "$(($(wc -l < "$work/us") / 2))p" "$work/us")"
	figure 'us, p99' "$(sed -n "$(($(wc -l < "$work/us") * 99 / 100))p" \
	    "$work/us")" 100 below
	rm "$work/logs/access"
	stop_kept
}

# rate BYTES-IN-KB REQUESTS AT-A-TIME
rate()
{
	turns rate --body "$work/body$1" --vary --chats "$3" --requests "$2"
	told "$1 kB, $3 at a time: least_conn" "$least"
	told "$1 kB: kvroute" "$kvroute"
	told "$1 kB: kvroute / least_conn, median of ratios" "$ratio"
}

bench_rate()
{
	heading 'Requests a second'
	start_answers
	pair
	rate 8 30000 32
	rate 100 8000 32
	rate 400 2000 32
	stop_kept
}

# stood METHOD KB - the turns of a process while bodies arrive, four at a time:
# p99.9 and the longest, ms of CPU time.
stood()
{
	under="env LD_PRELOAD=$(cd "$build" && pwd -P)/turns.so TURNS=$work/turns."
	start_nginx "$1"
	under=
	chats -q --format kv --body "$work/body$2" --vary --chats 4 \
	    --requests $((4000000 / $2)) > "$work/a" ||
	    echo "errors with $1" >&2
	finish_nginx
	cat "$work"/turns.* > "$work/stood"
	rm "$work"/turns.*
	echo "$(value "$work/stood" p999_ms) $(value "$work/stood" most_ms)"
}

# stood_median COLUMN
stood_median()
{
	cut -d ' ' -f "$1" "$work/turns" | median
}

stops()
{
	i=0
	while [ "$i" -lt "$rounds" ]; do
		echo "$(stood least_conn "$1") $(stood kvroute "$1")"
		i=$((i + 1))
	done > "$work/turns"
	told "$1 kB: p99.9, least_conn" "$(stood_median 1)"
	told "$1 kB: the longest, least_conn" "$(stood_median 2)"
	told "$1 kB: p99.9, kvroute" "$(stood_median 3)"
	told "$1 kB: the longest, kvroute" "$(stood_median 4)"
	figure "$1 kB: p99.9, kvroute - least_conn" \
	    "$(calculate "$(stood_median 3) - $(stood_median 1)")" 1 below
}

bench_stop()
{
	heading 'Time for which the loop stands still while bodies arrive, ms'
	start_answers
	processes=1
	body_buffer=4m
	stops 400
	stops 2000
	body_buffer=
	stop_kept
}

# One user, so that no request waits for another: the cost of the choice itself.
bench_stream()
{
	heading 'First event of a stream, one engine, one user, 8 kB, ms'
	server_list=
	upstream_ports=
	start_engines 1 --scale 0.1
	pair
	turns first_p50_ms --body "$work/body8" --chats 1 --requests 100
	told 'least_conn, p50' "$least"
	told 'kvroute, p50' "$kvroute"
	figure 'kvroute - least_conn, median of differences' "$added" \
	    0.1 below
	stop_kept
	stop_engines
}

# A tenth at a time, so that growth is visible as growth.
bench_memory()
{
	requests=${BENCH_REQUESTS:-1000000}
	heading "Memory of two processes of nginx over $requests requests, MB"
	start_answers
	processes=2
	start_nginx kvroute
	pids=$(children "$nginx_pid" | paste -s -d ,)
	for i in 1 2 3 4 5 6 7 8 9 10; do
		chats -q --body "$work/body0" --vary --chats 32 --seed "$i" \
		    --requests $((requests / 10)) --pid "$pids" \
		    --format kv > "$work/tenth" || echo 'errors' >&2
		rss=$(calculate "$(value "$work/tenth" rss_after) / 1e6" 2)
		[ "$i" -ne 1 ] || begin=$rss
		printf '%s ' "$rss"
	done
	echo
	figure 'growth after the first tenth' "$(calculate "$rss - $begin" 2)" \
	    0.5 below
	stop_nginx
	stop_kept
}

setup_begin
make_bodies
for part in $parts; do
	"bench_$part"
done
exit $missed
