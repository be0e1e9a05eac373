/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-sync - tells routers on other machines what was sent where.
 * kvroute-sync(8) describes the options.
 */
#include "check.h"
#include "status_socket.h"
#include "status_text.h"

#include <bsd/stdlib.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

enum { FAILED = 1, USAGE = 2, SITES_MAX = 16, REPLAY_MAX = 86400 };
enum { POLL_MAX = 10 }; /* milliseconds: signals and retries of the bus */

static volatile sig_atomic_t stop;

static const char usage_text[] =
"usage: kvroute-sync --redis URL | --nats URL [--ca FILE] [--secret FILE]\n"
"           [--loads] [--orders] [--replay SECONDS] [--socket PATH]\n"
"           [--check] [NAME=]REGION ...\n"
"       kvroute-sync --status PATH | --metrics PATH\n"
"       kvroute-sync --help | --version\n";

static const char help_text[] =
"\nTells routers on other machines what was sent where, and applies to region\n"
"files of this machine what they did.\n\n"
"  --redis URL       redis://[user:password@]host[:port][/db], rediss://,\n"
"                    unix:///path; - is $KVROUTE_SYNC_URL\n"
"  --nats URL        nats://[user:password@]host[:port], nats+tls://\n"
"  --ca FILE         certificates for TLS (the system's)\n"
"  --secret FILE     the regions' secret: frames have MACs\n"
"  --loads           sums of loads only\n"
"  --orders          shares draining and up\n"
"  --replay SECONDS  of the log at the start (TTL if empty, else 0)\n"
"  --check           attaches, connects, tries what it needs, and exits\n"
"  --socket PATH     tells the state there\n"
"  --status PATH     prints the state of the daemon with that socket\n"
"  --metrics PATH    the same for Prometheus\n";

struct settings {
	struct site_options site;
	const char *socket;
	bool check;
	unsigned char secret[KVR_SECRET_MAX];
	char host[SITE_HOST_MAX];
};

static _Noreturn void
usage(void)
{
	fputs(usage_text, stderr);
	exit(USAGE);
}

static void
read_secret(struct settings *s, const char *path)
{
	FILE *in = fopen(path, "rb");

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
static const char *
url(const char *option, const char *text, bool nats)
{
	if (strcmp(text, "-") == 0 &&
	    (text = getenv("KVROUTE_SYNC_URL")) == NULL)
		errx(USAGE, "%s: KVROUTE_SYNC_URL is not set", option);
	if ((strncmp(text, "nats", 4) == 0) != nats)
		errx(USAGE, "%s: that is the URL of another bus", option);
	return text;
}

static int64_t
seconds(const char *text)
{
	const char *error;
	const long long n = strtonum(text, 0, REPLAY_MAX, &error);

	if (error != NULL)
		errx(USAGE, "--replay %s: %s", text, error);
	return n * SECOND;
}

static _Noreturn void
ask(const char *path, const char *what)
{
	if (!status_print(path, what))
		err(FAILED, "%s", path);
	exit(fflush(stdout) == 0 ? 0 : FAILED);
}

enum {
	O_REDIS = 256, O_NATS, O_CA, O_SECRET, O_LOADS, O_ORDERS, O_REPLAY,
	O_CHECK, O_SOCKET, O_STATUS, O_METRICS, O_HELP, O_VERSION
};

static const struct option long_options[] = {
	{ "redis", required_argument, NULL, O_REDIS },
	{ "nats", required_argument, NULL, O_NATS },
	{ "ca", required_argument, NULL, O_CA },
	{ "secret", required_argument, NULL, O_SECRET },
	{ "loads", no_argument, NULL, O_LOADS },
	{ "orders", no_argument, NULL, O_ORDERS },
	{ "replay", required_argument, NULL, O_REPLAY },
	{ "check", no_argument, NULL, O_CHECK },
	{ "socket", required_argument, NULL, O_SOCKET },
	{ "status", required_argument, NULL, O_STATUS },
	{ "metrics", required_argument, NULL, O_METRICS },
	{ "help", no_argument, NULL, O_HELP },
	{ "version", no_argument, NULL, O_VERSION },
	{ NULL, 0, NULL, 0 }
};

static void
set(struct settings *s, int option)
{
	switch (option) {
	case O_REDIS:
		s->site.url = url("--redis", optarg, false);
		break;
	case O_NATS:
		s->site.url = url("--nats", optarg, true);
		break;
	case O_CA:
		s->site.ca = optarg;
		break;
	case O_SECRET:
		read_secret(s, optarg);
		break;
	case O_LOADS:
		s->site.loads = true;
		break;
	case O_ORDERS:
		s->site.orders = true;
		break;
	case O_REPLAY:
		s->site.replay = seconds(optarg);
		break;
	case O_CHECK:
		s->check = true;
		break;
	case O_SOCKET:
		s->socket = optarg;
		break;
	case O_STATUS:
		ask(optarg, "");
	case O_METRICS:
		ask(optarg, "metrics");
	case O_HELP:
		fputs(usage_text, stdout);
		fputs(help_text, stdout);
		exit(fflush(stdout) == 0 ? 0 : FAILED);
	case O_VERSION:
		printf("kvroute-sync %s\n", kvr_version_string());
		exit(fflush(stdout) == 0 ? 0 : FAILED);
	default:
		usage();
	}
}

static void
on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void
signals(void)
{
	struct sigaction act = { .sa_handler = on_signal };

	(void)sigaction(SIGTERM, &act, NULL);
	(void)sigaction(SIGINT, &act, NULL);
	act.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &act, NULL);
}

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

	while (!stop) {
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
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		set(&s, option);
	if (s.site.url == NULL || optind == argc || argc - optind > SITES_MAX)
		usage();
	if (gethostname(s.host, sizeof(s.host) - 1) == -1)
		s.host[0] = '\0';
	s.site.host = s.host;
	signals();
	if (s.check)
		return check_sites(&s.site, argv + optind,
		    (size_t)(argc - optind));
	return run(&s, argv + optind, (size_t)(argc - optind));
}
