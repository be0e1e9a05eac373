#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# install-check.sh build - installs below build/, compiles a small program
# against the installed files (pkg-config; C and C++; shared and static), runs
# it and the tools, and uninstalls. No file may be left. $KVR_UNDER runs programs
# of another machine; an empty CXX leaves out C++.
set -eu

build=$1
MAKE=${MAKE:-make}
CC=${CC:-cc}
CXX=${CXX-c++}
KVR_UNDER=${KVR_UNDER:-}
PKG_CONFIG=${PKG_CONFIG:-pkg-config}
root=$(cd "$build" && pwd)/installed
rm -rf "$root"
mkdir "$root"

"$MAKE" -s BUILD="$build" prefix=/opt/kvroute DESTDIR="$root" install \
    > "$root/log"

lib=$root/opt/kvroute/lib
export PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"

cat > "$root/ten.c" <<'END'
#include <kvroute.h>
#include <string.h>

int
main(void)
{
	struct kvr *k = NULL;
	int error = kvr_new(NULL, &k);

	kvr_free(k);
	return error != KVR_OK || strcmp(kvr_version_string(),
	    KVR_VERSION_STRING) != 0;
}
END

cat > "$root/http.c" <<'END'
#include <kvroute_http.h>

int
main(void)
{
	struct kvh *h = 0;
	int error = kvh_open("", 0, "size=2m", 7, 0, &h);

	kvh_free(h);
	return error;
}
END

shared="$($PKG_CONFIG --cflags --libs kvroute)"
static="$($PKG_CONFIG --static --cflags --libs kvroute)"
http_shared="$($PKG_CONFIG --cflags --libs kvroute-http)"
http_static="$($PKG_CONFIG --static --cflags --libs kvroute-http)"

try()
{
	echo "$*"
	"$@"
}

# link_one PROGRAM SOURCE SHARED STATIC compiler option ...
# shellcheck disable=SC2086
link_one()
{
	program=$root/$1
	source=$root/$2.c
	dynamic=$3
	fixed=$4
	shift 4
	try "$@" -o "$program" "$source" -x none $dynamic
	try "$@" -static -o "$program-static" "$source" -x none $fixed
	LD_LIBRARY_PATH=$lib try $KVR_UNDER "$program"
	try $KVR_UNDER "$program-static"
}

# links NAME compiler option ...
links()
{
	name=$1
	shift
	link_one "$name" ten "$shared" "$static" "$@"
	link_one "$name-http" http "$http_shared" "$http_static" "$@"
}

# shellcheck disable=SC2086
{
	links c $CC -std=c11
	[ -z "$CXX" ] || links cxx $CXX -x c++
}

# Programs may have the library mapped: another install gives it a new file.
for file in "$lib"/libkvroute.so.*.*; do
	[ -h "$file" ] || ln "$file" "$root/mapped"
done
"$MAKE" -s BUILD="$build" prefix=/opt/kvroute DESTDIR="$root" install \
    > "$root/log"
[ "$(stat -c %h "$root/mapped")" -eq 1 ] || {
	echo 'the library is written in place'
	exit 1
}

# The module for Envoy is installed if it is asked for.
[ ! -e "$lib/libkvroute_envoy.so" ]
"$MAKE" -s BUILD="$build" prefix=/opt/kvroute DESTDIR="$root" WITH_ENVOY=1 \
    install > "$root/log"
[ -x "$lib/libkvroute_envoy.so" ]

# A program linked to the shared library needs its soname, not its file name.
objdump=$($CC -print-prog-name=objdump)
"$objdump" -p "$root/c" | grep -q 'NEEDED *libkvroute\.so\.[0-9]*$'

# The static library is without what only a debugger reads.
"$objdump" -h "$lib/libkvroute.a" > "$root/sections"
grep -q '\.text' "$root/sections"
! grep '\.debug' "$root/sections" || exit 1

# shellcheck disable=SC2086
for tool in "$root"/opt/kvroute/bin/*; do
	[ ! -e "$tool" ] || try $KVR_UNDER "$tool" --help > "$root/usage"
done
for page in "$root"/opt/kvroute/share/man/man*/*; do
	[ ! -e "$page" ] || mandoc -T ascii "$page" > "$root/page"
done

"$MAKE" -s BUILD="$build" prefix=/opt/kvroute DESTDIR="$root" uninstall \
    > "$root/log"
left=$(find "$root/opt" ! -type d)
if [ -n "$left" ]; then
	echo "left behind:"
	echo "$left"
	exit 1
fi
echo "the installed files work"
