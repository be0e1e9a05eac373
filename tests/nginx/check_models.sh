#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_models.sh - cases of check.sh: the model chooses the upstream, limits
# are by model, and salts are set.
#
# Variables and functions of check.sh, check_passing.sh, check_reading.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} model_chooses_the_upstream
    model_chooses_in_pieces model_chooses_a_plain_upstream
    model_limits_requests model_is_known_after_redirects
    early_client_leaves early_client_may_leave early_body_is_slow early_refusals
    salt_is_set salt_is_set_in_files salt_is_set_in_pieces
    salt_separates_the_index salt_and_model salt_is_set_for_retries
    salt_is_set_in_mirrors salt_of_a_mirror_is_its_own
    salt_hangs_on_who_is_found salt_refuses salt_refuses_what_does_not_come
    models_refused_at_start"

# Two upstreams, each with an index; the second server of the configuration
# chooses one by the model. models_up [LINES OF THE LOCATION
# [LINES OF THE SERVER]]
models_up()
{
	to=$(free_port)
	large_at=${large_at:-$(nth 3 "$engine_ports")}
	upstream_ports=${upstream_ports:-$(nth 1 "$engine_ports") $(nth 2 \
	    "$engine_ports")}
	http_lines='map $kvroute_model $upstream {
		large large; small engines; plain plain; default engines; }
	upstream large { zone large 64k; kvroute zone=kvl:2m;
		server 127.0.0.1:'$large_at'; }
	upstream plain { server 127.0.0.1:'$large_at'; }
	limit_req_zone $kvroute_model zone=models:1m rate=1r/m;
	server {
		listen 127.0.0.1:'$to' '${to_with:-}';
		client_max_body_size 64m;
		client_body_buffer_size '${body_buffer:-1m}';
		kvroute_early on;
		location / { proxy_pass http://$upstream; '${1:-}' }
		'${2:-}'
	}'
	start_nginx kvroute
}

# chat MODEL [BYTES] - a body whose model stands at the end.
chat()
{
	perl -e 'my ($model, $n, $text) = @ARGV;
	print "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"",
	    $text . ("some words " x ($n / 11)), "\"}],\"user\":\"u\",",
	    "\"model\":\"$model\"}"' "$1" "${2:-100}" "${3:-a}" > "$work/body"
}

# of UPSTREAM FIELD - of the status.
of()
{
	json ".upstreams[] | select(.name == \"$1\") | $2"
}

requests_of()
{
	of "$1" '.reasons | add'
}

# Sums the bodies read: one that is read early counts for the one that lends.
bodies_read()
{
	json '[.upstreams[].bodies_read] | add'
}

# ------------------------------------------------------------------- models

models_choose()
{
	chat large "$1"
	is 'status of large' "$(send chat)" 200
	is 'requests to large' "$(requests_of large)" 1
	chat small "$1"
	is 'status of small' "$(send chat)" 200
	is 'requests to small' "$(requests_of engines)" 1
	chat large "$1" b
	is 'status of chunks' \
	    "$(send chat -H 'Transfer-Encoding: chunked')" 200
	is 'chunks to large' "$(requests_of large)" 2
	chat unknown "$1"
	is 'status of an unknown model' "$(send chat)" 200
	printf 'x' > "$work/body"
	is 'status of no JSON' "$(send chat)" 400
	is 'requests to the default' "$(requests_of engines)" 3
	is 'bodies read' "$(bodies_read)" 5
	chat large "$1"
	recorded_in large
	chat small "$1"
	recorded_in engines
}

# The body at hand is on record there, just as explain reads it.
recorded_in()
{
	curl -s -m 60 -H 'Expect:' --data-binary @"$work/body" \
	    "http://127.0.0.1:$port/kvroute/explain?upstream=$1" \
	    > "$work/explained"
	above "blocks for $1" "$(jq .blocks "$work/explained")" 2
	is "blocks on record in $1" "$(jq '[.candidates[].overlap_blocks] |
	    max' "$work/explained")" "$(jq .blocks "$work/explained")"
}

model_chooses_the_upstream()
{
	start_engines 3 --scale 0.01
	models_up
	models_choose 1000
	echo '{"input":"a","model":"large"}' > "$work/body"
	is 'status of embeddings' "$(send embeddings)" 200
	is 'embeddings to large' "$(of large .reasons.endpoint)" 1
	is 'status without a body' "$(curl -s -m 10 -o /dev/null \
	    -w '%{http_code}' "http://127.0.0.1:$to/v1/models")" 200
	settled
	down
	unset large_at
	body_buffer=1k
	start_engines 3 --scale 0.01
	models_up 'proxy_request_buffering off;'
	models_choose 40000
	is 'unbuffered' "$(of large .reasons.unbuffered)" 0
	settled
	unset to large_at
}

# With a module that reads 1 kB in each turn of the loop, and HTTP/2.
model_chooses_in_pieces()
{
	small_module
	to_with=http2
	start_engines 3 --scale 0.01
	models_up
	chat large 20000
	is 'status' "$(send chat --http2-prior-knowledge)" 200
	is 'requests to large' "$(requests_of large)" 1
	above 'pieces' $(($(of large .body_pieces) + \
	    $(of engines .body_pieces))) 15
	is 'bodies read' "$(bodies_read)" 1
	chat large 20000
	is 'status' "$(send chat --http2-prior-knowledge)" 200
	is 'requests held' $(($(of large .bodies_held) + \
	    $(of engines .bodies_held))) 2
	settled
	unset to to_with large_at
}

# The memory of the body is given back, and nothing is counted.
model_chooses_a_plain_upstream()
{
	start_engines 3 --scale 0.01
	models_up
	chat plain
	is 'status' "$(send chat)" 200
	is 'requests to ours' $(($(requests_of large) + \
	    $(requests_of engines))) 0
	settled
	unset to large_at
}

model_limits_requests()
{
	start_engines 3 --scale 0.01
	models_up 'limit_req zone=models; limit_req_status 429;'
	chat large
	is 'first of large' "$(send chat)" 200
	is 'second of large' "$(send chat)" 429
	chat small
	is 'first of small' "$(send chat)" 200
	is 'second of small' "$(send chat)" 429
	echo '{"prompt":"a"}' > "$work/body"
	is 'first without a model' "$(send completions)" 200
	is 'second without a model' "$(send completions)" 200
	settled
	unset to large_at
}

# error_page after a limit and after a failed engine, try_files, a subrequest.
model_is_known_after_redirects()
{
	start_engines 3 --scale 0.01
	upstream_ports=$(free_port)
	models_up 'error_page 502 = @other; proxy_intercept_errors on;' '
	location @other { kvroute_early off; add_header X-Model $kvroute_model;
		proxy_pass http://large; }
	location /tried/ { try_files /none @tried; }
	location @tried { rewrite ^/tried(.*) $1 break;
		proxy_pass http://$upstream; }
	location /asked/ { auth_request /auth; rewrite ^/asked(.*) $1 break;
		proxy_pass http://$upstream; }
	location = /auth { internal; if ($kvroute_model = large) {
		return 204; } return 403; }'
	chat small
	is 'model on an error page' "$(curl -s -m 20 -o /dev/null -D - \
	    --data-binary @"$work/body" \
	    "http://127.0.0.1:$to/v1/chat/completions" | tr -d '\r' |
	    sed -n 's/^X-Model: //p')" small
	is 'requests to large' "$(requests_of large)" 1
	chat large
	is 'status after try_files' "$(curl -s -m 20 -o /dev/null \
	    -w '%{http_code}' --data-binary @"$work/body" \
	    "http://127.0.0.1:$to/tried/v1/chat/completions")" 200
	is 'status after a subrequest' "$(curl -s -m 20 -o /dev/null \
	    -w '%{http_code}' --data-binary @"$work/body" \
	    "http://127.0.0.1:$to/asked/v1/chat/completions")" 200
	chat small
	is 'status after another' "$(curl -s -m 20 -o /dev/null \
	    -w '%{http_code}' --data-binary @"$work/body" \
	    "http://127.0.0.1:$to/asked/v1/chat/completions")" 403
	is 'requests to large' "$(requests_of large)" 3
	settled
	unset to large_at
}

early_client_leaves()
{
	small_module
	start_engines 3 --scale 0.01
	models_up
	chat small 20000
	leave 1 "$to"
	is 'requests that came to a choice' "$(requests_of engines)" 0
	is 'status afterwards' "$(send chat)" 200
	settled
	unset to large_at
}

came_to_engines()
{
	[ "$(requests_of engines)" = "$1" ]
}

# With proxy_ignore_client_abort the engine has its request all the same.
early_client_may_leave()
{
	small_module
	start_engines 3 --scale 0.01
	models_up 'proxy_ignore_client_abort on;'
	chat small 20000
	stop_reading
	curl -s -m 60 -o /dev/null -H 'Expect:' --data-binary @"$work/body" \
	    "http://127.0.0.1:$to/v1/chat/completions" &
	sent_pid=$!
	until_true 20 counts_are bodies_held 1 || echo 'the body is not held'
	kill "$sent_pid"
	wait "$sent_pid" 2> /dev/null
	sleep 0.2
	go_on_reading
	until_true 20 came_to_engines 1 || echo 'no engine has the request'
	settled
	unset to large_at
}

# The last bytes come late; with Expect curl waits for nginx's word.
early_body_is_slow()
{
	start_engines 3 --scale 0.01
	models_up
	printf '{"prompt":"%03000d","max_tokens":1,"model":"large"}' 1 \
	    > "$work/body"
	port_was=$port
	port=$to
	is 'status in two pieces' "$(send_in_pieces "$work/body" 2000)" 200
	is 'status in chunks' \
	    "$(send_in_pieces "$work/body" 2000 chunked)" 200
	port=$port_was
	is 'requests to large' "$(requests_of large)" 2
	is 'status with Expect' "$(send completions -H 'Expect: 100-continue')" 200
	is 'requests to large' "$(requests_of large)" 3
	perl -MIO::Socket::INET -e '
	    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]");
	    print $s "POST /v1/completions HTTP/1.1\r\nHost: a\r\n",
	        "Content-Length: 100\r\n\r\n{\"model\":"' "$to"
	is 'status after a client that left' "$(send completions)" 200
	settled
	unset to large_at
}

# head_only PATH - announces a body and sends its first byte.
head_only()
{
	perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(
	        PeerAddr => "127.0.0.1:$ARGV[0]");
	    alarm 30;
	    print $s "POST /$ARGV[1] HTTP/1.1\r\nHost: a\r\n",
	        "Content-Length: 10000\r\n\r\n{";
	    print scalar(<$s>) =~ /^HTTP\/1.1 (\d+)/ ? $1 : "none"' "$to" "$1"
}

# A body that could not be read ends, also with an error page of the same
# location.
early_refusals()
{
	start_engines 3 --scale 0.01
	echo full > "$work/out/full"
	models_up 'client_max_body_size 1k; error_page 413 /full;
	    client_body_timeout 1s; error_page 408 = /v1/late;' '
	location = /full { root '"$work"'/out; }
	location /thrown/ { client_max_body_size 1k; recursive_error_pages on;
		error_page 413 = /full; }'
	chat large 3000
	is 'status of too much' "$(send chat)" 413
	is 'status of too many chunks' \
	    "$(send chat -H 'Transfer-Encoding: chunked')" 413
	is 'status of too much that does not come' "$(head_only v1/x)" 413
	is 'status of what is thrown away' "$(head_only thrown/)" 200
	is 'status of a late body' "$(perl -MIO::Socket::INET -e '
	    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]");
	    alarm 30;
	    print $s "POST /v1/completions HTTP/1.1\r\nHost: a\r\n",
	        "Content-Length: 100\r\n\r\n{\"model\":";
	    my $answer = join "", <$s>;
	    print length $answer ? "answer" : "none"' "$to")" none
	chat large
	is 'status afterwards' "$(send chat)" 200
	settled
	unset to large_at
}

# -------------------------------------------------------------------- salts

# salted BODY EXPECTED [curl-option ...] - compares the body at the engine.
salted()
{
	printf '%s' "$1" > "$work/body"
	printf '200\n%s' "$2" > "$work/expected"
	shift 2
	n=$(($(find "$work/out/asked" -name '[0-9]*' | wc -l) + 1))
	is 'status' "$(send completions -H 'Content-Type: application/json' \
	    "$@")" 200
	until_true 20 test -e "$work/out/asked/$n" || echo 'nothing came'
	cmp "$work/out/asked/$n" "$work/expected"
	is 'Content-Length' "$(tr -d '\r' < "$work/out/asked/.head$n" |
	    sed -n 's/^Content-Length: //p')" \
	    $(($(wc -c < "$work/expected") - 4))
}

salts()
{
	location_lines='kvroute_salt $http_x_tenant; kvroute_include_usage on;
	    '${in_files:-}
	start_recorder 200
	start_nginx kvroute
	[ -z "${chunks:-}" ] || set -- -H 'Transfer-Encoding: chunked'
	set -- -H 'X-Tenant: a"b' "$@"
	words=$(printf 'words %0300d' 1)
	salted '{"prompt":"'"$words"'"}' \
	    '{"prompt":"'"$words"'","cache_salt":"a\"b"}' "$@"
	salted '{}' '{"cache_salt":"a\"b"}' "$@"
	salted '{"cache_salt":"evil","prompt":"'"$words"'"} ' \
	    '{                    "prompt":"'"$words"'","cache_salt":"a\"b"} ' \
	    "$@"
	salted '{"prompt":"'"$words"'","cache\u005fsalt":{"x":1}}' \
	    '{"prompt":"'"$words"'"                          ,"cache_salt":"a\"b"}' \
	    "$@"
	salted '{"cache_salt":1,"x":{"cache_salt":2},"cache_salt":3}' \
	    '{               "x":{"cache_salt":2}               ,"cache_salt":"a\"b"}' \
	    "$@"
	salted '{"prompt":"'"$words"'","stream":true}' \
	    '{"prompt":"'"$words"'","stream":true,"cache_salt":"a\"b"'"$usage_member"'}' \
	    "$@"
	shift 2
	salted '{"cache_salt":"mine"}' '{"cache_salt":"mine"}' "$@"
	settled
}

salt_is_set()
{
	salts
	down
	chunks=1
	salts
	unset chunks
}

salt_is_set_in_files()
{
	in_files='client_body_in_file_only clean;'
	salt_is_set
	unset in_files
}

salt_is_set_in_pieces()
{
	small_module
	body_buffer=1k
	location_lines='kvroute_salt t;'
	start_recorder 200
	start_nginx kvroute
	words=$(printf '%09000d' 1)
	salted '{"prompt":"'"$words"'","cache_salt":"x","y":1}' \
	    '{"prompt":"'"$words"'",                 "y":1,"cache_salt":"t"}'
	above 'pieces' "$(counts body_pieces)" 7
	settled
}

# The same prompt of two tenants shares nothing, of one tenant everything.
salt_separates_the_index()
{
	location_lines='kvroute_salt $http_x_tenant; kvroute_max_body 8k;
	    kvroute_feedback off;'
	log=kv
	processes=1
	up
	chat m 6000
	for tenant in a b a; do
		is 'status' "$(send chat -H "X-Tenant: $tenant")" 200
	done
	chat m 20000 long
	for tenant in a b a; do
		is 'status' "$(send chat -H "X-Tenant: $tenant")" 200
	done
	finish_nginx
	awk -F '\t' '$2 != "-" { print $3 }' "$work/logs/kv" > "$work/overlaps"
	is 'overlaps of 1, 2, 4 and 5' "$(sed -n '1p;2p;4p;5p' \
	    "$work/overlaps" | paste -s -d ' ')" '0 0 0 0'
	above 'overlap of the third' "$(sed -n 3p "$work/overlaps")" 20
	above 'overlap of the sixth' "$(sed -n 6p "$work/overlaps")" 20
}

# Read early, then salted, then routed: the body is read once.
salt_and_model()
{
	salts_and_models
	down
	unset large_at
	to_with=http2
	salts_and_models --http2-prior-knowledge -H 'Content-Length:'
	unset to_with large_at
}

salts_and_models()
{
	start_recorder 200 200 200
	models_up 'kvroute_salt $kvroute_model-$http_x_tenant;
	    kvroute_include_usage on;'
	salted '{"prompt":"a","stream":true,"model":"large","cache_salt":1}' \
	    '{"prompt":"a","stream":true,"model":"large"               ,"cache_salt":"large-t"'"$usage_member"'}' \
	    -H 'X-Tenant: t' "$@"
	is 'requests to large' "$(requests_of large)" 1
	printf '%s' '{"prompt":"a","stream":true,"model":"large"}' \
	    > "$work/body"
	is 'status' "$(send completions -H 'X-Tenant: t' "$@")" 200
	until_true 20 test -e "$work/out/asked/2"
	is 'body with both' "$(sed 1d "$work/out/asked/2")" \
	    '{"prompt":"a","stream":true,"model":"large","cache_salt":"large-t"'"$usage_member"'}'
	is 'bodies read' "$(bodies_read)" 2
	settled
	unset to large_at
}

# A mirror has its own salt, or none, and never the client's.
salt_is_set_in_mirrors()
{
	start_recorder 200 200 200
	upstream_ports=$(nth 1 "$engine_ports")
	to=$(free_port)
	http_lines='server {
		listen 127.0.0.1:'$to';
		location / { mirror /salted; mirror /plain; kvroute_salt t;
			proxy_pass http://engines; }
		location = /salted { internal; kvroute_salt m;
			proxy_pass http://127.0.0.1:'$(nth 2 "$engine_ports")'; }
		location = /plain { internal;
			proxy_pass http://127.0.0.1:'$(nth 3 "$engine_ports")'; }
	}'
	start_nginx kvroute
	printf '{"prompt":"a","cache_salt":"x"}' > "$work/body"
	is 'status' "$(send completions)" 200
	until_true 20 test -e "$work/out/asked/3" || echo 'not all came'
	for n in 1 2 3; do
		sed 1d "$work/out/asked/$n"
		echo
	done | sort > "$work/got"
	printf '{"prompt":"a"                 %s}\n' '' ',"cache_salt":"m"' \
	    ',"cache_salt":"t"' | sort > "$work/expected"
	cmp "$work/got" "$work/expected" || cat "$work/got"
	settled
	unset to
}

# A variable that a mirror sets is the mirror's: the request keeps its client's.
salt_of_a_mirror_is_its_own()
{
	start_recorder 200 200
	upstream_ports=$(nth 1 "$engine_ports")
	to=$(free_port)
	http_lines='server {
		listen 127.0.0.1:'$to';
		location / { mirror /salted; proxy_pass http://engines; }
		location = /salted { internal; kvroute_salt m;
			proxy_pass http://127.0.0.1:'$(nth 2 "$engine_ports")'; }
	}'
	start_nginx kvroute
	printf '{"cache_salt":"x","prompt":"a"}' > "$work/body"
	is 'status' "$(send completions)" 200
	until_true 20 test -e "$work/out/asked/2" || echo 'not all came'
	for n in 1 2; do
		sed 1d "$work/out/asked/$n"
		echo
	done | sort > "$work/got"
	printf '%s\n' '{"cache_salt":"x","prompt":"a"}' \
	    '{                 "prompt":"a","cache_salt":"m"}' |
	    sort > "$work/expected"
	cmp "$work/got" "$work/expected" || cat "$work/got"
	settled
	unset to
}

# The value is that of the request, and not of one that authorizes it before.
salt_hangs_on_who_is_found()
{
	start_recorder 200
	to=$(free_port)
	http_lines='map $who $salt { default nobody; alice of-alice; }
	server {
		listen 127.0.0.1:'$to';
		kvroute_salt $salt;
		location / { auth_request /who;
			auth_request_set $who $upstream_http_x_who;
			proxy_pass http://engines; }
		location = /who { internal; proxy_pass_request_body off;
			proxy_set_header Content-Length "";
			proxy_pass http://127.0.0.1:'$to'/say; }
		location = /say { add_header X-Who alice; return 204; }
	}'
	start_nginx kvroute
	printf '{"prompt":"a"}' > "$work/body"
	is 'status' "$(send completions)" 200
	is 'the body' "$(sed 1d "$work/out/asked/1")" \
	    '{"prompt":"a","cache_salt":"of-alice"}'
	settled
	unset to
}

# The second engine gets the same body as the first, from a file too.
salt_is_set_for_retries()
{
	location_lines='client_body_in_file_only clean; kvroute_salt t;
	    proxy_next_upstream http_503 non_idempotent;
	    proxy_next_upstream_tries 2;'
	start_recorder 503 200
	server_list="server 127.0.0.1:$(nth 1 "$engine_ports") max_fails=0;
	    server 127.0.0.1:$(nth 2 "$engine_ports") backup;"
	start_nginx kvroute
	words=$(printf 'words %0300d' 1)
	printf '%s' '{"cache_salt":"x","prompt":"'"$words"'"}' > "$work/body"
	n=0
	while [ $n -lt 4 ]; do
		n=$((n + 1))
		is 'status' "$(send completions \
		    -H 'Content-Type: application/json')" 200
	done
	is 'retries' "$(counts retries)" 4
	for file in "$work"/out/asked/[0-9]*; do
		is "${file##*/}" "$(sed 1d "$file")" \
		    '{                 "prompt":"'"$words"'","cache_salt":"t"}'
	done
	settled
}

salt_refuses()
{
	location_lines='kvroute_salt $http_x_tenant;'
	files=$(free_port)
	echo file > "$work/out/file"
	http_lines='server { listen 127.0.0.1:'$files'; root '"$work"'/out;
		kvroute_salt t; }'
	start_recorder 200
	start_nginx kvroute
	set -- -H 'X-Tenant: t'
	for body in '[]' 'x' '{"a":1' '{"a":1}{}' '{"a":"\x"}'; do
		printf '%s' "$body" > "$work/body"
		is "status of $body" "$(send chat "$@")" 400
		is "status of $body without a salt" "$(send chat)" 200
		is "status of $body elsewhere" "$(send other "$@" \
		    -H 'Content-Type: application/json')" 400
	done
	is 'status of a file' "$(curl -s -m 20 -o /dev/null -X GET \
	    -H 'Content-Type: application/json' -w '%{http_code}' \
	    --data-binary @"$work/body" "http://127.0.0.1:$files/file")" 200
	printf '{"cache_salt":"%070000d"}' 1 > "$work/body"
	is 'status of a long salt' "$(send chat "$@")" 400
	printf '{"a":1}' > "$work/body"
	is 'status of a coding' \
	    "$(send chat "$@" -H 'Content-Encoding: gzip')" 415
	is 'status of no coding' \
	    "$(send chat "$@" -H 'Content-Encoding: identity')" 200
	is 'status of a value' "$(send chat -H "X-Tenant: $(printf \
	    '\377')")" 400
	is 'status of any type' "$(send other "$@" \
	    -H 'Content-Type: text/plain')" 200
	printf -- '--a\r\n' > "$work/body"
	is 'status of no form' "$(send audio/transcriptions "$@" \
	    -H 'Content-Type: text/plain')" 400
	is 'status of a form' "$(send audio/transcriptions "$@" \
	    -H 'Content-Type: multipart/form-data; boundary=a')" 200
	is 'status of a form as a chat' "$(send chat "$@" \
	    -H 'Content-Type: multipart/form-data; boundary=a')" 400
	is 'status without a body' "$(curl -s -m 10 -o /dev/null "$@" \
	    -w '%{http_code}' "http://127.0.0.1:$port/v1/models")" 200
	settled
}

# The result must not be passed on, not as an error page either.
salt_refuses_what_does_not_come()
{
	location_lines='kvroute_salt t; client_max_body_size 1k;
	    error_page 413 = /v1/other;'
	start_recorder 200
	start_nginx kvroute
	printf '{"prompt":"%03000d"}' 1 > "$work/body"
	is 'status' "$(send_in_pieces "$work/body" 500 chunked)" 400
	is 'requests to the engine' \
	    "$(find "$work/out/asked" -name '[0-9]*' | wc -l)" 0
	settled
}

# refused_at_start LINES SENTENCE - as the lines of http.
refused_at_start()
{
	printf 'load_module %s;\nevents {}\nhttp { access_log off; %s }\n' \
	    "$(cd "$build" && pwd -P)/nginx/ngx_http_upstream_kvroute_module.so" \
	    "$1" > "$work/bad.conf"
	"$NGINX_BIN" -t -p "$work" -c "$work/bad.conf" -e stderr \
	    > "$work/refusal" 2>&1 && echo "accepted: $1"
	grep -qF "$2" "$work/refusal" ||
	    echo "for $1:" "$(grep emerg "$work/refusal")"
}

models_refused_at_start()
{
	block='upstream e { kvroute zone=kv:8m; server 127.0.0.1:1; }'
	refused_at_start "$block kvroute_early maybe;" 'it must be "on" or "off"'
	refused_at_start 'server { kvroute_early on; }' \
	    '"kvroute_early" needs an upstream with "kvroute"'
	refused_at_start 'server { kvroute_salt a; }' \
	    '"kvroute_salt" needs an upstream with "kvroute"'
	refused_at_start "$block kvroute_salt a b;" 'number of arguments'
	refused_at_start "$block kvroute_salt a; kvroute_salt b;" 'duplicate'
	refused_at_start "$block kvroute_salt $(printf '\377');" 'not UTF-8'
}
