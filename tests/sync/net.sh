# SPDX-License-Identifier: BSD-2-Clause
# net.sh - sourced: machines that share nothing but a network and this file
# system, each a network namespace; a bus on one of them, and replicas.
#
#	             bridge (here)
#	   ____________|_____________________
#	  |            |          |          |
#	 bus        m1          m2         m3     10.77.0.1, .11, .12, .13
#	 redis or   daemon 1    daemon 2   daemon 3
#	 nats       region 1    region 2   region 3
#
# All of it lives in namespaces of this script, of processes too, and ends with
# it, however it ends. Nothing reaches any other network.
#
# Set before: build, scratch (folders). A router of replica N is any process
# that uses $scratch/region$N.
# shellcheck shell=sh disable=SC2016,SC2034,SC2154

. tests/cases.sh
net=10.77.0
bus_pid=
star_pid=

# net_begin argument ... - runs the sourcing script again in namespaces, with
# these arguments and KVR_NET set; that one calls net_make. If this is not
# possible it returns with a $reason.
net_begin()
{
	reason='no network namespaces here: not root, or no veth'
	for how in -m -Urm; do
		unshare "$how" -npf --mount-proc --kill-child sh -c '
		    mount -t tmpfs none /run && mkdir /run/netns &&
		    ip link add try1 type veth peer name try2 &&
		    ip link add try3 type bridge && ip netns add try4 &&
		    ip netns exec try4 true' 2> /dev/null || continue
		KVR_NET=1 unshare "$how" -npf --mount-proc --kill-child \
		    sh "$0" "$@"
		exit
	done
}

net_make()
{
	mount -t tmpfs none /run && mkdir /run/netns || return
	ip link set lo up
	ip link add hub type bridge
	ip link set hub up
	machine bus 1
}

# machine NAME NUMBER - adds it.
machine()
{
	ip netns add "$1"
	ip link add "to-$1" type veth peer name eth netns "$1"
	ip link set "to-$1" master hub up
	on "$1" ip addr add "$net.$2/24" dev eth
	on "$1" ip link set eth up
	on "$1" ip link set lo up
}

# machines N - m1 to mN, if they are not there yet.
machines()
{
	count=$1
	for i in $(seq "$count"); do
		[ -e "/run/netns/m$i" ] || machine "m$i" $((10 + i))
	done
}

# on MACHINE command ... - not for background commands, which need a pid of
# their own and begin with ip.
on()
{
	ip netns exec "$@"
}

# cut N, heal N - takes the cable of a machine out, and puts it in.
cut_off()
{
	ip link set "to-m$1" down
}

heal()
{
	ip link set "to-m$1" up
}

# give_up WHAT LOG - ends the case.
give_up()
{
	echo "$1:"
	tail -n 5 "$2"
	exit 1
}

# bus_up redis|nats - on its machine; $url leads there.
bus_up()
{
	case $1 in
	redis)
		url=redis://$net.1
		ip netns exec bus redis-server --port 6379 --bind "$net.1" --protected-mode no \
		    --save '' --appendonly no --daemonize no \
		    --dir "$scratch" >> "$scratch/bus.out" 2>&1 &
		;;
	nats)
		url=nats://$net.1
		ip netns exec bus nats-server -a "$net.1" -p 4222 \
		    >> "$scratch/bus.out" 2>&1 &
		;;
	esac
	bus_pid=$!
	until_true 60 on bus perl -MIO::Socket::INET -e '
	    exit !IO::Socket::INET->new(PeerAddr => $ARGV[0])' \
	    "$net.1:$([ "$1" = redis ] && echo 6379 || echo 4222)" ||
	    give_up 'the bus does not start' "$scratch/bus.out"
}

# star_up loss twice delay jitter late - between N daemons of machines, whose
# names on the bus then are n1 to nN.
star_up()
{
	names=
	for i in $(seq "$count"); do
		names="$names n$i"
	done
	: > "$scratch/star"
	# shellcheck disable=SC2086
	ip netns exec bus "$build/star" "${SEED:-1}" "$@" "$url" $names \
	    > "$scratch/star" 2>> "$scratch/star.log" &
	star_pid=$!
	until_true 60 grep -q ready "$scratch/star" ||
	    give_up 'the star does not start' "$scratch/star.log"
}

# daemon N [option ...] - its pid is in $daemon_N.
daemon()
{
	n=$1
	shift
	name=kv
	[ -z "$star_pid" ] || name=n$n
	ip netns exec "m$n" "$build/kvroute-sync" "--${url%%:*}" "$url" \
	    --socket "$scratch/socket$n" "$@" "$name=$scratch/region$n" \
	    >> "$scratch/daemon$n.log" 2>&1 &
	eval "daemon_$n=$!"
}

# daemons [option ...] - one on each machine; waits until all hear all.
daemons()
{
	for i in $(seq "$count"); do
		daemon "$i" "$@"
	done
	all_hear
}

all_hear()
{
	for i in $(seq "$count"); do
		until_is $((count - 1)) fresh "$i"
	done
}

# end SIGNAL PID
end()
{
	[ -n "$2" ] || return 0
	kill -"$1" "$2" 2> /dev/null
	kill -CONT "$2" 2> /dev/null
	wait "$2" 2> /dev/null
}

# Ends all that began here.
net_clear()
{
	for i in $(seq "${count:-0}"); do
		heal "$i"
		eval "end KILL \"\${daemon_$i:-}\"; daemon_$i="
	done
	end KILL "$star_pid"
	end KILL "$bus_pid"
	star_pid=
	bus_pid=
}

# How many peers a daemon hears.
fresh()
{
	"$build/kvroute-sync" --status "$scratch/socket$1" 2>&1 |
	    grep -c '"state": "fresh"'
}

# field N NAME - the first one of that name in the status of a daemon.
field()
{
	"$build/kvroute-sync" --status "$scratch/socket$1" 2>&1 |
	    sed -n "s/.*\"$2\": \([^,}]*\).*/\1/p" | head -n 1
}
