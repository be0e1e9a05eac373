/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_socket.h - a socket in the file system that tells the state of the
 * daemon by HTTP: GET /metrics, and JSON for any other path.
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

/*
 * Makes the socket. One that is there without a listener is replaced;
 * anything else stays: EADDRINUSE for a socket, EEXIST for another file.
 * path NULL: no socket. false: errno says why.
 */
bool status_listen(struct status_socket *s, const char *path);
void status_close(struct status_socket *s);
size_t status_fds(const struct status_socket *s, struct pollfd *fds);
/* Never waits. */
void status_work(struct status_socket *s, status_write *write, void *context);
/* Prints what the daemon at that socket says; false: errno says why. */
bool status_print(const char *path, const char *what);

#endif
