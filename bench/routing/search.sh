#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# search.sh REPLAY TRACEGEN FOLDER - searches at random for loads on which a
# balanced policy is more than 1.3 times as slow as the best simple method.
# Prints the worst as lines for scenarios.tsv; draw.awk draws them, and
# scenarios.sh runs them in FOLDER.
#
# MINUTES=10: for how long; 0: one batch. SEED=1: of the draws; a longer search continues the
# same sequence. JOBS: how many at a time. WORST=10: how many are printed.
set -eu

here=$(dirname "$0")
replay=$1 tracegen=$2 out=$3
minutes=${MINUTES:-10}
seed=${SEED:-1}
jobs=${JOBS:-$(nproc)}
simple='round-robin least-loaded least-backlog sticky chbl cache-aware
	lmetric:capacity dynamo:capacity ramjet:capacity two-tier:capacity
	dynamo[credit=2,prefill=4,request=64]:capacity'
batch=$((jobs * 4))

rm -rf "$out"
mkdir -p "$out"
# shellcheck disable=SC2116,SC2086
simple=$(echo $simple)
export TABLE="$out/table" POLICIES="$simple balanced:feedback balanced:capacity"

# Runs the names of standard input with this seed.
run()
{
	xargs -r -P "$jobs" -I NAME sh "$here/scenarios.sh" "$replay" \
	    "$tracegen" . "$out" --one NAME "$1" 2> /dev/null || :
}

# The ratio of a load, if it is above 1.3, and what it is of.
worst_of()
{
	find "$out/$1" -name '*.kv' -exec awk -v "simple=$simple" \
	    -f "$here/worst.awk" {} + | awk '$1 > 1.3'
}

# The loads of a batch that are slow; a second seed confirms them.
judge()
{
	for name in $1; do
		[ -z "$(worst_of "$name")" ] || echo "$name"
	done > "$out/slow"
	run 2 < "$out/slow"
	while read -r name; do
		worst=$(worst_of "$name")
		[ -z "$worst" ] || printf '%s\t%s\n' "$name" "$worst"
	done < "$out/slow" >> "$out/found"
	for name in $1; do
		rm -rf "${out:?}/$name"
	done
}

: > "$out/found"
: > "$out/table"
end=$(($(date +%s) + minutes * 60))
n=0
while :; do
	awk -v "seed=$seed" -v "first=$((n + 1))" -v "last=$((n + batch))" \
	    -f "$here/draw.awk" > "$out/batch"
	cat "$out/batch" >> "$out/table"
	names=$(cut -f 2 "$out/batch")
	echo "$names" | run 1
	judge "$names"
	n=$((n + batch))
	[ "$(date +%s)" -lt "$end" ] || break
done

echo "# $n loads drawn, seed $seed; $(grep -c . "$out/found") slower than 1.3"
sort -t "$(printf '\t')" -k 2,2 -g -r "$out/found" |
    head -n "${WORST:-10}" | while IFS="$(printf '\t')" read -r name ratio what
do
	echo "# $ratio: $what"
	grep "	$name	" "$out/table"
done
