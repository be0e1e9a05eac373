#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# libc.sh build - a process of glibc and one of musl share a region: both write,
# and each outlives the other's death with the lock. $FLAGS are the library's
# compiler flags.
set -u

scratch=$1/foreign
tally=$scratch/tally
mkdir -p "$scratch"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

report()
{
	if [ "$1" -eq 0 ]; then
		printf '  %-14s %s\n' foreign "$2"
		echo 1 0 0 >> "$tally"
	else
		printf '    FAILED   foreign: %s\n' "$2"
		head -n 20 "$scratch/log" | sed 's/^/             /'
		echo 0 1 0 >> "$tally"
	fi
}

# build NAME compiler option ...
build()
{
	name=$1
	shift
	# shellcheck disable=SC2086
	"$@" $FLAGS $more -o "$scratch/peers-$name" \
	    tests/foreign/libc/peers.c lib/*/*.c $libraries \
	    > "$scratch/log" 2>&1
}

# Headers of the kernel and of xxhash are the same for all C libraries.
build_both()
{
	more='' libraries=-lbsd
	build glibc "${CC:-cc}" || return 1
	more='-isystem tests/foreign/libc/musl -static'
	libraries="-idirafter /usr/include -idirafter \
	    /usr/include/$(${CC:-cc} -print-multiarch)"
	build musl musl-gcc
}

both_write()
{
	"$scratch/peers-glibc" "$folder/both" write > "$scratch/log" 2>&1 &
	"$scratch/peers-musl" "$folder/both" write >> "$scratch/log" 2>&1 &&
	    wait $!
}

# outlives NAME OTHER
outlives()
{
	"$scratch/peers-$1" "$folder/$1" outlive "$scratch/peers-$2" \
	    > "$scratch/log" 2>&1
}

if ! command -v musl-gcc > /dev/null 2>&1; then
	echo '    SKIPPED  foreign: there is no musl-gcc (musl-tools)'
	echo 0 0 1 >> "$tally"
	exit 0
fi
build_both || { report 1 'glibc and musl: no build'; exit 1; }
both_write
report $? 'glibc and musl write to one region'
outlives glibc musl
report $? "glibc outlives musl: $(grep found "$scratch/log")"
outlives musl glibc
report $? "musl outlives glibc: $(grep found "$scratch/log")"
