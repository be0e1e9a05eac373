/* SPDX-License-Identifier: BSD-2-Clause */
/* session_files.c - see session_files.h. */
#include "session_files.h"

#include "args.h"
#include "session_trace.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
add_file(struct session_files *f, const char *path)
{
	char error[SESSION_ERROR_BYTES];
	FILE *file = fopen(path, "r");
	struct session *s;

	if (file == NULL)
		err(ARGS_FAILED, "%s", path);
	s = session_read(file, path, error);
	fclose(file);
	if (s == NULL)
		errx(ARGS_FAILED, "%s", error);
	if (f->n == SESSION_FILES_MAX)
		errx(ARGS_FAILED, "%s: more than %d sessions", path,
		    SESSION_FILES_MAX);
	if (f->n == f->capacity) {
		size_t want = f->capacity == 0 ? 64 : f->capacity * 2;
		struct session **p = realloc(f->list, want *
		    sizeof(struct session *));

		if (p == NULL)
			errx(ARGS_FAILED, "out of memory");
		f->list = p;
		f->capacity = want;
	}
	f->list[f->n++] = s;
}

static int
is_session(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 &&
	    strcmp(d->d_name + n - 5, ".json") == 0;
}

/* By bytes, in any locale. */
static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void
session_files_add(struct session_files *f, const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, is_session, by_name), i;
	size_t size;
	char *name;

	if (n < 0 && errno != ENOTDIR)
		err(ARGS_FAILED, "%s", path);
	if (n < 0) {
		add_file(f, path);
		return;
	}
	if (n == 0)
		errx(ARGS_FAILED, "%s: contains no *.json files", path);
	for (i = 0; i < n; i++) {
		size = strlen(path) + strlen(names[i]->d_name) + 2;
		name = malloc(size);
		if (name == NULL)
			errx(ARGS_FAILED, "out of memory");
		snprintf(name, size, "%s/%s", path, names[i]->d_name);
		add_file(f, name);
		free(name);
		free(names[i]);
	}
	free(names);
}

void
session_files_free(struct session_files *f)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		session_free(f->list[i]);
	free(f->list);
}
