#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# foreign.sh build - compares results across platforms. Builds tests/foreign
# with two compilers, with and without optimization, and for other CPUs under
# qemu. All outputs must be identical. $FLAGS are the library's compiler flags.
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

# Cross builds use their own headers and libraries, except for headers that are
# the same on all platforms: xxhash and libbsd. The one function needed of
# libbsd is also in their C library.
build()
{
	machine=$1
	shift
	case $machine in
	here) libraries=-lbsd ;;
	*) libraries='-idirafter /usr/include -static' ;;
	esac
	# shellcheck disable=SC2086
	"$@" $FLAGS -o "$scratch/$name" tests/foreign/*.c tools/common/rng.c \
	    lib/*/*.c $libraries > "$scratch/log" 2>&1
}

run()
{
	case $1 in
	here) under= ;;
	*) under=$(command -v "qemu-$1" || command -v "qemu-$1-static") ;;
	esac
	# shellcheck disable=SC2086
	$under "$scratch/$name" ${vectors:+"$vectors"} \
	    > "$scratch/$name.out" 2> "$scratch/log"
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

# variant name machine compiler flag ...
variant()
{
	name=$1 machine=$2
	shift 2
	build "$machine" "$@" || { report 1 "$name does not build"; return; }
	run "$machine" || { report 1 "$name fails"; return; }
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

variant gcc-O2 here gcc -O2
variant gcc-O0 here gcc -O0
variant gcc-O3-native here gcc -O3 -march=native
variant clang-O2 here clang -O2
variant clang-O0 here clang -O0
variant aarch64 aarch64 aarch64-linux-gnu-gcc -O2
variant s390x s390x s390x-linux-gnu-gcc -O2
if [ -z "$vectors" ]; then
	echo "  foreign        no vectors/dynamo-hash.tsv: skipped"
	echo 0 0 1 >> "$tally"
fi
sh mk/libc.sh "$1"
sh mk/tally.sh "$tally"
