/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * error.c - error names, error messages and the version.
 */
#include "base.h"

static const struct {
	const char *name, *sentence;
} errors[] = {
	{ "KVR_OK", "No error." },
	{ "KVR_EINVAL", "An argument is NULL or out of range." },
	{ "KVR_ENOMEM", "Out of memory." },
	{ "KVR_ETOOSMALL", "The region is too small for these options." },
	{ "KVR_EFORMAT", "This memory is no region or saved prompt, or it is "
	    "damaged." },
	{ "KVR_EVERSION", "The region, or what was saved, has another "
	    "format version." },
	{ "KVR_EMISMATCH",
	    "The region, the prompt or the scope was made for other options." },
	{ "KVR_ECLOCK", "The time is below -1 or 30 days ahead." },
	{ "KVR_EWORKER", "There is no such worker." },
	{ "KVR_EEXIST", "It exists already: the worker, or the file." },
	{ "KVR_EFULL", "The region has no room for another worker or handle." },
	{ "KVR_ELEASE", "There is no such lease." },
	{ "KVR_ESTATE", "The call does not fit the state of the object." },
	{ "KVR_EEMPTY", "The prompt has no tokens." },
	{ "KVR_ENOWORKER", "No worker is eligible." },
	{ "KVR_ENOTALLOWED", "The pinned worker is not eligible." },
	{ "KVR_EPINNEDOVERLOADED", "The pinned worker is overloaded." },
	{ "KVR_EALLOVERLOADED", "Every eligible worker is overloaded." },
	{ "KVR_EBUSY", "The region is busy: try again." },
	{ "KVR_ECORRUPT", "An invariant of the index is broken." },
	{ "KVR_ESYSTEM", "A system call failed." },
	{ "KVR_EPERM", "Others may write the file, or own it." },
	{ "KVR_EREADONLY", "The region was opened for reading only." },
	{ "KVR_ENEWER",
	    "A struct sets fields that this library does not know." },
	{ "KVR_EINEXACT", "Counts or estimates of the region are wrong." },
	{ "KVR_EUNBOUND", "The key is bound to no worker." },
	{ "KVR_EAGAIN", "The journal has no further record yet." },
	{ "KVR_EOVERRUN", "Records of the journal are lost." },
	{ "KVR_EUNKNOWN", "A text has a name that is not known." },
};

static size_t
error_index(int error)
{
	size_t n = sizeof(errors) / sizeof(errors[0]);

	return error <= 0 && error > -(int)n ? (size_t)-error : n;
}

const char *
kvr_strerror(int error)
{
	size_t i = error_index(error);

	return i < sizeof(errors) / sizeof(errors[0]) ? errors[i].sentence
	    : "Unknown error.";
}

const char *
kvr_errname(int error)
{
	size_t i = error_index(error);

	return i < sizeof(errors) / sizeof(errors[0]) ? errors[i].name
	    : "KVR_E?";
}

uint32_t
kvr_version(void)
{
	return KVR_VERSION_MAJOR << 16 | KVR_VERSION_MINOR << 8 |
	    KVR_VERSION_PATCH;
}

const char *
kvr_version_string(void)
{
	return KVR_VERSION_STRING;
}
