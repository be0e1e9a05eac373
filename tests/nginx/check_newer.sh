#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_newer.sh BUILD - cases of check.sh on an nginx newer than this system's,
# as mk/nginx_newer.sh fetches it: those of names that are resolved while nginx
# runs, and some others. T=name,name picks others, CHECK_NGINX=quick all that are
# quick; SMALL is how nginx-module-small is made. Skipped without such an nginx.
# One of a series of versions that was not tried before is tried, and its
# failures are shown, but count as skipped: a suite that moves on breaks no
# change of ours. With NGINX_SUITE= they count.
set -u

tried=1.30

build=$(cd "$1" && pwd)
stage=$build/nginx-newer/build
tally=$stage/nginx/tally
cases="$(sed -n "/^name_cases='/,/'$/p" tests/nginx/check_names.sh |
    sed "s/^name_cases=//" | tr -d "'") users_see_what_engines_said
    engine_refuses model_chooses_the_upstream wrong_lines_are_named
    full_servers_are_waited_for waiting_requests_try_the_next_server
    waiting_for_a_local_socket engines_of_http2 sticky_servers
    readme_lines_are_safe"

skip()
{
	printf '  %-14s skipped, with all cases of names that are resolved: %s\n' \
	    'nginx, newer' "$1"
	echo 0 0 1 > "$tally"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
}

mkdir -p "$stage/nginx"
why=$(sh mk/nginx_newer.sh "$build") || skip "$why"
version=$("$build/nginx-newer/nginx" -v 2>&1)
for file in libkvroute.a kvroute-engine kvroute-chats kvroute-replay \
    kvroute-top kvroute-sync hold catch; do
	[ ! -e "$build/$file" ] || ln -sfn "$build/$file" "$stage/$file"
done
NGINX_BIN=$build/nginx-newer/nginx
export NGINX_BIN
variant()
{
	VARIANT=$1 DEFINES=$2 MAKEFLAGS='' bash mk/nginx_module.sh "$stage" \
	    "$build/nginx-newer/src"
}
[ -n "${T:-}" ] || [ "${CHECK_NGINX:-}" = quick ] || T=$cases
SUITE=nginx-newer
export T SUITE
echo "  $version"
if variant '' '' && variant small "$SMALL" &&
    sh tests/nginx/check.sh "$stage"; then
	exit 0
fi
case $version in
*/$tried.*) exit 1 ;;
esac
[ -z "${NGINX_SUITE:-}" ] || exit 1
skip "$version fails; the series that passed is $tried"
