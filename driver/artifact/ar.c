#include "driver/artifact/ar.h"

#include <elf.h>
#include <string.h>

#include "base/array.h"
#include "driver/api/driver_priv.h"

enum { HEADER = 60 };

typedef struct {
	const char *name;
	uint32_t member;
} Defined;

typedef struct {
	Ctx *ctx;
	ARRAY(Defined) symbol;
	Text out;
} Ar;

/* Reads section header k of an object. Returns false unless the section lies within the file. */
static bool section(const ArMember *m, uint32_t k, Elf64_Shdr *s)
{
	Elf64_Ehdr h;
	TRY(m->size >= sizeof h);
	memcpy(&h, m->data, sizeof h);
	TRY(!memcmp(h.e_ident, ELFMAG, SELFMAG) && k < h.e_shnum && h.e_shoff < m->size &&
	    m->size - h.e_shoff >= (uint64_t)h.e_shnum * sizeof *s);
	memcpy(s, (const char *)m->data + h.e_shoff + k * sizeof *s, sizeof *s);
	return s->sh_type == SHT_NOBITS ||
	       (s->sh_offset <= m->size && s->sh_size <= m->size - s->sh_offset);
}

/* Adds the symbols of a member that others may refer to: global, defined here. */
static void add_symbols(Ar *ar, const ArMember *m, uint32_t member, const Elf64_Shdr *table,
			const Elf64_Shdr *names)
{
	const char *data = m->data;
	for (uint64_t k = table->sh_info; k < table->sh_size / sizeof(Elf64_Sym); k++) {
		Elf64_Sym s;
		memcpy(&s, data + table->sh_offset + k * sizeof s, sizeof s);
		if (s.st_shndx != SHN_UNDEF && ELF64_ST_BIND(s.st_info) != STB_LOCAL &&
		    s.st_name < names->sh_size)
			array_push(ar->ctx->arena, &ar->symbol,
				   (Defined){data + names->sh_offset + s.st_name, member});
	}
}

static bool list_symbols(Ar *ar, const ArMember *m, uint32_t member)
{
	Elf64_Shdr s, names;
	uint32_t k = 0;
	while (section(m, k, &s) && s.sh_type != SHT_SYMTAB)
		k++;
	TRY(section(m, k, &s) && section(m, s.sh_link, &names));
	add_symbols(ar, m, member, &s, &names);
	return true;
}

static void put_header(Ar *ar, const char *name, size_t size)
{
	text_printf(&ar->out, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "644", size);
}

static void put_u32(Ar *ar, uint64_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		text_char(&ar->out, (char)(v >> shift));
}

/* Writes the index: count, the offset of each symbol's member, the names. */
static void put_index(Ar *ar, const ArMember *m)
{
	uint64_t bytes = 4, at = 8 + HEADER;
	for (uint32_t k = 0; k < ar->symbol.n; k++)
		bytes += 4 + strlen(ar->symbol.data[k].name) + 1;
	bytes += bytes % 2;
	at += bytes;
	put_header(ar, "/", bytes);
	size_t start = ar->out.n;
	put_u32(ar, ar->symbol.n);
	for (uint32_t k = 0, member = 0; k < ar->symbol.n; k++) {
		for (; member < ar->symbol.data[k].member; member++)
			at += HEADER + (m[member].size + 1) / 2 * 2;
		put_u32(ar, at);
	}
	for (uint32_t k = 0; k < ar->symbol.n; k++) {
		text_add(&ar->out, ar->symbol.data[k].name);
		text_char(&ar->out, 0);
	}
	while (ar->out.n - start < bytes)
		text_char(&ar->out, 0);
}

bool ar_write(Ctx *ctx, const char *path, const ArMember *member, uint32_t n)
{
	Ar ar = {.ctx = ctx};
	text_init(&ar.out, ctx->arena);
	uint64_t total = 0;
	for (uint32_t k = 0; k < n; k++) {
		total += member[k].size;
		if (!list_symbols(&ar, &member[k], k))
			return ctx_error(ctx, path, "%s is no object with symbols", member[k].name);
	}
	if (total > UINT32_MAX - (1u << 20))
		return ctx_error(ctx, path, "a static library holds at most 4 GiB");
	text_add(&ar.out, "!<arch>\n");
	put_index(&ar, member);
	for (uint32_t k = 0; k < n; k++) {
		put_header(&ar, arena_printf(ctx->arena, "%s/", member[k].name), member[k].size);
		text_addn(&ar.out, member[k].data, member[k].size);
		if (member[k].size % 2)
			text_char(&ar.out, '\n');
	}
	return file_write(ctx, path, ar.out.data, ar.out.n);
}
