/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_process.c - see chats_process.h.
 *
 * The scheduler's own count, a file for each thread, is in nanoseconds; the
 * count of ticks, for systems without it, has steps of 10 ms.
 */
#include "chats_process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads the whole of a small file below /proc/PID; false: it does not exist. */
static bool
read_file(int pid, const char *name, char *out, size_t capacity)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	n = fread(out, 1, capacity - 1, f);
	out[n] = '\0';
	fclose(f);
	return n > 0;
}

/* Sums all threads, in ticks. The name in parentheses may have any bytes. */
static bool
ticks_ns(int pid, uint64_t *out)
{
	char text[1024];
	const char *rest;
	uint64_t user, system;
	long rate = sysconf(_SC_CLK_TCK);

	if (!read_file(pid, "stat", text, sizeof(text)))
		return false;
	rest = strrchr(text, ')');
	if (rest == NULL || rate <= 0 || sscanf(rest, ") %*c %*d %*d %*d %*d "
	    "%*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
	    &system) != 2)
		return false;
	*out = (user + system) * (UINT64_C(1000000000) / (uint64_t)rate);
	return true;
}

/* Returns the time of running threads; that of ended ones is lost. */
static uint64_t
scheduled_ns(int pid)
{
	char path[64], text[128];
	struct dirent *thread;
	uint64_t sum = 0, ns;
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	if (threads == NULL)
		return 0;
	while ((thread = readdir(threads)) != NULL) {
		if (thread->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "task/%.20s/schedstat",
		    thread->d_name);
		if (read_file(pid, path, text, sizeof(text)) &&
		    sscanf(text, "%" SCNu64, &ns) == 1)
			sum += ns;
	}
	closedir(threads);
	return sum;
}

static bool
cpu_ns(int pid, uint64_t *out)
{
	*out = scheduled_ns(pid);
	return *out > 0 || ticks_ns(pid, out);
}

bool
process_use(const int *pids, size_t n, struct process_use *out)
{
	char text[128];
	uint64_t ns, pages;
	size_t i;

	out->cpu_ns = out->rss_bytes = 0;
	for (i = 0; i < n; i++) {
		if (!cpu_ns(pids[i], &ns) ||
		    !read_file(pids[i], "statm", text, sizeof(text)) ||
		    sscanf(text, "%*u %" SCNu64, &pages) != 1)
			return false;
		out->cpu_ns += ns;
		out->rss_bytes += pages * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	return true;
}
