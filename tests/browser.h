/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * browser.h - pages in a browser, for suites: a folder for each test, where
 * the page look.html opens other pages and writes down their text.
 */
#ifndef KVR_BROWSER_H
#define KVR_BROWSER_H

#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline size_t
times_in(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

#define ck_has(text, what) \
	ck_assert_msg(times_in((text), (what)) > 0, "no %s", (what))
#define ck_hasnt(text, what) \
	ck_assert_msg(times_in((text), (what)) == 0, "has %s", (what))

enum { FOLDER_MAX = 1024 };

static char folder[FOLDER_MAX];

static inline void
folder_setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/kvroute-test-XXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void
folder_teardown(void)
{
	char command[FOLDER_MAX + 32];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

static inline void
write_file(const char *name, const char *text)
{
	char path[2 * FOLDER_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

static inline bool
is_there(const char *program)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s > /dev/null 2>&1",
	    program);
	return system(command) == 0;
}

/* A command's output, to be freed; *status is that of pclose. */
static inline char *
output_of(const char *command, int *status)
{
	char *text = NULL, buffer[4096];
	size_t size, n;
	FILE *to = open_memstream(&text, &size), *from = popen(command, "r");

	ck_assert_ptr_nonnull(to);
	ck_assert_ptr_nonnull(from);
	while ((n = fread(buffer, 1, sizeof(buffer), from)) > 0)
		fwrite(buffer, 1, n, to);
	*status = pclose(from);
	ck_assert_int_eq(fclose(to), 0);
	return text;
}

/*
 * Returns the text of look.html when all is loaded and done, with its frames'
 * output on the console. The sandbox does not work as root and is not needed
 * for our own pages.
 */
static inline char *
browse(void)
{
	char command[3 * FOLDER_MAX], *said;
	int status;

	snprintf(command, sizeof(command), "timeout -k 5 100 chromium "
	    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
	    "--no-first-run --user-data-dir='%s/profile' "
	    "--allow-file-access-from-files --enable-logging=stderr "
	    "--virtual-time-budget=60000 --window-size=1500,900 "
	    "--dump-dom 'file://%s/look.html' 2>&1 "
	    "< /dev/null", folder, folder);
	said = output_of(command, &status);
	ck_assert_msg(status == 0, "chromium: %d: %.2000s", status, said);
	return said;
}

#endif
