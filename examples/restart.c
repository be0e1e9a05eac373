/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * restart.c - an index that survives a restart of the program.
 *
 *   restart [file]
 *
 * Routes one prompt and prints how much of it was known from the previous run.
 * With a file, run it twice within two minutes; without one, the program opens
 * a temporary file twice.
 */
#include <kvroute.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The workers of this run, with their facts of today. Those that an earlier run
 * has left, and this one does not name, are removed.
 */
static int
enrol(struct kvr *k)
{
	static const char *const names[] = { "gpu-0", "gpu-1" };
	uint64_t ids[2];
	uint32_t removed;
	int e = KVR_OK, i;

	for (i = 0; i < 2 && e == KVR_OK; i++)
		e = kvr_worker_put(k, names[i], strlen(names[i]), NULL,
		    &ids[i]);
	if (e == KVR_OK)
		e = kvr_worker_keep(k, ids, 2, &removed);
	if (e == KVR_OK && removed > 0)
		printf("%u workers are gone\n", (unsigned)removed);
	return e;
}

static int
send(struct kvr *k)
{
	static const uint32_t prompt[512] = { 101, 2023, 2003 };
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_prompt *p;
	int e = kvr_prompt_new(k, &p);

	if (e != KVR_OK)
		return e;
	e = kvr_prompt_set_tokens(p, NULL, prompt, 512);
	if (e == KVR_OK)
		e = kvr_lease_open(k, p, NULL, KVR_NOW, &d);
	if (e == KVR_OK) /* sent, and answered at once */
		e = kvr_lease_commit(k, d.lease, KVR_NOW, 0);
	if (e == KVR_OK)
		e = kvr_lease_finish(k, d.lease, NULL, KVR_NOW, 0);
	if (e == KVR_OK)
		printf("512 tokens, %d of them known from the last run\n",
		    (int)d.overlap_tokens);
	kvr_prompt_free(p);
	return e;
}

/* The region was made with other options, which can only be made anew. */
static void
explain(const char *path, const struct kvr_options *options)
{
	const char *name;
	struct kvr *k;

	if (kvr_open(path, strlen(path), KVR_OPEN_READONLY, NULL, &k) != KVR_OK)
		return;
	name = kvr_options_fault(k, options);
	if (name != NULL)
		fprintf(stderr, "restart: the region has another %s\n", name);
	kvr_free(k);
}

static int
start(const char *path)
{
	struct kvr_options options;
	struct kvr *k;
	int e = kvr_options_init(&options, sizeof(options));

	if (e != KVR_OK)
		return e;
	options.region_bytes = 4 << 20;
	e = kvr_open(path, strlen(path), KVR_OPEN_CREATE | KVR_OPEN_ATTACH,
	    &options, &k);
	if (e == KVR_EMISMATCH)
		explain(path, &options);
	if (e != KVR_OK)
		return e;
	e = enrol(k);
	if (e == KVR_OK)
		e = send(k);
	kvr_free(k);
	return e;
}

int
main(int argc, char **argv)
{
	char path[] = "/tmp/kvroute-restart-XXXXXX";
	char lock[sizeof(path) + sizeof(".lock")];
	int e, fd;

	if (argc > 1) {
		e = start(argv[1]);
	} else {
		fd = mkstemp(path); /* empty: becomes a region */
		if (fd == -1)
			return 1;
		close(fd);
		e = start(path);
		if (e == KVR_OK)
			e = start(path);
		unlink(path);
		snprintf(lock, sizeof(lock), "%s.lock", path);
		unlink(lock);
	}
	if (e != KVR_OK)
		fprintf(stderr, "restart: %s\n", kvr_strerror(e));
	return e != KVR_OK;
}
