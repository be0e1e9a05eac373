/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus.h - frames to and from other replicas, over Redis or NATS.
 *
 *   redis://[user:password@]host[:port][/db]    Streams; also valkey://
 *   redis+sentinel://...host,host/MASTER[/db]   at the master of Sentinels
 *   redis+cluster://...host,host                in a Cluster
 *   rediss...                                   the same with TLS
 *   unix://[user:password@]/path                a local server
 *   nats://[user:password@]host[:port]          NATS core; token@, too
 *   nats+tls://...                              the same with TLS
 *
 * No call waits for a server, except bus_wait, at most as long as its argument,
 * and bus_close. A connection is made, and made anew, by bus_work, with growing
 * pauses up to BUS_PAUSE_MAX; frames to send wait meanwhile in a bounded queue,
 * which loses its oldest first. The name of a Redis server, if it is no
 * address, is looked up by the system's resolver, which may take long.
 *
 * A frame may come twice, after a reconnection, and a bus may hand out the
 * frames that it sent itself. One thread uses a bus; its process ignores
 * SIGPIPE.
 */
#ifndef KVROUTE_BUS_H
#define KVROUTE_BUS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BUS_FRAME_MAX = 65536,
	BUS_FDS_MAX = 2,
	BUS_ERROR_MAX = 256,
	BUS_NAME_MAX = 64,
	BUS_PAUSE_MAX = 2000,   /* milliseconds */
	BUS_SILENCE_MAX = 4000  /* of a server, then it counts as gone */
};

struct bus;

struct bus_message {
	const unsigned char *bytes;
	size_t n;
	int64_t age;       /* nanoseconds in the log; 0 without one */
	const char *reply; /* a question: for bus_answer; else NULL */
	bool answer;       /* to a question from here */
};

/* The message is valid until it returns. It may not close the bus. */
typedef void bus_take(void *context, const struct bus_message *message);

struct bus_options {
	const char *url;
	const char *name;    /* of the stream or subject: letters, digits, */
	                     /* and any of - _ . : */
	/* Paths of files, or NULL, which bus_open reads: */
	const char *login;   /* user:password instead of that of the URL */
	const char *sentinel_login; /* for Sentinels, if it is another one */
	const char *ca;      /* certificates to trust, not the system's */
	const char *cert, *key; /* ours and its key, for TLS */
	const char *creds;   /* NATS: a JWT and a seed; read at each login */
	uint64_t log_frames; /* about so many stay in the log, ... */
	uint64_t log_bytes;  /* ... or fewer, of about so many bytes; 0: any */
	size_t queue_bytes;  /* that wait, in each direction */
	size_t listens;      /* NATS: nothing is sent or asked, the name is */
	                     /* a subject as bus_subject takes it, and so */
	                     /* many bytes may come in a frame; 0: as above */
	bus_take *take;
	void *context;
};

struct bus_counts {
	uint64_t sent;       /* that the bus has; NATS: was given */
	uint64_t received;
	uint64_t send_drops; /* no room in the queue */
	uint64_t take_drops; /* the same; or no frame could be so long */
	uint64_t gaps;       /* the log no longer has the next entry */
	uint64_t connects;
	uint64_t failures;   /* of connections, and refused ones */
};

/* NULL: `error` has the reason: the URL, or a library that this build lacks. */
struct bus *bus_open(const struct bus_options *options, char *error,
    size_t size);
/* Frames that count as sent reach the server, if it takes them in a moment. */
void bus_close(struct bus *b);
/* Takes a copy. false: it is too long, or there is no memory; counted. */
bool bus_send(struct bus *b, const void *bytes, size_t n);
/*
 * Reads the log again: all frames of the last `age` nanoseconds, and then new
 * ones. Without it only frames after the first connection are read. false: this
 * bus has no log.
 */
bool bus_since(struct bus *b, int64_t age);
/* Does all work that needs no wait, and gives frames to take(). */
void bus_work(struct bus *b);
/* Lists the descriptors to poll; fds has room for BUS_FDS_MAX. */
size_t bus_fds(const struct bus *b, struct pollfd *fds);
/* Polls that long at most, and works. */
void bus_wait(struct bus *b, int milliseconds);

/*
 * A question, which all peers get: it names the peer that it is for. An answer,
 * of any number of frames, goes to the one that asked alone, until that ends it
 * or asks again. false: as bus_send.
 */
bool bus_ask(struct bus *b, const void *bytes, size_t n);
void bus_ask_end(struct bus *b);
bool bus_answer(struct bus *b, const char *reply, const void *bytes, size_t n);
/* Bytes that wait to be sent. */
size_t bus_waiting(const struct bus *b);

bool bus_connected(const struct bus *b);
/* The latest failure since the connection was made, or "". */
const char *bus_error(const struct bus *b);
struct bus_counts bus_counts(const struct bus *b);

#endif
