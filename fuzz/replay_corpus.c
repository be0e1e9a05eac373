/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_corpus.c - feeds files to a fuzz harness without a fuzzer.
 *
 *   replay_NAME folder|file ...
 *
 * Prints each file name before it is tried, so the last line tells which one
 * crashed. No file at all is a failure: nothing was tested.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static unsigned long tried;

static bool
bad(const char *path)
{
	perror(path);
	return false;
}

static bool
try_file(const char *path, size_t size)
{
	FILE *f = fopen(path, "rb");
	/* Exactly as long as the file: reading past it is detected. */
	uint8_t *data = malloc(size + (size == 0));
	bool good = f != NULL && data != NULL &&
	    fread(data, 1, size, f) == size;

	if (f != NULL)
		fclose(f);
	if (good) {
		printf("%s\n", path);
		fflush(stdout);
		LLVMFuzzerTestOneInput(data, size);
		tried++;
	}
	free(data);
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

int
main(int argc, char **argv)
{
	bool good = true;
	int i;

	if (LLVMFuzzerInitialize != NULL)
		LLVMFuzzerInitialize(&argc, &argv);
	for (i = 1; i < argc; i++)
		good &= try_path(argv[i]);
	printf("%lu inputs\n", tried);
	return good && tried > 0 ? 0 : 1;
}
