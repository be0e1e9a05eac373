/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_conf.c - see pick_conf.h. */
#include "pick_conf.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096, PORT_MAX = 65535 };

static const char blanks[] = " \t\r\n";

/* ----------------------------------------------------------- addresses --- */

static bool
read_port(const char *text, unsigned *port)
{
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoul(text, &end, 10);
	if (*end != '\0' || n == 0 || n > PORT_MAX)
		return false;
	*port = (unsigned)n;
	return true;
}

bool
pick_conf_split(const char *name, char host[CONF_NAME_MAX], unsigned *port)
{
	const char *colon = strrchr(name, ':');
	size_t n = colon == NULL ? 0 : (size_t)(colon - name);

	if (n == 0 || n >= CONF_NAME_MAX || !read_port(colon + 1, port))
		return false;
	if (name[0] == '[' && name[n - 1] == ']') {
		name++;
		n -= 2;
	} else if (memchr(name, ':', n) != NULL) {
		return false;
	}
	memcpy(host, name, n);
	host[n] = '\0';
	return n > 0;
}

bool
pick_conf_is_address(const char *name)
{
	unsigned char address[sizeof(struct in6_addr)];
	char host[CONF_NAME_MAX];
	unsigned port;

	return pick_conf_split(name, host, &port) &&
	    (inet_pton(AF_INET, host, address) == 1 ||
	    inet_pton(AF_INET6, host, address) == 1);
}

/* --------------------------------------------------------------- lines --- */

struct parser {
	struct pick_conf *conf;
	unsigned line;
	const char *error;
};

static bool
fail(struct parser *p, const char *error)
{
	p->error = error;
	return false;
}

static bool
add_option(struct parser *p, const char *text)
{
	struct pick_conf *c = p->conf;

	if (!hold_append(&c->options, text, strlen(text)) ||
	    !hold_append(&c->options, "\n", 1) ||
	    !hold_append(&c->lines, &p->line, sizeof(p->line)))
		return fail(p, "no memory");
	return true;
}

/* "kvroute_include_usage", "on": as "include_usage=on". */
static bool
add_directive(struct parser *p, const char *name, const char *value)
{
	char option[LINE_MAX_BYTES];

	if (*value == '\0' || strpbrk(value, blanks) != NULL)
		return fail(p, "one value is expected");
	(void)snprintf(option, sizeof(option), "%s=%s", name, value);
	return add_option(p, option);
}

static bool
set_region(struct parser *p, const char *path)
{
	if (*path == '\0' || strpbrk(path, blanks) != NULL ||
	    strlen(path) >= CONF_REGION_MAX)
		return fail(p, "one path is expected");
	strcpy(p->conf->region, path);
	return true;
}

static struct conf_server *
add_server(struct parser *p)
{
	struct pick_conf *c = p->conf;
	struct conf_server *more;

	if (c->n == CONF_SERVERS_MAX) {
		(void)fail(p, "there are too many servers");
		return NULL;
	}
	if (c->n == c->room) {
		c->room = c->room == 0 ? 16 : 2 * c->room;
		more = realloc(c->servers, c->room * sizeof(*more));
		if (more == NULL) {
			(void)fail(p, "no memory");
			return NULL;
		}
		c->servers = more;
	}
	return &c->servers[c->n];
}

/* nginx asks for "resolve"; here each name is resolved again. */
static const char *
skip_resolve(const char *facts)
{
	if (strncmp(facts, "resolve", 7) != 0 ||
	    (facts[7] != '\0' && strchr(blanks, facts[7]) == NULL))
		return facts;
	facts += 7;
	return facts + strspn(facts, blanks);
}

static bool
set_server(struct parser *p, char *text)
{
	struct conf_server *s = add_server(p);
	char host[CONF_NAME_MAX];
	const char *facts;
	unsigned port;
	size_t n = strcspn(text, blanks);

	if (s == NULL)
		return false;
	facts = text + n + strspn(text + n, blanks);
	text[n] = '\0';
	facts = skip_resolve(facts);
	if (n >= CONF_NAME_MAX || !pick_conf_split(text, host, &port))
		return fail(p, "a server is HOST:PORT");
	if (strlen(facts) >= CONF_FACTS_MAX)
		return fail(p, "the facts are too long");
	strcpy(s->name, text);
	strcpy(s->facts, facts);
	s->line = p->line;
	p->conf->n++;
	return true;
}

/* Cuts a comment, the blanks around the rest, and the ";" at its end. */
static char *
trim_line(char *line)
{
	char *at = line + strspn(line, blanks);
	size_t n = strcspn(at, "#");

	while (n > 0 && strchr(blanks, at[n - 1]) != NULL)
		n--;
	if (n > 0 && at[n - 1] == ';')
		n--;
	while (n > 0 && strchr(blanks, at[n - 1]) != NULL)
		n--;
	at[n] = '\0';
	return at;
}

static bool
read_line(struct parser *p, char *line)
{
	char *name = trim_line(line), *rest;
	size_t n = strcspn(name, blanks);

	if (n == 0)
		return true;
	rest = name + n + strspn(name + n, blanks);
	name[n] = '\0';
	if (strcmp(name, "server") == 0)
		return set_server(p, rest);
	if (strcmp(name, "region") == 0)
		return set_region(p, rest);
	if (strcmp(name, "kvroute") == 0)
		return add_option(p, rest);
	if (strncmp(name, "kvroute_", 8) == 0)
		return add_directive(p, name + 8, rest);
	return fail(p, "there is no such directive");
}

bool
pick_conf_read(struct pick_conf *c, FILE *in, char error[CONF_ERROR_MAX])
{
	struct parser p = { .conf = c };
	char line[LINE_MAX_BYTES];

	memset(c, 0, sizeof(*c));
	while (p.error == NULL && fgets(line, sizeof(line), in) != NULL) {
		p.line++;
		if (strchr(line, '\n') == NULL && !feof(in))
			(void)fail(&p, "the line is too long");
		else
			(void)read_line(&p, line);
	}
	if (p.error == NULL && ferror(in))
		p.error = "it cannot be read";
	if (p.error == NULL)
		return true;
	(void)snprintf(error, CONF_ERROR_MAX, "%u: %s", p.line, p.error);
	pick_conf_free(c);
	return false;
}

unsigned
pick_conf_option_line(const struct pick_conf *c, size_t at)
{
	size_t i, row = 0;
	unsigned line = 0;

	for (i = 0; i < at && i < c->options.length; i++)
		row += c->options.data[i] == '\n';
	if ((row + 1) * sizeof(line) <= c->lines.length)
		memcpy(&line, c->lines.data + row * sizeof(line),
		    sizeof(line));
	return line;
}

unsigned
pick_conf_option(const struct pick_conf *c, const char *name)
{
	const char *text = (const char *)c->options.data;
	const size_t length = strlen(name);
	size_t at;

	for (at = 0; at + length < c->options.length; at++)
		if ((at == 0 || strchr(blanks, text[at - 1]) != NULL) &&
		    memcmp(text + at, name, length) == 0 &&
		    text[at + length] == '=')
			return pick_conf_option_line(c, at);
	return 0;
}

void
pick_conf_free(struct pick_conf *c)
{
	hold_free(&c->options);
	hold_free(&c->lines);
	free(c->servers);
	memset(c, 0, sizeof(*c));
}
