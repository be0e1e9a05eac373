#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# nginx_newer.sh BUILD - an nginx newer than this system's, of the Debian suite
# NGINX_SUITE (default: sid), unpacked into BUILD/nginx-newer and not installed:
#
#   nginx    starts it, by the C library of its suite
#   src      what modules are compiled against
#
# It comes from where apt gets this system's packages, with lists and state in
# that folder; what is signed is checked as apt does. What is there stays:
# remove the folder for a newer one. Without it, the last line says why.
set -u

suite=${NGINX_SUITE:-sid}
mkdir -p "$1/nginx-newer"
folder=$(cd "$1/nginx-newer" && pwd)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
packages='nginx nginx-dev libc6 libcrypt1 libpcre2-8-0 libssl3t64 zlib1g'

missing()
{
	echo "$*"
	exit 1
}

# of the suite; its lists may be older than they are said to be good for
apt_of()
{
	program=$1
	shift
	timeout 120 "$program" -qq -o Dir::Etc::sourcelist="$folder/sources" \
	    -o Dir::Etc::sourceparts=/dev/null -o Dir::State="$folder/apt" \
	    -o Dir::State::status="$folder/apt/status" \
	    -o Dir::State::lists="$folder/apt/lists" \
	    -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User= \
	    -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false \
	    -o Acquire::http::Timeout=20 -o Acquire::Retries=1 \
	    -o Debug::NoLocking=1 "$@"
}

archives()
{
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
	    2> /dev/null | sort -u
}

# Is the suite in this archive? Then its lists are there.
has_suite()
{
	signed=
	[ ! -e $keys ] || signed="[signed-by=$keys] "
	echo "deb $signed$1 $suite main" > "$folder/sources"
	apt_of apt-get update > "$folder/log" 2>&1 &&
	    [ -n "$(apt_of apt-cache show nginx-dev 2> /dev/null)" ]
}

find_suite()
{
	for archive in $(archives); do
		has_suite "$archive" && return 0
	done
	return 1
}

unpack()
{
	rm -rf "$folder/root"
	for file in "$folder"/packages/*.deb; do
		dpkg-deb -x "$file" "$folder/root" || return 1
	done
	rm -rf "$folder/packages"
	rm -rf "$folder/src"
	mv "$folder/root/usr/share/nginx/src" "$folder/src"
}

# Libraries that its suite does not give, such as those of modules, are this
# system's. The name is what it starts itself by.
starter()
{
	loader=$(find "$folder/root" -name 'ld-linux*' | head -n 1)
	libraries=$(dirname "$(find "$folder/root" -name 'libc.so.6' |
	    head -n 1)")
	cat > "$folder/nginx" <<-END
	#!/bin/sh
	exec '$loader' --argv0 '$folder/nginx' --library-path '$libraries' \\
	    '$folder/root/usr/sbin/nginx' "\$@"
	END
	chmod +x "$folder/nginx"
}

runs()
{
	"$folder/nginx" -v > "$folder/log" 2>&1
}

if runs; then
	exit 0
fi
for tool in apt-get apt-cache dpkg-deb timeout; do
	command -v $tool > /dev/null || missing "there is no $tool"
done
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" \
    "$folder/packages"
: > "$folder/apt/status"
find_suite || missing "packages of $suite are not to be had here"
# shellcheck disable=SC2086
(cd "$folder/packages" && apt_of apt-get download $packages) \
    > "$folder/log" 2>&1 || missing "packages of $suite cannot be fetched:" \
    "$(tail -n 1 "$folder/log")"
unpack || missing "packages of $suite cannot be unpacked"
starter
runs || missing "nginx of $suite does not run here: $(head -n 1 "$folder/log")"
rm -rf "$folder/apt"
