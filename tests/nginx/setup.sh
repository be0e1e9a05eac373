#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# setup.sh - sourced by the scripts beside it: an nginx, engines and users on
# free loopback ports, in a scratch folder.
#
#	users (kvroute-chats) --> nginx, two processes --> engines (one process)
#
# Every process is a child of the sourcing shell and ends with it, also when
# that is interrupted: users run in the background, because a shell handles
# signals only while it waits. Nothing listens except on 127.0.0.1.
#
# Set before: build (the build folder). Set here: work (the scratch folder),
# port, engine_ports, nginx_pid, engines_pid.

# Not NGINX: in that nginx looks for sockets that it inherits.
NGINX_BIN=${NGINX_BIN:-nginx}
build=${build:?}
PATH=$PATH:/usr/sbin:/sbin
. tests/until.sh
work=
port=
nginx_pid=
engines_pid=
kept_pids=
chats_pid=
ports_pid=
engine_ports=
under=

# It starts ten times as fast, and scripts start it a thousand times.
jq() { gojq "$@"; }

fail()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# ------------------------------------------------------------ begin and end

setup_begin()
{
	work=$(mktemp -d) || exit 1
	work=$(cd "$work" && pwd -P)
	trap setup_end EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkdir "$work/logs" "$work/tmp"
	reserve_ports
}

# Ends one child and waits for it.
end_child()
{
	[ -n "$1" ] || return 0
	kill "$2" "$1" 2> /dev/null
	wait "$1" 2> /dev/null
}

setup_end()
{
	trap '' HUP INT TERM
	trap - EXIT
	end_child "$chats_pid" -TERM
	stop_nginx
	stop_kept
	stop_engines
	end_child "$ports_pid" -TERM
	[ -z "$work" ] || rm -rf "$work"
}

# Reserves a block of ports below those that the kernel assigns. The first UDP
# port is held meanwhile, so that no other run takes them.
reserve_ports()
{
	perl -MSocket -e '
	    my ($parent, $base) = getppid;
	    socket(my $held, PF_INET, SOCK_DGRAM, 0);
	    do {
		$base = 10240 + 64 * int(rand(350));
	    } until bind($held, pack_sockaddr_in($base, INADDR_LOOPBACK));
	    for my $port ($base .. $base + 63) {
		socket(my $try, PF_INET, SOCK_STREAM, 0);
		setsockopt($try, SOL_SOCKET, SO_REUSEADDR, 1);
		print "$port\n" if bind($try,
		    pack_sockaddr_in($port, INADDR_LOOPBACK));
	    }
	    close(STDOUT);
	    sleep(1) while getppid == $parent;' > "$work/ports" &
	ports_pid=$!
	until_true 20 test -s "$work/ports" || fail 'no ports'
}

# The next of them.
free_port()
{
	head -n 1 "$work/ports"
	sed -i -e '1{h;d;}' -e "\$G" "$work/ports"
}

# children PID - of a process, one a line. nginx's are its worker processes.
children()
{
	cat /proc/[0-9]*/stat 2> /dev/null | awk -v parent="$1" '{
		pid = $1
		sub(/.*\) /, "")
		if ($2 == parent && $1 != "Z") print pid
	}' | sort -n
}

# ---------------------------------------------------------------- engines

# start_engines N option ... - in one process, each on a port of its own.
start_engines()
{
	count=$1
	shift
	: > "$work/engines"
	"$build/kvroute-engine" --engines "$count" --port 0 \
	    --for "${ENGINES_FOR:-900}" "$@" > "$work/engines" \
	    2> "$work/logs/engines" &
	engines_pid=$!
	until_true 20 engines_told "$count" || fail "engines do not start:" \
	    "$(cat "$work/engines" "$work/logs/engines")"
	engine_ports=$(grep -oE '[0-9]+$' "$work/engines" | paste -s -d ' ')
}

engines_told()
{
	kill -0 "$engines_pid" 2> /dev/null || { tries=0; return 1; }
	[ "$(wc -l < "$work/engines")" -ge "$1" ]
}

stop_engines()
{
	end_child "$engines_pid" -TERM
	engines_pid=
}

# ------------------------------------------------------------------- nginx

# The lines of the upstream block that choose METHOD, and those of http.
method_lines()
{
	case $1 in
	round_robin) ;;
	least_conn) echo 'least_conn;' ;;
	floor) echo 'least_conn; floor;' ;;
	hash) echo "hash \$beginning consistent;" ;;
	session) echo "hash \$http_x_session_id consistent;" ;;
	kvroute) echo "kvroute ${kvroute_options:-zone=kv:8m};" ;;
	*) fail "$1: no such method" ;;
	esac
}

# By the first 4096 bytes of the body, as is usual without a module.
beginning_map()
{
	cat <<-'END'
	map $request_body $beginning {
		"~^(?<b>[\s\S]{1,4096})" $b;
		default "";
	}
	END
}

server_lines()
{
	[ -z "${server_list:-}" ] || { echo "$server_list"; return; }
	for p in ${upstream_ports:-$engine_ports}; do
		echo "server 127.0.0.1:$p ${server_options:-};"
	done
	[ "$1" = kvroute ] || return 0
	[ -n "${server_facts:-}" ] || return 0
	for p in ${upstream_ports:-$engine_ports}; do
		echo "kvroute_server 127.0.0.1:$p $server_facts;"
	done
}

kvroute_log()
{
	# shellcheck disable=SC2016
	printf '%s' '$status\t$kvroute_reason\t$kvroute_overlap\t'\
'$kvroute_blocks\t$kvroute_cached\t$kvroute_ns\t$kvroute_worker\t'\
'$upstream_addr'
}

# write_conf METHOD - a caller may set before: kvroute_options,
# server_options, server_facts, upstream_ports, http_lines, location_lines,
# first_lines, top_lines (before and after load_module), log (a file),
# processes, worker_user, body_buffer, buffering; and module_file, another copy
# of the module.
write_conf()
{
	{
		echo "worker_processes ${processes:-2};"
		echo "pid $work/nginx-$port.pid;"
		echo "error_log $work/logs/error ${log_level:-notice};"
		[ "$(id -u)" -ne 0 ] ||
		    echo "user ${worker_user:-$(id -un) $(id -gn)};"
		echo "${first_lines:-}"
		[ "$1" != kvroute ] || echo "load_module $module;"
		[ "$1" != floor ] || echo "load_module $(dirname \
		    "$module")/ngx_http_upstream_floor_module.so;"
		echo "${top_lines:-}"
		echo 'events { worker_connections 4096; }'
		echo 'http {'
		for temp in client_body proxy fastcgi uwsgi scgi; do
			echo "${temp}_temp_path $work/tmp/$temp;"
		done
		if [ -n "${log:-}" ] && [ "$1" = kvroute ]; then
			echo "log_format kv '$(kvroute_log)';"
			echo "access_log $work/logs/$log kv;"
		else
			echo 'access_log off;'
		fi
		beginning_map
		echo "${http_lines:-}"
		echo 'upstream engines {'
		echo 'zone engines 256k;'
		method_lines "$1"
		server_lines "$1"
		echo 'keepalive 64; keepalive_timeout 4s; keepalive_requests 1000000; }'
		server_block "$1"
		echo '}'
	} > "$work/nginx.conf"
}

server_block()
{
	cat <<-END
	server {
		listen 127.0.0.1:$port;
		client_max_body_size 64m;
		client_body_buffer_size ${body_buffer:-1m};
		keepalive_requests 1000000;
		location = /ready { return 200; }
		location /v1/ {
			proxy_pass http://engines;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering ${buffering:-off};
			proxy_read_timeout 600s;
			${location_lines:-}
		}
	END
	[ "$1" != kvroute ] ||
	    echo 'location /kvroute { kvroute_status; allow 127.0.0.1; deny all; }'
	echo '}'
}

is_ready()
{
	kill -0 "$nginx_pid" 2> /dev/null || { tries=0; return 1; }
	curl -sf -m 2 -o /dev/null "http://127.0.0.1:$port/ready"
}

# start_nginx METHOD
start_nginx()
{
	module=${module_file:-$(cd "$build" && pwd -P)/nginx/ngx_http_upstream_kvroute_module.so}
	for attempt in 1 2 3; do
		port=$(free_port)
		write_conf "$1"
		# shellcheck disable=SC2086
		$under "$NGINX_BIN" -p "$work" -c "$work/nginx.conf" \
		    -e "$work/logs/error" -g 'daemon off;' \
		    > "$work/logs/out" 2>&1 &
		nginx_pid=$!
		until_true 60 is_ready && return 0
		end_child "$nginx_pid" -TERM
		nginx_pid=
		# Another process may have taken the port.
		grep -q 'Address already in use' "$work/logs/error" || break
	done
	fail "nginx does not start (attempt $attempt):" \
	    "$(tail -n 5 "$work/logs/error" "$work/logs/out")"
}

stop_nginx()
{
	end_child "$nginx_pid" -TERM
	nginx_pid=
}

# A graceful stop: requests in flight end and logs are complete.
finish_nginx()
{
	end_child "$nginx_pid" -QUIT
	nginx_pid=
}

# Keeps this nginx running while others are started; the caller saves nginx_pid
# and port.
keep_nginx()
{
	kept_pids="$kept_pids $nginx_pid"
	nginx_pid=
}

stop_kept()
{
	for pid in $kept_pids; do
		end_child "$pid" -TERM
	done
	kept_pids=
}

# reload_nginx METHOD - waits until the old processes have exited, unless NOWAIT
# is set: those with long streams stay.
reload_nginx()
{
	write_conf "$1"
	reload_file
}

# The same file, which may have been changed. An old process that still accepts
# would go by the old one.
reload_file()
{
	old=$(children "$nginx_pid")
	kill -HUP "$nginx_pid"
	until_true 60 new_processes || fail "nginx does not reload:" \
	    "$(tail -n 5 "$work/logs/error")"
	[ -n "${NOWAIT:-}" ] || until_true 60 old_gone ||
	    fail 'processes of before the reload stay'
}

new_processes()
{
	now=$(children "$nginx_pid")
	[ "$now" != "$old" ] && [ -n "$now" ] && is_ready
}

old_gone()
{
	for pid in $old; do
		! kill -0 "$pid" 2> /dev/null || return 1
	done
}

# ------------------------------------------------------------------- users

# chats option ... - waits for them; returns their exit code.
chats()
{
	"$build/kvroute-chats" --url "http://127.0.0.1:$port" "$@" &
	chats_pid=$!
	wait "$chats_pid"
	code=$?
	chats_pid=
	return $code
}

# value FILE NAME - of lines name=value.
value()
{
	sed -n "s/^$2=//p" "$1"
}

# A path of the status location, e.g. /json.
status()
{
	curl -sf -m 10 "http://127.0.0.1:$port/kvroute$1"
}

# metric NAME - the sum of all its samples, whatever their labels.
metric()
{
	status /metrics | awk -v name="$1" '
		{ split($1, part, "{") }
		part[1] == name { sum += $NF }
		END { printf "%.0f\n", sum }'
}
