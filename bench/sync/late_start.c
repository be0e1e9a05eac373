/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late_start.c - a region that holds much, for late_start.sh.
 *
 *	late-start make FILE           a region of 256 MiB with 64 workers
 *	late-start fill FILE BLOCKS    so many different blocks, by requests
 *	late-start count FILE          prints blocks that workers hold
 *
 * Requests are turns of chats: each repeats the chain of the one before, and a
 * tenth of all chats shares a beginning. A request comes each 100 us, so that
 * the journal is not overrun.
 */
#include <kvroute.h>
#include <kvroute_replica.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	BLOCK = 16, WORKERS = 64, SHARED = 100, TURN = 80, TURNS = 8,
	UNITS_MAX = (SHARED + TURN * TURNS) * BLOCK
};

static struct kvr *k;

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(1, "%s: %s", what, kvr_errname(error));
}

static void
make(const char *path)
{
	struct kvr_options o;
	char name[16];
	uint64_t id;
	int i;

	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = (size_t)256 << 20;
	o.block_size = BLOCK;
	o.ttl_ns = INT64_C(600000000000);
	o.journal_bytes = 16 << 20;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 's', KVR_SECRET_MIN);
	must(kvr_open(path, strlen(path), KVR_OPEN_CREATE, &o, &k), path);
	for (i = 0; i < WORKERS; i++) {
		snprintf(name, sizeof(name), "w%d", i);
		must(kvr_worker_add(k, name, strlen(name), NULL, &id), "add");
	}
}

static void
fill(uint64_t blocks)
{
	static uint32_t tokens[UNITS_MAX];
	const struct timespec pause = { .tv_nsec = 100000 };
	uint64_t id[WORKERS], at = 0, done = 0;
	struct kvr_prompt *p;
	uint32_t chat, i, n;

	must(kvr_prompt_new(k, &p), "prompt");
	for (i = 0; i < WORKERS; i++) {
		must(kvr_worker_next(k, &at), "workers");
		id[i] = at;
	}
	for (chat = 0; done < blocks; chat++) {
		for (i = 0; i < UNITS_MAX; i++)
			tokens[i] = i < SHARED * BLOCK ? chat / 10 * 7919 + i :
			    chat * 104729 + i;
		for (n = 0; n < TURNS; n++, done += TURN) {
			must(kvr_prompt_set_tokens(p, NULL, tokens,
			    (SHARED + (n + 1) * TURN) * BLOCK), "tokens");
			must(kvr_observe(k, p, id[chat % WORKERS],
			    kvr_clock_now(), 0, NULL), "observe");
			(void)nanosleep(&pause, NULL);
		}
		done += chat % 10 == 0 ? SHARED : 0;
	}
	kvr_prompt_free(p);
}

static void
count(void)
{
	struct kvr_entry e[64];
	uint64_t cursor = 0, entries = 0, blocks = 0;
	size_t i, n;

	do {
		must(kvr_entries(k, &cursor, kvr_clock_now(), e, sizeof(e[0]),
		    64, &n), "entries");
		for (i = 0; i < n; i++)
			blocks += e[i].blocks;
		entries += n;
	} while (cursor != 0);
	printf("%" PRIu64 " blocks in %" PRIu64 " entries\n", blocks, entries);
}

int
main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: see the source");
	if (strcmp(argv[1], "make") == 0) {
		make(argv[2]);
		return 0;
	}
	must(kvr_open(argv[2], strlen(argv[2]), KVR_OPEN_ATTACH, NULL, &k),
	    argv[2]);
	if (strcmp(argv[1], "fill") == 0 && argc == 4)
		fill(strtoull(argv[3], NULL, 10));
	else if (strcmp(argv[1], "count") == 0)
		count();
	else
		errx(2, "usage: see the source");
	return 0;
}
