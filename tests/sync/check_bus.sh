#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_bus.sh build [case] - the buses of replicas on real servers: cases of
# tests/cases.sh, which are those of check_bus.c.
#
# shellcheck disable=SC2154
. tests/cases.sh

if [ $# -eq 1 ]; then
	for bus in redis nats; do
		names=$("$1/check-bus" --list "$bus") || exit
		[ -n "$names" ] || exit 1
		echo "$names" | sed "s/^/$bus:/"
	done
	exit
fi
exec ${KVR_UNDER:-} "$1/check-bus" "${2%%:*}" "${2#*:}" "$scratch" "$1/relay"
