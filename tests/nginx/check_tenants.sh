#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_tenants.sh - cases of check.sh: tenants share an index that is full.
#
# Variables and functions of check.sh, check_models.sh, check_reading.sh,
# check_sync.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} tenants_share_a_full_index
    tenants_are_driven_out_unshared tenants_refused_at_start
    tenants_of_another_number tenants_of_others_take_their_share"

# An index that three megabytes of prompts fill. tenants_up [OPTION]
tenants_up()
{
	start_engines 1 --scale 0.001 --capacity 100000000
	kvroute_options="zone=kvt:776k block=16 workers=1 affinity=0
	    ttl=1h ${1:-}"
	http_lines='kvroute_scope $http_x_tenant;
	map $http_x_tenant $share { default ""; large 300; odd many; }
	'"${1:+kvroute_share \$share;}"
	body_buffer=1m
	log=access
	start_nginx kvroute
}

# prompt_as TENANT NAME BYTES - a prompt that is not like those of other names.
prompt_as()
{
	perl -e 'my ($name, $n) = @ARGV;
	print "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":",
	    "\"user\",\"content\":\"",
	    join(" ", map { "$name$_" } 1 .. $n / (length($name) + 5)),
	    "\"}]}"' "$2" "$3" > "$work/body"
	is "status of $2" "$(send chat -H "X-Tenant: $1")" 200
}

# Twenty short chats.
small_chats()
{
	for i in $(seq 20); do
		prompt_as small "chat$i" 3000
	done
}

# chats_found [LOG] - the share of the latest chats that was on record, in
# percent.
chats_found()
{
	tail -n 20 "$work/logs/${1:-access}" | awk '{ found += $3; all += $4 }
	    END { print int(100 * found / all) }'
}

# Sends more than ten times as much as there is room for.
flood()
{
	for i in $(seq "${1:-80}"); do
		prompt_as "${2:-flood}" "${2:-flood}$i" 400000
	done
}

tenant_row()
{
	json ".upstreams[0].region.tenants.rows[] | select(.share == $1) | $2"
}

tenants_share_a_full_index()
{
	tenants_up 'tenants=8'
	small_chats
	flood
	settled
	above 'evicted' "$(json '.upstreams[0].region.evicted_region')" 20
	small_chats
	above 'percent found' "$(chats_found)" 97
	# one with three shares has three times as much as one with one
	flood 20 large
	settled
	is 'tenants' "$(json '.upstreams[0].region.tenants.rows | length')" 3
	above 'bytes of three shares' "$(tenant_row 300 .bytes)" \
	    "$(tenant_row 100 .bytes | sort -n | tail -n 1 |
	    awk '{ print 2 * $1 }')"
	# an invalid number is logged, and counts as 100
	prompt_as odd odd 300
	settled
	above 'odd shares told' "$(grep -c 'kvroute_share is "many"' \
	    "$work/logs/error")" 0
	reload_nginx kvroute
	small_chats
	above 'percent found after a reload' "$(chats_found)" 97
	settled
}

tenants_are_driven_out_unshared()
{
	tenants_up
	small_chats
	flood
	is 'tenants' "$(json '.upstreams[0].region.tenants')" null
	small_chats
	above 'percent lost' "$((100 - $(chats_found)))" 80
	settled
}

tenants_accepted()
{
	refused_at_start "$(echo "$1" | tr '\n' ' ')" 'test is successful' |
	    grep -v '^accepted: '
}

tenants_refused_at_start()
{
	block='upstream e { kvroute zone=kv:8m; server 127.0.0.1:1; }'
	for n in 0 1025 x -1; do
		refused_at_start "upstream e { kvroute zone=kv:8m tenants=$n;
		    server 127.0.0.1:1; }" "\"tenants=$n\""
	done
	for n in 0 10001 x 10% ''; do
		refused_at_start "$block kvroute_scope a;
		    kvroute_share '$n';" 'no number from 1 to 10000'
	done
	refused_at_start "$block server { kvroute_share 100; }" \
	    '"kvroute_share" needs "kvroute_scope"'
	refused_at_start "$block server { location / { kvroute_share 100; }
	    location /b { kvroute_scope a; kvroute_share 1; } }" \
	    '"kvroute_share" needs "kvroute_scope"'
	refused_at_start "$block kvroute_share 100; server { location / { } }" \
	    '"kvroute_share" needs "kvroute_scope"'
	# the owner may be set where it is used
	tenants_accepted "$block kvroute_share 100; server {
	    location /a { kvroute_scope a; } location /b { } }"
	tenants_accepted "$block server { kvroute_share 100;
	    location /a { location /a/b { kvroute_scope a; } } }"
	refused_at_start "$block kvroute_scope a; kvroute_share 1 2;" \
	    'number of arguments'
}

many_are_evicted()
{
	[ "$(json '.upstreams[0].region.evicted_region')" -gt 20 ]
}

# All go to another router, which sends this one a flood and the chats.
tenants_of_others_take_their_share()
{
	router_options='size=1540k block=16 journal=256k affinity=0 ttl=1h
	    tenants=8'
	http_lines='kvroute_scope $http_x_tenant;
	map $http_x_tenant $share { default 100; flood 50; }
	kvroute_share $share;'
	body_buffer=1m
	two_routers --scale 0.001 --capacity 100000000 || return
	port=$port2
	small_chats
	flood 60
	port=$port1
	until_true 20 many_are_evicted || echo 'no flood is told of'
	is 'shares' "$(json '[.upstreams[0].region.tenants.rows[].share] | sort
	    | map(tostring) | join(" ")')" '50 100'
	is 'what the chats have lost' "$(tenant_row 100 .evicted)" 0
	small_chats
	above 'percent found' "$(chats_found access1)" 97
	until_true 20 no_leases || echo 'leases stay'
	stop_kept
}

# A reload keeps the index, which has as many as it was made with.
tenants_of_another_number()
{
	tenants_up 'tenants=8'
	kvroute_options='zone=kvt:776k block=16 workers=1 affinity=0 ttl=1h
	    tenants=9'
	write_conf kvroute
	kill -HUP "$nginx_pid"
	until_true 20 grep -q 'in use with another block, ttl, workers, tenants' \
	    "$work/logs/error" || echo 'another number is taken'
	expected_alert='in use with another block'
}
