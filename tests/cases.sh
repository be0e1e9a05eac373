#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# cases.sh NAME BUILD script ... - runs the cases of scripts side by side, as
# `make check-NAME` does: all, or those that $T names. $JOBS is how many run at
# a time: by default four a processor, because most of them wait.
#
# A script sources this file for the functions at its end. With BUILD alone it
# prints its cases, "slow" behind those that take long: these begin first. With
# BUILD and one name it runs that case, in the folder $scratch. The output of a
# case is its failure, unless it is "skipped: " and a reason.
#
# Each case is a session of its own, which ends with it. Where that is allowed
# it also has a network of its own, so that no other process takes its ports.
set -u
export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin
. tests/until.sh

# ------------------------------------------------------------ for scripts

# list PREFIX - prints the cases of a script: its functions case_NAME. If a line
# that defines one has another form, the script ends.
list()
{
	sed -n "s/^case_\([a-z0-9_]*\)()\( # slow\)*\$/$1\1\2/p" "$0" |
	    tr -d '#'
	[ "$(grep -c '^case_[^ ]* *()' "$0")" -eq \
	    "$(grep -c '^case_[a-z0-9_]*()\( # slow\)*$' "$0")" ] || exit 1
}

# run [PREFIX:]NAME - runs a case, and `finish`, which a script may define.
run()
{
	"case_${1#*:}"
	finish
	true
}

finish()
{
	:
}

# is WHAT GOT WANT
is()
{
	[ "$2" = "$3" ] || echo "$1: '$2' instead of '$3'"
}

# now_is WANT command ... - prints that.
now_is()
{
	prints "$@" || wrong "$@"
}

# within SECONDS WANT command ... - repeats it until it prints that. If it never
# does, nothing that follows can be right, and the case ends.
within()
{
	seconds=$1
	shift
	until_true "$seconds" prints "$@" || { wrong "$@"; exit 1; }
}

# until_is WANT command ... - the same, where no time is promised.
until_is()
{
	within 60 "$@"
}

prints()
{
	want=$1
	shift
	got=$("$@" 2>&1)
	[ "$got" = "$want" ]
}

wrong()
{
	shift
	echo "$*: $got, expected $want"
}

# A port that the kernel has just assigned and released.
free_port()
{
	perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1,
	    LocalAddr => "127.0.0.1", LocalPort => 0)->sockport'
}

if [ "${0##*/}" != cases.sh ]; then
	[ -z "${alone:-}" ] || ip link set lo up
	return
fi

# ---------------------------------------------------------------- one case

processes()
{
	cat /proc/[0-9]*/stat 2> /dev/null | awk -v session="$1" '{
		pid = $1
		sub(/.*\) /, "")
		if ($4 == session && $1 != "Z") print pid
	}'
}

end_session()
{
	while pids=$(processes "$1") && [ -n "$pids" ]; do
		# shellcheck disable=SC2086
		kill -KILL $pids 2> /dev/null
	done
}

# Prints the other variables that the case depends on, as far as they are set.
given()
{
	for variable in KILLS LIMIT SEED; do
		eval "value=\${$variable:-}"
		[ -z "$value" ] || printf "%s='%s' " $variable "$value"
	done
}

# report FILE - in one piece, since others report at the same time.
report()
{
	what="$(basename "$script" .sh), $(echo "$case" | tr _ ' ')"
	if [ ! -s "$1" ]; then
		echo 1 0 0 >> "$results/tally"
		rm "$1"
	elif ! grep -qv '^skipped: ' "$1"; then
		echo 0 0 1 >> "$results/tally"
		sed -n "s/^skipped/    SKIPPED  $what/p" "$1"
	else
		echo 0 1 0 >> "$results/tally"
		what="    FAILED   $what: $(given)make check-$name T=$case"
		echo "$what" >> "$results/failed"
		tail -n 5 "$scratch"/*.log >> "$1" 2> /dev/null
		printf '%s\n%s\n' "$what" \
		    "$(head -n 60 "$1" | sed 's/^/             /')"
	fi
}

# $alone gives it a network. Only a case that hangs takes $LIMIT seconds.
one_case()
{
	scratch=$(mktemp -d) || exit
	export scratch
	result=$results/$(basename "$script" .sh)-$case
	session=''
	trap 'end_session "$session"; rm -rf "$scratch"; exit 1' HUP INT TERM
	# shellcheck disable=SC2086
	setsid timeout -k 10 "${LIMIT:-900}" $alone sh "$script" "$build" \
	    "$case" > "$result" 2>&1 < /dev/null &
	session=$!
	wait "$session" || echo "exit $?" >> "$result"
	end_session "$session"
	report "$result"
	rm -rf "$scratch"
}

if [ "$1" = --case ]; then
	script=$2 case=$3
	one_case
	exit
fi

# --------------------------------------------------------------------- all

name=$1
build=$(cd "$2" && pwd -P) || exit
shift 2
results=$build/$name-test
alone=
for how in -n -Urn; do
	! unshare "$how" ip link set lo up 2> /dev/null || {
		alone="unshare $how"
		break
	}
done
export name build results alone
rm -rf "$results"
mkdir -p "$results"
: > "$results/tally"
: > "$results/failed"

wanted()
{
	[ -n "${T:-}" ] || return 0
	case ,$T, in
	*,"$1",* | *,"${1#*:}",*) ;;
	*) return 1 ;;
	esac
}

# failed WHAT - prints a name that is no case.
failed()
{
	echo "    FAILED   $*" | tee -a "$results/failed" >&2
	echo 0 1 0 >> "$results/tally"
}

# Lines of a script, a case, and perhaps "slow".
wanted_cases()
{
	for script in "$@"; do
		alone='' sh "$script" "$build" > "$results/listed"
		code=$?
		[ -s "$results/listed" ] || code=1
		[ $code -eq 0 ] || failed "cases of $script cannot be listed"
		while read -r case slow; do
			! wanted "$case" || echo "$script $case $slow"
		done < "$results/listed"
	done
}

# A name in $T that no script has would run nothing, and pass.
unknown_names()
{
	for case in $(echo "${T:-}" | tr ',' ' '); do
		grep -qE "[ :]$case( |\$)" "$results/wanted" ||
		    failed "$name: there is no case $case"
	done
}

wanted_cases "$@" > "$results/wanted"
unknown_names
sort -s -r -k 3 "$results/wanted" | cut -d ' ' -f 1,2 |
    xargs -r -P "${JOBS:-$(($(nproc) * 4))}" -n 2 sh "$0" --case ||
    failed 'not all cases were run'
printf '  %-14s %4d tests\n' "$name" "$(wc -l < "$results/tally")"
cat "$results/failed"
sh mk/tally.sh "$results/tally"
