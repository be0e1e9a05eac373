#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_roles.sh - cases of check.sh: servers that prefill for others. The
# functions ask_about, heads_are and refuses_facts are those of check_ranks.sh.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} long_prompts_are_prefilled_elsewhere
    without_servers_that_prefill_others_do_it
    retry_has_another_server_that_prefills
    an_answer_that_is_no_refusal_blames_none roles_that_cannot_be
    no_server_decodes"

# A line for each request: the server, the one that prefills, the status.
log_roles()
{
	http_lines="log_format roles '\$upstream_addr \$kvroute_prefill \$status';"
	location_lines="access_log $work/logs/roles roles; ${location_lines:-}"
}

# roles_up ROLE ... - nginx before the engines of start_recorder, one each.
roles_up()
{
	processes=1
	log_roles
	server_list=
	for p in $engine_ports; do
		server_list="$server_list server 127.0.0.1:$p max_fails=0 ${down:-};
		    kvroute_server 127.0.0.1:$p role=$1;"
		shift
	done
	start_nginx kvroute
}

ask_short()
{
	curl -s -m 10 -o /dev/null -w '%{http_code}\n' \
	    -d '{"model":"m","prompt":"short"}' "$@" \
	    "http://127.0.0.1:$port/v1/completions"
}

all_hold_blocks()
{
	json '[.upstreams[0].workers[].held_blocks > 0] | all'
}

long_prompts_are_prefilled_elsewhere()
{
	start_recorder 200 200 200
	roles_up decode decode prefill
	prefill=127.0.0.1:$(nth 3 "$engine_ports")
	words=0
	for word in a b c d e f g h i j k l m n o p; do
		is "status, $word" "$(ask_about "$word" \
		    -H 'X-Prefiller-Host-Port: 10.9.9.9:1')" 200
		is "of $word" "$(heads_are X-Prefiller-Host-Port)" "$prefill"
		rm -f "$work"/out/asked/.head*
		until_true 20 no_leases
		words=$((words + 1))
		[ "$(all_hold_blocks)" != true ] || break
	done
	is 'status, a again' "$(ask_about a)" 200
	is 'status, short' "$(ask_short \
	    -H 'x-prefiller-host-port: 10.9.9.9:1')" 200
	is 'of those' "$(heads_are X-Prefiller-Host-Port)" ' '
	is split "$(json '.upstreams[0].split')" "$words"
	settled
	is 'all three have records' "$(all_hold_blocks)" true
	finish_nginx
	is 'requests at the server that prefills' \
	    "$(grep -c "^$prefill" "$work/logs/roles")" 0
	is 'in the log' "$(grep -c " $prefill 200" "$work/logs/roles")" \
	    "$words"
	is 'others in the log' "$(grep -c ' - 200' "$work/logs/roles")" 2
}

without_servers_that_prefill_others_do_it()
{
	start_recorder 200 200
	roles_up decode prefill
	worker=127.0.0.1:$(nth 2 "$engine_ports")
	is order "$(rank_order "$worker" drain)" draining
	until_true 20 drained_is_known || echo 'it is not known'
	is status "$(ask_about z)" 200
	is 'while it drains' "$(heads_are X-Prefiller-Host-Port | tr -d ' ')" ''
	settled
}

# A look at the workers is due when their state has changed.
drained_is_known()
{
	rm -f "$work"/out/asked/.head*
	ask_about "$tries" > /dev/null
	[ -z "$(heads_are X-Prefiller-Host-Port)" ]
}

# The engine that decodes has failed, or that which prefills.
retry_has_another_server_that_prefills()
{
	location_lines='proxy_next_upstream http_502 non_idempotent;'
	start_recorder 502 502 200 200
	roles_up decode decode prefill prefill
	is status "$(ask_about a)" 502
	heads_are X-Prefiller-Host-Port | tr ' ' '\n' | sort > "$work/prefills"
	is 'servers that prefill' "$(paste -s -d ' ' "$work/prefills")" \
	    "$(for n in 3 4; do echo "127.0.0.1:$(nth $n "$engine_ports")"
	    done | sort | paste -s -d ' ')"
	rm -f "$work"/out/asked/.head*
	is 'status of the next' "$(ask_about b)" 502
	is 'neither is used' "$(heads_are X-Prefiller-Host-Port | tr -d ' ')" ''
	settled
}

# As in the pool: an engine that does not know the path is well.
an_answer_that_is_no_refusal_blames_none()
{
	start_recorder 501 200
	roles_up decode prefill
	for word in a b; do
		is "status, $word" "$(ask_about "$word")" 501
		is "of $word" "$(heads_are X-Prefiller-Host-Port)" \
		    "127.0.0.1:$(nth 2 "$engine_ports")"
		rm -f "$work"/out/asked/.head*
		until_true 20 no_leases
	done
	settled
}

roles_that_cannot_be()
{
	server_facts='role=encode'
	refuses_facts 'both or prefill or decode'
	expected_alert='[emerg]'
}

no_server_decodes()
{
	start_recorder 200 200
	roles_up prefill prefill
	is status "$(ask_about a)" 502
	settled
}
