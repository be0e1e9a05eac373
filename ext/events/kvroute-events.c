/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-events - brings engines' events about their KV caches to regions, and
 * prints them for people. kvroute-events(8) describes the options.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "bus.h"
#include "check.h"
#include "daemon.h"
#include "decode.h"
#include "feed.h"
#include "kvroute.h"
#include "print.h"
#include "reader.h"
#include "serve.h"

enum { FAILED = ARGS_FAILED, USAGE = ARGS_USAGE };

struct settings {
	struct reader_options reader;
	struct feed_options feed;
	struct serve_options serve;
	bool check;
	const char *record, *replay, *json, *login;
	uint64_t batches;
};

static _Noreturn void
done(void)
{
	exit(fflush(stdout) == 0 ? 0 : FAILED);
}

/* -------------------------------------------------------------- options --- */

static const char *const formats[] = { "engine", "dynamo" };
_Static_assert(DECODE_ENGINE == 0 && DECODE_DYNAMO == 1, "indexes of words");

#define AT(field) offsetof(struct settings, field)

static const struct args_row rows[] = {
	{ .name = "config", .letter = 'c', .argument = "FILE",
	    .kind = ARGS_STRING, .at = AT(serve.conf), .help =
	    "which worker's engine publishes where; read again by\nSIGHUP" },
	{ .name = "check", .kind = ARGS_FLAG, .at = AT(check), .help =
	    "reads it, connects, attaches, says what it found" },
	{ .name = "socket", .argument = "PATH", .kind = ARGS_STRING,
	    .at = AT(serve.socket), .help = "tells the state there" },
	{ .name = "status", .argument = "PATH", .kind = ARGS_CALL,
	    .take = daemon_ask, .help =
	    "prints the state of the daemon with that socket" },
	{ .name = "metrics", .argument = "PATH", .kind = ARGS_CALL,
	    .take = daemon_ask, .help = "the same for Prometheus" },
	{ .kind = ARGS_PROSE, .help = "\n" },
	{ .name = "dump", .argument = "ENDPOINT", .kind = ARGS_STRING,
	    .at = AT(feed.endpoint), .help =
	    "the engine's PUB socket, tcp://host:port" },
	{ .name = "replay-endpoint", .argument = "ENDPOINT",
	    .kind = ARGS_STRING, .at = AT(feed.replay), .help =
	    "its ROUTER socket, which sends batches again" },
	{ .name = "topic", .argument = "PREFIX", .kind = ARGS_STRING,
	    .at = AT(feed.topic), .help =
	    "of topics to subscribe to (all); over NATS: the subject" },
	{ .name = "login", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(login), .help =
	    "user:password, or the token, of a server of NATS" },
	{ .name = "record", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(record), .help =
	    "writes all that is received to a new file" },
	{ .name = "batches", .argument = "N", .kind = ARGS_UINT64,
	    .at = AT(batches), .min = 1, .max = INT64_MAX, .help =
	    "ends after so many" },
	{ .name = "replay", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(replay), .help = "prints what was recorded" },
	{ .name = "json", .argument = "FILE", .kind = ARGS_STRING,
	    .at = AT(json), .help =
	    "prints an answer of TensorRT-LLM's /kv_cache_events" },
	{ .kind = ARGS_PROSE, .help = "\noptions:\n" },
	{ .name = "format", .argument = "NAME", .kind = ARGS_WORD,
	    .at = AT(reader.decode.format), .words = formats, .max = 2,
	    .help = "engine, dynamo (engine)" },
	{ .name = "block-size", .argument = "N", .kind = ARGS_UINT32,
	    .at = AT(reader.decode.block_size), .min = 1, .max = INT32_MAX,
	    .help = "tokens of the worker's blocks (the first stored)" },
	{ .name = "window", .argument = "N", .kind = ARGS_UINT64,
	    .at = AT(reader.decode.window), .min = 1, .max = INT64_MAX,
	    .help =
	    "tokens of the attention window that counts (the largest)" },
	{ .name = "all-groups", .kind = ARGS_FLAG,
	    .at = AT(reader.decode.all_groups), .help =
	    "drops nothing for its group, window or tier" },
	{ .name = "first", .argument = "N", .kind = ARGS_UINT64,
	    .at = AT(reader.stream.first), .max = INT64_MAX, .help =
	    "number of an engine's first batch (0)" },
	{ .name = "tokens", .kind = ARGS_FLAG, .at = AT(reader.tokens),
	    .help = "prints token ids" }
};

static const struct args_table table = {
	.program = "kvroute-events",
	.usage =
"usage: kvroute-events --config FILE [--socket PATH] REGION ...\n"
"       kvroute-events --config FILE --check [REGION ...]\n"
"       kvroute-events --status PATH | --metrics PATH\n"
"       kvroute-events --dump ENDPOINT [--replay-endpoint ENDPOINT]\n"
"           [--topic PREFIX] [--record FILE] [--batches N] [options]\n"
"       kvroute-events --dump nats://HOST[:PORT] --topic SUBJECT\n"
"           [--login FILE] [--record FILE] [--batches N] [options]\n"
"       kvroute-events --replay FILE [options]\n"
"       kvroute-events --json FILE [options]\n"
"       kvroute-events --help | --version\n",
	.introduction =
"\nGives what engines say of their KV caches to region files of this machine,\n"
"or prints it.\n\n",
	.column = 20, .rows = rows, .n = sizeof(rows) / sizeof(rows[0])
};

static _Noreturn void
usage(void)
{
	args_usage(&table);
}

static struct reader *
make_reader(const struct settings *s)
{
	struct reader *r = reader_new(&s->reader);

	if (r == NULL)
		err(FAILED, NULL);
	return r;
}

/* -------------------------------------------------------------- dump --- */

/* The record is its owner's alone: it holds prompts. */
static FILE *
make_record(const struct settings *s)
{
	const struct record_head head = {
		.first = s->reader.stream.first,
		.format = (uint32_t)s->reader.decode.format,
		.replay = s->reader.stream.replay
	};
	const int fd = open(s->record, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0600);
	FILE *out = fd == -1 ? NULL : fdopen(fd, "wb");

	if (out == NULL || !record_begin(out, &head))
		err(FAILED, "%s", s->record);
	return out;
}

static bool
step(void *reader, const struct record_step *what)
{
	return reader_step(reader, what);
}

static bool
wants(void *reader, uint64_t *from)
{
	return reader_wants(reader, from);
}

static bool
over_nats(const struct settings *s)
{
	return s->feed.endpoint != NULL &&
	    (strncmp(s->feed.endpoint, "nats://", 7) == 0 ||
	    strncmp(s->feed.endpoint, "nats+tls://", 11) == 0);
}

/* Takes the messages of a server of NATS. */
struct listener {
	struct reader *reader;
	uint64_t strange; /* a loss is not seen without an envelope */
};

static void
heard(void *context, const struct bus_message *m)
{
	struct record_step what = { .kind = RECORD_LIVE, .bytes = m->bytes,
	    .n = m->n };
	struct listener *l = context;

	if (!decode_dynamo_numbers(m->bytes, m->n, &what.publisher, &what.seq))
		l->strange++;
	else if (!reader_step(l->reader, &what))
		err(FAILED, NULL);
}

static struct bus *
bus_of(const struct settings *s, struct listener *l)
{
	char error[BUS_ERROR_MAX];
	const struct bus_options o = { .url = s->feed.endpoint,
	    .login = s->login, .name = s->feed.topic,
	    .listens = DECODE_BYTES_MAX, .queue_bytes = STREAM_BYTES_MAX,
	    .take = heard, .context = l };
	struct bus *b;

	b = bus_open(&o, error, sizeof(error));
	if (b == NULL)
		errx(FAILED, "%s", error);
	return b;
}

static void
dump_bus(const struct settings *s, struct reader *r)
{
	struct listener l = { .reader = r };
	struct bus *b = bus_of(s, &l);
	const char *error = NULL;

	while (!daemon_stop && (s->batches == 0 ||
	    reader_batches(r) < s->batches)) {
		bus_wait(b, FEED_WAIT);
		if (bus_error(b)[0] != '\0' && error == NULL)
			warnx("%s", error = bus_error(b));
		if (fflush(stdout) != 0)
			break;
	}
	reader_end(r);
	if (l.strange > 0)
		printf("strange messages %llu\n",
		    (unsigned long long)l.strange);
	bus_close(b);
}

static void
dump_feed(const struct settings *s, struct reader *r)
{
	struct feed *f = feed_open(&s->feed,
	    &(struct feed_sink){ r, step, wants });

	if (f == NULL)
		errx(FAILED, "%s: %s", s->feed.endpoint, zmq_strerror(errno));
	while (!daemon_stop && (s->batches == 0 ||
	    reader_batches(r) < s->batches)) {
		if (!feed_work(f))
			errx(FAILED, "%s", zmq_strerror(errno));
		if (fflush(stdout) != 0)
			break;
	}
	reader_end(r);
	if (feed_strange(f) > 0)
		printf("strange messages %llu\n",
		    (unsigned long long)feed_strange(f));
	feed_close(f);
}

static void
dump(struct settings *s)
{
	struct reader *r;

	if (s->record != NULL)
		s->reader.record = make_record(s);
	r = make_reader(s);
	if (over_nats(s))
		dump_bus(s, r);
	else
		dump_feed(s, r);
	reader_free(r);
	if (s->reader.record != NULL && fclose(s->reader.record) != 0)
		err(FAILED, "%s", s->record);
}

/* ------------------------------------------------------------ replay --- */

static void
replay(struct settings *s)
{
	static const char *const problems[] = { "", "", "it is cut",
	    "it is no record of this version", "no memory" };
	FILE *in = fopen(s->replay, "rb");
	struct record_room room = { NULL, 0 };
	enum record_result result;
	struct record_head head;
	struct record_step step;
	struct reader *r;

	if (in == NULL)
		err(FAILED, "%s", s->replay);
	if (record_open(in, &head) != RECORD_OK)
		errx(FAILED, "%s: it is no record of this version", s->replay);
	s->reader.stream.first = head.first;
	s->reader.stream.replay = head.replay;
	s->reader.decode.format = (enum decode_format)head.format;
	r = make_reader(s);
	while (!daemon_stop &&
	    (result = record_next(in, &room, &step)) == RECORD_OK)
		(void)reader_step(r, &step);
	reader_end(r);
	if (!daemon_stop && result != RECORD_EOF) {
		(void)fflush(stdout);
		errx(FAILED, "%s: %s", s->replay, problems[result]);
	}
	reader_free(r);
	record_free(&room);
	fclose(in);
}

/* -------------------------------------------------------------- JSON --- */

/* All of a file, up to one byte more than is decoded. */
static char *
read_whole(FILE *in, const char *path, size_t *n)
{
	size_t room = 1 << 16, got;
	char *bytes = NULL, *more;

	*n = 0;
	do {
		room *= 2;
		more = realloc(bytes, room);
		if (more == NULL)
			err(FAILED, "%s", path);
		bytes = more;
		got = fread(bytes + *n, 1, room - *n, in);
		*n += got;
	} while (*n == room && *n <= DECODE_BYTES_MAX);
	if (ferror(in))
		err(FAILED, "%s", path);
	return bytes;
}

static void
json(struct settings *s)
{
	FILE *in = strcmp(s->json, "-") == 0 ? stdin : fopen(s->json, "rb");
	struct decode_counts none = { 0 }, counts;
	struct event_batch batch;
	struct decoder *d;
	char *bytes;
	size_t i, n;

	if (in == NULL)
		err(FAILED, "%s", s->json);
	bytes = read_whole(in, s->json, &n);
	s->reader.decode.format = DECODE_TRTLLM;
	d = decoder_new(&s->reader.decode);
	if (d == NULL)
		err(FAILED, NULL);
	if (decoder_read(d, bytes, n, &batch) != DECODE_GOOD)
		errx(FAILED, "%s: it is no JSON of events", s->json);
	for (i = 0; i < batch.n; i++)
		print_event(stdout, &batch, &batch.events[i],
		    s->reader.tokens);
	counts = decoder_counts(d);
	print_dropped(stdout, &none, &counts);
	decoder_free(d);
	free(bytes);
	if (in != stdin)
		fclose(in);
}

/* -------------------------------------------------------------- daemon --- */

static int
daemon_main(struct settings *s, char **regions, int n)
{
	if (n < (s->check ? 0 : 1) || n > SERVE_REGIONS_MAX)
		usage();
	if (s->check) {
		daemon_signals(false);
		return check_all(s->serve.conf, regions, (size_t)n);
	}
	s->serve.regions = regions;
	s->serve.n = (size_t)n;
	s->serve.stop = &daemon_stop;
	s->serve.reload = &daemon_reload;
	daemon_signals(true);
	return serve(&s->serve);
}

static void
check_modes(const struct settings *s, int more)
{
	const bool dumps = s->feed.endpoint != NULL;

	if (more != 0 || dumps + (s->replay != NULL) + (s->json != NULL) != 1 ||
	    s->check || s->serve.socket != NULL)
		usage();
	if (!dumps && (s->feed.replay != NULL || s->record != NULL ||
	    s->batches != 0 || s->feed.topic[0] != '\0'))
		usage();
	if (!over_nats(s) && s->login != NULL)
		usage();
	if (over_nats(s) && s->feed.topic[0] == '\0')
		errx(USAGE, "over NATS --topic is needed, the subject");
	if (s->feed.dynamo && s->feed.replay != NULL)
		errx(USAGE, "Dynamo's plane has no replay endpoint");
}

int
main(int argc, char **argv)
{
	static struct settings s = { .feed = { .topic = "" } };
	const int first = args_parse(&table, &s, argc, argv);

	s.reader.stream.replay = s.feed.replay != NULL;
	if (over_nats(&s))
		s.reader.decode.format = DECODE_DYNAMO;
	s.feed.dynamo = s.reader.decode.format == DECODE_DYNAMO;
	s.reader.out = stdout;
	if (s.serve.conf != NULL && s.feed.endpoint == NULL &&
	    s.replay == NULL && s.json == NULL)
		return daemon_main(&s, argv + first, argc - first);
	check_modes(&s, argc - first);
	if (s.serve.conf != NULL)
		usage();
	daemon_signals(false);
	if (s.feed.endpoint != NULL)
		dump(&s);
	else if (s.replay != NULL)
		replay(&s);
	else
		json(&s);
	done();
}
