/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packer.h - msgpack being written, by msgpack-c itself. Without memory the
 * program ends.
 */
#ifndef KVROUTE_PACKER_H
#define KVROUTE_PACKER_H

#include <stddef.h>
#include <stdint.h>

struct packer {
	const char *bytes; /* after packer_end */
	size_t n;
	void *inside;
};

/* Begins, or begins anew. p is all 0 at first. */
void packer_begin(struct packer *p);
void packer_end(struct packer *p);
void packer_free(struct packer *p);
void packer_array(struct packer *p, size_t n);
void packer_map(struct packer *p, size_t n);
void packer_uint(struct packer *p, uint64_t value);
void packer_int(struct packer *p, int64_t value);
void packer_double(struct packer *p, double value);
void packer_text(struct packer *p, const char *text);
void packer_bin(struct packer *p, const void *bytes, size_t n);
void packer_nil(struct packer *p);

#endif
