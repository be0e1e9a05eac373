/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-events - what engines say of their KV caches, to regions and people.
 * kvroute-events(8) describes the options.
 */
#include <bsd/stdlib.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "bus.h"
#include "check.h"
#include "decode.h"
#include "feed.h"
#include "kvroute.h"
#include "login.h"
#include "print.h"
#include "reader.h"
#include "serve.h"
#include "status_socket.h"

enum { FAILED = 1, USAGE = 2 };

static volatile sig_atomic_t stop, reload;

static const char usage_text[] =
"usage: kvroute-events --config FILE [--socket PATH] REGION ...\n"
"       kvroute-events --config FILE --check [REGION ...]\n"
"       kvroute-events --status PATH | --metrics PATH\n"
"       kvroute-events --dump ENDPOINT [--replay-endpoint ENDPOINT]\n"
"           [--topic PREFIX] [--record FILE] [--batches N] [options]\n"
"       kvroute-events --dump nats://HOST[:PORT] --topic SUBJECT\n"
"           [--login FILE] [--record FILE] [--batches N] [options]\n"
"       kvroute-events --replay FILE [options]\n"
"       kvroute-events --json FILE [options]\n"
"       kvroute-events --help | --version\n";

static const char help_text[] =
"\nGives what engines say of their KV caches to region files of this machine,\n"
"or prints it.\n\n"
"  -c, --config FILE which worker's engine publishes where; read again by\n"
"                    SIGHUP\n"
"  --check           reads it, connects, attaches, says what it found\n"
"  --socket PATH     tells the state there\n"
"  --status PATH     prints the state of the daemon with that socket\n"
"  --metrics PATH    the same for Prometheus\n\n"
"  --dump ENDPOINT   the engine's PUB socket, tcp://host:port\n"
"  --replay-endpoint ENDPOINT  its ROUTER socket, which sends batches again\n"
"  --topic PREFIX    of topics to subscribe to (all); over NATS: the subject\n"
"  --login FILE      user:password, or the token, of a server of NATS\n"
"  --record FILE     writes all that is received to a new file\n"
"  --batches N       ends after so many\n"
"  --replay FILE     prints what was recorded\n"
"  --json FILE       prints an answer of TensorRT-LLM's /kv_cache_events\n\n"
"options:\n"
"  --format NAME     engine, dynamo (engine)\n"
"  --block-size N    tokens of the worker's blocks (the first stored)\n"
"  --window N        tokens of the attention window that counts (the largest)\n"
"  --all-groups      drops nothing for its group, window or tier\n"
"  --first N         number of an engine's first batch (0)\n"
"  --tokens          prints token ids\n";

struct settings {
	struct reader_options reader;
	struct feed_options feed;
	struct serve_options serve;
	bool check;
	const char *record, *replay, *json, *login;
	uint64_t batches;
};

static _Noreturn void
usage(void)
{
	fputs(usage_text, stderr);
	exit(USAGE);
}

static _Noreturn void
done(void)
{
	exit(fflush(stdout) == 0 ? 0 : FAILED);
}

static uint64_t
number(const char *option, const char *text, long long least, long long most)
{
	const char *error;
	const long long n = strtonum(text, least, most, &error);

	if (error != NULL)
		errx(USAGE, "%s %s: %s", option, text, error);
	return (uint64_t)n;
}

static enum decode_format
format(const char *name)
{
	if (strcmp(name, "engine") == 0)
		return DECODE_ENGINE;
	if (strcmp(name, "dynamo") == 0)
		return DECODE_DYNAMO;
	errx(USAGE, "--format %s: not one of engine, dynamo", name);
}

enum {
	O_CONFIG = 256, O_CHECK, O_SOCKET, O_STATUS, O_METRICS, O_DUMP,
	O_REPLAY_ENDPOINT, O_TOPIC, O_LOGIN, O_RECORD, O_BATCHES,
	O_REPLAY, O_JSON, O_FORMAT, O_BLOCK_SIZE, O_WINDOW, O_ALL_GROUPS,
	O_FIRST, O_TOKENS, O_HELP, O_VERSION
};

static const struct option long_options[] = {
	{ "config", required_argument, NULL, O_CONFIG },
	{ "check", no_argument, NULL, O_CHECK },
	{ "socket", required_argument, NULL, O_SOCKET },
	{ "status", required_argument, NULL, O_STATUS },
	{ "metrics", required_argument, NULL, O_METRICS },
	{ "dump", required_argument, NULL, O_DUMP },
	{ "replay-endpoint", required_argument, NULL, O_REPLAY_ENDPOINT },
	{ "topic", required_argument, NULL, O_TOPIC },
	{ "login", required_argument, NULL, O_LOGIN },
	{ "record", required_argument, NULL, O_RECORD },
	{ "batches", required_argument, NULL, O_BATCHES },
	{ "replay", required_argument, NULL, O_REPLAY },
	{ "json", required_argument, NULL, O_JSON },
	{ "format", required_argument, NULL, O_FORMAT },
	{ "block-size", required_argument, NULL, O_BLOCK_SIZE },
	{ "window", required_argument, NULL, O_WINDOW },
	{ "all-groups", no_argument, NULL, O_ALL_GROUPS },
	{ "first", required_argument, NULL, O_FIRST },
	{ "tokens", no_argument, NULL, O_TOKENS },
	{ "help", no_argument, NULL, O_HELP },
	{ "version", no_argument, NULL, O_VERSION },
	{ NULL, 0, NULL, 0 }
};

static void
set_source(struct settings *s, int option)
{
	switch (option) {
	case O_DUMP:
		s->feed.endpoint = optarg;
		break;
	case O_REPLAY_ENDPOINT:
		s->feed.replay = optarg;
		s->reader.stream.replay = true;
		break;
	case O_TOPIC:
		s->feed.topic = optarg;
		break;
	case O_LOGIN:
		s->login = optarg;
		break;
	case O_RECORD:
		s->record = optarg;
		break;
	case O_BATCHES:
		s->batches = number("--batches", optarg, 1, INT64_MAX);
		break;
	case O_REPLAY:
		s->replay = optarg;
		break;
	case O_JSON:
		s->json = optarg;
		break;
	default:
		usage();
	}
}

static _Noreturn void
ask(const char *path, const char *what)
{
	if (!status_print(path, what))
		err(FAILED, "%s", path);
	done();
}

/* Of the daemon. false: it is another one. */
static bool
set_daemon(struct settings *s, int option)
{
	switch (option) {
	case 'c':
	case O_CONFIG:
		s->serve.conf = optarg;
		break;
	case O_CHECK:
		s->check = true;
		break;
	case O_SOCKET:
		s->serve.socket = optarg;
		break;
	case O_STATUS:
		ask(optarg, "");
	case O_METRICS:
		ask(optarg, "metrics");
	default:
		return false;
	}
	return true;
}

static void
set(struct settings *s, int option)
{
	struct decode_options *decode = &s->reader.decode;

	if (set_daemon(s, option))
		return;
	switch (option) {
	case O_FORMAT:
		decode->format = format(optarg);
		break;
	case O_BLOCK_SIZE:
		decode->block_size = (uint32_t)number("--block-size", optarg,
		    1, INT32_MAX);
		break;
	case O_WINDOW:
		decode->window = number("--window", optarg, 1, INT64_MAX);
		break;
	case O_ALL_GROUPS:
		decode->all_groups = true;
		break;
	case O_FIRST:
		s->reader.stream.first = number("--first", optarg, 0,
		    INT64_MAX);
		break;
	case O_TOKENS:
		s->reader.tokens = true;
		break;
	case O_HELP:
		fputs(usage_text, stdout);
		fputs(help_text, stdout);
		done();
	case O_VERSION:
		printf("kvroute-events %s\n", kvr_version_string());
		done();
	default:
		set_source(s, option);
	}
}

static void
on_signal(int signal_number)
{
	if (signal_number == SIGHUP)
		reload = 1;
	else
		stop = 1;
}

static void
signals(bool daemon)
{
	struct sigaction act = { .sa_handler = on_signal };

	(void)sigaction(SIGTERM, &act, NULL);
	(void)sigaction(SIGINT, &act, NULL);
	if (daemon)
		(void)sigaction(SIGHUP, &act, NULL);
	act.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &act, NULL);
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

/* Of its owner alone: it holds prompts. */
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

/* What comes from a server of NATS. */
struct listener {
	struct reader *reader;
	uint64_t strange; /* without an envelope nothing says what is lost */
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
	char url[2048], error[BUS_ERROR_MAX];
	const struct bus_options o = { .url = s->login == NULL ?
	    s->feed.endpoint : url, .name = s->feed.topic,
	    .listens = DECODE_BYTES_MAX, .queue_bytes = STREAM_BYTES_MAX,
	    .take = heard, .context = l };
	struct bus *b;

	if (s->login != NULL && !login_url(s->feed.endpoint, s->login, url,
	    sizeof(url), error, sizeof(error)))
		errx(FAILED, "%s", error);
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

	while (!stop && (s->batches == 0 || reader_batches(r) < s->batches)) {
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
	while (!stop && (s->batches == 0 || reader_batches(r) < s->batches)) {
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
	while (!stop &&
	    (result = record_next(in, &room, &step)) == RECORD_OK)
		(void)reader_step(r, &step);
	reader_end(r);
	if (!stop && result != RECORD_EOF) {
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
		signals(false);
		return check_all(s->serve.conf, regions, (size_t)n);
	}
	s->serve.regions = regions;
	s->serve.n = (size_t)n;
	s->serve.stop = &stop;
	s->serve.reload = &reload;
	signals(true);
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
	int option;

	while ((option = getopt_long(argc, argv, "c:", long_options,
	    NULL)) != -1)
		set(&s, option);
	if (over_nats(&s))
		s.reader.decode.format = DECODE_DYNAMO;
	s.feed.dynamo = s.reader.decode.format == DECODE_DYNAMO;
	s.reader.out = stdout;
	if (s.serve.conf != NULL && s.feed.endpoint == NULL &&
	    s.replay == NULL && s.json == NULL)
		return daemon_main(&s, argv + optind, argc - optind);
	check_modes(&s, argc - optind);
	if (s.serve.conf != NULL)
		usage();
	signals(false);
	if (s.feed.endpoint != NULL)
		dump(&s);
	else if (s.replay != NULL)
		replay(&s);
	else
		json(&s);
	done();
}
