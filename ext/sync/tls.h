/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tls.h - TLS on a socket that does not block, by OpenSSL.
 *
 * hiredis has TLS from version 1.0 on only; its formatter of commands and its
 * parser of replies need no socket, so bytes go through here with any version.
 */
#ifndef KVROUTE_TLS_H
#define KVROUTE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls;
struct ssl_ctx_st; /* of OpenSSL */

/*
 * Reads files of certificates, PEM: those to trust, or the system's, and our
 * own, or none. NULL: `error` gives the reason.
 */
struct ssl_ctx_st *tls_rules_new(const char *ca, const char *cert,
    const char *key, char *error, size_t size);
void tls_rules_free(struct ssl_ctx_st *rules);

/* A client on a connected socket; the server's certificate is that of host. */
struct tls *tls_new(struct ssl_ctx_st *rules, int fd, const char *host);
void tls_free(struct tls *t);

/* 1: done, 0: call again after poll, -1: failed; then tls_why(). */
int tls_handshake(struct tls *t);
/* Bytes; 0: none now, -1: the connection is over. */
ssize_t tls_read(struct tls *t, void *bytes, size_t n);
/* All bytes or 0, then the same again and perhaps more; -1 as above. */
ssize_t tls_write(struct tls *t, const void *bytes, size_t n);
/* Whether the handshake waits for the socket to take bytes. */
bool tls_wants_to_write(const struct tls *t);
const char *tls_why(const struct tls *t);

#endif
