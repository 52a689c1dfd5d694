#include "driver/elf/elf_object.h"

#include <elf.h>
#include <string.h>

enum { SEC_NULL, SEC_DATA, SEC_SYMTAB, SEC_STRTAB, SEC_SHSTRTAB, SEC_STACK, SEC_COUNT };

static const char section_names[] =
	"\0.rodata.weights\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack";
enum { NAME_DATA = 1, NAME_SYMTAB = 17, NAME_STRTAB = 25, NAME_SHSTRTAB = 33, NAME_STACK = 43 };

/* Offsets in the file: section, symbols, symbol names, section names, section headers. */
typedef struct {
	uint64_t symtab, strtab, shstrtab, headers, end;
} ObjectOffsets;

static ObjectOffsets places(uint64_t start, uint64_t bytes, const char *symbol)
{
	ObjectOffsets p;
	p.symtab = (start + bytes + 15) / 16 * 16;
	p.strtab = p.symtab + 2 * sizeof(Elf64_Sym);
	p.shstrtab = p.strtab + 1 + strlen(symbol) + 1;
	p.headers = (p.shstrtab + sizeof section_names + 15) / 16 * 16;
	p.end = p.headers + SEC_COUNT * sizeof(Elf64_Shdr);
	return p;
}

uint64_t elf_object_bytes(uint64_t start, uint64_t bytes, const char *symbol)
{
	return places(start, bytes, symbol).end;
}

/* Linkers refuse to join objects of different machines, or of different calling conventions. */
typedef struct {
	const char *arch; /* how the triple begins */
	Elf64_Half machine;
	Elf64_Word flags;
} Machine;

static const Machine machines[] = {
	{"x86_64", EM_X86_64, 0},
	{"aarch64", EM_AARCH64, 0},
	{"riscv64", EM_RISCV, 0x5 /* compressed instructions; doubles in registers */},
	{"", EM_NONE, 0},
};

static const char *host_arch(void)
{
#if defined(__x86_64__)
	return "x86_64";
#elif defined(__aarch64__)
	return "aarch64";
#elif defined(__riscv)
	return "riscv64";
#else
	return "unknown";
#endif
}

static const Machine *machine_of(const char *triple)
{
	const char *arch = triple ? triple : host_arch();
	const Machine *m = machines;
	while (strncmp(m->arch, arch, strlen(m->arch)) != 0)
		m++;
	return m;
}

void elf_object_write(char *head, char *tail, uint64_t start, uint64_t bytes, const char *symbol,
		      const char *triple)
{
	ObjectOffsets p = places(start, bytes, symbol);
	const uint64_t from = start + bytes; /* of the tail */
	Elf64_Ehdr *h = (Elf64_Ehdr *)head;
	memset(h, 0, sizeof *h);
	memcpy(h->e_ident, ELFMAG, SELFMAG);
	h->e_ident[EI_CLASS] = ELFCLASS64;
	h->e_ident[EI_DATA] = ELFDATA2LSB;
	h->e_ident[EI_VERSION] = EV_CURRENT;
	h->e_type = ET_REL;
	h->e_machine = machine_of(triple)->machine;
	h->e_flags = machine_of(triple)->flags;
	h->e_version = EV_CURRENT;
	h->e_shoff = p.headers;
	h->e_ehsize = sizeof *h;
	h->e_shentsize = sizeof(Elf64_Shdr);
	h->e_shnum = SEC_COUNT;
	h->e_shstrndx = SEC_SHSTRTAB;

	Elf64_Sym sym[2] = {{0}};
	sym[1].st_name = 1;
	sym[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	sym[1].st_other = STV_HIDDEN;
	sym[1].st_shndx = SEC_DATA;
	sym[1].st_size = bytes;
	memcpy(tail + (p.symtab - from), sym, sizeof sym);
	memcpy(tail + (p.strtab - from), "", 1);
	memcpy(tail + (p.strtab - from) + 1, symbol, strlen(symbol) + 1);
	memcpy(tail + (p.shstrtab - from), section_names, sizeof section_names);

	const Elf64_Shdr header[SEC_COUNT] = {
		[SEC_DATA] = {.sh_name = NAME_DATA,
			      .sh_type = SHT_PROGBITS,
			      .sh_flags = SHF_ALLOC,
			      .sh_offset = start,
			      .sh_size = bytes,
			      .sh_addralign = start},
		[SEC_SYMTAB] = {.sh_name = NAME_SYMTAB,
				.sh_type = SHT_SYMTAB,
				.sh_offset = p.symtab,
				.sh_size = sizeof sym,
				.sh_link = SEC_STRTAB,
				.sh_info = 1,
				.sh_addralign = 8,
				.sh_entsize = sizeof *sym},
		[SEC_STRTAB] = {.sh_name = NAME_STRTAB,
				.sh_type = SHT_STRTAB,
				.sh_offset = p.strtab,
				.sh_size = p.shstrtab - p.strtab,
				.sh_addralign = 1},
		[SEC_SHSTRTAB] = {.sh_name = NAME_SHSTRTAB,
				  .sh_type = SHT_STRTAB,
				  .sh_offset = p.shstrtab,
				  .sh_size = sizeof section_names,
				  .sh_addralign = 1},
		[SEC_STACK] = {.sh_name = NAME_STACK,
			       .sh_type = SHT_PROGBITS,
			       .sh_offset = p.headers,
			       .sh_addralign = 1},
	};
	memcpy(tail + (p.headers - from), header, sizeof header);
}
