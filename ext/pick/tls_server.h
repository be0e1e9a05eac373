/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tls_server.h - the server's half of TLS: its certificate, and bytes of a
 * connection that may or may not be encrypted. Nothing here waits.
 */
#ifndef KVROUTE_TLS_SERVER_H
#define KVROUTE_TLS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ssl_st;
struct ssl_ctx_st;

enum { TLS_ERROR_MAX = 2048 };

/*
 * A context with tls.crt and tls.key of a folder, or, where it is NULL, with a
 * certificate that is made and signed here. NULL: `error` is why.
 */
struct ssl_ctx_st *tls_server_new(const char *folder,
    char error[TLS_ERROR_MAX]);
void tls_server_free(struct ssl_ctx_st *context);

/* WIRE_AGAIN: when it is ready; WIRE_WANTS_READ: a write that reads first. */
enum { WIRE_AGAIN = -1, WIRE_FAILED = -2, WIRE_WANTS_READ = -3 };

struct wire {
	int fd;
	struct ssl_st *ssl; /* NULL: plain */
};

/* context NULL: plain. false: no memory; the descriptor is still open. */
bool wire_open(struct wire *w, int fd, struct ssl_ctx_st *context);
/* Closes the descriptor too. */
void wire_close(struct wire *w);
/* Bytes; 0: the other side has ended; or one of the above. */
ssize_t wire_read(struct wire *w, void *bytes, size_t n);
ssize_t wire_write(struct wire *w, const void *bytes, size_t n);
/* Are there bytes that were decrypted and not read? */
bool wire_pending(const struct wire *w);

#endif
