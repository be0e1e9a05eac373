#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_picker.sh build [case] - kvroute-pick under the checker of pickers, and
# its options, certificates and end: cases of tests/cases.sh.
#
# shellcheck disable=SC2154
. tests/pick/common.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
python=$build/picker-venv/bin/python
find_ports

# [option ...] - prints checks that fail.
check()
{
	[ -x "$python" ] || { echo 'skipped: there is no grpcio'; return; }
	"$python" tests/picker-check/picker_check.py --generated \
	    "$build/picker-venv" --health "$probe" "$@" \
	    127.0.0.1:9101 127.0.0.1:9102 127.0.0.1:9103 > "$scratch/checks" 2>&1 ||
	    cat "$scratch/checks"
	grep -q '^0 of [1-9]' "$scratch/checks" || tail -n 1 "$scratch/checks"
}

nothing_is_left()
{
	until_is 0 state .pick.streams
	until_is '[0,0,0]' state '[.pool.upstreams[0].workers[].requests]'
}

case_checker()
{
	configure 'kvroute size=64m;' "$three"
	picker_up --secure-serving false
	check "127.0.0.1:$grpc"
	nothing_is_left
}

case_checker_tls()
{
	configure 'kvroute size=64m;' "$three"
	picker_up
	check --tls "127.0.0.1:$grpc"
	nothing_is_left
}

case_checker_places()
{
	configure 'kvroute size=64m;' "$(echo "$three" |
	    sed 's/capacity=400000/max_conns=2/')"
	picker_up --secure-serving=false
	check --places 2 --only check_full "127.0.0.1:$grpc"
	nothing_is_left
}

case_checker_prefill()
{
	configure 'kvroute size=64m;' "$(echo "$three" |
	    sed 's/capacity=400000/role=decode/')" \
	    'server 127.0.0.1:9104 role=prefill;' \
	    'server 127.0.0.1:9105 role=prefill max_conns=500;'
	picker_up --secure-serving=false
	check --prefill 127.0.0.1:9104 --prefill 127.0.0.1:9105 \
	    "127.0.0.1:$grpc"
	until_is 0 state .pick.streams
	until_is 0 state '[.pool.upstreams[0].workers[].requests] | add'
}

# Any bytes behind the preface of HTTP/2: the connection ends, others do not.
case_strange_bytes()
{
	configure "$three"
	picker_up --secure-serving false
	python3 tests/pick/strange_bytes.py "$grpc" || echo 'it has failed'
	kill -0 "$picker" || { echo 'it has ended'; picker=''; return; }
	check --only check_lists "127.0.0.1:$grpc"
	nothing_is_left
	until_is 0 state .pick.connections
}

case_peer_that_does_not_read()
{
	configure "$three"
	picker_up --secure-serving false --max-body 64k
	python3 tests/pick/strange_bytes.py "$grpc" stuck ||
	    echo 'it was not reset'
	nothing_is_left
}

# Calls and connections whose client is gone do not stay.
case_silent_peer()
{
	configure "$three"
	picker_up --secure-serving false --call-limit 2
	python3 tests/pick/strange_bytes.py "$grpc" open &
	until_is '[1,1]' state \
	    '[.pick.streams, ([.pool.upstreams[0].workers[].requests] | add)]'
	until_true 20 keeps_alive || echo 'keepalive is not set'
	until_is 1 state .pick.faded_total
	now_is 1 state .pick.ended.not_seen
	nothing_is_left
}

# The next probe of the only connection is due within 40 seconds. There is one
# when all that was sent has been acknowledged.
keeps_alive()
{
	awk -v port="$(printf ':%04X' "$grpc")" '$2 ~ port && $4 == "01" {
		split($6, timer, ":")
		if (timer[1] == "02" && timer[2] < "00001000") found = 1
	} END { exit !found }' /proc/net/tcp /proc/net/tcp6
}

# A client that has no call is sent away.
case_idle_connection()
{
	configure "$three"
	picker_up --secure-serving false --idle-limit 2
	python3 tests/pick/strange_bytes.py "$grpc" idle > "$scratch/sent" &
	until_is 1 state .pick.connections
	within 20 0 state .pick.connections
	until_is '2147483647 0' cat "$scratch/sent"
}

# Connections that send nothing take all descriptors for a while alone.
case_many_silent_connections()
{
	configure "$three"
	KVR_UNDER="prlimit --nofile=40 ${KVR_UNDER:-}"
	picker_up --secure-serving false --idle-limit 4
	python3 tests/pick/strange_bytes.py "$metrics" silent 30 &
	python3 tests/pick/strange_bytes.py "$grpc" silent 30 &
	sleep 1
	before=$(ticks)
	sleep 2
	[ $(($(ticks) - before)) -lt 50 ] || echo 'it is busy'
	until_is 0 state .pick.connections
}

# --------------------------------------------------------------- certificates

# NAME - a certificate in a folder.
certificate()
{
	mkdir -p "$scratch/tls"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
	    -keyout "$scratch/tls/tls.key" -out "$scratch/tls/tls.crt" \
	    -days 2 -subj "/CN=$1" 2> /dev/null
}

served_name()
{
	openssl s_client -connect "127.0.0.1:$grpc" -alpn h2 < /dev/null \
	    2> /dev/null | openssl x509 -noout -subject 2> /dev/null |
	    sed 's/.*CN *= *//'
}

case_certificates()
{
	configure "$three"
	certificate first
	picker_up --cert-path "$scratch/tls"
	now_is first served_name
	certificate second
	kill -HUP "$picker"
	until_is second served_name
	echo nothing > "$scratch/tls/tls.crt"
	kill -HUP "$picker"
	until_true 20 grep -q "$scratch/tls" "$log" || echo 'no warning'
	now_is second served_name
}

case_certificate_that_is_made()
{
	configure "$three"
	picker_up
	now_is kvroute-pick served_name
	now_is h2 protocol h2
	now_is '' protocol http/1.1
}

# The protocol that is chosen of those offered.
protocol()
{
	openssl s_client -connect "127.0.0.1:$grpc" -alpn "$1" < /dev/null \
	    2>&1 | sed -n 's/^ALPN protocol: //p'
}

# Ticks of the processor that the picker has used.
ticks()
{
	awk '{ print $14 + $15 }' "/proc/$picker/stat"
}

# A client that connects and sends nothing costs nothing, and is closed.
case_idle_tls_connection()
{
	configure "$three"
	picker_up
	python3 tests/pick/strange_bytes.py "$grpc" silent 1 &
	until_is 1 state .pick.connections
	before=$(ticks)
	sleep 2
	[ $(($(ticks) - before)) -lt 50 ] || echo 'it is busy'
	within 30 0 state .pick.connections
}

# -------------------------------------------------------------------- options

check_conf()
{
	"$build/kvroute-pick" -c "$conf" --check "$@" 2>&1
}

case_check_option()
{
	configure 'kvroute size=64m;' "$three"
	now_is '3 servers, 0 of them wrong' check_conf
	configure 'kvroute size=64m nonsense=1;' "$three"
	check_conf > "$scratch/said" && echo 'nonsense is taken'
	grep -q "pick.conf:1: nonsense=1: " "$scratch/said" ||
	    cat "$scratch/said"
	configure '' 'kvroute_gray maybe;' "$three"
	check_conf > "$scratch/said" && echo 'maybe is taken'
	grep -q "pick.conf:2: gray=maybe: " "$scratch/said" ||
	    cat "$scratch/said"
	configure 'server 127.0.0.1:1 colour=red;' "$three"
	check_conf > "$scratch/said" && echo 'red is taken'
	grep -q "pick.conf:1: server 127.0.0.1:1: " "$scratch/said" ||
	    cat "$scratch/said"
	grep -q '^4 servers, 1 of them wrong' "$scratch/said" ||
	    cat "$scratch/said"
	configure 'upstream x {'
	check_conf > "$scratch/said" && echo 'upstream is taken'
	configure "$(seq 65 | sed 's/.*/server name&:80;/')"
	check_conf > "$scratch/said" && echo '65 names are taken'
	grep -q 'pick.conf:65: server name65:80: more than 64 names' \
	    "$scratch/said" || cat "$scratch/said"
	configure "$three"
	check_conf --cert-path /nonexistent > "$scratch/said" &&
	    echo 'no certificate is taken'
	is 'a region is left alone' "$(configure "region $scratch/r;" "$three"
	    check_conf; ls "$scratch/r" 2> /dev/null)" \
	    '3 servers, 0 of them wrong'
}

# The lines of README.md are a configuration.
case_readme_lines()
{
	(cd "$scratch" && sh -c "$(grep '^    printf' "$OLDPWD/README.md")")
	now_is '1 servers, 0 of them wrong' check_conf
}

case_health_and_drain()
{
	configure "$three"
	picker_up --secure-serving false --listen "127.0.0.1:$port" --drain 20
	now_is '{"ready":true}' curl -s -m 5 "http://127.0.0.1:$port/healthz"
	id=$(curl -s -m 5 -d '{}' "http://127.0.0.1:$port/v1/select" |
	    jq -r .call)
	kill -TERM "$picker"
	until_is '{"ready":false}' curl -s -m 5 \
	    "http://127.0.0.1:$port/healthz"
	is select "$(curl -s -m 5 -o /dev/null -w '%{http_code}' -d '{}' \
	    "http://127.0.0.1:$port/v1/select")" 503
	sleep 3
	kill -0 "$picker" || echo 'it did not wait for a call'
	curl -s -m 5 -X POST "http://127.0.0.1:$port/v1/calls/$id/end" \
	    > /dev/null
	wait "$picker" || echo "exit $?"
	picker=''
}

# Calls that a client began before it knew are served.
case_drain_of_connections()
{
	configure "$three"
	picker_up --secure-serving false
	is 'last streams' "$(python3 tests/pick/strange_bytes.py "$grpc" \
	    drain "$picker")" '2147483647 1'
	wait "$picker" || echo "exit $?"
	picker=''
}

case_metrics()
{
	configure "$three"
	picker_up --secure-serving false --pool-name chat --pool-namespace llm
	curl -s -m 5 "http://127.0.0.1:$metrics/metrics" > "$scratch/text"
	grep -qx 'kvroute_pick_info{name="chat",namespace="llm"} 1' \
	    "$scratch/text" || echo 'no name'
	grep -qx 'kvroute_pick_servers 3' "$scratch/text" || echo 'no servers'
	now_is '"chat"' state .pick.name
	head -c 5000 /dev/zero > "$scratch/zeros"
	is 'a body' "$(curl -s -m 5 -o /dev/null -w '%{http_code}' \
	    "http://127.0.0.1:$metrics/metrics" --data-binary \
	    "@$scratch/zeros" -H 'Expect:')" 413
	is 'strange path' "$(curl -s -m 5 -o /dev/null -w '%{http_code}' \
	    "http://127.0.0.1:$metrics/v1/select" -d '{}')" 404
}

# --------------------------------------------------------------------- fleet

case_file_is_watched()
{
	configure "$three"
	picker_up --secure-serving false
	now_is 3 state .pick.servers
	configure 'server 127.0.0.1:9101;' 'server 127.0.0.1:9105;'
	until_is 2 state .pick.servers
	until_is '["127.0.0.1:9101","127.0.0.1:9105"]' state \
	    '[.pool.upstreams[0].workers[] | select(.state != "gone") | .name] | sort'
	configure 'server 127.0.0.1:9101;' 'server nonsense;'
	until_true 20 grep -q 'pick.conf:2: ' "$log" || echo 'no warning'
	now_is 2 state .pick.servers
	configure 'server 127.0.0.1:9107;' 'server 127.0.0.1:9108;' \
	    'server 127.0.0.1:9109 colour=red;'
	until_true 20 grep -q 'pick.conf:3: ' "$log" || echo 'no warning of red'
	now_is '["127.0.0.1:9101","127.0.0.1:9105"]' state \
	    '[.pool.upstreams[0].workers[] | select(.state != "gone") | .name] | sort'
	configure 'server 127.0.0.1:9101;'
	kill -HUP "$picker"
	until_is 1 state .pick.servers
}

# A file that is being written is not read.
case_file_that_is_being_written()
{
	configure "$three"
	picker_up --secure-serving false
	configure 'server 127.0.0.1:9101;'
	for part in 1 2 3 4 5 6 7; do
		sleep 0.4
		echo "# $part" >> "$conf"
		now_is 3 state .pick.servers
	done
	configure "$three" 'server 127.0.0.1:9104;'
	until_is 4 state .pick.servers
	: > "$conf"
	until_true 20 grep -q 'there are no servers' "$log" ||
	    echo 'no warning'
	now_is 4 state .pick.servers
}

# Servers have to fit the options of the start.
case_file_with_other_options()
{
	configure 'kvroute workers=1;' 'server 127.0.0.1:9101;'
	picker_up --secure-serving false
	configure 'kvroute workers=8;' 'server 127.0.0.1:9102;' \
	    'server 127.0.0.1:9103;'
	until_true 20 grep -q 'pick.conf:3: server 127.0.0.1:9103: ' "$log" ||
	    echo 'no warning'
	is servers "$(state '[.pool.upstreams[0].workers[].name]')" \
	    '["127.0.0.1:9101"]'
}

# Mounted configurations are links that are exchanged.
case_file_that_is_a_link()
{
	configure "$three"
	mv "$conf" "$scratch/first"
	echo 'server 127.0.0.1:9101;' > "$scratch/second"
	ln -s first "$conf"
	picker_up --secure-serving false
	now_is 3 state .pick.servers
	ln -s second "$scratch/new"
	mv -T "$scratch/new" "$conf"
	until_is 1 state .pick.servers
}

case_names_are_resolved()
{
	configure 'server localhost:9109 resolve max_conns=3;' "$three"
	picker_up --secure-serving false
	until_true 30 has_server 127.0.0.1:9109 || echo 'it is not resolved'
	configure 'server 127.0.0.1:9102;' 'server 127.0.0.1:9103;'
	until_is 2 state .pick.servers
}

# LINE ... - a file of the system that the picker sees in place of its own.
instead_of()
{
	file=$1
	instead=$scratch/$(basename "$1")
	shift
	printf '%s\n' "$@" > "$instead"
	printf '#!/bin/sh\nmount --bind %s %s && exec "$@"\n' \
	    "$instead" "$file" > "$instead.sh"
	KVR_UNDER="unshare -m sh $instead.sh ${KVR_UNDER:-}"
	$KVR_UNDER true 2> "$scratch/said" && return
	echo "skipped: $(head -n 1 "$scratch/said")"
	exit
}

# More than an answer of DNS over UDP has.
case_name_of_many_addresses()
{
	instead_of /etc/hosts "$(seq -f '127.0.1.%g engines' 100)" \
	    '127.0.2.1 others' '::1 others'
	configure 'server engines:9109;' 'server others:9110 role=prefill;'
	picker_up --secure-serving false
	until_is 102 state .pick.servers
	has_server 127.0.1.100:9109 || echo 'the last one is not there'
	has_server '\[::1\]:9110' || echo 'IPv6 is not there'
	# Servers go with their addresses.
	seq -f '127.0.1.%g engines' 40 > "$scratch/hosts"
	within 30 42 state .pick.servers
}

# It keeps its servers, with one warning.
case_name_that_cannot_be_asked_for()
{
	instead_of /etc/hosts '127.0.1.1 engines'
	instead_of /etc/resolv.conf 'nameserver 127.0.0.1'
	configure 'server engines:9109;'
	picker_up --secure-serving false
	until_is 1 state .pick.servers
	echo '127.0.1.1 others' > "$scratch/hosts"
	until_true 30 grep -q 'engines:9109: ' "$log" || echo 'no warning'
	sleep 6
	now_is 1 state .pick.servers
	is warnings "$(grep -c 'engines:9109: ' "$log")" 1
}

# A resolver that does not answer holds up nothing, nor the end.
case_resolver_that_is_silent()
{
	instead_of /etc/resolv.conf 'nameserver 127.0.0.1'
	python3 -c 'import socket, time
s = socket.socket(type=socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
time.sleep(60)' 2> "$scratch/said" &
	resolver=$!
	sleep 0.5
	kill -0 "$resolver" 2> /dev/null || { echo 'skipped: port 53'; return; }
	configure 'server engines.example:9109;' "$three"
	picker_up --secure-serving false
	for i in 1 2 3 4 5; do
		is "servers, $i" "$(state .pick.servers)" 3
		sleep 0.2
	done
	before=$(date +%s)
	picker_down
	[ $(($(date +%s) - before)) -lt 4 ] || echo 'it was held up'
	kill "$resolver"
}

has_server()
{
	state '[.pool.upstreams[0].workers[].name]' | grep -q "\"$1\""
}

# PATH BODY - an answer of the JSON door.
post()
{
	printf %s "$2" | curl -s -m 5 --data-binary @- \
	    -H 'Content-Type: application/json' "http://127.0.0.1:$port$1"
}

# A process knows the prefixes that the one before it has learned.
case_region_that_is_shared()
{
	chat='{"model":"m","messages":[{"role":"user","content":"'$(seq -s ' ' \
	    3000)'"}]}'
	configure "region $scratch/region;" 'kvroute size=16m;' "$three"
	picker_up --secure-serving false --listen "127.0.0.1:$port"
	post /v1/select "$chat" > "$scratch/choice"
	is 'a new prompt' "$(jq .predicted "$scratch/choice")" 0
	post "/v1/calls/$(jq -r .call "$scratch/choice")/end" '{"usage":{}}' \
	    > /dev/null
	picker_down
	picker_up --secure-serving false --listen "127.0.0.1:$port"
	is 'the same prompt' "$(post /v1/select "$chat" |
	    jq '.predicted > 0')" true
	now_is 3 state .pick.servers
}

run "$2"
