/* SPDX-License-Identifier: BSD-2-Clause */
/* status_socket.c - see status_socket.h. */
#define _GNU_SOURCE /* accept4 */
#include "status_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { PRINT_SECONDS = 5 };

static bool
address(const char *path, struct sockaddr_un *out)
{
	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(out->sun_path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(out->sun_path, path);
	return true;
}

static int
socket_to(const struct sockaddr_un *to)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd != -1 && connect(fd, (const struct sockaddr *)(const void *)to,
	    sizeof(*to)) == 0)
		return fd;
	if (fd != -1)
		close(fd);
	return -1;
}

/*
 * Makes room for a socket: removes one that a killed daemon has left, and
 * nothing else. false: another file is there, by errno.
 */
static bool
remove_left(const char *path, const struct sockaddr_un *at)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) != 0)
		return errno == ENOENT;
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return false;
	}
	if ((fd = socket_to(at)) != -1) {
		close(fd);
		errno = EADDRINUSE;
		return false;
	}
	return errno == ECONNREFUSED && unlink(path) == 0;
}

/* Is the socket at the path the one that was made here? */
static bool
owns_path(const struct status_socket *s)
{
	struct stat st;

	return lstat(s->path, &st) == 0 && st.st_dev == s->device &&
	    st.st_ino == s->file;
}

static bool
make_socket(struct status_socket *s, const char *path,
    const struct sockaddr_un *at)
{
	const mode_t mask = umask(0117);
	const int bound = bind(s->fd, (const struct sockaddr *)(const void *)at,
	    sizeof(*at));
	struct stat st;

	umask(mask);
	if (bound != 0 || listen(s->fd, STATUS_CLIENTS) != 0 ||
	    lstat(path, &st) != 0)
		return false;
	s->path = path;
	s->device = st.st_dev;
	s->file = st.st_ino;
	return true;
}

bool
status_make_room(const char *path, struct sockaddr_un *at)
{
	return address(path, at) && remove_left(path, at);
}

bool
status_listen(struct status_socket *s, const char *path)
{
	struct sockaddr_un to;
	int i, error;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	for (i = 0; i < STATUS_CLIENTS; i++)
		s->clients[i].fd = -1;
	if (path == NULL)
		return true;
	if (!status_make_room(path, &to))
		return false;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd == -1)
		return false;
	if (make_socket(s, path, &to))
		return true;
	error = errno;
	close(s->fd);
	s->fd = -1;
	errno = error;
	return false;
}

static void
drop(struct status_client *c)
{
	close(c->fd);
	free(c->answer);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

void
status_close(struct status_socket *s)
{
	int i;

	if (s->fd == -1)
		return;
	for (i = 0; i < STATUS_CLIENTS; i++)
		if (s->clients[i].fd != -1)
			drop(&s->clients[i]);
	if (owns_path(s))
		(void)unlink(s->path);
	close(s->fd);
	s->fd = -1;
}

size_t
status_fds(const struct status_socket *s, struct pollfd *fds)
{
	const struct status_client *c = s->clients;
	size_t n = 0;
	int i;

	if (s->fd == -1)
		return 0;
	fds[n++] = (struct pollfd){ .fd = s->fd, .events = POLLIN };
	for (i = 0; i < STATUS_CLIENTS; i++, c++)
		if (c->fd != -1)
			fds[n++] = (struct pollfd){ .fd = c->fd, .events =
			    c->answer == NULL ? POLLIN : POLLOUT };
	return n;
}

/* When all places are taken, the first one's client has had its time. */
static void
welcome(struct status_socket *s)
{
	const int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int i = 0;

	if (fd == -1)
		return;
	while (i < STATUS_CLIENTS && s->clients[i].fd != -1)
		i++;
	if (i == STATUS_CLIENTS)
		drop(&s->clients[i = 0]);
	s->clients[i].fd = fd;
}

static void
answer(struct status_client *c, status_write *write, void *context)
{
	const bool metrics = strncmp(c->request, "GET /metrics", 12) == 0;
	FILE *out = open_memstream(&c->answer, &c->n);

	if (out == NULL)
		return;
	fprintf(out, "HTTP/1.0 200 OK\r\nContent-Type: %s\r\n"
	    "Connection: close\r\n\r\n", metrics ?
	    "text/plain; version=0.0.4" : "application/json");
	write(out, metrics, context);
	if (fclose(out) != 0) {
		free(c->answer);
		c->answer = NULL;
	}
}

/* false: it is done, or gone. */
static bool
read_request(struct status_client *c, status_write *write, void *context)
{
	const ssize_t got = recv(c->fd, c->request + c->got,
	    sizeof(c->request) - 1 - c->got, 0);

	if (got <= 0)
		return got == -1 && errno == EAGAIN;
	c->got += (size_t)got;
	c->request[c->got] = '\0';
	if (strstr(c->request, "\r\n\r\n") == NULL &&
	    c->got < sizeof(c->request) - 1)
		return true;
	answer(c, write, context);
	return c->answer != NULL;
}

static bool
send_answer(struct status_client *c)
{
	const ssize_t sent = send(c->fd, c->answer + c->sent, c->n - c->sent,
	    MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN;
	c->sent += (size_t)sent;
	return c->sent < c->n;
}

void
status_work(struct status_socket *s, status_write *write, void *context)
{
	struct status_client *c = s->clients;
	int i;

	if (s->fd == -1)
		return;
	welcome(s);
	for (i = 0; i < STATUS_CLIENTS; i++, c++) {
		if (c->fd == -1)
			continue;
		if (c->answer == NULL && !read_request(c, write, context))
			drop(c);
		else if (c->answer != NULL && !send_answer(c))
			drop(c);
	}
}

/* ------------------------------------------------------------ the asker --- */

static bool
print_body(int fd)
{
	FILE *in = fdopen(fd, "r");
	char line[4096];
	bool body = false;

	if (in == NULL) {
		close(fd);
		return false;
	}
	while (fgets(line, sizeof(line), in) != NULL) {
		if (body)
			fputs(line, stdout);
		body |= strcmp(line, "\r\n") == 0;
	}
	fclose(in);
	return body;
}

bool
status_print(const char *path, const char *what)
{
	const struct timeval patience = { .tv_sec = PRINT_SECONDS };
	struct sockaddr_un to;
	char request[64];
	int fd, n;

	if (!address(path, &to) || (fd = socket_to(&to)) == -1)
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
	    sizeof(patience));
	n = snprintf(request, sizeof(request), "GET /%s HTTP/1.0\r\n\r\n",
	    what);
	if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n) {
		close(fd);
		return false;
	}
	errno = ETIMEDOUT;
	return print_body(fd);
}
