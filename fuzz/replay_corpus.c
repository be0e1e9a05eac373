/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_corpus.c - feeds files to a fuzz harness without a fuzzer.
 *
 *   replay_NAME folder|file ...
 *
 * Prints each file name before it is tried, so the last line tells which one
 * crashed. No file at all is a failure: nothing was tested.
 *
 * Then as many inputs are drawn as $FUZZ_RUNS says, each a file that is changed
 * in a few places. They depend on $KVR_SEED and the files alone. The one that
 * is tried is in replay_NAME.input.
 */
#include "rng.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

enum { FILES_MAX = 1000, SIZE_MAX_DRAWN = 1 << 16, EDITS_MAX = 6, PIECE = 24 };

static unsigned long tried;
static struct input {
	uint8_t *data;
	size_t size;
} files[FILES_MAX];
static size_t n_files;

static bool
bad(const char *path)
{
	perror(path);
	return false;
}

/* Exactly as long as the input: reading past it is detected. */
static void
try(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + (size == 0));

	if (copy == NULL)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	tried++;
}

static bool
try_file(const char *path, size_t size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(size + (size == 0));
	bool good = f != NULL && data != NULL &&
	    fread(data, 1, size, f) == size;

	if (f != NULL)
		fclose(f);
	if (good) {
		printf("%s\n", path);
		fflush(stdout);
		try(data, size);
		if (n_files < FILES_MAX)
			files[n_files++] = (struct input){ data, size };
	}
	return good ? true : bad(path);
}

static int
visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static bool
try_path(const char *path)
{
	struct dirent **entries;
	struct stat status;
	char inner[4096];
	bool good = true;
	int i, n;

	if (stat(path, &status) != 0)
		return bad(path);
	if (!S_ISDIR(status.st_mode))
		return try_file(path, (size_t)status.st_size);
	n = scandir(path, &entries, visible, alphasort);
	if (n < 0)
		return bad(path);
	for (i = 0; i < n; i++) {
		snprintf(inner, sizeof(inner), "%s/%s", path,
		    entries[i]->d_name);
		good &= try_path(inner);
		free(entries[i]);
	}
	free(entries);
	return good;
}

static size_t
below(struct rng *r, size_t n)
{
	return (size_t)rng_between(r, 0, n - 1);
}

/* Changes one place of m, for which there is room, or its end. */
static void
edit(struct rng *r, struct input *m)
{
	static const uint8_t likely[] = "\0\1\177\200\377{}[]\":,\\-.059eE \n";
	const struct input *other = &files[below(r, n_files)];
	const size_t at = below(r, m->size + 1), rest = m->size - at;
	const size_t room = SIZE_MAX_DRAWN - at;
	size_t n = 1 + below(r, PIECE);

	switch (rest == 0 ? 3 : below(r, 5)) {
	case 0:
		m->data[at] ^= (uint8_t)(1 << below(r, 8));
		break;
	case 1:
		m->data[at] = likely[below(r, sizeof(likely) - 1)];
		break;
	case 2:
		n = n < rest ? n : rest;
		memmove(m->data + at, m->data + at + n, rest - n);
		m->size -= n;
		break;
	case 3: /* the end of another one */
		n = below(r, other->size + 1);
		n = n < room ? n : room;
		memcpy(m->data + at, other->data + other->size - n, n);
		m->size = at + n;
		break;
	default: /* a piece twice */
		if (n > rest || m->size + n > SIZE_MAX_DRAWN)
			break;
		memmove(m->data + at + n, m->data + at, rest);
		m->size += n;
	}
}

static void
draw(struct rng *r, struct input *m)
{
	const struct input *from = &files[below(r, n_files)];
	size_t edits = 1 + below(r, EDITS_MAX);

	m->size = from->size < SIZE_MAX_DRAWN ? from->size : SIZE_MAX_DRAWN;
	memcpy(m->data, from->data, m->size);
	while (edits-- > 0)
		edit(r, m);
}

/* Each draws from a seed of its own. */
static bool
try_drawn(const char *name, uint64_t seed, uint64_t runs)
{
	static uint8_t bytes[SIZE_MAX_DRAWN];
	struct input m = { .data = bytes };
	struct rng seeds = { seed };
	char path[4096];
	int fd;

	if (runs == 0)
		return true;
	snprintf(path, sizeof(path), "%s.input", name);
	printf("%s\n", path);
	fflush(stdout);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return bad(path);
	while (runs-- > 0) {
		struct rng r = { rng_next(&seeds) };

		draw(&r, &m);
		if (pwrite(fd, m.data, m.size, 0) != (ssize_t)m.size ||
		    ftruncate(fd, (off_t)m.size) != 0)
			return bad(path);
		try(m.data, m.size);
	}
	return close(fd) == 0 && remove(path) == 0;
}

static uint64_t
number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text == NULL || *text == '\0' ? otherwise :
	    strtoull(text, NULL, 0);
}

int
main(int argc, char **argv)
{
	bool good = true;
	int i;

	if (LLVMFuzzerInitialize != NULL)
		LLVMFuzzerInitialize(&argc, &argv);
	for (i = 1; i < argc; i++)
		good &= try_path(argv[i]);
	if (good && tried > 0)
		good = try_drawn(argv[0], number("KVR_SEED", 1),
		    number("FUZZ_RUNS", 0));
	printf("%lu inputs\n", tried);
	return good && tried > 0 ? 0 : 1;
}
