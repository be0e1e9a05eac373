#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_servers.sh build [case] - buses as they are run: TLS, users, Sentinels,
# a Cluster, credentials. Cases of tests/cases.sh.
#
# shellcheck disable=SC2119,SC2154
. tests/sync/daemons.sh

[ $# -gt 1 ] || {
	list redis: | grep -v credentials
	list nats: | grep -v 'sentinel\|cluster'
	exit
}
build=$1
bus=${2%%:*}

# make_certificate NAME SUBJECT ... - NAME.pem and NAME.key, by the authority.
make_certificate()
{
	file=$scratch/$1
	subject=$2
	shift 2
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
	    -days 2 -subj "/CN=$subject" -keyout "$file.key" -out "$file.pem" \
	    "$@" 2> /dev/null || echo "openssl: $file"
}

make_certificates()
{
	make_certificate ca authority
	make_certificate stranger stranger
	for name in server client; do
		make_certificate $name localhost -CA "$scratch/ca.pem" -CAkey \
		    "$scratch/ca.key" -addext \
		    subjectAltName=DNS:localhost,IP:127.0.0.1
	done
}

# server NAME [option ...] - one of Redis, with the user of
# kvroute-frames(7), which may write answers, too. Its pid is in $NAME_pid.
server()
{
	name=$1
	mkdir -p "$scratch/$name"
	cat > "$scratch/$name/redis.conf" <<-END
	user kv on >secret ~kvroute ~kvroute:* ~{kvroute}:* +xadd +xread +xrange \
	+xrevrange +time +select +expire +unlink +asking
	bind 127.0.0.1 127.0.0.2
	save ""
	dir $scratch/$name
	END
	shift
	redis-server "$scratch/$name/redis.conf" "$@" \
	    > "$scratch/$name.out" 2>&1 &
	eval "${name}_pid=$!"
}

# tls_server NAME PORT [option ...]
tls_server()
{
	name=$1
	at=$2
	shift 2
	server "$name" --port 0 --tls-port "$at" --tls-replication yes \
	    --tls-cert-file "$scratch/server.pem" \
	    --tls-key-file "$scratch/server.key" \
	    --tls-ca-cert-file "$scratch/ca.pem" \
	    --tls-auth-clients "${asks:-no}" "$@"
}

cli()
{
	at=$1
	shift
	# shellcheck disable=SC2086
	redis-cli -p "$at" ${tls:-} "$@" 2>&1
}

# A server with TLS and a user. If $asks is yes, it wants certificates of
# clients.
bus_up()
{
	echo kv:secret > "$scratch/login"
	case $bus in
	redis)
		url=rediss://127.0.0.1:$port
		tls_server bus "$port"
		;;
	nats)
		# cnats compares names of hosts only.
		url=nats+tls://localhost:$port
		verify=
		[ -z "${asks:-}" ] || verify="--tlsverify --tlscacert $scratch/ca.pem"
		# shellcheck disable=SC2086
		nats-server -a 0.0.0.0 -p "$port" --user kv --pass secret \
		    --tls --tlscert "$scratch/server.pem" \
		    --tlskey "$scratch/server.key" $verify \
		    > "$scratch/nats.out" 2>&1 &
		bus_pid=$!
		;;
	esac
}

# tries STATUS [option ...] - a check of a third region.
tries()
{
	[ -e "$three" ] || router "$three" make s
	checks "$@" "$three"
}

requests_go_both_ways()
{
	lease=$(router "$one" open "$1" b)
	until_is 20 router "$two" holds "$1" b
	until_is 1 router "$two" requests b
	router "$one" finish "$lease"
	until_is 0 router "$two" requests b
	router "$two" open "$(($1 + 1))" c > /dev/null
	until_is 20 router "$one" holds "$(($1 + 1))" c
}

case_tls_and_a_user()
{
	make_certificates
	begin
	both --ca "$scratch/ca.pem" --login "$scratch/login"
	requests_go_both_ways 1
	tries 0 --ca "$scratch/ca.pem" --login "$scratch/login"
	url=${url%%://*}://localhost:$port
	tries 0 --ca "$scratch/ca.pem" --login "$scratch/login"
	tries 1 --login "$scratch/login"
	prints_that "certificate is not trusted"
	tries 1 --ca "$scratch/stranger.pem" --login "$scratch/login"
	prints_that "certificate is not trusted"
	echo kv:guess > "$scratch/login"
	tries 1 --ca "$scratch/ca.pem" --login "$scratch/login"
	prints_that 'the server refuses user or password'
	grep -q guess "$scratch/out" && cat "$scratch/out"
	tries 1 --ca "$scratch/none" --login "$scratch/login"
	prints_that "$scratch/none"
	tries 1 --ca "$scratch/ca.pem" --login "$scratch/none"
	prints_that "$scratch/none: No such file"
	url=${url%%://*}://127.0.0.2:$port
	echo kv:secret > "$scratch/login"
	tries 1 --ca "$scratch/ca.pem" --login "$scratch/login"
	prints_that "certificate is not trusted"
	url=$bus://127.0.0.1:$port
	tries 1 --ca "$scratch/ca.pem"
	prints_that 'certificates need a URL with'
	tries 1
}

case_the_server_wants_a_certificate()
{
	make_certificates
	asks=yes
	begin
	both --ca "$scratch/ca.pem" --login "$scratch/login" \
	    --cert "$scratch/client.pem" --key "$scratch/client.key"
	requests_go_both_ways 1
	tries 1 --ca "$scratch/ca.pem" --login "$scratch/login"
	# cnats reads the end of the connection, and not the reason.
	[ "$bus" = nats ] || prints_that 'the server wants a certificate from us'
	tries 1 --ca "$scratch/ca.pem" --cert "$scratch/client.pem"
	prints_that 'a certificate and its key are given together'
	# Nobody is asked for a passphrase, by us at least.
	[ "$bus" = redis ] || return 0
	openssl ec -aes128 -passout pass:hidden -in "$scratch/client.key" \
	    -out "$scratch/closed.key" 2> /dev/null
	echo hidden | tries 1 --ca "$scratch/ca.pem" \
	    --login "$scratch/login" --cert "$scratch/client.pem" \
	    --key "$scratch/closed.key"
	prints_that "the bus: $scratch/closed.key: "
}

case_no_tls_at_the_server()
{
	make_certificates
	begin
	end KILL "$bus_pid"
	if [ "$bus" = redis ]; then
		server bus --port "$port"
	else
		nats-server -a 127.0.0.1 -p "$port" > "$scratch/nats.out" 2>&1 &
		bus_pid=$!
	fi
	tries 1 --ca "$scratch/ca.pem"
	prints_that 'the server does not .* TLS'
}

case_credentials()
{
	begin
	end KILL "$bus_pid"
	python3 tests/sync/nats_creds.py "$scratch"
	nats-server -a 127.0.0.1 -p "$port" -c "$scratch/server.conf" \
	    > "$scratch/nats.out" 2>&1 &
	bus_pid=$!
	url=nats://127.0.0.1:$port
	both --creds "$scratch/user.creds"
	requests_go_both_ways 1
	tries 0 --creds "$scratch/user.creds"
	tries 1
	prints_that 'the server refuses user or password'
	tries 1 --creds "$scratch/none"
	prints_that "none"
	mkdir "$scratch/other"
	python3 tests/sync/nats_creds.py "$scratch/other"
	tries 1 --creds "$scratch/other/user.creds"
	prints_that 'the server refuses user or password'
}

# sentinel N PORT MASTER-PORT [line]
sentinel()
{
	mkdir -p "$scratch/sentinel$1"
	cat > "$scratch/sentinel$1/conf" <<-END
	port 0
	tls-port $2
	tls-replication yes
	tls-cert-file $scratch/server.pem
	tls-key-file $scratch/server.key
	tls-ca-cert-file $scratch/ca.pem
	tls-auth-clients no
	bind 127.0.0.1
	dir $scratch/sentinel$1
	sentinel monitor main 127.0.0.1 $3 2
	sentinel down-after-milliseconds main 500
	sentinel failover-timeout main 3000
	END
	# The first one has no users.
	[ "$1" -eq 1 ] || cat >> "$scratch/sentinel$1/conf" <<-END
	${4:-user kv on >secret +sentinel|get-master-addr-by-name}
	END
	redis-server "$scratch/sentinel$1/conf" --sentinel \
	    > "$scratch/sentinel$1.out" 2>&1 &
	eval "sentinel$1_pid=$!"
}

replicates()
{
	cli "$1" info replication | grep -q 'master_link_status:up'
}

quorum()
{
	cli "$1" sentinel ckquorum main | grep -q '^OK 3'
}

is_master()
{
	[ "$(cli "$1" role | head -n 1)" = master ]
}

# Two servers and three Sentinels, all with TLS.
sentinels_up()
{
	first=$(free_port) second=$(free_port)
	tls="--tls --cacert $scratch/ca.pem"
	tls_server bus "$first"
	tls_server replica "$second" --replicaof "127.0.0.1 $first"
	until_true 60 replicates "$second" || echo 'no replica'
	for n in 1 2 3; do
		eval "s$n=$(free_port)"
		eval "sentinel $n \$s$n $first"
	done
	for n in 1 2 3; do
		eval "until_true 60 quorum \$s$n" || echo 'no quorum'
	done
	url=rediss+sentinel://kv:secret@127.0.0.1:$s1,127.0.0.1:$s2,127.0.0.1:$s3
}

case_sentinels_name_the_next_master() # slow
{
	make_certificates
	begin
	end KILL "$bus_pid"
	sentinels_up
	bare=$url
	url=$bare/other
	tries 1 --ca "$scratch/ca.pem"
	prints_that 'this Sentinel knows no master other'
	url=$bare/main
	tries 0 --ca "$scratch/ca.pem"
	both --ca "$scratch/ca.pem"
	requests_go_both_ways 1
	# The Sentinel that was asked, and the master, end.
	end KILL "$sentinel1_pid"
	end KILL "$bus_pid"
	until_true 60 is_master "$second" || cli "$second" role
	until_is true field first connected
	until_is true field second connected
	requests_go_both_ways 10
	# The old one is a replica now, and gets its place back by order.
	tls_server bus "$first"
	until_true 60 replicates "$first" || cli "$first" info replication
	until_is OK cli "$s2" sentinel failover main
	until_true 60 is_master "$first" || cli "$first" role
	until_is true field first connected
	until_is true field second connected
	requests_go_both_ways 20
	tries 0 --ca "$scratch/ca.pem"
	# This one has a password of its own.
	s4=$(free_port)
	sentinel 4 "$s4" "$first" 'requirepass watch'
	url=${url%%@*}@127.0.0.1:$s4/main
	until_true 60 cli "$s4" ping
	tries 1 --ca "$scratch/ca.pem"
	prints_that 'the server wants a password'
	echo watch > "$scratch/login"
	tries 0 --ca "$scratch/ca.pem" --sentinel-login "$scratch/login"
	url=rediss://127.0.0.1:$first
	tries 1 --ca "$scratch/ca.pem" --sentinel-login "$scratch/login"
	prints_that 'a login of Sentinels needs a URL with +sentinel'
}

node_id()
{
	cli "$1" cluster myid
}

# node N - its port is in $pN.
node()
{
	eval "p$1=$(free_port)"
	eval "server node$1 --port \$p$1 --cluster-enabled yes \
	    --cluster-port $(free_port) --cluster-node-timeout 1000"
	eval "until_is PONG cli \$p$1 ping"
}

# meets PORT - the node joins the Cluster.
meets()
{
	cli "$p1" cluster meet 127.0.0.1 "$1" \
	    "$(cli "$1" config get cluster-port | tail -n 1)" > /dev/null
}

# Three masters, each with a third of the slots.
cluster_up()
{
	slots='0 5460 5461 10922 10923 16383'
	for n in 1 2 3; do
		node $n
		# shellcheck disable=SC2086
		set -- $slots
		eval "cli \$p$n cluster addslotsrange $1 $2" > /dev/null
		shift 2
		slots=$*
	done
	meets "$p2"
	meets "$p3"
	for n in "$p1" "$p2" "$p3"; do
		until_true 60 is_whole "$n" || cli "$n" cluster info
	done
	slot=$(cli "$p1" cluster keyslot kvroute)
	url=redis+cluster://kv:secret@127.0.0.1:1,127.0.0.1:$p1,127.0.0.1:$p3
}

is_whole()
{
	cli "$1" cluster info | grep -q 'cluster_state:ok' &&
	    cli "$1" cluster info | grep -q "cluster_known_nodes:${2:-3}"
}

case_a_cluster_moves_the_stream()
{
	make_certificates
	begin
	end KILL "$bus_pid"
	cluster_up
	tries 0
	both
	requests_go_both_ways 1
	from=$(owner) to=$p1
	[ "$from" != "$to" ] || to=$p2
	cli "$to" cluster setslot "$slot" importing "$(node_id "$from")" \
	    > /dev/null
	cli "$from" cluster setslot "$slot" migrating "$(node_id "$to")" \
	    > /dev/null
	# Each new key, as of answers, belongs there: the log stays.
	tries 1
	prints_that 'no answers, as at a late start, can be had'
	end TERM "$second_pid"
	daemon second "$two"
	until_is true field second connected
	requests_go_both_ways 10
	is 'keys there' "$(cli "$to" cluster countkeysinslot "$slot")" 0
	now_is OK cli "$from" migrate 127.0.0.1 "$to" kvroute 0 5000
	# The slot has not moved, but the key: the old node answers with ASK.
	requests_go_both_ways 20
	for n in "$to" "$from" "$p1" "$p2" "$p3"; do
		cli "$n" cluster setslot "$slot" node "$(node_id "$to")" > /dev/null
	done
	requests_go_both_ways 30
	now_is 0 field first missed
	now_is 0 field second missed
	tries 0
	url=redis://kv:secret@127.0.0.1:$from
	tries 1
	prints_that 'the server belongs to a Cluster'
}

owner()
{
	for n in "$p1" "$p2" "$p3"; do
		! cli "$n" xlen kvroute | grep -q '^[1-9]' || echo "$n"
	done
}

# The owner of the slot ends, and its replica becomes the owner.
case_a_cluster_node_dies() # slow
{
	make_certificates
	begin
	end KILL "$bus_pid"
	cluster_up
	both
	requests_go_both_ways 1
	from=$(owner)
	node 4
	meets "$p4"
	until_true 60 is_whole "$p4" 4 || cli "$p4" cluster info
	until_is OK cli "$p4" cluster replicate "$(node_id "$from")"
	until_true 60 replicates "$p4" || cli "$p4" info replication
	for n in 1 2 3; do
		eval "[ \$p$n != $from ] || end KILL \$node${n}_pid"
	done
	until_true 60 is_master "$p4" || cli "$p4" role
	until_is true field first connected
	until_is true field second connected
	requests_go_both_ways 10
	tries 0
}

port=$(free_port)
run "$2"
