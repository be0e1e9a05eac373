/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * publisher.c - an engine's sockets, led by lines on its standard input.
 *
 *   publisher PUB-ENDPOINT [REPLAY-ENDPOINT [topic]]
 *
 *   wait              until there is a subscriber
 *   send SEQ HEX      publishes a batch, and keeps it for replays
 *   keep SEQ HEX      keeps it only: the line has lost it
 *   send4 PUB SEQ HEX publishes Dynamo's four frames
 *   raw N             publishes a message of N empty frames
 *   forget            keeps nothing any more
 *   mute              answers no replay
 *   where             is answered by where it publishes
 *
 * Each other line is answered by "ok" when it is done. With `topic` a replay
 * has the frames of vLLM 0.26, else those of earlier releases. At the end of
 * the input it ends. SEQ is "-" for no number.
 */
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum { KEPT_MAX = 64, BYTES_MAX = 4096, LINE_MAX_BYTES = 10000 };

static struct {
	unsigned char seq[8], bytes[BYTES_MAX];
	size_t n;
} kept[KEPT_MAX];
static size_t n_kept;
static bool topics, mute;
static void *pub, *router;

static void
must(int status, const char *what)
{
	if (status == -1)
		errx(1, "%s: %s", what, zmq_strerror(zmq_errno()));
}

static void
frame(void *socket, const void *bytes, size_t n, bool more)
{
	must(zmq_send(socket, bytes, n, more ? ZMQ_SNDMORE : 0), "send");
}

static void
big(unsigned char out[8], uint64_t value)
{
	int i;

	for (i = 7; i >= 0; i--, value >>= 8)
		out[i] = (unsigned char)value;
}

static uint64_t
value_of(const unsigned char in[8])
{
	uint64_t value = 0;
	int i;

	for (i = 0; i < 8; i++)
		value = value << 8 | in[i];
	return value;
}

static size_t
unhex(const char *hex, unsigned char *out)
{
	size_t n = 0;
	unsigned byte;

	while (n < BYTES_MAX && sscanf(hex + 2 * n, "%2x", &byte) == 1)
		out[n++] = (unsigned char)byte;
	return n;
}

/* ------------------------------------------------------------ replay --- */

static void
reply(const void *who, size_t n_who, const void *seq, const void *bytes,
    size_t n)
{
	frame(router, who, n_who, true);
	frame(router, "", 0, true);
	if (topics)
		frame(router, n == 0 ? "" : "kv", n == 0 ? 0 : 2, true);
	frame(router, seq, 8, true);
	frame(router, bytes, n, false);
}

static void
serve(void)
{
	unsigned char who[64], from[64], end[8];
	int n_who, n;
	size_t i;

	n_who = zmq_recv(router, who, sizeof(who), 0);
	must(n_who, "replay");
	must(zmq_recv(router, from, sizeof(from), 0), "replay");
	n = zmq_recv(router, from, sizeof(from), 0);
	if (n != 8)
		errx(1, "a request of %d bytes", n);
	if (mute)
		return;
	for (i = 0; i < n_kept; i++)
		if (value_of(kept[i].seq) >= value_of(from))
			reply(who, (size_t)n_who, kept[i].seq, kept[i].bytes,
			    kept[i].n);
	big(end, UINT64_MAX);
	reply(who, (size_t)n_who, end, "", 0);
}

/* ------------------------------------------------------------- lines --- */

static void
publish(const unsigned char *seq, const void *bytes, size_t n,
    const unsigned char *publisher)
{
	frame(pub, "kv", 2, true);
	if (publisher != NULL)
		frame(pub, publisher, 8, true);
	frame(pub, seq, 8, true);
	frame(pub, bytes, n, false);
}

static void
wait_for_subscriber(void)
{
	unsigned char bytes[64];

	/* A subscriber that leaves is reported, too. */
	do {
		must(zmq_recv(pub, bytes, sizeof(bytes), 0), "subscription");
	} while (bytes[0] != 1);
}

static void
keep(uint64_t seq, const char *hex)
{
	if (n_kept == KEPT_MAX)
		errx(1, "too many batches");
	big(kept[n_kept].seq, seq);
	kept[n_kept].n = unhex(hex, kept[n_kept].bytes);
	n_kept++;
}

static void
tell_where(void)
{
	char endpoint[256];
	size_t n = sizeof(endpoint);

	must(zmq_getsockopt(pub, ZMQ_LAST_ENDPOINT, endpoint, &n), "where");
	puts(endpoint);
	fflush(stdout);
}

static void
obey(const char *line)
{
	static char hex[LINE_MAX_BYTES];
	unsigned char publisher[8], seq_bytes[8], bytes[BYTES_MAX];
	uint64_t who, seq;
	int n;

	if (strcmp(line, "where\n") == 0) {
		tell_where();
		return;
	}
	if (strcmp(line, "wait\n") == 0) {
		wait_for_subscriber();
	} else if (strcmp(line, "forget\n") == 0) {
		n_kept = 0;
	} else if (strcmp(line, "mute\n") == 0) {
		mute = true;
	} else if (sscanf(line, "send4 %" SCNu64 " %" SCNu64 " %9999s", &who,
	    &seq, hex) == 3) {
		big(publisher, who);
		big(seq_bytes, seq);
		publish(seq_bytes, bytes, unhex(hex, bytes), publisher);
	} else if (sscanf(line, "send %" SCNu64 " %9999s", &seq, hex) == 2) {
		keep(seq, hex);
		publish(kept[n_kept - 1].seq, kept[n_kept - 1].bytes,
		    kept[n_kept - 1].n, NULL);
	} else if (sscanf(line, "keep %" SCNu64 " %9999s", &seq, hex) == 2) {
		keep(seq, hex);
	} else if (sscanf(line, "raw %d", &n) == 1) {
		while (n-- > 0)
			frame(pub, "", 0, n > 0);
	} else {
		errx(1, "what is: %s", line);
	}
	puts("ok");
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static char line[LINE_MAX_BYTES];
	void *context = zmq_ctx_new();
	zmq_pollitem_t items[2] = { { NULL, 0, ZMQ_POLLIN, 0 },
	    { NULL, STDIN_FILENO, ZMQ_POLLIN, 0 } };
	const int none = 0, yes = 1;

	if (argc < 2)
		errx(2, "usage: publisher PUB [REPLAY [topic]]");
	topics = argc > 3;
	/* Lines are polled for: none may wait in a buffer. */
	setvbuf(stdin, NULL, _IONBF, 0);
	/* XPUB reports subscribers, also those that come again. */
	pub = zmq_socket(context, ZMQ_XPUB);
	router = zmq_socket(context, ZMQ_ROUTER);
	must(zmq_setsockopt(pub, ZMQ_LINGER, &none, sizeof(none)), "linger");
	must(zmq_setsockopt(router, ZMQ_LINGER, &none, sizeof(none)), "linger");
	must(zmq_setsockopt(pub, ZMQ_IPV6, &yes, sizeof(yes)), "IPv6");
	must(zmq_setsockopt(pub, ZMQ_XPUB_VERBOSE, &yes, sizeof(yes)), "all");
	must(zmq_bind(pub, argv[1]), argv[1]);
	if (argc > 2)
		must(zmq_bind(router, argv[2]), argv[2]);
	items[0].socket = router;
	for (;;) {
		must(zmq_poll(items, 2, -1), "poll");
		if (items[0].revents != 0)
			serve();
		if (items[1].revents == 0)
			continue;
		if (fgets(line, sizeof(line), stdin) == NULL)
			break;
		obey(line);
	}
	zmq_close(pub);
	zmq_close(router);
	zmq_ctx_term(context);
	return 0;
}
