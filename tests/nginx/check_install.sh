#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_install.sh - cases of check.sh: the module is built and installed while
# nginx runs, and shares nginx with modules of others.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} module_is_installed_under_load
    module_is_built_under_load lua_sees_no_usage_in_any_order"

module_name=ngx_http_upstream_kvroute_module.so

# make_here TARGET [VARIABLE=VALUE ...]
make_here()
{
	MAKEFLAGS='' MAKELEVEL='' "${MAKE:-make}" -s BUILD="$build" \
	    NGINX_MODULES=/modules DESTDIR="$work/out/root" "$@" \
	    > "$work/out/made" 2>&1
}

# Does the process run the module that is at the path now?
runs_the_file()
{
	grep -q "$module_name" "/proc/$1/maps" &&
	    ! grep -q "$module_name (deleted)" "/proc/$1/maps"
}

first_process()
{
	children "$nginx_pid" | head -n 1
}

# The processes that were there at first still are: none has crashed.
same_processes()
{
	is 'processes' "$(children "$nginx_pid" | paste -s -d ' ')" "$1"
	! runs_the_file "$(first_process)" || echo 'the file was written in place'
}

# nginx keeps the module that it has loaded, also in a reload; a new binary, or
# a restart, takes the new one.
module_is_installed_under_load()
{
	make_here nginx-install || { cat "$work/out/made"; return; }
	module_file=$work/out/root/modules/$module_name
	kvroute_options="path=$work/out/index size=8m"
	up --scale 0.05
	orphan_nginx
	runs_the_file "$(first_process)" || echo 'it runs another file'
	before=$(children "$nginx_pid" | paste -s -d ' ')
	# shellcheck disable=SC2086
	talk_meanwhile $load
	for i in 1 2 3 4 5; do
		make_here nginx-install || cat "$work/out/made"
		more 20
	done
	talk_over
	no_errors 'while the module is installed'
	same_processes "$before"
	reload_nginx kvroute
	! runs_the_file "$(first_process)" || echo 'a reload takes the new one'
	talk --requests 20 --chats 4 --think-ms 1
	no_errors 'after a reload'
	upgrade_nginx || return
	until_true 20 has_ended "$old_pid" || echo 'the old nginx stays'
	runs_the_file "$(first_process)" || echo 'the old module stays'
	talk --requests 20 --chats 4 --think-ms 1
	no_errors 'after an upgrade'
	settled
	stop_nginx
	make_here nginx-uninstall || cat "$work/out/made"
	is 'files left' "$(find "$work/out/root" -type f)" ''
	! make_here nginx-install BUILD="$work/out/none" ||
	    echo 'it installs what is not there'
	grep -q 'make nginx-module' "$work/out/made" || cat "$work/out/made"
}

# check-llama and others build into the folder that nginx may have loaded from.
module_is_built_under_load()
{
	up --scale 0.05
	before=$(children "$nginx_pid" | paste -s -d ' ')
	# shellcheck disable=SC2086
	talk_meanwhile $load
	for i in 1 2 3; do
		MAKEFLAGS='' MAKELEVEL='' bash mk/nginx_module.sh "$build" \
		    "${NGINX_SRC:-}" || echo 'it is not built'
	done
	talk_over
	no_errors 'while the module is built'
	same_processes "$before"
	is 'files left' "$(ls "$build/nginx/$module_name.new" 2> /dev/null)" ''
	settled
}

# ------------------------------------------------------------ other modules

# Prints the lines of the module of Lua, if this nginx loads it.
lua_lines()
{
	folder=$("$NGINX_BIN" -V 2>&1 | sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p')
	[ -e "$folder/ngx_http_lua_module.so" ] || return 1
	echo "load_module $folder/ndk_http_module.so;
	    load_module $folder/ngx_http_lua_module.so;" |
	    tee "$work/out/lua.conf"
	echo "events { } pid $work/out/lua.pid;" >> "$work/out/lua.conf"
	"$NGINX_BIN" -t -e /dev/null -c "$work/out/lua.conf" 2> /dev/null
}

# Compares the views of Lua's body filter and the client: a stream with usage at
# its end.
lua_and_client_see()
{
	rm -f "$work/out/lua"
	start_nginx kvroute
	curl -s -m 20 -o "$work/out/got" \
	    -d '{"model":"m","stream":true,"prompt":"abc"}' \
	    "http://127.0.0.1:$port/v1/completions"
	cmp "$work/out/got" "$work/out/expected"
	cmp "$work/out/lua" "$work/out/expected"
	is "chunks removed, $*" "$(json '.upstreams[0].usage.stripped')" 1
	settled
	stop_nginx
}

# The module loaded last would have the first look at a response.
lua_sees_no_usage_in_any_order()
{
	lines=$(lua_lines) || { skip 'there is no module of Lua for this nginx'; return; }
	printf 'data: %s\n\n' \
	    '{"choices":[{"index":0,"delta":{"content":"one"}}]}' '[DONE]' \
	    > "$work/out/expected"
	location_lines="kvroute_include_usage on;
	    body_filter_by_lua_block {
		local file = io.open('$work/out/lua', 'a')
		file:write(ngx.arg[1])
		file:close()
	    }"
	start_recorder 200
	for buffering in on off; do
		first_lines=$lines
		lua_and_client_see 'Lua first'
		first_lines=
		top_lines=$lines
		lua_and_client_see 'kvroute first'
		top_lines=
	done
}
