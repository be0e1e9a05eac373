#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# foreign.sh build - builds with other compilers and for other CPUs and C
# libraries, by nothing but CC. All must decide alike, installed copies must
# work, and a process of glibc and one of musl share a region: both write, and
# each outlives the other's death with the lock.
set -u

scratch=$1/foreign
tally=$scratch/tally
vectors=${KVR_SHARED:-../shared}/vectors/dynamo-hash.tsv
first=
mkdir -p "$scratch"
: > "$tally"
[ -e "$vectors" ] || vectors=

report()
{
	if [ "$1" -eq 0 ]; then
		printf '  %-14s %s\n' foreign "$2"
		echo 1 0 0 >> "$tally"
	else
		printf '    FAILED   foreign: %s\n' "$2"
		head -n 20 "$scratch/log" | cut -c 1-400 |
		    sed 's/^/             /'
		echo 0 1 0 >> "$tally"
	fi
}

# build NAME TARGET VARIABLE=value ...
build()
{
	into=$scratch/$1
	target=$2
	shift 2
	"$MAKE" -s BUILD="$into" "$@" "$into/$target" \
	    > "$scratch/log" 2>&1
}

# A command that runs programs of this machine, or nothing.
under()
{
	[ "$1" = here ] || command -v "qemu-$1" ||
	    command -v "qemu-$1-static"
}

# Compares with the first variant; logs the lines that differ.
equal()
{
	cmp "$scratch/$first.out" "$scratch/$name.out" > "$scratch/log" 2>&1 &&
	    return
	diff "$scratch/$first.out" "$scratch/$name.out" | head -n 8 \
	    >> "$scratch/log"
	return 1
}

# variant NAME MACHINE VARIABLE=value ...
variant()
{
	name=$1 machine=$2
	shift 2
	build "$name" results "$@" ||
	    { report 1 "$name does not build"; return; }
	# shellcheck disable=SC2046
	$(under "$machine") "$scratch/$name/results" ${vectors:+"$vectors"} \
	    > "$scratch/$name.out" 2> "$scratch/log" ||
	    { report 1 "$name fails"; return; }
	hashes=$(cat "$scratch/log")
	if [ -z "$first" ]; then
		first=$name
		report 0 "$name: $(wc -l < "$scratch/$name.out") lines"
	else
		equal
		report $? "$name: the same"
	fi
	[ -z "$vectors" ] || report 0 "$name: $hashes"
}

# installs NAME UNDER VARIABLE=value ... - the library, and what else can be
# built; a program is linked to it, and runs.
installs()
{
	name=$1
	shift
	CXX='' KVR_UNDER=$1 "$MAKE" -s BUILD="$scratch/$name" CC="$name" \
	    install-check > "$scratch/log" 2>&1
	report $? "$name: the installed files work"
}

both_write()
{
	"$scratch/glibc/peers" "$folder/both" write > "$scratch/log" 2>&1 &
	"$scratch/musl-gcc/peers" "$folder/both" write >> "$scratch/log" 2>&1 &&
	    wait $!
}

# outlives NAME OTHER
outlives()
{
	"$scratch/$1/peers" "$folder/$1" outlive "$scratch/$2/peers" \
	    > "$scratch/log" 2>&1
}

share()
{
	folder=$(mktemp -d) || exit 1
	trap 'rm -rf "$folder"' EXIT
	if ! build glibc peers || ! build musl-gcc peers CC=musl-gcc; then
		report 1 'glibc and musl: no build'
		return
	fi
	both_write
	report $? 'glibc and musl write to one region'
	outlives glibc musl-gcc
	report $? "glibc outlives musl: $(grep found "$scratch/log")"
	outlives musl-gcc glibc
	report $? "musl outlives glibc: $(grep found "$scratch/log")"
}

skipped()
{
	echo "    SKIPPED  foreign: $1"
	echo 0 0 1 >> "$tally"
}

variant gcc-O2 here CC=gcc
variant gcc-O0 here CC=gcc CFLAGS=-O0
variant gcc-O3-native here CC=gcc CFLAGS='-O3 -march=native'
variant clang-O2 here CC=clang
variant clang-O0 here CC=clang CFLAGS=-O0
variant aarch64 aarch64 CC=aarch64-linux-gnu-gcc LDFLAGS=-static
variant s390x s390x CC=s390x-linux-gnu-gcc LDFLAGS=-static
[ -n "$vectors" ] || skipped 'no vectors/dynamo-hash.tsv'
installs aarch64-linux-gnu-gcc "$(under aarch64) -L /usr/aarch64-linux-gnu"
if command -v musl-gcc > /dev/null 2>&1; then
	installs musl-gcc ''
	share
else
	skipped 'there is no musl-gcc (musl-tools)'
fi
sh mk/tally.sh "$tally"
