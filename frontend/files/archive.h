/* Zip archives as .pt2 and .npz use them. Stored members are used in place, in the mapped file. */
#ifndef WEFT_FRONTEND_FILES_ARCHIVE_H
#define WEFT_FRONTEND_FILES_ARCHIVE_H

#include "base/ctx.h"
#include "base/intern.h"

typedef struct {
	const uint8_t *data;
	size_t size;
} Bytes;

typedef struct {
	const char *name; /* as in the archive */
	uint64_t header;  /* of the local header */
	uint64_t size;    /* uncompressed */
	uint64_t stored;  /* bytes in the file */
	uint32_t crc;
	uint16_t method; /* 0: stored */
	uint16_t flags;
	bool ready; /* contents are checked and here */
	Bytes contents;
} Member;

typedef struct {
	const char *path; /* for messages */
	const uint8_t *data;
	size_t size;
	ARRAY(Member) member; /* in the order of the directory */
	Intern names;         /* id k is member k - 1 */
	const char
		*root;  /* the one folder all members are in, with its '/'; "" when there is none */
	bool unchecked; /* skip checksums, for fuzzing */
} Archive;

/* Both check the directory and every local header against the bounds of the file. False after
 * ctx_error. The bytes must outlive the context. */
bool archive_open(Ctx *, const char *path, Archive *);
bool archive_open_bytes(Ctx *, const char *path, const void *data, size_t size, Archive *);
/* By name below the root folder; NULL when absent. */
Member *archive_find(const Archive *, const char *name);
/* Contents, checksum verified, 16-aligned. Where the archive stores them so they are in place.
 * False after ctx_error. */
bool archive_read(Ctx *, const Archive *, Member *, Bytes *);

#endif
