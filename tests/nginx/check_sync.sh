#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_sync.sh - cases of check.sh: the journal of a region, and the effects of
# kvroute-sync on it.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} a_journal_is_kept examples_are_taken
    what_one_sends_the_other_knows"
slow_cases="${slow_cases:-} deaths_of_others_fail_no_request"

# make_secret - in out/secret.
make_secret()
{
	(umask 077 && printf '0123456789abcdefghijklmnopqrstuv' \
	    > "$work/out/secret")
}

# journal SIZE - the options of a region with one.
journal()
{
	kvroute_options="path=$work/out/index size=8m block=64 \
	    secret=$work/out/secret journal=$1"
}

a_journal_is_kept()
{
	make_secret
	journal 64k
	up
	talk --requests 6 --chats 2 --think-ms 1
	no_errors 'with a journal'
	is 'its size' "$(metric kvroute_journal_bytes)" 65536
	above 'bytes written' "$(metric kvroute_journal_written_bytes_total)" 0
	journal 128k
	reload_is_refused 'another block, ttl, workers, tenants, journal, affinity'
	expected_alert='in use with another block'
	is 'the same in JSON' "$(json '.upstreams[0].region.journal
	    | (.bytes | tostring) + " " + (.written > 0 | tostring) + " "
	    + (.beat_age | tostring)')" '65536 true null'
	settled
	stop_nginx
	does_not_start 'Another is journal_bytes'
	rm "$work/out/index" "$work/out/index.lock"
	start_nginx kvroute
	is 'its size' "$(metric kvroute_journal_bytes)" 131072
	settled
}

# example NAME - nginx -t takes it, with the paths of this test.
example()
{
	sed "s|modules/ngx_http|$(dirname "$module")/ngx_http|
	    s|/etc/nginx/kvroute.secret|$work/out/secret|
	    s|/var/lib/kvroute/chat|$work/out/chat|
	    s|^events|pid $work/tried.pid; events|
	    s|listen 80;|listen 127.0.0.1:1;|" "examples/$1" > "$work/tried.conf"
	"$NGINX_BIN" -t -p "$work/out" -c "$work/tried.conf" \
	    -e "$work/out/tried" > "$work/said" 2>&1 || cat "$work/said"
}

examples_are_taken()
{
	find_module
	make_secret
	chmod 711 "$work"
	example sync-nginx.conf
	example sync-balancer.conf
	example sync-spread.conf
}

# ---------------------------------------------------------- two machines

redis_pid=
sync_pids=

start_redis()
{
	redis-server --port 0 --unixsocket "$work/out/redis" --save '' \
	    --appendonly no --daemonize no --dir "$work/out" \
	    > "$work/logs/redis" 2>&1 &
	redis_pid=$!
	until_true 20 test -S "$work/out/redis" || echo 'no redis-server'
}

# start_sync N - for the region of router N; its pid is in sync_pid, and in
# sync_pid_N.
start_sync()
{
	"$build/kvroute-sync" --redis "unix://$work/out/redis" \
	    --socket "$work/out/sync$1" "$work/out/index$1" \
	    >> "$work/logs/sync" 2>&1 &
	sync_pid=$!
	sync_pids="$sync_pids $sync_pid"
	eval "sync_pid_$1=$sync_pid"
}

end_sync()
{
	for pid in $sync_pids; do
		end_child "$pid" -KILL
	done
	end_child "$redis_pid" -TERM
	redis_pid=
	sync_pids=
}

hears_one()
{
	"$build/kvroute-sync" --status "$work/out/sync$1" |
	    jq -e '[.[0].peers[] | select(.state == "fresh")] | length == 1'
}

# start_router N - an nginx with a region of its own; its port is in port.
start_router()
{
	kvroute_options="path=$work/out/index$1 secret=$work/out/secret \
	    ${router_options:-size=8m block=64 journal=1m}"
	log=access$1
	start_nginx kvroute
	keep_nginx
}

# Two routers with a daemon each; ports in port1 and port2. False: skipped.
two_routers()
{
	command -v redis-server > /dev/null || { skip 'no redis-server'
	    return 1; }
	[ -x "$build/kvroute-sync" ] || { skip 'no kvroute-sync'; return 1; }
	make_secret
	start_engines 2 "$@"
	start_router 1
	port1=$port
	start_router 2
	port2=$port
	start_redis
	start_sync 1
	start_sync 2
	until_true 20 hears_one 1 || echo 'the first hears nothing'
	until_true 20 hears_one 2 || echo 'the second hears nothing'
}

# ask_at PORT - one request with a prompt of some blocks.
ask_at()
{
	curl -s -m 20 -o /dev/null -d '{"model":"m","prompt":"'"$(
	    awk 'BEGIN { while (n++ < 100) printf "word%d ", n }')"'"}' \
	    "http://127.0.0.1:$1/v1/completions" || echo 'no response'
}

# peer N FILTER - filters what the daemon of router N has of the only peer.
peer()
{
	"$build/kvroute-sync" --status "$work/out/sync$1" |
	    jq -r ".[0].peers[0] | $2"
}

peer_is()
{
	[ "$(peer "$1" "$2")" = "$3" ]
}

silent_is()
{
	[ "$(json '.upstreams[0].region.journal.beat_age > 3')" = "$1" ]
}

# The daemon shows the other router: state, delay, frames.
peers_are_shown()
{
	is 'the peer' "$(peer 2 '[.state, .lag_ms < 1000, .silent_ms < 4000,
	    .frames > 0, (.host | length) > 0]
	    | map(tostring) | join(" ")')" 'fresh true true true true'
	is 'in metrics' "$("$build/kvroute-sync" --metrics "$work/out/sync2" |
	    grep -c '^kvroute_sync_peer_fresh{.*} 1$')" 1
}

held_at_this()
{
	[ "$(json '.upstreams[0].region.held_blocks')" -gt 0 ]
}

# The second is killed: its leases here end. The successor goes on.
what_one_sends_the_other_knows()
{
	two_routers --scale 1 || return
	ask_at "$port1"
	port=$port2
	until_true 20 held_at_this || echo 'nothing has come'
	ask_at "$port2"
	until_true 20 no_leases || echo 'leases stay'
	above 'overlap at the other' \
	    "$(cut -f 3 "$work/logs/access2" | grep -v '^-' |
	    tail -n 1)" 0
	port=$port1
	long_streams 8
	port=$port2
	until_true 20 has_leases "$streams" || echo "no leases come, but $(
	    json '.upstreams[0].region.leases')"
	peers_are_shown
	until_true 20 peer_is 2 '[.leases, .requests]
	    | map(tostring) | join(" ")' "$streams $streams" ||
	    echo "leases and requests of the other: $(peer 2 .)"
	is 'it beats' "$(json '.upstreams[0].region.journal.beat_age < 3')" true
	kill -KILL "$sync_pid"
	until_true 20 no_leases || echo 'leases of the others stay'
	is 'requests there' "$(json '[.upstreams[0].workers[].requests]
	    | add')" 0
	is 'lines about it' "$(lines_with 'kvroute-sync is silent')" 1
	until_true 20 silent_is true || echo 'the page does not see the end'
	give_up_streams
	start_sync 2
	until_true 20 hears_one 2 || echo 'the next one hears nothing'
	until_true 20 silent_is false || echo 'the next one does not beat'
	port=$port1
	until_true 20 no_leases || echo 'leases of given up requests stay'
	long_streams 4
	port=$port2
	until_true 20 has_leases "$streams" || echo 'the next one brings none'
	give_up_streams
	until_true 20 no_leases || echo 'ended leases stay'
	stop_kept
}

# ---------------------------------------------------------------- deaths

# Prints a line for each: the process, its router, the way, seconds until then
# and until it goes on or comes back: one in five is longer than the time to be
# taken for dead. Processes of the second nginx die too, never those of the
# first.
drawn_deaths()
{
	awk -v seed="${SEED:-1}" -v kills="${KILLS:-10}" 'BEGIN {
		srand(seed)
		split("redis sync sync nginx", what)
		while (kills-- > 0) {
			i = int(rand() * 4) + 1
			print what[i], i == 2 ? 1 : 2,
			    rand() < .5 ? "KILL" : "STOP",
			    .05 + rand() * .3, rand() < .2 ? \
			    2 + rand() * 4 : .05 + rand() * .7
		}
	}'
}

# pid_of WHAT N
pid_of()
{
	case $1 in
	redis) echo "$redis_pid" ;;
	sync) eval "echo \"\$sync_pid_$2\"" ;;
	nginx) children "${kept_pids##* }" | head -n 1 ;;
	esac
}

# strike WHAT N SIGNAL SECONDS
strike()
{
	struck=$(pid_of "$1" "$2")
	kill "-$3" "$struck"
	if [ "$3" = STOP ]; then
		sleep "$4"
		kill -CONT "$struck"
		return
	fi
	wait "$struck" 2> /dev/null
	sleep "$4"
	case $1 in
	redis) start_redis ;;
	sync) start_sync "$2" ;;
	esac
}

# users_of N SECONDS - in the background.
users_of()
{
	eval "there=\$port$1"
	"$build/kvroute-chats" --url "http://127.0.0.1:$there" -q \
	    --format kv --chats 8 --think-ms 20 --timeout 60 \
	    --seconds "$2" > "$work/figures$1" &
	eval "users$1=$!"
}

# p99 FIRST LAST - of $kvroute_ns in those lines of the first router's log.
p99()
{
	sed -n "$1,$2p" "$work/logs/access1" | cut -f 6 | grep -v '^-' |
	    sort -n | awk '{ v[NR] = $1 } END { print v[int(NR * .99)] + 0 }'
}

# A tenth above the earlier figure is allowed for the machine's other work: the
# processes that begin anew.
P99_SLACK_US=250

p99_holds()
{
	before=$(($(p99 1 "$1") / 1000))
	during=$(($(p99 "$(($1 + 1))" "$2") / 1000))
	printf '    p99 of a request, us: before %s, during %s\n' \
	    "$before" "$during" >&3
	[ "$during" -le $((before * 11 / 10 + P99_SLACK_US)) ] ||
	    echo "p99 of a request: $before us before, $during us during"
}

deaths_of_others_fail_no_request()
{
	two_routers --scale 0.01 || return
	expected_alert='exited on signal 9'
	drawn_deaths > "$work/deaths"
	lasts=$(awk '{ sum += $4 + $5 + .5 } END { print int(sum) + 6 }' \
	    "$work/deaths")
	users_of 1 "$lasts"
	users_of 2 "$lasts"
	sleep 3
	calm=$(wc -l < "$work/logs/access1")
	while read -r what n how before after; do
		sleep "$before"
		strike "$what" "$n" "$how" "$after"
	done < "$work/deaths"
	rough=$(wc -l < "$work/logs/access1")
	wait "$users1"
	wait "$users2"
	mv "$work/figures1" "$work/figures"
	no_errors 'of the router that lives'
	above requests "$(figure requests)" 100
	[ "${KILLS:-10}" -lt 50 ] || p99_holds "$calm" "$rough"
	for n in 1 2; do
		until_true 20 hears_one "$n" || echo "$n hears nothing"
		eval "port=\$port$n"
		until_true 20 no_leases || echo "leases stay at $n: $(
		    json '.upstreams[0].region.leases')"
		is "requests at $n" "$(json '[.upstreams[0].workers[].requests]
		    | add')" 0
	done
	stop_kept
}
