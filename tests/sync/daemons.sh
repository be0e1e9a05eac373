# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2034,SC2154
# daemons.sh - sourced by scripts of cases with two daemons on two regions. The
# script defines bus_up, which starts a bus and sets $bus, $url and $bus_pid.
. tests/cases.sh

one=${scratch:-}/one
two=${scratch:-}/two
three=${scratch:-}/three
first_pid='' second_pid='' bus_pid=''

router()
{
	"$build/router" "$@"
}

# DAEMON REGION [option ...]: its pid is in $DAEMON_pid.
daemon()
{
	name=$1
	region=$2
	shift 2
	"$build/kvroute-sync" "--$bus" "$url" --socket "$scratch/$name.sock" "$@" \
	    "$region" >> "$scratch/$name.log" 2>&1 &
	eval "${name}_pid=$!"
}

end()
{
	kill -"$1" "$2" 2> /dev/null
	wait "$2" 2> /dev/null
}

field()
{
	"$build/kvroute-sync" --status "$scratch/$1.sock" 2>&1 |
	    sed -n "s/.*\"$2\": \([^,}]*\).*/\1/p" | head -n 1
}

# Prints how many peers are heard, and have sent their workers.
fresh()
{
	"$build/kvroute-sync" --status "$scratch/$1.sock" 2>&1 |
	    grep -c '"host": "[^"].*"state": "fresh"'
}

begin()
{
	rm -f "$one" "$two"
	router "$one" make s && router "$two" make "${1:-s}"
	bus_up
}

both()
{
	daemon first "$one" "$@"
	daemon second "$two" "$@"
	until_is 1 fresh first && until_is 1 fresh second
}

finish()
{
	router "$one" check
	router "$two" check
	for pid in "${first_pid:-}" "${second_pid:-}" "${bus_pid:-}"; do
		[ -z "$pid" ] || end TERM "$pid"
	done
	first_pid='' second_pid='' bus_pid=''
}

# checks STATUS REGION [option ...]
checks()
{
	want=$1
	shift
	"$build/kvroute-sync" "--$bus" "$url" --check "$@" \
	    > "$scratch/out" 2>&1
	is "status of a check" $? "$want"
}

prints_that()
{
	grep -q "$1" "$scratch/out" || cat "$scratch/out"
}
