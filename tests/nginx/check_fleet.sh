#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_fleet.sh - the case of check.sh that runs examples/nginx.conf as it
# stands: only addresses and paths are those of this machine.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} fleet_of_the_example"

# The engines of the agents have ranks. The engines of the chats start last, and
# end with the case; the others end with the kept ones.
fleet_engines()
{
	start_engines 2 --scale 0.01 --capacity 100000 --ranks 8
	kept_pids="$kept_pids $engines_pid"
	coder_ports=$engine_ports
	start_engines 4 --scale 0.01 --capacity 100000
}

fleet_conf()
{
	module=$(cd "$build" && pwd -P)/nginx/ngx_http_upstream_kvroute_module.so
	port=$(free_port)
	status_port=$(free_port)
	sed "s|modules/ngx_http_upstream_kvroute_module.so|$module|
	    s|/var/log/nginx/error.log|$work/logs/error|
	    s|/var/log/nginx/fleet.log|$work/logs/fleet|
	    s|/run/nginx.pid|$work/nginx.pid|
	    s|/run/nginx-unknown.sock|$work/out/unknown|
	    s|/var/lib/kvroute/|$work/out/|
	    s|size=256m|size=8m|; s|size=64m|size=8m|
	    s|worker_processes auto|worker_processes 2|
	    s|listen 80;|listen 127.0.0.1:$port;|
	    s|listen 127.0.0.1:8080;|listen 127.0.0.1:$status_port;|
	    s|10.0.1.1:8000|127.0.0.1:$(nth 1 "$coder_ports")|
	    s|10.0.1.2:8000|127.0.0.1:$(nth 2 "$coder_ports")|
	    s|10.0.2.1:8000|127.0.0.1:$(nth 1 "$engine_ports")|
	    s|10.0.2.2:8000|127.0.0.1:$(nth 2 "$engine_ports")|
	    s|10.0.2.3:8000|127.0.0.1:$(nth 3 "$engine_ports")|
	    s|10.0.2.4:8000|127.0.0.1:$(nth 4 "$engine_ports")|
	    /^worker_rlimit_nofile/d
	    s|^user .*|user $(id -un) $(id -gn);|
	    s|^http {|& client_body_temp_path $work/tmp/body;|
	    s|^http {|& proxy_temp_path $work/tmp/proxy;|" examples/nginx.conf \
	    > "$work/nginx.conf"
}

fleet_begin()
{
	fleet_conf
	[ "$(id -u)" -eq 0 ] || sed -i '/^user /d' "$work/nginx.conf"
	"$NGINX_BIN" -p "$work" -c "$work/nginx.conf" -e "$work/logs/error" \
	    -g 'daemon off;' > "$work/logs/out" 2>&1 &
	nginx_pid=$!
	until_true 60 curl -sf -m 2 -o /dev/null \
	    "http://127.0.0.1:$status_port/kvroute/json" ||
	    fail "nginx does not start: $(cat "$work/logs/error" \
	        "$work/logs/out")"
}

# fleet_chat KEY MODEL TEXT - prints its status, and leaves the answer in
# out/answer.
fleet_chat()
{
	perl -e 'my ($model, $text) = @ARGV;
	    print "{\"model\":\"$model\",\"max_tokens\":4,\"messages\":[{",
	        "\"role\":\"user\",\"content\":\"", "$text " x 400, "\"}]}"' \
	    "$2" "$3" > "$work/body"
	curl -s -m 60 -o "$work/out/answer" -w '%{http_code}' \
	    -H "Authorization: Bearer key-of-$1" -H 'Expect:' \
	    -H 'Content-Type: application/json' --data-binary @"$work/body" \
	    "http://127.0.0.1:$port/v1/chat/completions"
}

# fleet_of UPSTREAM FIELD - of the status.
fleet_of()
{
	curl -sf -m 10 "http://127.0.0.1:$status_port/kvroute/json" |
	    jq -r ".upstreams[] | select(.name == \"$1\") | $2"
}

# cached WHAT - tokens that the engine found in its cache, of the last answer.
fleet_cached()
{
	jq -r '.usage.prompt_tokens_details.cached_tokens' "$work/out/answer"
}

fleet_of_the_example()
{
	fleet_engines
	fleet_begin
	for model in coder-480b chat-8b; do
		for tenant in red green blue; do
			is "status of $model for $tenant" \
			    "$(fleet_chat $tenant $model words)" 200
			is "cached for $tenant at first" "$(fleet_cached)" 0
		done
		is "status of $model again" "$(fleet_chat green $model \
		    words)" 200
		above "cached for green of $model" "$(fleet_cached)" 100
	done
	is 'tenants of chat' "$(fleet_of chat '[.region.tenants.rows[].share] |
	    sort | map(tostring) | join(" ")')" '100 100 300'
	is 'workers of coder' "$(fleet_of coder '.workers | length')" 16
	is 'workers of chat' "$(fleet_of chat '.workers | length')" 4
	for name in coder chat; do
		is "requests to $name" "$(fleet_of $name \
		    '[.workers[].lease_opens] | add')" 4
	done
	for name in coder chat; do
		is "places to wait for $name" "$(fleet_of $name \
		    '.queue | "\(.waiting) of \(.most)"')" '0 of 1000'
	done
	is 'status of another model' "$(fleet_chat red gpt words)" 404
	is 'its answer' "$(jq -r .error.code "$work/out/answer")" \
	    model_not_found
	is 'status of another key' "$(fleet_chat pink chat-8b words)" 401
	is 'models' "$(curl -s -m 10 -H 'Authorization: Bearer key-of-red' \
	    "http://127.0.0.1:$port/v1/models" | jq -r '[.data[].id] |
	    join(" ")')" 'coder-480b chat-8b'
	is 'status of the status from a client' "$(curl -s -m 10 -o /dev/null \
	    -w '%{http_code}' -H 'Authorization: Bearer key-of-red' \
	    "http://127.0.0.1:$port/kvroute")" 404
	is 'lines of green' "$(grep -c ' green 200 "chat-8b" ' \
	    "$work/logs/fleet")" 2
	! grep -E '\[(warn|error|crit|alert|emerg)\]' "$work/logs/error" ||
	    echo 'the log has complaints'
}
