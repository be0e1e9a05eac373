/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold.c - a process that holds the lock of an index nearly all the time.
 *
 *   hold file [still]
 *
 * It records one long prompt after another for a worker of the region in the
 * file. When it is stopped it probably holds the lock, often in the middle of a
 * change. With `still` it takes the lock once and changes nothing, so readers
 * that need no lock can go on. It ends after two minutes.
 */
#include "txn.h"

#include <kvroute.h>

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPTS = 32, BYTES = 1 << 18, SECONDS = 120 };

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(1, "%s: %s", what, kvr_strerror(error));
}

/* Hashed in advance, so that little time is spent without the lock. */
static struct kvr_prompt *
prompt_make(const struct kvr *k, uint64_t seed)
{
	static unsigned char bytes[BYTES];
	struct kvr_prompt *p;
	size_t i;

	for (i = 0; i < sizeof(bytes); i++) {
		seed = seed * 6364136223846793005U + 1442695040888963407U;
		bytes[i] = (unsigned char)(seed >> 56);
	}
	must(kvr_prompt_new(k, &p), "prompt");
	must(kvr_prompt_set_bytes(p, NULL, bytes, sizeof(bytes)), "prompt");
	return p;
}

static void
hold_still(const struct kvr *k, const char *file)
{
	struct txn c;

	must(txn_read_locked(k, &c, 0), "lock");
	printf("%s\n", file);
	fflush(stdout);
	for (;;)
		(void)pause();
}

int
main(int argc, char **argv)
{
	struct kvr_prompt *prompts[PROMPTS];
	struct kvr *k;
	uint64_t worker = 0;
	size_t i;

	if (argc != 2 && (argc != 3 || strcmp(argv[2], "still") != 0))
		errx(2, "usage: hold file [still]");
	(void)alarm(SECONDS);
	must(kvr_open(argv[1], strlen(argv[1]), KVR_OPEN_ATTACH |
	    KVR_OPEN_TRUST, NULL, &k), argv[1]);
	if (argc == 3)
		hold_still(k, argv[1]);
	must(kvr_worker_next(k, &worker), "worker");
	for (i = 0; i < PROMPTS; i++)
		prompts[i] = prompt_make(k, i + 1);
	printf("%s\n", argv[1]);
	fflush(stdout);
	for (i = 0;; i = (i + 1) % PROMPTS)
		must(kvr_observe(k, prompts[i], worker, kvr_clock_now(), 0,
		    NULL), "observe");
}
