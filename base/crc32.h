/* CRC-32 of zip and gzip. */
#ifndef WEFT_BASE_CRC32_H
#define WEFT_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32_of(const void *, size_t);
/* The same without special instructions of the processor; for tests. */
uint32_t crc32_by_table(const void *, size_t);

#endif
