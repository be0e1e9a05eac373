/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_drive.h - many concurrent users of one URL.
 */
#ifndef KVROUTE_CHATS_DRIVE_H
#define KVROUTE_CHATS_DRIVE_H

#include "chats.h"
#include "chats_count.h"

/*
 * Runs to the end. With a file to send, `body` are its bytes; with --vary they
 * are changed. Exits without memory.
 */
void chats_drive(const struct chats_options *o, char *body, size_t length,
    struct chats_count *count);

#endif
