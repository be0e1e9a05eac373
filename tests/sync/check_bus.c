/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_bus.c - the buses against real servers on this machine.
 *
 *   check-bus --list redis|nats
 *   check-bus redis|nats CASE SCRATCH RELAY
 *
 * A case prints the errors that it finds, and nothing else. It starts a server
 * of its own on a free port, kills and stops it. A frame is its number, from
 * 1, followed by as many bytes.
 */
#include "bus.h"
#include "little.h"

#include <kvroute.h>

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PATIENCE_S = 60,    /* longest wait */
	FRAMES_MAX = 20000,
	PEERS_MAX = 4,
	ARGS_MAX = 24,
	LATE_MS = 50,
	QUEUE = 1 << 20
};

struct peer {
	struct bus *bus;
	uint64_t took, last;      /* frames, and the number of the latest */
	unsigned char times[FRAMES_MAX + 1]; /* how often each came */
	bool back;                /* a number below an earlier one came */
	bool damaged;
	bool aged;                /* a frame had an age */
	char reply[128];          /* of the latest question */
	uint64_t answers;
};

static bool redis;
static const char *scratch, *relay;
static struct peer peers[PEERS_MAX];
static size_t n_peers;
static pid_t server;
static unsigned port;
static char url[128];

#define WRONG(...) (printf(__VA_ARGS__), putchar('\n'))
#define IS(what) ((what) ? (void)0 : (void)WRONG("line %d: not so: %s", \
	__LINE__, #what))

/* ------------------------------------------------------------- servers --- */

static unsigned
free_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) != 0)
		err(1, "port");
	close(fd);
	return ntohs(at.sin_port);
}

/* The output goes to a file of the scratch folder. */
static pid_t
run(const char *output, const char *const *args)
{
	pid_t child = fork();
	int fd;

	if (child != 0)
		return child;
	fd = open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || chdir(scratch) != 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		_exit(1);
	execvp(args[0], (char *const *)(uintptr_t)args);
	_exit(1);
}

/* The same port each time; `more` are arguments up to NULL. */
static void
start(const char *const *more)
{
	const char *args[ARGS_MAX] = { NULL };
	static char number[8], output[512];
	size_t n = 0;

	if (port == 0)
		port = free_port();
	snprintf(number, sizeof(number), "%u", port);
	snprintf(output, sizeof(output), "%s/server.log", scratch);
	snprintf(url, sizeof(url), "%s://127.0.0.1:%u", redis ? "redis" :
	    "nats", port);
	args[n++] = redis ? "redis-server" : "nats-server";
	args[n++] = redis ? "--port" : "-p";
	args[n++] = number;
	args[n++] = redis ? "--bind" : "-a";
	args[n++] = "127.0.0.1";
	for (; more != NULL && *more != NULL; more++)
		args[n++] = *more;
	if (redis) {
		args[n++] = "--save";
		args[n++] = "";
	}
	server = run(output, args);
	if (server < 0)
		err(1, "fork");
}
#define START(...) start((const char *const []){ __VA_ARGS__, NULL })

static void
kill_server(void)
{
	if (server <= 0)
		return;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	server = 0;
}

/* --------------------------------------------------------------- peers --- */

static void
take(void *context, const struct bus_message *m)
{
	struct peer *p = context;
	uint64_t number;

	number = m->n < 8 ? 0 : little_get(m->bytes, 8);
	p->took++;
	if (m->reply != NULL)
		snprintf(p->reply, sizeof(p->reply), "%s", m->reply);
	if (number == 0 || number > FRAMES_MAX || m->n != 8 + number % 3000 ||
	    (m->n > 8 && m->bytes[m->n - 1] != (unsigned char)number)) {
		p->damaged = true;
		return;
	}
	p->times[number]++;
	p->back |= number < p->last;
	p->last = number;
	p->aged |= m->age > 0;
	p->answers += m->answer;
}

static struct peer *
peer_of(struct bus_options options)
{
	struct peer *p = &peers[n_peers++];
	char error[BUS_ERROR_MAX] = "";

	memset(p, 0, sizeof(*p));
	options.name = options.name == NULL ? "kv.test" : options.name;
	options.log_frames = options.log_frames == 0 ? 100000 :
	    options.log_frames;
	options.queue_bytes = options.queue_bytes == 0 ? 4 * QUEUE :
	    options.queue_bytes;
	options.take = take;
	options.context = p;
	p->bus = bus_open(&options, error, sizeof(error));
	if (p->bus == NULL) {
		WRONG("bus_open: %s", error);
		exit(1);
	}
	return p;
}

static struct peer *
peer(void)
{
	return peer_of((struct bus_options){ .url = url });
}

static bool
send_one(struct peer *p, uint64_t number)
{
	unsigned char frame[3008];

	memset(frame, (int)number, sizeof(frame));
	little_put(frame, number, 8);
	return bus_send(p->bus, frame, 8 + number % 3000);
}

static void
send_all(struct peer *p, uint64_t from, uint64_t to)
{
	for (; from <= to; from++)
		IS(send_one(p, from));
}

static void
work(void)
{
	size_t i;

	for (i = 0; i < n_peers; i++)
		if (peers[i].bus != NULL)
			bus_wait(peers[i].bus, 1);
}

#define UNTIL(what) do { \
	const int64_t end_ = kvr_clock_now() + \
	    PATIENCE_S * INT64_C(1000000000); \
	bool so_ = false; \
	while (!(so_ = (what)) && kvr_clock_now() < end_) \
		work(); \
	if (!so_) { \
		size_t i_; \
		WRONG("line %d: never: %s", __LINE__, #what); \
		for (i_ = 0; i_ < n_peers; i_++) \
			if (peers[i_].bus != NULL) \
				WRONG("peer %zu: took %" PRIu64 ", last %" \
				    PRIu64 ", %s", i_, peers[i_].took, \
				    peers[i_].last, bus_error(peers[i_].bus)); \
		return; \
	} \
} while (0)

static void
leave(struct peer *p)
{
	bus_close(p->bus);
	p->bus = NULL;
}

/* Counts the numbers that never came. */
static uint64_t
missing(const struct peer *p, uint64_t from, uint64_t to)
{
	uint64_t n = 0;

	for (; from <= to; from++)
		n += p->times[from] == 0;
	return n;
}

static bool
both_up(const struct peer *a, const struct peer *b)
{
	return bus_connected(a->bus) && bus_connected(b->bus);
}

/* ---------------------------------------------------- cases of any bus --- */

static void
in_order(void)
{
	struct peer *a, *b;

	start(NULL);
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	send_all(a, 1, 1000);
	UNTIL(b->last == 1000);
	IS(!b->back && !b->damaged && b->took == 1000);
	send_all(b, 1001, 1100);
	UNTIL(a->last == 1100);
	IS(missing(a, 1001, 1100) == 0 && !a->damaged);
	IS(bus_counts(a->bus).sent == 1000);
	IS(bus_counts(b->bus).received >= 1000);
	IS(bus_counts(b->bus).gaps == 0 && bus_counts(b->bus).connects == 1);
}

/* A server that comes late is found. */
static void
server_comes_late(void)
{
	struct peer *a, *b;

	port = free_port();
	snprintf(url, sizeof(url), "%s://127.0.0.1:%u", redis ? "redis" :
	    "nats", port);
	a = peer();
	b = peer();
	UNTIL(bus_counts(a->bus).failures > 1);
	IS(bus_error(a->bus)[0] != '\0' && !bus_connected(a->bus));
	start(NULL);
	UNTIL(both_up(a, b));
	IS(bus_error(a->bus)[0] == '\0');
	send_all(a, 1, 10);
	UNTIL(b->last == 10);
}

/*
 * Later frames are received; nothing goes backwards before or after. Frames
 * that a server has taken but not confirmed would come twice.
 */
static void
server_killed(void)
{
	struct peer *a, *b;
	uint64_t i, n = 100;

	start(NULL);
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	for (i = 0; i < 3; i++, n += 200) {
		send_all(a, n, n + 50);
		UNTIL(b->last == n + 50 &&
		    bus_counts(a->bus).sent == 102 * i + 51);
		kill_server();
		UNTIL(!bus_connected(a->bus) && !bus_connected(b->bus));
		start(NULL);
		UNTIL(both_up(a, b));
		send_all(a, n + 100, n + 150);
		UNTIL(b->last == n + 150);
		IS(missing(b, n + 100, n + 150) == 0);
	}
	IS(!b->back && !b->damaged);
	IS(bus_counts(b->bus).connects == 4);
}

/*
 * While the server is stopped, each call returns: were it to wait for the
 * server, this would never reach the line that continues it.
 */
static void
server_stopped(void)
{
	struct peer *a, *b;
	int64_t end;
	uint64_t n = 1;

	start(NULL);
	a = peer_of((struct bus_options){ .url = url, .queue_bytes = QUEUE });
	b = peer();
	UNTIL(both_up(a, b));
	alarm(PATIENCE_S);
	kill(server, SIGSTOP);
	end = kvr_clock_now() + INT64_C(1500000000);
	while (n <= 15000 || kvr_clock_now() < end) {
		if (n <= 15000)
			(void)send_one(a, n++);
		bus_work(a->bus);
		bus_work(b->bus);
	}
	kill(server, SIGCONT);
	alarm(0);
	UNTIL(both_up(a, b));
	IS(bus_counts(a->bus).send_drops > 0);
	send_all(a, 16000, 16010);
	UNTIL(b->last == 16010);
	IS(!b->damaged);
}

static void
queue_is_bounded(void)
{
	const uint64_t frames = 9000;
	struct peer *a, *b;
	uint64_t sent;

	port = free_port();
	snprintf(url, sizeof(url), "%s://127.0.0.1:%u", redis ? "redis" :
	    "nats", port);
	a = peer_of((struct bus_options){ .url = url, .queue_bytes = QUEUE });
	send_all(a, 1, frames);
	start(NULL);
	b = peer();
	UNTIL(both_up(a, b));
	UNTIL(bus_counts(a->bus).sent + bus_counts(a->bus).send_drops ==
	    frames);
	sent = bus_counts(a->bus).sent;
	/* of 2.0 to 3.0 kB, and their place in the queue */
	IS(sent > 300 && sent < 450);
	IS(!bus_send(a->bus, url, BUS_FRAME_MAX + 1));
	IS(bus_counts(a->bus).send_drops == frames - sent + 1);
}

/* A peer that does not read loses old frames, and nothing but these. */
static void
reader_lags(void)
{
	struct peer *a, *b;
	struct bus_counts counts;
	uint64_t n;

	start(NULL);
	a = peer_of((struct bus_options){ .url = url, .log_frames = 200 });
	b = peer_of((struct bus_options){ .url = url, .queue_bytes = QUEUE });
	UNTIL(both_up(a, b));
	send_all(a, 1, 1);
	UNTIL(b->last == 1);
	n_peers = 1;
	for (n = 2; n < 6000; n += 100) {
		send_all(a, n, n + 99);
		UNTIL(bus_counts(a->bus).sent == n + 99);
	}
	/* Old enough to be looked at as late. */
	for (n = 0; n < 24; n++)
		bus_wait(a->bus, 50);
	n_peers = 2;
	send_all(a, 7000, 7000);
	UNTIL(b->last == 7000);
	counts = bus_counts(b->bus);
	IS(redis ? counts.gaps > 0 : counts.take_drops > 0);
	IS(missing(b, 1, 6000) > 1000 && !b->back && !b->damaged);
}

static void
wrong_password(void)
{
	const char *want = redis ? "WRONGPASS" : "Authorization";
	const char *scheme = redis ? "redis" : "nats";
	const char *user = redis ? "" : "kv";
	struct peer *a, *b;
	char right[128];

	if (redis)
		START("--requirepass", "a/b:c");
	else
		START("--user", "kv", "--pass", "a/b:c");
	snprintf(url, sizeof(url), "%s://%s:wrong@127.0.0.1:%u", scheme, user,
	    port);
	snprintf(right, sizeof(right), "%s://%s:a%%2Fb%%3ac@127.0.0.1:%u",
	    scheme, user, port);
	a = peer();
	UNTIL(strstr(bus_error(a->bus), want) != NULL);
	UNTIL(bus_counts(a->bus).failures > 1);
	IS(!bus_connected(a->bus) && bus_counts(a->bus).connects == 0);
	IS(strstr(bus_error(a->bus), "wrong") == NULL);
	b = peer_of((struct bus_options){ .url = right });
	UNTIL(bus_connected(b->bus));
	if (redis) {
		snprintf(url, sizeof(url), "redis://127.0.0.1:%u", port);
		a = peer();
		UNTIL(strstr(bus_error(a->bus), "NOAUTH") != NULL);
	}
}

/* Bytes to the server are late; with those of a client's end they are lost. */
static void
carry_late(int client, int to)
{
	static unsigned char held[1 << 20], bytes[65536];
	struct pollfd fds[2] = { { .fd = client }, { .fd = to } };
	ssize_t n;
	size_t n_held = 0;

	for (;;) {
		fds[0].events = n_held + sizeof(bytes) > sizeof(held) ? 0 :
		    POLLIN;
		fds[1].events = POLLIN;
		if (poll(fds, 2, LATE_MS) == 0) {
			if (n_held > 0 && write(to, held, n_held) < 0)
				_exit(0);
			n_held = 0;
		}
		if (fds[0].revents != 0) {
			n = read(client, held + n_held, sizeof(bytes));
			if (n <= 0)
				_exit(0);
			n_held += (size_t)n;
		}
		if (fds[1].revents != 0) {
			n = read(to, bytes, sizeof(bytes));
			if (n <= 0 || write(client, bytes, (size_t)n) != n)
				_exit(0);
		}
	}
}

static int
socket_at(unsigned at, bool listens)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	    .sin_port = htons((uint16_t)at) };
	const struct sockaddr *a = (const struct sockaddr *)&address;
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || (listens ? bind(fd, a, sizeof(address)) != 0 ||
	    listen(fd, 8) != 0 : connect(fd, a, sizeof(address)) != 0))
		err(1, "link");
	return fd;
}

/* Another port of the server, over such a way. It ends with this program. */
static unsigned
late_link(void)
{
	const unsigned at = free_port();
	const int fd = socket_at(at, true);
	int client;

	if (fork() != 0) {
		close(fd);
		return at;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	while ((client = accept(fd, NULL, NULL)) >= 0) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			carry_late(client, socket_at(port, false));
		}
		close(client);
	}
	_exit(0);
}

/* A frame that counts as sent has arrived when the bus is closed. */
static void
sent_is_not_lost(void)
{
	struct peer *a, *b;
	char late[128];
	uint64_t n;

	start(NULL);
	b = peer();
	UNTIL(bus_connected(b->bus));
	snprintf(late, sizeof(late), "%s://127.0.0.1:%u", redis ? "redis" :
	    "nats", late_link());
	for (n = 100; n < 400; n += 100) {
		a = peer_of((struct bus_options){ .url = late });
		UNTIL(bus_connected(a->bus));
		send_all(a, n, n + 20);
		UNTIL(bus_counts(a->bus).sent == 21);
		leave(a);
		UNTIL(b->last == n + 20);
		IS(missing(b, n, n + 20) == 0);
	}
}

/* The end waits for a server that is stopped, but not for ever. */
static void
the_end_is_bounded(void)
{
	struct peer *a;

	start(NULL);
	a = peer();
	UNTIL(bus_connected(a->bus));
	kill(server, SIGSTOP);
	alarm(PATIENCE_S);
	leave(a);
	alarm(0);
}

/* Sends a thousand frames, and reads the relay's report about them. */
static void
through_relay(const char *const *fates, struct peer **to,
    unsigned long long *counts)
{
	char output[512], line[128] = "";
	const char *args[] = { relay, fates[0], "1000", fates[1], fates[2],
	    fates[3], fates[4], url, "kv.test", url, "kv.other", NULL };
	struct peer *a = peer();
	FILE *f;
	pid_t child;
	uint64_t n;

	*to = peer_of((struct bus_options){ .url = url, .name = "kv.other" });
	UNTIL(both_up(a, *to));
	snprintf(output, sizeof(output), "%s/relay.log", scratch);
	unlink(output);
	child = run(output, args);
	UNTIL((f = fopen(output, "r")) != NULL &&
	    (fgets(line, sizeof(line), f) != NULL || fclose(f) != 0) &&
	    fclose(f) == 0);
	IS(strcmp(line, "ready\n") == 0);
	for (n = 1; n < 1000; n += 50) {
		send_all(a, n, n + 49);
		work();
	}
	UNTIL(waitpid(child, NULL, WNOHANG) == child);
	f = fopen(output, "r");
	IS(f != NULL && fscanf(f, "ready %llu %llu %llu", &counts[0],
	    &counts[1], &counts[2]) == 3);
	if (f != NULL)
		fclose(f);
	UNTIL((*to)->took == counts[0] - counts[1] + counts[2]);
	leave(a);
}

static void
relay_loses_and_doubles(void)
{
	static const char *const fates[] = { "7", "10", "20", "5", "0" };
	unsigned long long counts[3] = { 0 }, again[3] = { 0 };
	struct peer *b;

	start(NULL);
	through_relay(fates, &b, counts);
	IS(counts[0] == 1000 && counts[1] > 50 && counts[1] < 150);
	IS(counts[2] > 120 && counts[2] < 250);
	IS(missing(b, 1, 1000) == counts[1] && !b->back && !b->damaged);
	leave(b);
	through_relay(fates, &b, again);
	IS(memcmp(counts, again, sizeof(counts)) == 0);
}

static void
relay_reorders(void)
{
	static const char *const fates[] = { "8", "0", "0", "1", "40" };
	unsigned long long counts[3] = { 0 };
	struct peer *b;

	start(NULL);
	through_relay(fates, &b, counts);
	IS(missing(b, 1, 1000) == 0 && b->took == 1000);
	IS(b->back && !b->damaged);
}

/* -------------------------------------------------------- cases of one --- */

static void
log_is_kept(void)
{
	struct peer *a, *b, *c;
	uint64_t i;

	START("--appendonly", "yes", "--appendfsync", "always");
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	send_all(a, 1, 50);
	UNTIL(b->last == 50 && bus_counts(a->bus).sent == 50);
	kill_server();
	send_all(a, 51, 150);
	for (i = 0; i < 20; i++)
		work();
	START("--appendonly", "yes", "--appendfsync", "always");
	UNTIL(b->last == 150);
	IS(missing(b, 1, 150) == 0 && bus_counts(b->bus).gaps == 0);
	/* A new peer sees new frames, or the ones that it asks for. */
	c = peer();
	UNTIL(bus_connected(c->bus));
	send_all(a, 200, 210);
	UNTIL(c->last == 210);
	IS(c->took == 11);
	leave(c);
	c = peer();
	IS(bus_since(c->bus, INT64_C(3600000000000)));
	UNTIL(c->last == 210);
	IS(missing(c, 1, 150) == 0 && !c->back && c->aged);
	/* Again, by a peer that has read all of it. */
	c->last = 0;
	IS(bus_since(c->bus, INT64_C(3600000000000)));
	UNTIL(c->last == 210);
	IS(c->times[1] == 2 && c->times[210] == 2 && !c->back);
	IS(bus_counts(c->bus).gaps == 0);
}

/* An idle log sends no frame that is older than the time asked for. */
static void
an_idle_log_is_not_read_again(void)
{
	struct peer *a, *c;
	unsigned i;

	start(NULL);
	a = peer();
	UNTIL(bus_connected(a->bus));
	send_all(a, 1, 5);
	UNTIL(bus_counts(a->bus).sent == 5);
	for (i = 0; i < 40; i++)
		bus_wait(a->bus, 50);
	c = peer();
	IS(bus_since(c->bus, INT64_C(500000000)));
	UNTIL(bus_connected(c->bus));
	for (i = 0; i < 60; i++)
		bus_wait(c->bus, 50);
	IS(c->took == 0);
	send_all(a, 6, 6);
	UNTIL(c->last == 6);
	IS(c->took == 1);
}

/* A log that began anew is a gap, and is read from its beginning. */
static void
log_is_lost(void)
{
	struct peer *a, *b;

	start(NULL);
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	send_all(a, 1, 50);
	UNTIL(b->last == 50);
	kill_server();
	UNTIL(!bus_connected(a->bus) && !bus_connected(b->bus));
	start(NULL);
	UNTIL(both_up(a, b));
	IS(bus_counts(b->bus).gaps == 1);
	send_all(a, 51, 60);
	UNTIL(b->last == 60);
	IS(missing(b, 1, 60) == 0);
}

static void
cli(const char *const *words)
{
	const char *args[ARGS_MAX] = { "redis-cli", "-p" };
	char number[8], output[512];
	size_t n = 2;

	snprintf(number, sizeof(number), "%u", port);
	snprintf(output, sizeof(output), "%s/cli.log", scratch);
	args[n++] = number;
	while (*words != NULL)
		args[n++] = *words++;
	waitpid(run(output, args), NULL, 0);
}
#define CLI(...) cli((const char *const []){ __VA_ARGS__, NULL })

/*
 * The clock of the server was set back: an entry comes from far ahead, and
 * then a log begins anew, with ids smaller than those read.
 */
static void
log_with_smaller_ids(void)
{
	struct peer *a, *b;

	start(NULL);
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	send_all(a, 1, 10);
	UNTIL(b->last == 10);
	CLI("XADD", "kv.test", "99999999999999-0", "x", "y");
	send_all(a, 11, 20);
	UNTIL(b->last == 20);
	IS(bus_counts(b->bus).gaps == 0);
	CLI("DEL", "kv.test");
	send_all(a, 21, 30);
	UNTIL(b->last == 30);
	IS(missing(b, 1, 30) == 0);
	IS(bus_counts(b->bus).gaps == 1);
	IS(bus_counts(b->bus).connects == 1);
}

/* A user that may not read, or not write, is not connected. */
static void
forbid(const char *what, const char *user)
{
	CLI("ACL", "SETUSER", user, "on", ">x", "~*", "+@all", what);
	snprintf(url, sizeof(url), "redis://%s:x@127.0.0.1:%u", user, port);
}

static void
reading_is_forbidden(void)
{
	struct peer *a;
	uint64_t failures;

	start(NULL);
	a = peer();
	UNTIL(bus_connected(a->bus));
	forbid("-xread", "reader");
	a = peer();
	for (failures = 0; failures < 4;
	    failures = bus_counts(a->bus).failures) {
		work();
		IS(!bus_connected(a->bus));
	}
	IS(strstr(bus_error(a->bus), "NOPERM") != NULL);
	IS(bus_counts(a->bus).connects == 0);
	CLI("ACL", "SETUSER", "reader", "+xread");
	UNTIL(bus_connected(a->bus));
	IS(bus_error(a->bus)[0] == '\0');
}

static void
writing_is_forbidden(void)
{
	struct peer *a, *b;
	uint64_t failures;

	start(NULL);
	b = peer();
	UNTIL(bus_connected(b->bus));
	forbid("-xadd", "writer");
	a = peer();
	UNTIL(bus_connected(a->bus));
	send_all(a, 1, 1);
	UNTIL(!bus_connected(a->bus));
	IS(strstr(bus_error(a->bus), "NOPERM") != NULL);
	for (failures = 1; failures < 4;
	    failures = bus_counts(a->bus).failures) {
		work();
		IS(!bus_connected(a->bus));
	}
	CLI("ACL", "SETUSER", "writer", "+xadd");
	UNTIL(b->last == 1);
	UNTIL(bus_connected(a->bus));
}

/* A server of NATS with that configuration. */
static void
start_with(const char *configuration)
{
	char path[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s/nats.conf", scratch);
	out = fopen(path, "w");
	if (out == NULL || fputs(configuration, out) < 0 || fclose(out) != 0)
		err(1, "%s", path);
	START("-c", path);
}

/* A frame that the server would not take is dropped, and the rest goes on. */
static void
payload_is_bounded(void)
{
	struct peer *a, *b;

	start_with("max_payload: 1000\n");
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	UNTIL(strstr(bus_error(a->bus), "max_payload") != NULL);
	send_all(a, 1, 1);
	UNTIL(b->last == 1);
	send_all(a, 2500, 2500);
	send_all(a, 2, 2);
	UNTIL(b->last == 2);
	IS(b->took == 2);
	IS(bus_counts(a->bus).send_drops == 1);
	IS(bus_counts(a->bus).connects == 1);
}

static void
publishing_is_forbidden(void)
{
	struct peer *a;

	start_with("authorization { users: [ { user: kv, password: x,\n"
	    "permissions: { publish: { deny: \"kv.test\" } } } ] }\n");
	snprintf(url, sizeof(url), "nats://kv:x@127.0.0.1:%u", port);
	a = peer();
	UNTIL(bus_connected(a->bus));
	send_all(a, 1, 1);
	UNTIL(strstr(bus_error(a->bus), "ermissions") != NULL);
	IS(bus_connected(a->bus));
}

/* The server's error comes while the subscription is made. */
static void
subscribing_is_forbidden(void)
{
	const unsigned rounds = 10;
	struct peer *a;
	unsigned i;

	start_with("authorization { users: [ { user: kv, password: x,\n"
	    "permissions: { subscribe: { deny: \"kv.test\" } } } ] }\n");
	snprintf(url, sizeof(url), "nats://kv:x@127.0.0.1:%u", port);
	for (i = 0; i < rounds; i++) {
		a = peer();
		UNTIL(bus_counts(a->bus).connects > 0);
		UNTIL(strstr(bus_error(a->bus), "ermissions") != NULL);
		IS(!bus_connected(a->bus));
		leave(a);
		n_peers = 0;
	}
}

/* cnats has errors left when the bus is closed: for a sanitizer. */
static void
complaints_end_with_the_bus(void)
{
	const unsigned rounds = 20;
	struct peer *a;
	unsigned i;

	start_with("authorization { users: [ { user: kv, password: x,\n"
	    "permissions: { publish: { deny: \"kv.test\" } } } ] }\n");
	snprintf(url, sizeof(url), "nats://kv:x@127.0.0.1:%u", port);
	for (i = 0; i < rounds; i++) {
		a = peer();
		UNTIL(bus_connected(a->bus));
		send_all(a, 1, 2000);
		UNTIL(bus_counts(a->bus).failures > 0);
		leave(a);
		n_peers = 0;
	}
}

/* Entries that are no frames, and a key that is no stream. */
static void
others_write(void)
{
	struct peer *a, *b;

	start(NULL);
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	CLI("XADD", "kv.test", "*", "a", "1234567", "b", "2");
	CLI("XADD", "kv.test", "*", "", "");
	send_all(a, 1, 1);
	UNTIL(b->last == 1);
	IS(b->took == 3 && b->damaged);
	CLI("SET", "kv.test", "text");
	UNTIL(strstr(bus_error(b->bus), "WRONGTYPE") != NULL);
	CLI("DEL", "kv.test");
	send_all(a, 2, 3);
	UNTIL(b->last == 3);
	IS(bus_counts(b->bus).gaps > 0);
}

/* More than a reply may have: nothing is read until it is gone. */
static void
too_large(void)
{
	struct peer *a, *b;

	start(NULL);
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	CLI("EVAL", "redis.call('XADD', KEYS[1], '*', 'd',"
	    "string.rep('x', 20000000))", "1", "kv.test");
	UNTIL(strstr(bus_error(b->bus), "too large") != NULL);
	IS(bus_counts(b->bus).gaps > 0 && b->took == 0);
	CLI("DEL", "kv.test");
	UNTIL(both_up(a, b));
	send_all(a, 1, 2);
	UNTIL(b->last == 2);
}

/* The same, of many entries. */
static void
too_many(void)
{
	struct peer *a, *b;

	start(NULL);
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	CLI("EVAL", "for i = 1, 60 do redis.call('XADD', KEYS[1], '*', 'd',"
	    "string.rep('x', 1000000)) end", "1", "kv.test");
	UNTIL(strstr(bus_error(b->bus), "too large") != NULL);
	IS(bus_counts(b->bus).gaps > 0 && b->took == 0);
	CLI("DEL", "kv.test");
	UNTIL(both_up(a, b));
	send_all(a, 1, 2);
	UNTIL(b->last == 2);
}

static uint64_t
log_entries(void)
{
	char path[512], text[64] = "";
	FILE *in;

	snprintf(path, sizeof(path), "%s/cli.log", scratch);
	(void)unlink(path);
	CLI("XLEN", "kv.test");
	in = fopen(path, "r");
	if (in == NULL)
		return UINT64_MAX;
	(void)fread(text, 1, sizeof(text) - 1, in);
	fclose(in);
	return strtoull(text, NULL, 10);
}

/* Frames have 3 kB: the log keeps as many as fit, and the excess of Redis. */
static void
log_is_bounded_in_bytes(void)
{
	struct peer *a, *b;
	uint64_t i;

	start(NULL);
	a = peer_of((struct bus_options){ .url = url, .log_bytes = 300000 });
	b = peer();
	UNTIL(both_up(a, b));
	for (i = 0; i < 600; i++) {
		IS(send_one(a, 2000 + i % 900));
		if (i % 50 == 49)
			UNTIL(b->took == i + 1);
	}
	UNTIL(b->took == 600);
	IS(log_entries() >= 80 && log_entries() < 250);
}

/*
 * Databases make no difference to a stream's name, but to its content; a local
 * socket works, and so does the login of kvroute-frames(7).
 */
static void
databases_and_sockets(void)
{
	struct peer *a, *b, *c;
	char path[400], local[512];

	snprintf(path, sizeof(path), "%s/socket", scratch);
	START("--unixsocket", path);
	snprintf(local, sizeof(local), "unix://%s", path);
	a = peer_of((struct bus_options){ .url = local });
	b = peer();
	snprintf(local, sizeof(local), "%s/7", url);
	c = peer_of((struct bus_options){ .url = local });
	UNTIL(both_up(a, b) && bus_connected(c->bus));
	CLI("ACL", "SETUSER", "kv", "on", ">pw", "~kv.test", "+xadd", "+xread",
	    "+xrange", "+xrevrange", "+time", "+select");
	snprintf(local, sizeof(local), "redis://kv:pw@127.0.0.1:%u", port);
	send_all(a, 1, 10);
	UNTIL(b->last == 10);
	IS(c->took == 0);
	leave(a);
	a = peer_of((struct bus_options){ .url = local });
	UNTIL(bus_connected(a->bus));
	send_all(a, 11, 20);
	UNTIL(b->last == 20 && a->last == 20);
}

static bool
ask(struct peer *p, uint64_t number)
{
	unsigned char frame[3008];

	memset(frame, (int)number, sizeof(frame));
	little_put(frame, number, 8);
	return bus_ask(p->bus, frame, 8 + number % 3000);
}

static bool
answer(struct peer *p, const char *reply, uint64_t number)
{
	unsigned char frame[3008];

	memset(frame, (int)number, sizeof(frame));
	little_put(frame, number, 8);
	return bus_answer(p->bus, reply, frame, 8 + number % 3000);
}

/* All get a question, and the one that asked the answers. */
static void
questions(void)
{
	struct peer *a, *b, *c;
	uint64_t i;

	start(NULL);
	a = peer();
	b = peer();
	c = peer();
	UNTIL(both_up(a, b) && bus_connected(c->bus));
	if (!redis)
		IS(!bus_since(a->bus, 1));
	IS(ask(a, 2));
	UNTIL(b->reply[0] != '\0' && c->reply[0] != '\0');
	IS(strcmp(b->reply, c->reply) == 0);
	for (i = 100; i < 300; i++) {
		IS(answer(b, b->reply, i));
		if (i % 20 == 0)
			work();
	}
	UNTIL(a->answers == 200 && bus_waiting(b->bus) == 0);
	IS(missing(a, 100, 299) == 0 && !a->damaged && !a->back);
	IS(send_one(c, 400));
	UNTIL(a->last == 400 && b->last == 400);
	IS(a->answers == 200 && b->answers == 0);
	IS(b->took == 2 && !b->damaged && !c->damaged);
	/* Another one begins; a late reply to the first does not reach it. */
	bus_ask_end(a->bus);
	b->reply[0] = '\0';
	IS(ask(a, 3));
	UNTIL(b->reply[0] != '\0');
	IS(answer(b, b->reply, 500));
	UNTIL(a->last == 500);
	IS(a->answers == 201);
}

/* A question goes to no stream or subject but one for answers. */
static void
answers_go_nowhere_else(void)
{
	struct peer *a, *b;

	start(NULL);
	a = peer();
	b = peer();
	UNTIL(both_up(a, b));
	CLI("XADD", "kv.test", "*", "d", "12345678", "r", "other");
	CLI("XADD", "kv.test", "*", "d", "12345678", "r", "kv.test:");
	CLI("XADD", "kv.test", "*", "d", "12345678", "r",
	    "kv.test:0123456789abcdeg");
	send_all(a, 1, 1);
	UNTIL(b->last == 1);
	IS(b->reply[0] == '\0' && b->took == 1);
	CLI("XADD", "kv.test", "*", "d", "12345678", "r",
	    "kv.test:0123456789abcdef");
	UNTIL(b->reply[0] != '\0');
}

/* A user without the right to answers can do all else. */
static void
answers_are_forbidden(void)
{
	struct peer *a, *b;
	char local[512];

	start(NULL);
	b = peer();
	UNTIL(bus_connected(b->bus));
	CLI("ACL", "SETUSER", "kv", "on", ">pw", "~kv.test", "+xadd", "+xread",
	    "+xrange", "+xrevrange", "+time", "+select");
	snprintf(local, sizeof(local), "redis://kv:pw@127.0.0.1:%u", port);
	a = peer_of((struct bus_options){ .url = local });
	UNTIL(both_up(a, b));
	IS(ask(b, 2));
	UNTIL(a->reply[0] != '\0');
	IS(answer(a, a->reply, 3));
	send_all(a, 4, 10);
	UNTIL(b->last == 10);
	IS(b->answers == 0 && bus_counts(a->bus).send_drops == 1);
	IS(bus_counts(a->bus).failures == 0);
	IS(ask(a, 11));
	UNTIL(b->last == 11);
	UNTIL(both_up(a, b) && bus_counts(a->bus).failures > 0);
	send_all(b, 12, 20);
	UNTIL(a->last == 20);
}

static void
refused(const char *address, const char *name, const char *why)
{
	const struct bus_options options = { .url = address, .name = name,
	    .queue_bytes = QUEUE, .take = take };
	char error[BUS_ERROR_MAX] = "";
	struct bus *b = bus_open(&options, error, sizeof(error));

	if (b != NULL || strstr(error, why) == NULL)
		WRONG("%s: %s", address, error);
	bus_close(b);
}

static void
bad_options(void)
{
	refused("redis:/localhost", "a", "scheme://");
	refused("http://localhost", "a", "http");
	refused("redis://localhost:99999", "a", "port");
	refused("redis://localhost/a", "a", "database");
	refused("redis://localhost,127.0.0.1", "a", "several hosts");
	refused("redis+sentinel://localhost", "a", "MASTER");
	refused("redis+cluster://localhost/1", "a", "databases");
	refused("nats://localhost,127.0.0.1", "a", "one host");
	refused("unix://", "a", "socket");
	refused("redis://localhost", "a b", "name");
	refused("redis://localhost", "", "name");
	refused("redis://localhost", ".a", "name");
}

static const struct {
	const char *name;
	void (*run)(void);
	char bus; /* r, n, or b: both */
} cases[] = {
	{ "in_order", in_order, 'b' },
	{ "server_comes_late", server_comes_late, 'b' },
	{ "server_killed", server_killed, 'b' },
	{ "server_stopped", server_stopped, 'b' },
	{ "queue_is_bounded", queue_is_bounded, 'b' },
	{ "reader_lags", reader_lags, 'b' },
	{ "wrong_password", wrong_password, 'b' },
	{ "sent_is_not_lost", sent_is_not_lost, 'b' },
	{ "the_end_is_bounded", the_end_is_bounded, 'b' },
	{ "relay_loses_and_doubles", relay_loses_and_doubles, 'b' },
	{ "relay_reorders", relay_reorders, 'b' },
	{ "log_is_kept", log_is_kept, 'r' },
	{ "an_idle_log_is_not_read_again", an_idle_log_is_not_read_again, 'r' },
	{ "log_is_lost", log_is_lost, 'r' },
	{ "log_with_smaller_ids", log_with_smaller_ids, 'r' },
	{ "reading_is_forbidden", reading_is_forbidden, 'r' },
	{ "writing_is_forbidden", writing_is_forbidden, 'r' },
	{ "payload_is_bounded", payload_is_bounded, 'n' },
	{ "publishing_is_forbidden", publishing_is_forbidden, 'n' },
	{ "subscribing_is_forbidden", subscribing_is_forbidden, 'n' },
	{ "complaints_end_with_the_bus", complaints_end_with_the_bus, 'n' },
	{ "others_write", others_write, 'r' },
	{ "too_large", too_large, 'r' },
	{ "too_many", too_many, 'r' },
	{ "log_is_bounded_in_bytes", log_is_bounded_in_bytes, 'r' },
	{ "databases_and_sockets", databases_and_sockets, 'r' },
	{ "bad_options", bad_options, 'r' },
	{ "questions", questions, 'b' },
	{ "answers_go_nowhere_else", answers_go_nowhere_else, 'r' },
	{ "answers_are_forbidden", answers_are_forbidden, 'r' }
};

int
main(int argc, char **argv)
{
	const size_t n = sizeof(cases) / sizeof(cases[0]);
	const bool lists = argc == 3 && strcmp(argv[1], "--list") == 0;
	bool found = lists;
	size_t i;

	if (!lists && argc != 5)
		errx(2, "usage: check-bus redis|nats CASE SCRATCH RELAY");
	redis = strcmp(argv[lists ? 2 : 1], "redis") == 0;
	scratch = lists ? NULL : argv[3];
	relay = lists ? NULL : argv[4];
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < n; i++) {
		if (cases[i].bus != 'b' && cases[i].bus != (redis ? 'r' : 'n'))
			continue;
		if (lists) {
			puts(cases[i].name);
		} else if (strcmp(argv[2], cases[i].name) == 0) {
			found = true;
			cases[i].run();
		}
	}
	if (!found)
		WRONG("there is no such case");
	for (i = 0; i < n_peers; i++)
		bus_close(peers[i].bus);
	kill_server();
	return 0;
}
