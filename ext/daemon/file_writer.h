/* SPDX-License-Identifier: BSD-2-Clause */
/* file_writer.h - the writer of reports into a stream of the C library. */
#ifndef KVROUTE_FILE_WRITER_H
#define KVROUTE_FILE_WRITER_H

#include <stdio.h>

#include "text_writer.h"

/* Errors stay with the stream. */
struct writer file_writer(FILE *out);

#endif
