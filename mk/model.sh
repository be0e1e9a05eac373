#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# model.sh build - verifies tests/model/*.pml with spin: no violated assertion,
# no deadlock, no endless run. Then removes one piece of the protocol at a time;
# each time, the search must find an error. $T selects searches.
#
# model.sh build search - one of them, as a case of tests/cases.sh.
#
# shellcheck disable=SC2154
[ -n "${results:-}" ] || JOBS=${JOBS:-$(nproc)} \
    exec sh tests/cases.sh model "$1" "$0"
. tests/cases.sh

# A model, a piece, and what is wrong without it.
breaks='
lock ODD assertion violated (whole&&nodes)
lock FENCE assertion violated (whole&&nodes)
lock RELEASE assertion violated (whole&&nodes)
lock ACQUIRE assertion violated (whole&&nodes)
lock EVEN_LOOK assertion violated (whole&&nodes)
lock LATE_FENCE assertion violated (whole&&nodes)
lock SECOND_LOOK assertion violated (whole&&nodes)
lock VERSION_OF_REUSE assertion violated (whole&&nodes)
lock HEIRS_FENCE assertion violated (whole&&nodes)
lock EMPTYING assertion violated (val[last[1]]==0)
lock HEIRS invalid end state
lock BOUND non-progress cycle
owner TURN assertion violated ((w%32)==me)
owner ALIVE assertion violated ((w%32)==me)
owner WAITERS_SET assertion violated 0
owner WAITERS_KEPT assertion violated 0
owner COMPARE assertion violated 0
owner WAKE assertion violated 0
owner LOOK invalid end state
'

if [ $# -eq 1 ]; then
	list ''
	echo "$breaks" | awk 'NF { print $1 ":" $2 }'
	exit
fi
log=$scratch/log

# search MODEL READERS PIECE KIND - without this piece, into $log. Warnings are
# off because spin generates the code. NP is about runs without an end. What is
# wrong without a piece is found sooner than a compiler optimises. The largest
# search takes 430 MB; MEMLIM, in MB, is about twice that.
search()
{
	model=$(pwd)/tests/model/$1.pml
	level=-O0
	[ "$3" != NOTHING ] || level=-O1
	(
		cd "$scratch" &&
		    spin -a -DREADERS="$2" -DWITHOUT="$3" -DROUNDS=1 \
		    -DLIVES=2 -DDEATHS=1 "$model" &&
		    ${CC:-cc} $level -w "-D$4" -DCOLLAPSE -DMEMLIM=1024 \
		    -o pan pan.c &&
		    ./pan -m20000 "$([ "$4" = SAFETY ] || echo -l)"
	) > "$log" 2>&1
}

# holds MODEL READERS KIND - the search is complete and finds no error.
holds()
{
	if ! search "$1" "$2" NOTHING "$3" ||
	    ! grep -q '^Full statespace search for:' "$log" ||
	    ! grep -q 'errors: 0$' "$log" || grep -qE \
	    'not completed|depth too small|out of memory|MEMLIM|trunc' "$log"
	then
		tail -n 40 "$log"
	fi
}

case_two_writers_one_reader() # slow
{
	holds lock 1 SAFETY
	# No statement is unreachable.
	for process in writer reader; do
		grep -A 1 "^unreached in proctype $process" "$log" |
		    grep -q '(0 of ' || echo "$process: some is not reached"
	done
}

case_one_writer_two_readers()
{
	holds lock 2 SAFETY
}

case_every_run_ends() # slow
{
	holds lock 2 NP
}

# The lock word; it has no readers.
case_three_handles_one_death_a_seat_used_again() # slow
{
	holds owner 0 SAFETY
}

# without MODEL PIECE
without()
{
	found=$(echo "$breaks" | sed -n "s/^$1 $2 //p")
	case $found in
	non-progress*) search "$1" 2 "$2" NP ;;
	*) search "$1" 1 "$2" SAFETY ;;
	esac
	grep -qF ": ${found:-nothing}" "$log" || tail -n 40 "$log"
}

case $2 in
*:*) without "${2%:*}" "${2#*:}" ;;
*) run "$2" ;;
esac
