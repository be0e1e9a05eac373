/* SPDX-License-Identifier: BSD-2-Clause */
/* tls_server.c - see tls_server.h. */
#include "tls_server.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MADE_DAYS = 3650, SECONDS_OF_DAY = 86400 };

/* -------------------------------------------------------- certificates --- */

static bool
add_names(X509 *certificate)
{
	X509_NAME *name = X509_get_subject_name(certificate);
	X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL,
	    NID_subject_alt_name, "DNS:kvroute-pick,DNS:localhost");
	bool added = names != NULL &&
	    X509_add_ext(certificate, names, -1) == 1 &&
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
	        (const unsigned char *)"kvroute-pick", -1, -1, 0) == 1 &&
	    X509_set_issuer_name(certificate, name) == 1;

	X509_EXTENSION_free(names);
	return added;
}

static bool
sign_own(X509 *certificate, EVP_PKEY *key)
{
	unsigned char serial[8];
	BIGNUM *number = NULL;
	bool is_signed = RAND_bytes(serial, sizeof(serial)) == 1 &&
	    (number = BN_bin2bn(serial, sizeof(serial), NULL)) != NULL &&
	    BN_to_ASN1_INTEGER(number,
	        X509_get_serialNumber(certificate)) != NULL &&
	    X509_set_version(certificate, 2) == 1 &&
	    X509_gmtime_adj(X509_getm_notBefore(certificate), 0) != NULL &&
	    X509_gmtime_adj(X509_getm_notAfter(certificate),
	        (long)MADE_DAYS * SECONDS_OF_DAY) != NULL &&
	    X509_set_pubkey(certificate, key) == 1 &&
	    add_names(certificate) &&
	    X509_sign(certificate, key, EVP_sha256()) > 0;

	BN_free(number);
	return is_signed;
}

static bool
use_own(SSL_CTX *context)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	const bool used = key != NULL && certificate != NULL &&
	    sign_own(certificate, key) &&
	    SSL_CTX_use_certificate(context, certificate) == 1 &&
	    SSL_CTX_use_PrivateKey(context, key) == 1;

	X509_free(certificate);
	EVP_PKEY_free(key);
	return used;
}

static bool
use_files(SSL_CTX *context, const char *folder)
{
	char certificate[PATH_MAX], key[PATH_MAX];

	snprintf(certificate, sizeof(certificate), "%s/tls.crt", folder);
	snprintf(key, sizeof(key), "%s/tls.key", folder);
	return SSL_CTX_use_certificate_chain_file(context, certificate) == 1 &&
	    SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 &&
	    SSL_CTX_check_private_key(context) == 1;
}

/* HTTP/2 alone; a client that names no protocol gets it too. */
static int
choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *n,
    const unsigned char *offered, unsigned n_offered, void *context)
{
	static const unsigned char h2[] = { 2, 'h', '2' };
	unsigned char *found;

	(void)ssl;
	(void)context;
	if (SSL_select_next_proto(&found, n, h2, sizeof(h2), offered,
	    n_offered) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*chosen = found;
	return SSL_TLSEXT_ERR_OK;
}

struct ssl_ctx_st *
tls_server_new(const char *folder, char error[TLS_ERROR_MAX])
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (context != NULL &&
	    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
	    (folder == NULL ? use_own(context) : use_files(context, folder))) {
		SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
		    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
		    SSL_MODE_RELEASE_BUFFERS);
		SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
		return context;
	}
	ERR_error_string_n(ERR_get_error(), error, TLS_ERROR_MAX);
	ERR_clear_error();
	SSL_CTX_free(context);
	return NULL;
}

void
tls_server_free(struct ssl_ctx_st *context)
{
	SSL_CTX_free(context);
}

/* --------------------------------------------------------------- bytes --- */

bool
wire_open(struct wire *w, int fd, struct ssl_ctx_st *context)
{
	w->fd = fd;
	w->ssl = NULL;
	if (context == NULL)
		return true;
	w->ssl = SSL_new(context);
	if (w->ssl == NULL || SSL_set_fd(w->ssl, fd) != 1) {
		SSL_free(w->ssl);
		return false;
	}
	SSL_set_accept_state(w->ssl);
	return true;
}

void
wire_close(struct wire *w)
{
	if (w->ssl != NULL) {
		if (SSL_is_init_finished(w->ssl))
			(void)SSL_shutdown(w->ssl);
		ERR_clear_error();
		SSL_free(w->ssl);
	}
	close(w->fd);
}

static ssize_t
tls_result(const struct wire *w, int result)
{
	const int error = SSL_get_error(w->ssl, result);

	ERR_clear_error();
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return WIRE_AGAIN;
	return error == SSL_ERROR_ZERO_RETURN ? 0 : WIRE_FAILED;
}

static ssize_t
plain_result(ssize_t result)
{
	if (result >= 0)
		return result;
	return errno == EAGAIN || errno == EINTR ? WIRE_AGAIN : WIRE_FAILED;
}

ssize_t
wire_read(struct wire *w, void *bytes, size_t n)
{
	int result;

	if (w->ssl == NULL)
		return plain_result(recv(w->fd, bytes, n, 0));
	result = SSL_read(w->ssl, bytes, n > INT_MAX ? INT_MAX : (int)n);
	return result > 0 ? result : tls_result(w, result);
}

ssize_t
wire_write(struct wire *w, const void *bytes, size_t n)
{
	int result;

	if (w->ssl == NULL)
		return plain_result(send(w->fd, bytes, n, MSG_NOSIGNAL));
	result = SSL_write(w->ssl, bytes, n > INT_MAX ? INT_MAX : (int)n);
	if (result > 0)
		return result;
	/* A handshake waits for the client, while the socket is writable. */
	return SSL_get_error(w->ssl, result) == SSL_ERROR_WANT_READ ?
	    WIRE_WANTS_READ : tls_result(w, result);
}

bool
wire_pending(const struct wire *w)
{
	return w->ssl != NULL && SSL_pending(w->ssl) > 0;
}
