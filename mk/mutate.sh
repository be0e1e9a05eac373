#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mutate.sh build mutants seed jobs - do the suites notice when lib/ is wrong?
#
# Changes one place of lib/ at a time (mk/mutants.awk), chosen by the seed, in a
# copy of the tree, and runs the suites: first that of the changed file, then
# all others, until one fails. A change that does not compile, or compiles to
# the same object, is no mutant; another one is taken. Prints each mutant with
# what killed it, the survivors, and the share that was killed, which has to be
# 95 % of those that are not in tests/mutants.txt, where survivors are argued.
# State is left in build/mutate: a run that was stopped goes on there.
set -u

build=$1
wanted=$2
seed=$3
jobs=$4
work=$build/mutate
KILLED_MIN=95
# The slowest suites, which come last.
SLOW='model|shadow|families|simulate|route|corrupt|each_word|trace|page|process'

KVR_SHARED=${KVR_SHARED:-$(cd .. && pwd)/shared}
KVR_SEED=$seed
CK_DEFAULT_TIMEOUT=60
export KVR_SHARED KVR_SEED CK_DEFAULT_TIMEOUT

copy_tree()
{
	[ -d "$1" ] && return
	mkdir -p "$1" || exit 1
	tar -cf - Makefile mk include lib tools ext tests bench fuzz examples \
	    man | tar -xf - -C "$1"
	echo "building $1" >&2
	make -s -C "$1" build/check > "$1.log" 2>&1 || {
		tail -n 5 "$1.log" >&2
		exit 1
	}
}

# Line $2 of file $1 becomes $3.
change()
{
	NEW=$3 awk -v at="$2" 'NR == at { print ENVIRON["NEW"]; next } 1' \
	    "$1" > "$1.new" && mv "$1.new" "$1"
}

# Prints which suites of the tree fail; nothing if none does.
killer()
{
	own=$(basename "$2" .c)
	all=$(sed -n 's/SUITE(\(.*\))/\1/p' "$1/build/gen/suites.h")
	quick=$(echo "$all" | grep -Ev "^($SLOW)" | tr '\n' ',')
	slow=$(echo "$all" | grep -E "^($SLOW)" | tr '\n' ' ')
	for suites in "$own" "$quick" $slow; do
		(cd "$1" && timeout 600 build/check "$suites") > "$1.out" 2>&1
		case $? in
		0) continue ;;
		124) echo "no end in $suites" ;;
		*) sed -n 's/.*FAILED  *\([^ ]*\):[0-9].*/\1/p' "$1.out" |
			head -n 1 | grep . || echo "a crash in $suites" ;;
		esac
		return
	done
}

# One mutant. Prints its outcome, or nothing if it is none.
try()
{
	tree=$1 file=$2 line=$3 text=$4
	object=$tree/build/obj/${file%.c}.o
	cp "$tree/$file" "$tree.file"
	cp "$object" "$tree.object"
	change "$tree/$file" "$line" "$text"
	if make -s -C "$tree" build/check > "$tree.log" 2>&1 &&
	    ! cmp -s "$object" "$tree.object"; then
		by=$(killer "$tree" "$file")
		printf '%s\t%s\t%s\t%s\n' "${by:-SURVIVED}" "$file" "$line" \
		    "$text"
	fi
	cp "$tree.file" "$tree/$file"
}

# Of the mutants in order, every $jobs-th, until there are enough.
worker()
{
	tree=$work/tree.$1
	copy_tree "$tree"
	touch "$work/done" "$work/tried"
	awk -v i="$1" -v n="$jobs" 'NR % n == i' "$work/mutants" |
	    while IFS='	' read -r file line text; do
		[ "$(wc -l < "$work/done")" -lt "$wanted" ] || break
		grep -qxF "$file:$line:$text" "$work/tried" && continue
		try "$tree" "$file" "$line" "$text" | tee -a "$work/done"
		echo "$file:$line:$text" >> "$work/tried"
	done
}

mkdir -p "$work"
[ -s "$work/mutants" ] || awk -f mk/mutants.awk lib/*/*.c |
    awk -v seed="$seed" 'BEGIN { srand(seed) }
	{ printf "%.9f\t%s\n", rand(), $0 }' | sort | cut -f 2- \
    > "$work/mutants"
i=0
while [ "$i" -lt "$jobs" ]; do
	worker "$i" &
	i=$((i + 1))
done
wait

echo
echo 'Survivors:'
grep '^SURVIVED' "$work/done" | cut -f 2- | sort
awk -F '\t' -v min="$KILLED_MIN" '
	FILENAME ~ /mutants.txt$/ { if (NF == 2) argued[$1 "\t" $2] = 1; next }
	$1 == "SURVIVED" && ($2 "\t" $4) in argued { excused++; next }
	{ n++; killed += $1 != "SURVIVED" }
	END {
		printf "%d of %d mutants killed, %.1f %%; %d argued\n", killed,
		    n, 100 * killed / (n > 0 ? n : 1), excused
		exit killed * 100 < min * n || n == 0
	}' tests/mutants.txt "$work/done"
