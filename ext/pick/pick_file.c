/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_file.c - see pick_file.h. */
#include "pick_file.h"

#include <errno.h>
#include <string.h>

void
pick_file_begin(struct pick_file *f, const char *path)
{
	memset(f, 0, sizeof(*f));
	f->path = path;
	if (stat(path, &f->read) == 0)
		f->seen = f->read;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
	    a->st_size == b->st_size &&
	    a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	    a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A file that still changes is being written. */
bool
pick_file_changed(struct pick_file *f)
{
	struct stat now;
	bool settled;

	if (stat(f->path, &now) != 0)
		return false;
	settled = is_same(&now, &f->seen);
	f->seen = now;
	if (!settled || is_same(&now, &f->read))
		return false;
	f->read = now;
	return true;
}

bool
pick_file_read(const char *path, struct pick_conf *conf,
    char error[CONF_ERROR_MAX])
{
	FILE *in = fopen(path, "re");
	bool done;

	if (in == NULL) {
		(void)snprintf(error, CONF_ERROR_MAX, " %s", strerror(errno));
		return false;
	}
	done = pick_conf_read(conf, in, error);
	fclose(in);
	return done;
}
