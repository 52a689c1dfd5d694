/* Whether a shared object of a compiled model can be given to dlopen: what a file that was copied
 * by half is told before the loader maps it, because its pages behind the end kill the process with
 * SIGBUS.
 *
 *     WeftStatus status;
 *     void *so = weft_file_check("./model.so", &status) ? NULL : dlopen("./model.so", RTLD_NOW);
 *
 * Needs ELF, and nothing else of Weft than weft_model.h. */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "weft_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Private: sets the status, which may be NULL, and returns WEFT_ERR_FILE. */
static inline int weft_file_fail(WeftStatus *status, const char *path, const char *format, ...)
{
	if (!status)
		return WEFT_ERR_FILE;
	va_list args;
	va_start(args, format);
	status->code = WEFT_ERR_FILE;
	const int n = snprintf(status->message, sizeof status->message, "%.200s: ", path);
	if (n > 0 && (size_t)n < sizeof status->message)
		vsnprintf(status->message + n, sizeof status->message - (size_t)n, format, args);
	va_end(args);
	return WEFT_ERR_FILE;
}

/* Private: returns the unsigned little-endian number of n bytes. */
static inline uint64_t weft_file_number(const unsigned char *p, unsigned n)
{
	uint64_t x = 0;
	while (n--)
		x = x << 8 | p[n];
	return x;
}

/* Private: returns ELF's number of the machine that this code is compiled for; 0: unknown. */
static inline unsigned weft_file_machine(void)
{
#if defined(__x86_64__)
	return 62;
#elif defined(__aarch64__)
	return 183;
#elif defined(__riscv)
	return 243;
#elif defined(__arm__)
	return 40;
#elif defined(__i386__)
	return 3;
#else
	return 0;
#endif
}

/* Private: returns the name of a machine, in words of targets. */
static inline const char *weft_file_machine_name(unsigned machine)
{
	return machine == 62    ? "x86-64"
	       : machine == 183 ? "AArch64"
	       : machine == 243 ? "RISC-V"
	       : machine == 40  ? "ARM"
	       : machine == 3   ? "x86"
				: "one without a name here";
}

/* Private: returns what the file is, where it does not begin as ELF does. */
static inline const char *weft_file_kind(const char *path, const unsigned char *begin, size_t n)
{
	const size_t length = strlen(path);
	if (n >= 4 && !memcmp(begin, "PK\3\4", 4))
		return "it is a zip archive, like a .pt2 model: compile it first";
	if (n >= 8 && !memcmp(begin, "!<arch>\n", 8))
		return "it is a static library, which a linker takes";
	if (length >= 5 && !strcmp(path + length - 5, ".onnx"))
		return "it is a model of ONNX: compile it first";
	return n ? "it is no shared object" : "it is empty";
}

/* Private: where a header of an ELF file has its fields, for 32 and 64 bits. */
typedef struct {
	unsigned header, word;             /* bytes of the file's header, of an offset */
	unsigned phoff, shoff, phentsize;  /* in the file's header; four numbers of 16 bits */
	unsigned ph_bytes, offset, filesz; /* of a segment */
} WeftFileForm;

/* Private: compares the ends of the headers and segments with the size of the file. */
static inline int weft_file_ends(FILE *f, const char *path, const unsigned char *h,
				 const WeftFileForm *form, WeftStatus *status)
{
	const uint64_t phoff = weft_file_number(h + form->phoff, form->word);
	const uint64_t shoff = weft_file_number(h + form->shoff, form->word);
	const unsigned phentsize = (unsigned)weft_file_number(h + form->phentsize, 2);
	const unsigned phnum = (unsigned)weft_file_number(h + form->phentsize + 2, 2);
	const unsigned shentsize = (unsigned)weft_file_number(h + form->phentsize + 4, 2);
	const unsigned shnum = (unsigned)weft_file_number(h + form->phentsize + 6, 2);
	uint64_t size, end = shoff + (uint64_t)shentsize * shnum;
	if (fseek(f, 0, SEEK_END) || ftell(f) < 0)
		return weft_file_fail(status, path, "cannot be read");
	size = (uint64_t)ftell(f);
	if (phentsize < form->ph_bytes || !phnum || phoff > UINT64_MAX / 2)
		return weft_file_fail(status, path, "damaged: it has no segments");
	if (end < phoff + (uint64_t)phentsize * phnum)
		end = phoff + (uint64_t)phentsize * phnum;
	for (unsigned k = 0; k < phnum && end <= size; k++) {
		unsigned char p[64];
		if (fseek(f, (long)(phoff + (uint64_t)phentsize * k), SEEK_SET) ||
		    fread(p, 1, form->ph_bytes, f) != form->ph_bytes)
			return weft_file_fail(status, path, "cannot be read");
		const uint64_t at = weft_file_number(p + form->offset, form->word);
		const uint64_t bytes = weft_file_number(p + form->filesz, form->word);
		if (weft_file_number(p, 4) != 1) /* is not loaded */
			continue;
		if (at + bytes < at)
			return weft_file_fail(status, path, "damaged: a segment has no end");
		end = end < at + bytes ? at + bytes : end;
	}
	return end <= size ? WEFT_OK
			   : weft_file_fail(status, path,
					    "truncated: it has %llu bytes, its parts end at %llu; "
					    "copy it again",
					    (unsigned long long)size, (unsigned long long)end);
}

/* Whether the file is a whole shared object for this machine. Reads its headers, not its contents.
 * Returns WEFT_OK, or WEFT_ERR_FILE and what is wrong, with the path, in the status, which may be
 * NULL. */
static inline int weft_file_check(const char *path, WeftStatus *status)
{
	static const WeftFileForm form64 = {64, 8, 32, 40, 54, 56, 8, 32};
	static const WeftFileForm form32 = {52, 4, 28, 32, 42, 32, 4, 16};
	unsigned char h[64] = {0};
	FILE *f = fopen(path, "rb");
	if (!f)
		return weft_file_fail(status, path, "cannot be opened");
	const size_t n = fread(h, 1, sizeof h, f);
	const WeftFileForm *form = h[4] == 1 ? &form32 : &form64;
	const unsigned here = weft_file_machine(), there = (unsigned)weft_file_number(h + 18, 2);
	int code;
	if (!n && ferror(f))
		code = weft_file_fail(status, path, "cannot be read");
	else if (n < 4 || memcmp(h, "\177ELF", 4))
		code = weft_file_fail(status, path, "%s", weft_file_kind(path, h, n));
	else if (n < form->header || (h[4] != 1 && h[4] != 2))
		code = weft_file_fail(status, path, "truncated: it has no header");
	else if (h[5] != 1 || (here && here != there))
		code = weft_file_fail(status, path, "is for another machine: %s, this is %s",
				      weft_file_machine_name(h[5] == 1 ? there : 0),
				      weft_file_machine_name(here));
	else if (h[16] != 3 || h[17])
		code = weft_file_fail(status, path, "it is %s",
				      h[16] == 1 ? "an object file, which a linker takes"
						 : "no shared object");
	else
		code = weft_file_ends(f, path, h, form, status);
	fclose(f);
	if (!code && status) {
		status->code = WEFT_OK;
		status->message[0] = 0;
	}
	return code;
}

#ifdef __cplusplus
}
#endif
#endif
