/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_drive.h - many users at a time, against one URL.
 */
#ifndef KVROUTE_CHATS_DRIVE_H
#define KVROUTE_CHATS_DRIVE_H

#include "chats.h"
#include "chats_count.h"

/*
 * Runs until all is done. With a file to send, `body` are its bytes; they are
 * changed when they are to vary. Ends the program when there is no memory.
 */
void chats_drive(const struct chats_options *o, char *body, size_t length,
    struct chats_count *count);

#endif
