/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-sync - shares the decisions of routers with other machines.
 * kvroute-sync(8) describes the options.
 */
#include "check.h"
#include "daemon.h"
#include "status_socket.h"
#include "status_text.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

enum { FAILED = ARGS_FAILED, SITES_MAX = 16, REPLAY_MAX = 86400 };
enum { POLL_MAX = 10 }; /* milliseconds: signals and retries of the bus */

struct settings {
	struct site_options site;
	const char *socket;
	bool check;
	unsigned char secret[KVR_SECRET_MAX];
	char host[SITE_HOST_MAX];
};

static void
take_secret(void *settings, const struct args_row *row, const char *path)
{
	struct settings *s = settings;
	FILE *in = fopen(path, "rb");

	(void)row;
	if (in == NULL)
		err(FAILED, "%s", path);
	s->site.secret_bytes = fread(s->secret, 1, sizeof(s->secret), in);
	if (s->site.secret_bytes < KVR_SECRET_MIN || getc(in) != EOF)
		errx(FAILED, "%s: a secret has %d to %d bytes", path,
		    KVR_SECRET_MIN, KVR_SECRET_MAX);
	fclose(in);
	s->site.secret = s->secret;
}

/* The scheme has to be one of this option. */
static void
take_url(void *settings, const struct args_row *row, const char *text)
{
	struct settings *s = settings;
	const bool nats = strcmp(row->name, "nats") == 0;

	if (strcmp(text, "-") == 0 &&
	    (text = getenv("KVROUTE_SYNC_URL")) == NULL)
		errx(ARGS_USAGE, "--%s: KVROUTE_SYNC_URL is not set",
		    row->name);
	if ((strncmp(text, "nats", 4) == 0) != nats)
		errx(ARGS_USAGE, "--%s: that is the URL of another bus",
		    row->name);
	s->site.bus.url = text;
}

static void
take_replay(void *settings, const struct args_row *row, const char *text)
{
	struct settings *s = settings;

	s->site.replay = (int64_t)args_number(row->name, text, 0,
	    REPLAY_MAX) * SECOND;
}

#define AT(field) offsetof(struct settings, field)

static const struct args_row rows[] = {
	{ .name = "redis", .argument = "URL", .kind = ARGS_CALL,
	    .take = take_url, .help =
	    "redis://[user:password@]host[:port][/db], unix:///path,\n"
	    "redis+sentinel://host,host/MASTER, redis+cluster://host,\n"
	    "rediss... with TLS; - is $KVROUTE_SYNC_URL" },
	{ .name = "nats", .argument = "URL", .kind = ARGS_CALL,
	    .take = take_url, .help =
	    "nats://[user:password@]host[:port], nats+tls://" },
	{ .name = "login", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(site.bus.login), .help =
	    "user:password, a password or a token" },
	{ .name = "sentinel-login", .argument = "FILE",
	    .kind = ARGS_STRING, .at = AT(site.bus.sentinel_login), .help =
	    "the login of Sentinels, if it is another one" },
	{ .name = "ca", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(site.bus.ca), .help =
	    "certificates to trust (the system's)" },
	{ .name = "cert", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(site.bus.cert), .help =
	    "our certificate, if the server asks for one ..." },
	{ .name = "key", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(site.bus.key), .help = "... and its key" },
	{ .name = "creds", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(site.bus.creds), .help =
	    "NATS: credentials, a JWT and its seed" },
	{ .name = "secret", .argument = "FILE", .kind = ARGS_CALL,
	    .take = take_secret, .help =
	    "the regions' secret: frames have MACs" },
	{ .name = "loads", .kind = ARGS_FLAG, .at = AT(site.loads), .help =
	    "sums of loads only" },
	{ .name = "orders", .kind = ARGS_FLAG, .at = AT(site.orders), .help =
	    "shares draining and up" },
	{ .name = "replay", .argument = "SECONDS", .kind = ARGS_CALL,
	    .take = take_replay, .help =
	    "of the log at the start (TTL if empty, else 0)" },
	{ .name = "check", .kind = ARGS_FLAG, .at = AT(check), .help =
	    "attaches, connects, tries what it needs, and exits" },
	{ .name = "socket", .argument = "PATH", .kind = ARGS_STRING,
	    .at = AT(socket), .help = "tells the state there" },
	{ .name = "status", .argument = "PATH", .kind = ARGS_CALL,
	    .take = daemon_ask, .help =
	    "prints the state of the daemon with that socket" },
	{ .name = "metrics", .argument = "PATH", .kind = ARGS_CALL,
	    .take = daemon_ask, .help = "the same for Prometheus" }
};

static const struct args_table table = {
	.program = "kvroute-sync",
	.usage =
"usage: kvroute-sync --redis URL | --nats URL [--login FILE]\n"
"           [--sentinel-login FILE] [--ca FILE] [--cert FILE --key FILE]\n"
"           [--creds FILE] [--secret FILE] [--loads] [--orders]\n"
"           [--replay SECONDS] [--socket PATH] [--check] [NAME=]REGION ...\n"
"       kvroute-sync --status PATH | --metrics PATH\n"
"       kvroute-sync --help | --version\n",
	.introduction =
"\nTells routers on other machines what was sent where, and applies to region\n"
"files of this machine what they did.\n\n",
	.column = 20, .rows = rows, .n = sizeof(rows) / sizeof(rows[0])
};

struct all {
	const struct site *sites;
	size_t n;
};

static void
tell(FILE *out, bool metrics, void *context)
{
	const struct all *all = context;

	if (metrics)
		status_prometheus(out, all->sites, all->n);
	else
		status_json(out, all->sites, all->n);
}

/* false: a region was replaced. */
static bool
serve(struct site *sites, size_t n, struct status_socket *status)
{
	struct pollfd fds[SITES_MAX * BUS_FDS_MAX + STATUS_FDS];
	struct all all = { sites, n };
	int64_t next, due, left;
	size_t i, n_fds;

	while (!daemon_stop) {
		next = INT64_MAX;
		n_fds = 0;
		for (i = 0; i < n; i++) {
			due = site_work(&sites[i]);
			if (sites[i].replaced)
				return false;
			next = due < next ? due : next;
			n_fds += bus_fds(sites[i].bus, fds + n_fds);
		}
		status_work(status, tell, &all);
		n_fds += status_fds(status, fds + n_fds);
		left = (next - kvr_clock_now() + MS - 1) / MS;
		(void)poll(fds, n_fds, left < 0 ? 0 : left > POLL_MAX ?
		    POLL_MAX : (int)left);
	}
	return true;
}

static struct site sites[SITES_MAX];

static int
run(const struct settings *s, char **names, size_t n)
{
	struct status_socket status;
	bool good = true;
	size_t i;

	if (!status_listen(&status, s->socket)) {
		warn("%s", s->socket);
		return FAILED;
	}
	for (i = 0; i < n && good; i++)
		good = site_open(&sites[i], &s->site, names[i]);
	if (good)
		good = serve(sites, n, &status);
	while (i-- > 0)
		site_close(&sites[i]);
	status_close(&status);
	return good ? 0 : FAILED;
}

int
main(int argc, char **argv)
{
	static struct settings s = { .site = { .replay = -1 } };
	const int first = args_parse(&table, &s, argc, argv);
	const int n = argc - first;

	if (s.site.bus.url == NULL || n == 0 || n > SITES_MAX)
		args_usage(&table);
	if (gethostname(s.host, sizeof(s.host) - 1) == -1)
		s.host[0] = '\0';
	s.site.host = s.host;
	daemon_signals(false);
	if (s.check)
		return check_sites(&s.site, argv + first, (size_t)n);
	return run(&s, argv + first, (size_t)n);
}
