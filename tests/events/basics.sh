# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# basics.sh - what all scripts of this folder say.

# Is this case one of those that $T selects?
wanted()
{
	[ -z "${T:-}" ] && return 0
	for name in $(echo "$T" | tr ',' ' '); do
		[ "$name" != "$1" ] || return 0
	done
	return 1
}

# WHAT GOT WANT
is()
{
	[ "$2" = "$3" ] || echo "$1: '$2' instead of '$3'"
}

# Asks again until it says yes, for a minute.
until_true()
{
	tries=1200
	while ! "$@" > /dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.05
	done
}

free_port()
{
	perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1,
	    LocalAddr => "127.0.0.1", LocalPort => 0)->sockport'
}
