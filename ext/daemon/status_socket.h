/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_socket.h - a socket in the file system that serves the state of the
 * daemon over HTTP: GET /metrics, and JSON for any other path.
 */
#ifndef KVROUTE_STATUS_SOCKET_H
#define KVROUTE_STATUS_SOCKET_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum { STATUS_CLIENTS = 8, STATUS_FDS = STATUS_CLIENTS + 1 };

/* Writes the state: for Prometheus, or as JSON. */
typedef void status_write(FILE *out, bool metrics, void *context);

struct status_client {
	int fd;            /* -1: none */
	char request[512];
	size_t got;
	char *answer;      /* NULL: it has not asked yet */
	size_t n, sent;
};

struct status_socket {
	int fd;            /* -1: there is no socket */
	const char *path;
	dev_t device;
	ino_t file;        /* of the socket that was made */
	struct status_client clients[STATUS_CLIENTS];
};

struct sockaddr_un;

/*
 * Before a socket is made at the path: removes one without a listener. false:
 * something else is there, or the path is too long; errno.
 */
bool status_make_room(const char *path, struct sockaddr_un *at);
/*
 * Makes the socket. One that is there without a listener is replaced; anything
 * else stays: EADDRINUSE for a socket, EEXIST for another file. path NULL: no
 * socket. false: errno has the reason.
 */
bool status_listen(struct status_socket *s, const char *path);
void status_close(struct status_socket *s);
size_t status_fds(const struct status_socket *s, struct pollfd *fds);
/* Never waits. */
void status_work(struct status_socket *s, status_write *write, void *context);
/*
 * Prints the answer of the daemon at that socket; false: errno has the reason.
 */
bool status_print(const char *path, const char *what);

#endif
