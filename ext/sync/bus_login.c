/* SPDX-License-Identifier: BSD-2-Clause */
/* bus_login.c - see bus_login.h. */
#include "bus_login.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MOST = 800 };

/* Reads the first line, without its end. NULL, or the reason of a failure. */
static const char *
read_line(FILE *file, char line[LINE_MOST])
{
	if (fgets(line, LINE_MOST, file) == NULL)
		return ferror(file) ? "it cannot be read" : "it is empty";
	if (strlen(line) == LINE_MOST - 1)
		return "its first line is too long";
	line[strcspn(line, "\r\n")] = '\0';
	return NULL;
}

static const char *
set_login(struct bus_url *url, char *line)
{
	char *colon = strchr(line, ':');

	if (line[0] == '\0' || line == colon)
		return "its first line is no user:password, and no token";
	if (colon != NULL)
		*colon = '\0';
	url->colon = colon != NULL;
	if (strlen(line) >= sizeof(url->user) || (colon != NULL &&
	    strlen(colon + 1) >= sizeof(url->password)))
		return "its first line is too long";
	strcpy(url->user, line);
	strcpy(url->password, colon == NULL ? "" : colon + 1);
	return NULL;
}

bool
bus_login(const char *path, struct bus_url *url, char *error, size_t size)
{
	FILE *file = fopen(path, "re");
	char line[LINE_MOST];
	const char *why;

	if (file == NULL) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		return false;
	}
	why = read_line(file, line);
	if (why == NULL)
		why = set_login(url, line);
	fclose(file);
	explicit_bzero(line, sizeof(line));
	if (why != NULL)
		snprintf(error, size, "%s: %s", path, why);
	return why == NULL;
}
