#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# late_start.sh build - how long until a router that begins knows what another
# one does: BLOCKS different blocks (1,000,000), over each bus. The promise is
# 3 s for a million.
set -u
export LC_ALL=C

build=$(cd "$1" && pwd)
blocks=${BLOCKS:-1000000}
scratch=$build/late-start-test
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch" || exit 1
one_pid='' two_pid='' pids=''
trap 'kill $pids 2> /dev/null' EXIT

field()
{
	"$build/kvroute-sync" --status "$1.sock" 2> /dev/null |
	    sed -n "s/.*\"$2\": \([^,}]*\).*/\1/p" | head -n 1
}

daemon()
{
	"$build/kvroute-sync" "--$bus" "$url" --socket "$1.sock" "$1" \
	    2> "$1.log" &
	pids="$pids $!"
	eval "$1_pid=$!"
	until [ "$(field "$1" ready)" = true ]; do
		sleep 0.1
	done
}

# User and system time of a process, in clock ticks of 10 ms.
cpu()
{
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

milliseconds()
{
	echo $(($(date +%s%N) / 1000000))
}

port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1,
    LocalAddr => "127.0.0.1")->sockport')
for bus in ${BUSES:-redis nats}; do
	rm -f one two
	if [ "$bus" = redis ]; then
		url=redis://127.0.0.1:$port
		redis-server --port "$port" --save '' --appendonly no \
		    > redis.log 2>&1 &
	else
		url=nats://127.0.0.1:$port
		nats-server -a 127.0.0.1 -p "$port" > nats.log 2>&1 &
	fi
	pids="$pids $!"
	"$build/late-start" make one
	"$build/late-start" make two
	daemon one
	"$build/late-start" fill one "$blocks"
	sleep 1
	before=$(cpu "$one_pid")
	began=$(milliseconds)
	daemon two
	took=$(($(milliseconds) - began))
	after=$(cpu "$one_pid")
	echo "$bus: one has $("$build/late-start" count one)," \
	    "two $("$build/late-start" count two)"
	[ "$took" -le 3000 ] && verdict='<= 3000' || verdict='<= 3000, MISSED'
	echo "  ready after $took ms ($verdict)"
	sed -n 's/.*ready: /  /p' two.log
	echo "  given: $("$build/kvroute-sync" --status one.sock |
	    jq '.[0].given.bytes') bytes," \
	    "$(((after - before) * 10)) ms of processor"
	echo "  memory of daemons, kB: $(awk '/RssAnon/ { print $2 }' \
	    "/proc/$one_pid/status" "/proc/$two_pid/status" | xargs)"
	# shellcheck disable=SC2086
	kill $pids
	# shellcheck disable=SC2086
	wait $pids 2> /dev/null
	pids=''
done
