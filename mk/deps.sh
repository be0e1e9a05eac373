#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deps.sh build|test|page|slow|coverage|tidy|plot|model|foreign|nginx|lua|
#     engine|sync|events|pick|haproxy|llama|vllm|clients|rivals ...
# - checks the dependencies of these groups: building, tests, tests in a
# browser, slow checks, coverage, clang-tidy, plots, the spin model, other CPUs,
# the nginx module, Lua (luajit2: luajit would remove Lua from nginx), the test
# engine and its client, the buses of replicas, events of engines, the endpoint
# picker, HAProxy, llama.cpp, vLLM, SDKs, other JSON libraries. Silent if nothing
# is missing. Otherwise, on Debian, root installs it with one apt-get call; other
# users get that call printed, and the script fails. On other systems it lists
# what is missing and fails.
set -u

CC=${CC:-cc}
CXX=${CXX:-c++}
groups=" $* "

# group, command, header or file, Debian packages
table="
build command $CC gcc libc6-dev
build command ld binutils
build header stdio.h libc6-dev
build header xxhash.h libxxhash-dev
build header bsd/string.h libbsd-dev
build header uthash.h uthash-dev
build header json-c/json.h libjson-c-dev
test header check.h check
test header yajl/yajl_parse.h libyajl-dev
test header msgpack.h libmsgpack-dev
test command $CXX g++
test command mandoc mandoc
test command perl perl
test command pkg-config pkg-config
test command python3 python3
test command xmllint libxml2-utils
page command chromium chromium fonts-dejavu-core
slow command clang clang
slow runtime clang libclang-rt-dev
slow command valgrind valgrind
coverage command gcc gcc
coverage command gcovr gcovr
tidy command clang-tidy clang-tidy
model command spin spin
foreign command gcc gcc
foreign command clang clang
foreign command aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross
foreign command s390x-linux-gnu-gcc gcc-s390x-linux-gnu libc6-dev-s390x-cross
foreign command qemu-s390x qemu-user
foreign command musl-gcc musl-tools
plot command gnuplot gnuplot-nox
nginx command nginx nginx
nginx file /usr/lib/nginx/modules/ngx_http_lua_module.so libnginx-mod-http-lua
nginx command dh_nginx nginx-dev
nginx command curl curl
nginx command gojq gojq
nginx command make make
lua command luajit luajit2
lua file /usr/lib/x86_64-linux-gnu/lua/5.1/cjson.so lua-cjson
engine header curl/curl.h libcurl4-openssl-dev
engine header event2/http.h libevent-dev
engine command curl curl
engine command jq jq
engine header ncurses.h libncurses-dev
sync header hiredis/hiredis.h libhiredis-dev
sync header openssl/ssl.h libssl-dev
sync header nats/nats.h libnats-dev
sync command redis-server redis-server
sync command nats-server nats-server
sync command openssl openssl
sync command jq jq
sync command ip iproute2
events header msgpack.h libmsgpack-dev
events header zmq.h libzmq3-dev
events header nats/nats.h libnats-dev
events command nats-server nats-server
events header curl/curl.h libcurl4-openssl-dev
events header json-c/json.h libjson-c-dev
events command perl perl
pick header nghttp2/nghttp2.h libnghttp2-dev
pick header event2/event.h libevent-dev
pick header openssl/ssl.h libssl-dev
pick command python3 python3-venv
pick command curl curl
pick command jq jq
haproxy command haproxy haproxy
llama command node nodejs
llama command npm npm
vllm command python3 python3-venv
clients command node nodejs
clients command npm npm
rivals command $CXX g++
rivals header simdjson.h libsimdjson-dev
rivals header rapidjson/rapidjson.h rapidjson-dev
"

# Can clang link fuzzers and sanitizers?
has_runtime()
{
	object=$(mktemp) || return 1
	echo 'int LLVMFuzzerTestOneInput(const void *d, unsigned long n);
	    int LLVMFuzzerTestOneInput(const void *d, unsigned long n)
	    { return d == 0 && n > 0; }' | clang -x c - -o "$object" \
	    -fsanitize=fuzzer,address,undefined > /dev/null 2>&1
	status=$?
	rm -f "$object"
	return $status
}

has_header()
{
	echo "#include <$1>" | $CC -E -x c - > /dev/null 2>&1 ||
	    echo "#include <$1>" | $CXX -E -x c++ - > /dev/null 2>&1
}

has()
{
	case $1 in
	# CC may be a command with arguments.
	command) command -v "${2%% *}" > /dev/null 2>&1 ;;
	header) has_header "$2" ;;
	file) [ -e "$2" ] ;;
	runtime) has_runtime ;;
	esac
}

# Sets $things and $packages to what is missing.
probe()
{
	things=''
	packages=''
	while read -r group kind thing wanted; do
		case $groups in *" $group "*) ;; *) continue ;; esac
		has "$kind" "$thing" && continue
		things="$things $thing"
		packages="$packages $wanted"
	done <<-END
	$(echo "$table" | sed '/^$/d')
	END
	packages=$(echo "$packages" | tr ' ' '\n' | sort -u | xargs)
}

update()
{
	apt-get -qq -o DPkg::Lock::Timeout=300 update
}

install()
{
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
	    -o Dpkg::Use-Pty=0 install -y --no-install-recommends $packages \
	    < /dev/null
}

probe
[ -n "$things" ] || exit 0

if ! command -v apt-get > /dev/null 2>&1; then
	echo "missing:$things" >&2
	echo "(on Debian these come with: $packages)" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "missing:$things; install with" >&2
	echo "    sudo apt-get install --no-install-recommends $packages" >&2
	exit 1
fi
echo "installing $packages" >&2
ls /var/lib/apt/lists/*_Packages* > /dev/null 2>&1 || update
log=$(mktemp)
install > "$log" 2>&1 || { update && install; } > "$log" 2>&1 || cat "$log" >&2
rm -f "$log"
probe
if [ -n "$things" ]; then
	echo "still missing:$things" >&2
	exit 1
fi
