/* Zip archives (.pt2, .npz). Members that are stored without compression are used in the mapped
 * file. */
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
	uint64_t header;  /* the offset of the local header */
	uint64_t size;    /* uncompressed */
	uint64_t stored;  /* bytes in the file */
	uint32_t crc;
	uint16_t method; /* 0: stored */
	uint16_t flags;
	bool ready; /* `contents` is valid and checked */
	Bytes contents;
} Member;

typedef struct {
	const char *path; /* for messages */
	const uint8_t *data;
	size_t size;
	ARRAY(Member) member; /* in the order of the directory */
	Intern names;         /* id k is member k - 1 */
	const char
		*root;  /* the one folder of all members, with its '/'; "" if there is none */
	bool unchecked; /* no checksums, for fuzzing */
} Archive;

/* Open an archive: check the directory and every local header against the size of the file. The
 * bytes must outlive the context. Return false after errors. */
bool archive_open(Ctx *, const char *path, Archive *);
bool archive_open_bytes(Ctx *, const char *path, const void *data, size_t size, Archive *);
/* The member of that name below the root folder, or NULL. */
Member *archive_find(const Archive *, const char *name);
/* Reads a member: checks the checksum; the contents are 16-byte aligned, and in the mapped file if
 * possible. Returns false after errors. */
bool archive_read(Ctx *, const Archive *, Member *, Bytes *);

#endif
