#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_newer.sh BUILD - cases of check.sh on an nginx newer than this system's,
# as mk/nginx_newer.sh fetches it: those of names that are resolved while nginx
# runs, and some others. T=name,name picks others, CHECK_NGINX=quick all that are
# quick; SMALL is how nginx-module-small is made. Skipped without such an nginx.
set -u

build=$(cd "$1" && pwd)
stage=$build/nginx-newer/build
tally=$stage/nginx/tally
cases="$(sed -n "/^name_cases='/,/'$/p" tests/nginx/check_names.sh |
    sed "s/^name_cases=//" | tr -d "'") users_see_what_engines_said
    engine_refuses model_chooses_the_upstream wrong_lines_are_named"

mkdir -p "$stage/nginx"
if ! why=$(sh mk/nginx_newer.sh "$build"); then
	printf '  %-14s skipped: %s\n' 'nginx, newer' "$why"
	echo 0 0 1 > "$tally"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi
for file in libkvroute.a kvroute-engine kvroute-chats kvroute-replay \
    kvroute-top kvroute-sync hold catch; do
	[ ! -e "$build/$file" ] || ln -sfn "$build/$file" "$stage/$file"
done
NGINX_BIN=$build/nginx-newer/nginx
export NGINX_BIN
variant()
{
	VARIANT=$1 DEFINES=$2 MAKEFLAGS='' bash ext/nginx/module.sh "$stage" \
	    "$build/nginx-newer/src" || exit 1
}
variant '' ''
variant small "$SMALL"
echo "  $("$NGINX_BIN" -v 2>&1)"
[ -n "${T:-}" ] || [ "${CHECK_NGINX:-}" = quick ] || T=$cases
export T
exec sh tests/nginx/check.sh "$stage"
