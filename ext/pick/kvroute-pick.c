/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-pick - chooses servers for gateways that speak ext_proc, and for
 * programs that speak HTTP. kvroute-pick(8) describes the options.
 */
#include <err.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "args_table.h"
#include "grpc_health.h"
#include "h2_server.h"
#include "json_door.h"
#include "pick_check.h"
#include "pick_fleet.h"
#include "pick_pool.h"
#include "pick_status.h"
#include "picker.h"
#include "poller.h"
#include "tls_server.h"

enum {
	FAILED = ARGS_FAILED, USAGE = ARGS_USAGE,
	TICK_MS_MAX = 1000, MESSAGE_MORE = 1 << 20,
	HELD_BODIES = 16 /* of the longest: of all calls together */
};

struct settings {
	const char *conf, *listen, *trace, *cert, *name, *space;
	bool check, secure;
	uint16_t grpc_port, health_port, metrics_port;
	uint64_t body_most;
	uint32_t call_limit, idle_limit, drain;
};

struct daemon {
	const struct settings *settings;
	struct event_base *base;
	struct event *tick, *stop, *interrupt, *reload, *second;
	struct ssl_ctx_st *tls;
	struct pick_conf conf;   /* that it began with */
	struct pick_pool pool;
	struct picker picker;
	struct pick_fleet *fleet;
	struct json_door *door;
	struct poller *poller;
	struct grpc_health health;
	struct h2_service pick, check, watch;
	struct h2_server *grpc, *probe;
	bool draining;
	uint32_t drained;        /* seconds since then */
};

/* ------------------------------------------------------------- options --- */

static const char *const switches[] = { "false", "true" };

#define AT(field) offsetof(struct settings, field)

static const struct args_row rows[] = {
	{ .name = "config", .letter = 'c', .argument = "FILE",
	    .kind = ARGS_STRING, .at = AT(conf), .help =
	    "options of the pool, and its servers; it is watched" },
	{ .name = "check", .kind = ARGS_FLAG, .at = AT(check), .help =
	    "reads it, and the certificate, and ends" },
	{ .kind = ARGS_PROSE, .help = "\nendpoint picker:\n" },
	{ .name = "grpc-port", .argument = "PORT", .kind = ARGS_UINT16,
	    .at = AT(grpc_port), .min = 1, .max = UINT16_MAX, .help =
	    "of ext_proc (9002)" },
	{ .name = "grpc-health-port", .argument = "PORT",
	    .kind = ARGS_UINT16, .at = AT(health_port), .max = UINT16_MAX,
	    .help = "of health checks without TLS; 0: none (9003)" },
	{ .name = "secure-serving", .argument = "BOOL", .kind = ARGS_CHOICE,
	    .at = AT(secure), .words = switches, .help =
	    "whether ext_proc comes over TLS (true)" },
	{ .name = "cert-path", .argument = "FOLDER", .kind = ARGS_STRING,
	    .at = AT(cert), .help =
	    "tls.crt and tls.key; read again by SIGHUP\n"
	    "(a certificate that is made at each start)" },
	{ .name = "pool-name", .argument = "NAME", .kind = ARGS_STRING,
	    .at = AT(name), .help = "for metrics" },
	{ .name = "pool-namespace", .argument = "NAME", .kind = ARGS_STRING,
	    .at = AT(space), .help = "the same (default)" },
	{ .kind = ARGS_PROSE, .help = "\nJSON over HTTP:\n" },
	{ .name = "listen", .argument = "WHERE", .kind = ARGS_STRING,
	    .at = AT(listen), .help =
	    "unix:PATH or ADDRESS:PORT; without authentication" },
	{ .name = "metrics-port", .argument = "PORT", .kind = ARGS_UINT16,
	    .at = AT(metrics_port), .max = UINT16_MAX, .help =
	    "/metrics, /v1/status, /healthz; 0: none (9090)" },
	{ .kind = ARGS_PROSE, .help = "\nboth:\n" },
	{ .name = "max-body", .argument = "SIZE", .kind = ARGS_SIZE,
	    .at = AT(body_most), .help =
	    "of a request that is held until the choice (32M)" },
	{ .name = "call-limit", .argument = "SECONDS", .kind = ARGS_UINT32,
	    .at = AT(call_limit), .min = 1, .max = 86400, .help =
	    "after which a silent call is ended (600)" },
	{ .name = "idle-limit", .argument = "SECONDS", .kind = ARGS_UINT32,
	    .at = AT(idle_limit), .min = 1, .max = 86400, .help =
	    "after which a connection without calls closes (300)" },
	{ .name = "trace", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(trace), .help =
	    "appends a line for each call, for kvroute-replay" },
	{ .name = "drain", .argument = "SECONDS", .kind = ARGS_UINT32,
	    .at = AT(drain), .max = 86400, .help =
	    "that calls have to end after SIGTERM (30)" }
};

static const struct args_table table = {
	.program = "kvroute-pick",
	.usage =
"usage: kvroute-pick --config FILE [options]\n"
"       kvroute-pick --config FILE --check [options]\n"
"       kvroute-pick --help | --version\n",
	.introduction =
"\nChooses LLM servers: an endpoint picker for Envoy and gateways of\n"
"Kubernetes, and JSON over HTTP for other programs.\n\n",
	.column = 27, .rows = rows, .n = sizeof(rows) / sizeof(rows[0])
};

/* ---------------------------------------------------------------- work --- */

static bool
is_ready(void *context)
{
	const struct daemon *d = context;

	return !d->draining && d->pool.servers > 0;
}

static bool
write_status(void *context, uint32_t form, struct hold *to)
{
	const struct daemon *d = context;
	const struct pick_status s = { .name = d->settings->name,
		.space = d->settings->space, .pool = &d->pool,
		.picker = &d->picker, .grpc = d->grpc, .door = d->door };

	return status_text(&s, form, to);
}

/* As the library asks for it, but not less than once a second. */
static void
on_tick(evutil_socket_t fd, short events, void *context)
{
	struct timeval after = { .tv_usec = 0 };
	struct daemon *d = context;
	int64_t next = 0, now, ms = TICK_MS_MAX;
	struct timespec clock;

	(void)fd;
	(void)events;
	(void)kvh_tick(d->pool.kvh, KVH_NOW, &next);
	pick_turns(&d->pool);
	(void)clock_gettime(CLOCK_MONOTONIC, &clock);
	now = (int64_t)clock.tv_sec * 1000000000 + clock.tv_nsec;
	if (next < now + ms * 1000000)
		ms = next <= now ? 1 : (next - now) / 1000000 + 1;
	after.tv_sec = ms / 1000;
	after.tv_usec = ms % 1000 * 1000;
	(void)event_add(d->tick, &after);
}

/* Calls that wait may have a turn, or wait from now on. */
static void
wake_tick(void *context)
{
	const struct daemon *d = context;

	event_active(d->tick, EV_TIMEOUT, 0);
}

static bool
is_idle(const struct daemon *d)
{
	return (d->grpc == NULL || h2_idle(d->grpc)) &&
	    door_counts(d->door)->open == 0;
}

static void
on_second(evutil_socket_t fd, short events, void *context)
{
	struct daemon *d = context;

	(void)fd;
	(void)events;
	door_fade(d->door);
	grpc_health_set(&d->health, is_ready(d));
	if (d->pool.trace != NULL)
		(void)fflush(d->pool.trace);
	if (d->draining && (is_idle(d) ||
	    d->drained++ >= d->settings->drain))
		(void)event_base_loopexit(d->base, NULL);
}

/* A second signal ends it at once. */
static void
on_stop(evutil_socket_t number, short events, void *context)
{
	struct daemon *d = context;

	(void)number;
	(void)events;
	if (d->draining)
		(void)event_base_loopexit(d->base, NULL);
	d->draining = true;
	grpc_health_end(&d->health);
	door_drain(d->door);
	if (d->grpc != NULL)
		h2_drain(d->grpc);
}

static void
on_reload(evutil_socket_t number, short events, void *context)
{
	struct daemon *d = context;
	char error[TLS_ERROR_MAX];
	struct ssl_ctx_st *tls;

	(void)number;
	(void)events;
	fleet_reload(d->fleet);
	if (!d->settings->secure || d->settings->cert == NULL)
		return;
	tls = tls_server_new(d->settings->cert, error);
	if (tls == NULL) {
		warnx("%s: %s", d->settings->cert, error);
		return;
	}
	h2_set_tls(d->grpc, tls);
	tls_server_free(d->tls);
	d->tls = tls;
}

/* --------------------------------------------------------------- begin --- */

static void
begin_pool(struct daemon *d)
{
	char error[CONF_ERROR_MAX];

	if (!pick_read(d->settings->conf, &d->conf, &d->pool.kvh, error))
		errx(FAILED, "%s:%s", d->settings->conf, error);
	if (d->settings->trace != NULL) {
		d->pool.trace = fopen(d->settings->trace, "ae");
		if (d->pool.trace == NULL)
			err(FAILED, "%s", d->settings->trace);
	}
	d->fleet = fleet_new(d->base, &d->pool, d->settings->conf,
	    &d->conf);
	if (d->fleet == NULL)
		err(FAILED, NULL);
	if (!fleet_apply(d->fleet, &d->conf, error))
		errx(FAILED, "%s:%s", d->settings->conf, error);
	d->poller = poller_new(d->base, d->pool.kvh,
	    pick_conf_option(&d->conf, "poll") > 0);
	if (d->poller == NULL)
		err(FAILED, NULL);
	d->picker.pool = &d->pool;
	d->picker.body_most = d->settings->body_most;
	d->picker.held_most = HELD_BODIES * d->settings->body_most;
}

static void
begin_door(struct daemon *d)
{
	const struct settings *s = d->settings;
	const struct door_options options = { .pool = &d->pool,
		.fleet = d->fleet, .limit = s->call_limit,
		.idle = s->idle_limit,
		.body_most = s->body_most, .status = write_status,
		.ready = is_ready, .context = d };

	d->door = door_new(d->base, &options);
	if (d->door == NULL)
		err(FAILED, NULL);
	if (s->listen != NULL && !door_listen(d->door, s->listen))
		err(FAILED, "--listen %s", s->listen);
	if (s->metrics_port != 0 &&
	    !door_listen_metrics(d->door, s->metrics_port))
		err(FAILED, "--metrics-port %u", s->metrics_port);
}

/* As many as the process may have. */
static uint64_t
read_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 1024;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

static void
begin_picker(struct daemon *d)
{
	const struct settings *s = d->settings;
	struct h2_options options = { .port = s->grpc_port,
		.message_most = s->body_most + MESSAGE_MORE,
		.held_most = HELD_BODIES * s->body_most,
		.limit = s->call_limit, .idle = s->idle_limit,
		.connections_most = read_descriptors() / 2 };
	char error[TLS_ERROR_MAX];

	d->pick = picker_service(&d->picker);
	d->check = grpc_health_check(&d->health);
	d->watch = grpc_health_watch(&d->health);
	d->health.ready = is_ready(d);
	if (s->secure) {
		options.tls = d->tls = tls_server_new(s->cert, error);
		if (d->tls == NULL)
			errx(FAILED, "%s: %s", s->cert == NULL ?
			    "certificate" : s->cert, error);
	}
	options.services[0] = &d->pick;
	options.services[1] = &d->check;
	options.services[2] = &d->watch;
	d->grpc = h2_listen(d->base, &options);
	if (d->grpc == NULL)
		err(FAILED, "--grpc-port %u", s->grpc_port);
	if (s->health_port == 0)
		return;
	options.port = s->health_port;
	options.tls = NULL;
	options.services[0] = NULL;
	d->probe = h2_listen(d->base, &options);
	if (d->probe == NULL)
		err(FAILED, "--grpc-health-port %u", s->health_port);
}

static void
begin_events(struct daemon *d)
{
	const struct timeval second = { .tv_sec = 1 };

	d->tick = evtimer_new(d->base, on_tick, d);
	d->second = event_new(d->base, -1, EV_PERSIST, on_second, d);
	d->stop = evsignal_new(d->base, SIGTERM, on_stop, d);
	d->interrupt = evsignal_new(d->base, SIGINT, on_stop, d);
	d->reload = evsignal_new(d->base, SIGHUP, on_reload, d);
	if (d->tick == NULL || d->second == NULL || d->stop == NULL ||
	    d->interrupt == NULL || d->reload == NULL ||
	    event_add(d->second, &second) != 0 ||
	    event_add(d->stop, NULL) != 0 ||
	    event_add(d->interrupt, NULL) != 0 ||
	    event_add(d->reload, NULL) != 0)
		err(FAILED, NULL);
	d->pool.context = d;
	d->pool.wake = wake_tick;
	on_tick(-1, 0, d);
}

static void
end_all(struct daemon *d)
{
	d->pool.wake = NULL;
	event_free(d->tick);
	event_free(d->second);
	event_free(d->stop);
	event_free(d->interrupt);
	event_free(d->reload);
	h2_free(d->grpc);
	h2_free(d->probe);
	door_free(d->door);
	poller_free(d->poller);
	fleet_free(d->fleet);
	pick_conf_free(&d->conf);
	picker_free(&d->picker);
	tls_server_free(d->tls);
	kvh_free(d->pool.kvh);
	if (d->pool.trace != NULL)
		(void)fclose(d->pool.trace);
	event_base_free(d->base);
}

int
main(int argc, char **argv)
{
	struct settings s = { .secure = true, .grpc_port = 9002,
		.health_port = 9003, .metrics_port = 9090, .name = "",
		.space = "default", .body_most = 32 << 20, .call_limit = 600,
		.idle_limit = 300, .drain = 30 };
	struct daemon d = { .settings = &s };

	if (args_parse(&table, &s, argc, argv) != argc || s.conf == NULL)
		args_usage(&table);
	if (s.check)
		return pick_check(s.conf, s.secure ? s.cert : NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	d.base = event_base_new();
	if (d.base == NULL)
		err(FAILED, NULL);
	begin_pool(&d);
	begin_door(&d);
	begin_picker(&d);
	begin_events(&d);
	(void)event_base_dispatch(d.base);
	end_all(&d);
	return 0;
}
