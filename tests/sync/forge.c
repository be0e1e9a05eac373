/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forge.c - sends frames that no daemon should take, in turn one of another
 * major version, one of another hash rule, one with a MAC and one of random
 * bytes:
 *
 *	forge url name frames region
 *
 * All but the last report that every worker was reset. The rule is otherwise
 * that of the region.
 */
#include "bus.h"
#include "frame.h"
#include "little.h"
#include "rng.h"

#include <kvroute.h>
#include <kvroute_replica.h>

#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION_AT = 4, KINDS = 4, WORKERS = 4, QUEUE = 16 << 20 };
#define WAIT_MAX INT64_C(20000000000)

static void
ignore(void *context, const struct bus_message *message)
{
	(void)context;
	(void)message;
}

/* A frame that resets all workers; returns its length. */
static size_t
reset_all(struct frame_writer *w, unsigned char out[FRAME_BYTES_MAX])
{
	struct frame_record r = { .kind = FRAME_RESET, .epoch = 1000 };
	const unsigned char *bytes;
	size_t n;

	for (r.worker = 0; r.worker < WORKERS; r.worker++)
		if (frame_put(w, &r) != FRAME_OK)
			errx(1, "a record does not fit");
	bytes = frame_finish(w, kvr_clock_now(), &n);
	memcpy(out, bytes, n);
	return n;
}

static void
send_kind(struct bus *b, uint64_t kind, uint64_t rule, struct rng *rng)
{
	static struct frame_writer w;
	unsigned char bytes[FRAME_BYTES_MAX];
	struct frame_rules rules = { .rule = rule };
	size_t n;

	if (kind == 1)
		rules.rule++;
	if (kind == 2)
		frame_key(&rules, "another secret", 14);
	frame_writer_init(&w, &rules, rng_next(rng));
	n = reset_all(&w, bytes);
	if (kind == 0)
		little_put(bytes + VERSION_AT, FRAME_MAJOR + 1, 2);
	if (kind == 3)
		rng_fill(rng, bytes, n);
	if (!bus_send(b, bytes, n))
		errx(1, "a frame was dropped");
}

static uint64_t
rule_of(const char *path)
{
	struct kvr *k;
	uint64_t rule;

	if (kvr_open(path, strlen(path), KVR_OPEN_READONLY, NULL, &k) !=
	    KVR_OK || kvr_rule_get(k, &rule) != KVR_OK)
		errx(1, "%s: no region", path);
	kvr_free(k);
	return rule;
}

int
main(int argc, char **argv)
{
	struct bus_options o = { .log_frames = 100000, .queue_bytes = QUEUE,
	    .take = ignore };
	char error[BUS_ERROR_MAX];
	struct rng rng = { .state = 1 };
	struct bus *b;
	uint64_t i, n, rule;
	int64_t until;

	if (argc != 5)
		errx(2, "usage: forge url name frames region");
	signal(SIGPIPE, SIG_IGN);
	o.url = argv[1];
	o.name = argv[2];
	n = strtoull(argv[3], NULL, 10);
	rule = rule_of(argv[4]);
	b = bus_open(&o, error, sizeof(error));
	if (b == NULL)
		errx(1, "%s", error);
	for (i = 0; i < n; i++)
		send_kind(b, i % KINDS, rule, &rng);
	until = kvr_clock_now() + WAIT_MAX;
	while (bus_counts(b).sent < n && kvr_clock_now() < until)
		bus_wait(b, 1);
	if (bus_counts(b).sent < n)
		errx(1, "frames were not sent");
	bus_close(b);
	return 0;
}
