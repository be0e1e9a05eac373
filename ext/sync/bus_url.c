/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus_url.c - parses the address of a bus.
 *
 * Errors do not repeat the address: it may contain a password.
 */
#include "bus_url.h"

#include "bus_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
bad(char *error, size_t size, const char *why)
{
	snprintf(error, size, "URL: %s", why);
	return false;
}

/* The first n bytes, which have no NUL, if there is room. */
static bool
copy(char *to, size_t size, const char *from, size_t n)
{
	if (n >= size)
		return false;
	memcpy(to, from, n);
	to[n] = '\0';
	return true;
}

static int
digit(char c)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *at = c == '\0' ? NULL : strchr(digits, c);
	const int value = at == NULL ? -1 : (int)(at - digits);

	return value > 15 ? value - 6 : value;
}

/* The same, with %XX; but not %00. */
static bool
decode(char *to, size_t size, const char *from, size_t n)
{
	size_t i, length = 0;

	for (i = 0; i < n; i++) {
		char c = from[i];

		if (c == '%') {
			if (n - i < 3 || digit(from[i + 1]) < 0 ||
			    digit(from[i + 2]) < 0)
				return false;
			c = (char)(digit(from[i + 1]) << 4 |
			    digit(from[i + 2]));
			i += 2;
		}
		if (c == '\0' || length + 1 >= size)
			return false;
		to[length++] = c;
	}
	to[length] = '\0';
	return true;
}

static bool
parse_login(const char *from, size_t n, struct bus_url *out)
{
	const char *colon = memchr(from, ':', n);
	const size_t user = colon == NULL ? n : (size_t)(colon - from);

	if (!decode(out->user, sizeof(out->user), from, user))
		return false;
	out->colon = colon != NULL;
	return colon == NULL || decode(out->password, sizeof(out->password),
	    colon + 1, n - user - 1);
}

static bool
parse_port(const char *from, size_t n, struct bus_host *out)
{
	size_t i;

	if (n == 0 || n > 5)
		return false;
	for (i = 0; i < n; i++) {
		if (from[i] < '0' || from[i] > '9')
			return false;
		out->port = out->port * 10 + (unsigned)(from[i] - '0');
	}
	return out->port > 0 && out->port < 65536;
}

/* host, host:port, [host] or [host]:port */
static bool
parse_host(const char *from, size_t n, struct bus_host *out)
{
	const char *end = from + n, *stop;

	if (n > 0 && *from == '[') {
		stop = memchr(++from, ']', n - 1);
		if (stop == NULL || !copy(out->name, sizeof(out->name), from,
		    (size_t)(stop - from)))
			return false;
		stop++;
	} else {
		stop = memchr(from, ':', n);
		if (stop == NULL)
			stop = end;
		if (!copy(out->name, sizeof(out->name), from,
		    (size_t)(stop - from)))
			return false;
	}
	return stop == end || (*stop == ':' &&
	    parse_port(stop + 1, (size_t)(end - stop) - 1, out));
}

/* Hosts with commas between them; one alone may have no name. */
static bool
parse_hosts(const char *from, const char *end, struct bus_url *out)
{
	const bool one = memchr(from, ',', (size_t)(end - from)) == NULL;
	const struct bus_host *host;
	const char *comma;

	for (;; from = comma + 1) {
		comma = memchr(from, ',', (size_t)(end - from));
		host = &out->hosts[out->n_hosts];
		if (out->n_hosts == BUS_HOSTS_MAX ||
		    !parse_host(from, (size_t)((comma == NULL ? end : comma) -
		    from), &out->hosts[out->n_hosts++]) ||
		    (!one && host->name[0] == '\0'))
			return false;
		if (comma == NULL)
			return true;
	}
}

bool
bus_url_parse(const char *text, struct bus_url *out, char *error, size_t size)
{
	const char *at = strstr(text, "://"), *end, *login;
	size_t i, n;

	memset(out, 0, sizeof(*out));
	if (at == NULL || !copy(out->scheme, sizeof(out->scheme), text,
	    (size_t)(at - text)))
		return bad(error, size, "it does not begin with a scheme://");
	at += 3;
	n = strcspn(at, "/?#");
	end = at + n;
	for (login = NULL, i = 0; i < n; i++)
		if (at[i] == '@')
			login = at + i;
	if (login != NULL) {
		if (!parse_login(at, (size_t)(login - at), out))
			return bad(error, size, "bad user or password; "
			    "other signs than letters and digits are %XX");
		at = login + 1;
	}
	if (!parse_hosts(at, end, out))
		return bad(error, size, "bad host or port, or too many hosts");
	if (*end != '\0' && *end != '/')
		return bad(error, size, "? and # mean nothing here");
	if (!copy(out->path, sizeof(out->path), end, strlen(end)))
		return bad(error, size, "the path is too long");
	return true;
}

bool
bus_subject(const char *name)
{
	const size_t n = strlen(name);
	size_t i, token;

	if (n == 0 || n >= BUS_SUBJECT_MAX)
		return false;
	for (i = 0; i <= n; i += token + 1) {
		token = strcspn(name + i, ".");
		if (token == 0 || (token > 1 && memchr(name + i, '*', token)) ||
		    (memchr(name + i, '>', token) && i + 1 != n))
			return false;
	}
	for (i = 0; i < n; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	return true;
}
