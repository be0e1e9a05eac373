/* SPDX-License-Identifier: BSD-2-Clause */
/* progress.c - see progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WIDTH = 40,    /* of the bar */
	STEP = 1000    /* counts between updates when there is no total */
};

uint64_t
progress_bytes(FILE *f)
{
	struct stat st;

	if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

void
progress_begin(struct progress *p, bool quiet, uint64_t total)
{
	p->on = !quiet && isatty(STDERR_FILENO) == 1;
	p->total = total;
	p->shown = UINT64_MAX;
}

void
progress_show(struct progress *p, uint64_t done, uint64_t count)
{
	char bar[WIDTH + 1];
	uint64_t now;
	size_t full;

	if (!p->on)
		return;
	if (done > p->total)
		done = p->total;
	now = p->total == 0 ? count / STEP :
	    (uint64_t)((double)done / (double)p->total * 1000);
	if (now == p->shown)
		return;
	p->shown = now;
	if (p->total == 0) {
		fprintf(stderr, "\r%" PRIu64 " requests", count);
		return;
	}
	full = (size_t)(now * WIDTH / 1000);
	memset(bar, '.', WIDTH);
	memset(bar, '#', full);
	bar[WIDTH] = '\0';
	fprintf(stderr, "\r[%s] %3" PRIu64 " %%  %" PRIu64 " requests", bar,
	    now / 10, count);
}

void
progress_end(struct progress *p)
{
	if (p->on)
		fprintf(stderr, "\r%*s\r", WIDTH + 40, "");
	p->on = false;
}
