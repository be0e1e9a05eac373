#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# nginx_module.sh BUILD [NGINX_SRC [FOLDER]] - builds the nginx module of FOLDER
# (default: ext/nginx) against the nginx sources in NGINX_SRC (default: Debian's
# nginx-dev, with the options of Debian's nginx) into BUILD/nginx. SAN=...
# compiles it with a sanitizer. VARIANT=NAME DEFINES="-D..." make another one from
# what was built without, into BUILD/nginx/NAME.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
variant=${VARIANT:-}
mkdir -p "$1/nginx/$variant"
out=$(cd "$1" && pwd)
source=${2:-}
folder=${3:-ext/nginx}
name=$(sed -n 's/^ngx_addon_name=//p' "$root/$folder/config")
into=$out/nginx/$variant
objects=${into%/}/$name
log=$objects.log
module=$name.so

if [ -z "$source" ]; then
	source=$(dpkg -L nginx-dev 2> /dev/null | sed -n 's|/configure$||p' |
	    head -n 1)
fi
if [ ! -e "$source/configure" ] && [ ! -e "$source/auto/configure" ]; then
	echo "nginx-module: no sources of nginx${source:+ in $source}:" \
	    "install nginx-dev, or set NGINX_SRC" >&2
	exit 1
fi

# configure writes into its working folder, so it runs in a copy.
prepare()
{
	rm -rf "$objects"
	cp -r "$source" "$objects"
	cd "$objects"
	NGX_CONF_FLAGS=(--with-compat)
	if [ -e conf_flags ]; then
		# shellcheck disable=SC1091
		. ./conf_flags
	fi
	configure=./configure
	[ -e $configure ] || configure=auto/configure
	KVROUTE_INCLUDE=$root/include \
	    KVROUTE_LIBS="$out/libkvroute.a" \
	    $configure "${NGX_CONF_FLAGS[@]}" \
	    --with-cc="${CC:-cc}" \
	    --with-cc-opt="-O2 -g -fstack-protector-strong -Wextra -Wno-unused-parameter -Wno-missing-field-initializers ${SAN:+-fsanitize=$SAN}" \
	    --with-ld-opt="${SAN:+-fsanitize=$SAN}" \
	    --add-dynamic-module="$root/$folder"
}

# Again when the list of files, or the way it is built, has changed.
prepare_once()
{
	local wanted
	wanted="$source ${CC:-cc} ${SAN:-} $(cd "$root" &&
	    ls "$folder"/*.c ext/http/*/*.c &&
	    cksum "$folder"/config ext/http/status/page.html mk/nginx_module.sh)
	    $(cat "$source/conf_flags" "$source/src/core/nginx.h" \
	        2> /dev/null | cksum)"
	if [ "$(cat "$objects.made-of" 2> /dev/null)" != "$wanted" ]; then
		prepare
		echo "$wanted" > "$objects.made-of"
	fi
}

# The other one again, but for what names one of the macros.
vary()
{
	local plain=$out/nginx/$name macros file
	if [ "$objects/objs/$module" -nt "$plain/objs/$module" ] &&
	    [ "$(cat "$objects.made-of")" = "$DEFINES" ]; then
		return
	fi
	rm -rf "$objects"
	cp -a "$plain" "$objects"
	sed -i "s|^CFLAGS = .*|& ${DEFINES//\\/\\\\}|" "$objects/objs/Makefile"
	macros=$(grep -oE 'NGX_[A-Z_]+' <<< "$DEFINES" | paste -s -d '|')
	for file in $(cd "$root/$folder" && grep -lwE "$macros" ./*.[ch]); do
		file=${file##*/}
		[ "${file##*.}" = c ] || file='*.c'
		# shellcheck disable=SC2086
		rm "$objects"/objs/addon/nginx/${file%.c}.o
	done
	rm "$objects/objs/$module"
	echo "$DEFINES" > "$objects.made-of"
}

{
	if [ -n "$variant" ]; then
		vary
	else
		prepare_once
	fi
	cd "$objects"
	# nginx's makefile does not know the dependency on the library.
	[ "objs/$module" -nt "$out/libkvroute.a" ] || rm -f "objs/$module"
	# A failure here does not end the script: it is handled below. nginx may
	# have the old file mapped: it gets a new one, under a name of its own
	# until it is whole.
	make -j "$(nproc)" -f objs/Makefile modules &&
	    cp "objs/$module" "$into/$module.new" &&
	    mv -f "$into/$module.new" "$into/$module"
} > "$log" 2>&1 < /dev/null || {
	tail -n 40 "$log" >&2
	rm -f "$objects.made-of"
	exit 1
}
# Warnings of make itself are not the module's.
! grep -nE '\.[ch]:.*warning:' "$log" >&2
