/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nodelay.c - preloaded into a router that leaves TCP_NODELAY out of the
 * sockets that it accepts: each stream waits 40 ms for an acknowledgement.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int
accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict length,
    int flags)
{
	int (*real)(int, struct sockaddr *, socklen_t *, int);
	int one = 1, got;

	*(void **)&real = dlsym(RTLD_NEXT, "accept4");
	got = real(fd, address, length, flags);
	if (got >= 0)
		(void)setsockopt(got, IPPROTO_TCP, TCP_NODELAY, &one,
		    sizeof(one));
	return got;
}
