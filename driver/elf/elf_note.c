#include "driver/elf/elf_note.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
	return at <= INT64_MAX && pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static bool note_is(const Elf64_Nhdr *h, const char *content, const char *name, const char *text)
{
	return h->n_namesz == strlen(name) + 1 && h->n_descsz == strlen(text) &&
	       !memcmp(content, name, h->n_namesz) &&
	       !memcmp(content + padded(h->n_namesz), text, h->n_descsz);
}

/* Whether a segment has a note of that name and text. Looks at the first 4096 bytes only. */
static bool segment_has(int fd, const Elf64_Phdr *p, const char *name, const char *text)
{
	_Alignas(Elf64_Nhdr) char buf[4096];
	size_t n = p->p_filesz < sizeof buf ? p->p_filesz : sizeof buf, at = 0;
	if (!read_at(fd, buf, n, p->p_offset))
		return false;
	while (n - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr h;
		memcpy(&h, buf + at, sizeof h);
		at += sizeof h;
		uint64_t size = padded(h.n_namesz) + padded(h.n_descsz);
		if (size > n - at)
			return false;
		if (note_is(&h, buf + at, name, text))
			return true;
		at += size;
	}
	return false;
}

static bool file_has(int fd, const char *name, const char *text)
{
	static const unsigned char here[] = {
		ELFMAG0,    ELFMAG1,
		ELFMAG2,    ELFMAG3,
		ELFCLASS64, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB};
	Elf64_Ehdr e;
	Elf64_Phdr p;
	if (!read_at(fd, &e, sizeof e, 0) || memcmp(e.e_ident, here, sizeof here))
		return false;
	for (uint64_t k = 0; k < e.e_phnum; k++) {
		if (!read_at(fd, &p, sizeof p, e.e_phoff + k * sizeof p))
			return false;
		if (p.p_type == PT_NOTE && segment_has(fd, &p, name, text))
			return true;
	}
	return false;
}

bool elf_has_note(const char *path, const char *name, const char *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for a writer */
	if (fd < 0)
		return false;
	bool has = file_has(fd, name, text);
	close(fd);
	return has;
}
