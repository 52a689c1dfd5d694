/* The checksum of zip and gzip: CRC-32, reflected polynomial 0xedb88320. */
#ifndef WEFT_BASE_CRC32_H
#define WEFT_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC-32 of the n bytes at p. */
uint32_t crc32_of(const void *p, size_t n);
/* Returns the same value, computed without special instructions of the processor; for tests. */
uint32_t crc32_by_table(const void *p, size_t n);
/* Returns the CRC-32 of bytes whose CRC-32 is c (0: none) with the n bytes at p behind them. */
uint32_t crc32_more(uint32_t c, const void *p, size_t n);

#endif
