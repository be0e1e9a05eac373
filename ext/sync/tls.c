/* SPDX-License-Identifier: BSD-2-Clause */
/* tls.c - see tls.h. */
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 200 };

struct tls {
	SSL *ssl;
	bool wants_to_write;
	bool heard;          /* bytes, after the handshake */
	char why[WHY_MAX];
};

/* --------------------------------------------------------------- rules --- */

/* The first error of a call of OpenSSL; later ones are more general. */
static const char *
first_reason(void)
{
	const unsigned long code = ERR_peek_error();
	const char *reason = ERR_reason_error_string(code);

	if (ERR_SYSTEM_ERROR(code))
		reason = strerror(ERR_GET_REASON(code));
	return reason == NULL ? "unknown reason" : reason;
}

/* Nobody is there to enter a passphrase: a key that needs one is an error. */
static int
refuse_passphrase(char *out, int size, int writes, void *context)
{
	(void)out, (void)size, (void)writes, (void)context;
	return 0;
}

/* NULL, or the file that is of no use. */
static const char *
read_files(SSL_CTX *c, const char *ca, const char *cert, const char *key)
{
	if (ca == NULL ? SSL_CTX_set_default_verify_paths(c) != 1 :
	    SSL_CTX_load_verify_locations(c, ca, NULL) != 1)
		return ca == NULL ? "the system's certificates" : ca;
	if (cert != NULL && SSL_CTX_use_certificate_chain_file(c, cert) != 1)
		return cert;
	if (key != NULL && (SSL_CTX_use_PrivateKey_file(c, key,
	    SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(c) != 1))
		return key;
	return NULL;
}

struct ssl_ctx_st *
tls_rules_new(const char *ca, const char *cert, const char *key, char *error,
    size_t size)
{
	SSL_CTX *c;
	const char *bad;

	ERR_clear_error();
	c = SSL_CTX_new(TLS_client_method());
	if (c == NULL || SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) !=
	    1) {
		bad = "TLS";
	} else {
		SSL_CTX_set_default_passwd_cb(c, refuse_passphrase);
		bad = read_files(c, ca, cert, key);
	}
	if (bad != NULL) {
		snprintf(error, size, "%s: %s", bad, first_reason());
		SSL_CTX_free(c);
		return NULL;
	}
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(c, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return c;
}

void
tls_rules_free(struct ssl_ctx_st *rules)
{
	SSL_CTX_free(rules);
}

/* --------------------------------------------------------- connections --- */

static bool
expect_host(SSL *ssl, const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, address) == 1 ||
	    inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl),
		    host) == 1;
	/* SSL_set_tlsext_host_name casts const away, which clang reports. */
	return SSL_set1_host(ssl, host) == 1 && SSL_ctrl(ssl,
	    SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
	    (void *)(uintptr_t)host) == 1;
}

struct tls *
tls_new(struct ssl_ctx_st *rules, int fd, const char *host)
{
	struct tls *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->ssl = SSL_new(rules);
	if (t->ssl == NULL || SSL_set_fd(t->ssl, fd) != 1 ||
	    !expect_host(t->ssl, host)) {
		tls_free(t);
		return NULL;
	}
	SSL_set_connect_state(t->ssl);
	return t;
}

void
tls_free(struct tls *t)
{
	if (t != NULL)
		SSL_free(t->ssl);
	free(t);
}

/*
 * The connection ended without an error of TLS. A server that misses a
 * certificate sends an alert, which a reset may overtake.
 */
static void
explain_end(struct tls *t, int kind, int system_error)
{
	const bool asked = SSL_is_init_finished(t->ssl) && !t->heard &&
	    SSL_get_certificate(t->ssl) == NULL;

	snprintf(t->why, sizeof(t->why), "%s%s", kind == SSL_ERROR_SYSCALL &&
	    system_error != 0 ? strerror(system_error) :
	    "the server closed the connection", asked ?
	    ": perhaps the server wants a certificate from us" : "");
}

/* An error of OpenSSL as a sentence. */
static void
explain(struct tls *t, int kind, int system_error)
{
	const long trust = SSL_get_verify_result(t->ssl);
	const char *reason = first_reason();

	if (trust != X509_V_OK)
		snprintf(t->why, sizeof(t->why), "the server's certificate is "
		    "not trusted: %s", X509_verify_cert_error_string(trust));
	else if (kind == SSL_ERROR_ZERO_RETURN || ERR_peek_error() == 0)
		explain_end(t, kind, system_error);
	else if (strstr(reason, "certificate required") != NULL ||
	    strstr(reason, "handshake failure") != NULL)
		snprintf(t->why, sizeof(t->why), "the server wants a "
		    "certificate from us: %s", reason);
	else if (strstr(reason, "wrong version number") != NULL)
		snprintf(t->why, sizeof(t->why), "the server does not use TLS "
		    "on this port: %s", reason);
	else
		snprintf(t->why, sizeof(t->why), "TLS: %s", reason);
}

/* The result of a call of OpenSSL as one of ours. */
static int
settle(struct tls *t, int result)
{
	const int system_error = errno;
	const int kind = SSL_get_error(t->ssl, result);

	t->wants_to_write = kind == SSL_ERROR_WANT_WRITE;
	if (result > 0)
		return result;
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
		return 0;
	explain(t, kind, system_error);
	return -1;
}

int
tls_handshake(struct tls *t)
{
	ERR_clear_error();
	errno = 0;
	return settle(t, SSL_do_handshake(t->ssl));
}

ssize_t
tls_read(struct tls *t, void *bytes, size_t n)
{
	int got;

	ERR_clear_error();
	errno = 0;
	got = settle(t, SSL_read(t->ssl, bytes, n > INT_MAX ? INT_MAX :
	    (int)n));
	t->heard |= got > 0;
	return got;
}

ssize_t
tls_write(struct tls *t, const void *bytes, size_t n)
{
	if (n == 0)
		return 0;
	ERR_clear_error();
	errno = 0;
	return settle(t, SSL_write(t->ssl, bytes, n > INT_MAX ? INT_MAX :
	    (int)n));
}

bool
tls_wants_to_write(const struct tls *t)
{
	return t->wants_to_write;
}

const char *
tls_why(const struct tls *t)
{
	return t->why;
}
