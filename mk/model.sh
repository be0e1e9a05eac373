#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# model.sh build - verifies tests/model/*.pml with spin: no violated assertion,
# no deadlock, no endless run. Then removes one piece of the protocol at a time;
# each time, the search must find an error.
set -u

scratch=$1/model
tally=$scratch/tally
mkdir -p "$scratch"
cp tests/model/*.pml "$scratch" || exit 1
model=lock
: > "$tally"

# search readers piece kind [option] - writes $scratch/log. Warnings are off
# because spin generates the code.
search()
{(
	cd "$scratch" && rm -f pan pan.* && {
		spin -a -DREADERS="$1" -DWITHOUT="$2" \
		    -DROUNDS=1 -DLIVES=2 -DDEATHS=1 "$model.pml" &&
		${CC:-cc} -O2 -w "-D$3" -DCOLLAPSE -DMEMLIM=4096 -o pan pan.c &&
		./pan -m20000 "${4:-}"
	} > log 2>&1
)}

said()
{
	grep -qE "$1" "$scratch/log"
}

report()
{
	if [ "$1" -eq 0 ]; then
		printf '  %-14s %s\n' model "$2"
		echo 1 0 0 >> "$tally"
	else
		printf '    FAILED   model: %s\n' "$2"
		tail -n 40 "$scratch/log" | sed 's/^/             /'
		echo 0 1 0 >> "$tally"
	fi
}

# The search was complete and found no error.
is_clean()
{
	said '^Full statespace search for:' && said 'errors: 0$' &&
	    ! said 'not completed|depth too small|out of memory|MEMLIM|trunc'
}

# No statement is unreachable.
is_reached()
{
	for process in writer reader; do
		grep -A 1 "^unreached in proctype $process" "$scratch/log" |
		    grep -q '(0 of ' || return 1
	done
}

# holds what readers kind [option]
holds()
{
	search "$2" NOTHING "$3" "${4:-}" && is_clean
	report $? "$1: $(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' \
	    "$scratch/log") states, 0 errors"
}

# breaks expected-message piece ... - removes each piece on its own.
breaks()
{
	found=$1
	shift
	for piece in "$@"; do
		search 1 "$piece" SAFETY
		grep -qF ": $found" "$scratch/log"
		report $? "without $piece: $found"
	done
}

holds 'two writers, one reader' 1 SAFETY
is_reached
report $? 'every statement is reached'
holds 'one writer, two readers' 2 SAFETY
holds 'every run ends' 2 NP -l
breaks 'assertion violated (whole&&nodes)' ODD FENCE RELEASE ACQUIRE \
    EVEN_LOOK LATE_FENCE SECOND_LOOK VERSION_OF_REUSE HEIRS_FENCE
breaks 'assertion violated (val[last[1]]==0)' EMPTYING
breaks 'invalid end state' HEIRS
search 2 BOUND NP -l
said ': non-progress cycle'
report $? 'without BOUND: non-progress cycle'

# The lock word; it has no readers.
model=owner
holds 'three handles, one death, a seat used again' 0 SAFETY
breaks 'assertion violated ((w%32)==me)' TURN ALIVE
breaks 'assertion violated 0' WAITERS_SET WAITERS_KEPT COMPARE WAKE
breaks 'invalid end state' LOOK
sh mk/tally.sh "$tally"
