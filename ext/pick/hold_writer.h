/* SPDX-License-Identifier: BSD-2-Clause */
/* hold_writer.h - the writer of reports into memory that grows. */
#ifndef KVROUTE_HOLD_WRITER_H
#define KVROUTE_HOLD_WRITER_H

#include "text_hold.h"
#include "text_writer.h"

struct writer hold_writer(struct hold *to);

#endif
