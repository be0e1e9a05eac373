# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# until.sh - sourced by scripts of tests: waits for a state, with a bound.

# until_true SECONDS command ... - repeats it until it succeeds.
until_true()
{
	tries=$(($1 * 20))
	shift
	while ! "$@" > /dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.05
	done
}
