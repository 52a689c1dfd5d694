/* Sections that are needed are found from the exported symbols; each gets a place in one of the
 * parts below; relocations are computed while sections are written. What a library defines is
 * reached through a table of addresses (.got), which the loader fills in; calls go through
 * stubs. */
#include "driver/elf/elf_link.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/text.h"
#include "driver/elf/elf_version.h"
#include "frontend/files/file.h"

enum { PAGE = 4096, STUB = 8, SLOT = 8 };

/* Parts of the file, each with sections of one kind. The first and the last ones are made here. */
typedef enum {
	DYNSYM,
	HASH,
	VERSYM,
	VERNEED,
	DYNSTR,
	RELA,
	RODATA,
	TEXT,
	STUBS,
	INIT,
	FINI,
	RELRO,
	DYNAMIC,
	GOT,
	DATA,
	BSS,
	NPART
} PartName;

/* Parts that are mapped alike lie in one segment. */
static const struct {
	const char *name;
	uint32_t type, segment;
	uint64_t flags, align, entry;
} kinds[NPART] = {
	[DYNSYM] = {".dynsym", SHT_DYNSYM, 0, SHF_ALLOC, 8, sizeof(Elf64_Sym)},
	[HASH] = {".hash", SHT_HASH, 0, SHF_ALLOC, 8, 4},
	[VERSYM] = {".gnu.version", SHT_GNU_versym, 0, SHF_ALLOC, 8, 2},
	[VERNEED] = {".gnu.version_r", SHT_GNU_verneed, 0, SHF_ALLOC, 8, 0},
	[DYNSTR] = {".dynstr", SHT_STRTAB, 0, SHF_ALLOC, 8, 0},
	[RELA] = {".rela.dyn", SHT_RELA, 0, SHF_ALLOC, 8, sizeof(Elf64_Rela)},
	[RODATA] = {".rodata", SHT_PROGBITS, 0, SHF_ALLOC, 1, 0},
	[TEXT] = {".text", SHT_PROGBITS, 1, SHF_ALLOC | SHF_EXECINSTR, 1, 0},
	[STUBS] = {".plt", SHT_PROGBITS, 1, SHF_ALLOC | SHF_EXECINSTR, 16, 0},
	[INIT] = {".init_array", SHT_INIT_ARRAY, 2, SHF_ALLOC | SHF_WRITE, 8, 8},
	[FINI] = {".fini_array", SHT_FINI_ARRAY, 2, SHF_ALLOC | SHF_WRITE, 8, 8},
	[RELRO] = {".data.rel.ro", SHT_PROGBITS, 2, SHF_ALLOC | SHF_WRITE, 1, 0},
	[DYNAMIC] = {".dynamic", SHT_DYNAMIC, 2, SHF_ALLOC | SHF_WRITE, 8, sizeof(Elf64_Dyn)},
	[GOT] = {".got", SHT_PROGBITS, 2, SHF_ALLOC | SHF_WRITE, 8, 8},
	[DATA] = {".data", SHT_PROGBITS, 3, SHF_ALLOC | SHF_WRITE, 1, 0},
	[BSS] = {".bss", SHT_NOBITS, 3, SHF_ALLOC | SHF_WRITE, 1, 0},
};
enum { NSEGMENT = 4, NHEADER = NSEGMENT + 4 };
static const uint32_t segment_flags[NSEGMENT] = {PF_R, PF_R | PF_X, PF_R | PF_W, PF_R | PF_W};

typedef struct Object Object;

typedef struct {
	Object *object;
	const Elf64_Shdr *header;
	const Elf64_Rela *rela;
	uint64_t nrela, address;
	bool live;
} InputSection;

struct Object {
	const char *path;
	const uint8_t *data;
	size_t size;
	const Elf64_Sym *symbol;
	const char *text;
	uint64_t ntext;
	uint32_t nsection, nsymbol;
	InputSection *section;
	uint32_t *slot; /* by symbol: 1 + its place in the table of addresses */
};

/* What a library defines. */
typedef struct {
	const char *name;
	uint32_t slot, stub, version; /* slot, stub: 1 + place; version: its number in the file */
	uint32_t number;              /* of the dynamic symbol */
} ImportedSymbol;

/* A symbol that all objects see, or one of a library. */
typedef struct {
	const char *name;
	Object *object;
	uint32_t symbol;
	ImportedSymbol *import; /* with no object */
} Global;

/* A target of relocations. */
typedef struct {
	Object *object; /* NULL: import, or nothing if that is NULL: a weak symbol */
	uint32_t symbol;
	ImportedSymbol *import;
} RelocTarget;

typedef struct {
	uint64_t offset, address, size, align;
	uint8_t *data; /* of parts that are made here */
} OutputPart;

typedef struct {
	Ctx *ctx;
	const ElfLink *in;
	Object *object;
	Global *global;
	uint32_t nglobal, mask;
	ARRAY(InputSection *) todo; /* live, with relocations to follow */
	ARRAY(InputSection *) live[NPART];
	ARRAY(ImportedSymbol *) import;
	ARRAY(Global *) exported;
	ARRAY(RelocTarget) slot;
	ARRAY(ImportedSymbol *) stub;
	ARRAY(Elf64_Rela) relative, other;
	ElfVersions versions;
	OutputPart part[NPART];
	uint8_t *scratch;
	size_t nscratch;
} Link;

static bool object_error(const Link *l, const Object *o, const char *what)
{
	return ctx_error(l->ctx, o->path, "%s: not an object that weft can link: install ld or lld",
			 what);
}

/* ---- objects ---- */

static bool inside(const Object *o, uint64_t at, uint64_t n, uint64_t align)
{
	return at <= o->size && n <= o->size - at && at % align == 0;
}

static bool read_symbols(Link *l, Object *o, const Elf64_Shdr *s)
{
	const Elf64_Shdr *names = s->sh_link < o->nsection ? o->section[s->sh_link].header : NULL;
	if (o->symbol || !names || !inside(o, s->sh_offset, s->sh_size, 8) ||
	    !inside(o, names->sh_offset, names->sh_size, 1) || !names->sh_size)
		return object_error(l, o, "its symbols");
	o->symbol = (const Elf64_Sym *)(const void *)(o->data + s->sh_offset);
	o->nsymbol = (uint32_t)(s->sh_size / sizeof *o->symbol);
	o->text = (const char *)o->data + names->sh_offset;
	o->ntext = names->sh_size;
	for (uint32_t k = 0; k < o->nsymbol; k++)
		if (o->symbol[k].st_name >= o->ntext)
			return object_error(l, o, "its symbols");
	return !o->text[o->ntext - 1] || object_error(l, o, "its symbols");
}

static bool read_object(Link *l, Object *o, const char *path)
{
	FileMap f;
	TRY(file_map_full(l->ctx, path, &f));
	*o = (Object){.path = path, .data = f.data, .size = f.size};
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)(const void *)f.data;
	if (f.size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_type != ET_REL ||
	    e->e_machine != EM_X86_64 || e->e_shentsize != sizeof(Elf64_Shdr) ||
	    !inside(o, e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr), 8))
		return object_error(l, o, "its header");
	const Elf64_Shdr *s = (const Elf64_Shdr *)(const void *)(f.data + e->e_shoff);
	o->nsection = e->e_shnum;
	o->section = arena_calloc(l->ctx->arena, o->nsection + 1, sizeof *o->section);
	for (uint32_t k = 0; k < o->nsection; k++) {
		o->section[k] = (InputSection){.object = o, .header = &s[k]};
		if (s[k].sh_type != SHT_NOBITS && !inside(o, s[k].sh_offset, s[k].sh_size, 1))
			return object_error(l, o, "its sections");
		if ((s[k].sh_flags & SHF_ALLOC && s[k].sh_flags & SHF_TLS) ||
		    (s[k].sh_addralign & (s[k].sh_addralign - 1)) || s[k].sh_addralign > PAGE)
			return object_error(l, o, "thread-local variables, or an alignment");
	}
	for (uint32_t k = 0; k < o->nsection; k++) {
		InputSection *to = s[k].sh_type == SHT_RELA && s[k].sh_info < o->nsection
					   ? &o->section[s[k].sh_info]
					   : NULL;
		if (s[k].sh_type == SHT_SYMTAB)
			TRY(read_symbols(l, o, &s[k]));
		if (to && (to->rela || !inside(o, s[k].sh_offset, s[k].sh_size, 8)))
			return object_error(l, o, "its relocations");
		if (to) {
			to->rela = (const Elf64_Rela *)(const void *)(f.data + s[k].sh_offset);
			to->nrela = s[k].sh_size / sizeof *to->rela;
		}
	}
	o->slot = arena_calloc(l->ctx->arena, o->nsymbol + 1, sizeof *o->slot);
	return true;
}

/* ---- symbols ---- */

static const char *symbol_name(const Object *o, uint32_t k)
{
	return o->text + o->symbol[k].st_name;
}

static Global *find_global(const Link *l, const char *name)
{
	uint32_t at = (uint32_t)hash_bytes(name, strlen(name), 1) & l->mask;
	while (l->global[at].name && strcmp(l->global[at].name, name) != 0)
		at = (at + 1) & l->mask;
	return &l->global[at];
}

static bool is_defined(const Elf64_Sym *s)
{
	return s->st_shndx != SHN_UNDEF && ELF64_ST_BIND(s->st_info) != STB_LOCAL;
}

static bool read_globals(Link *l)
{
	uint64_t n = 0;
	for (uint32_t k = 0; k < l->in->nobject; k++)
		n += l->object[k].nsymbol;
	for (l->mask = 63; l->mask < 2 * n; l->mask = 2 * l->mask + 1)
		;
	l->global = arena_calloc(l->ctx->arena, (size_t)l->mask + 1, sizeof *l->global);
	for (uint32_t k = 0; k < l->in->nobject; k++) {
		Object *o = &l->object[k];
		for (uint32_t j = 0; j < o->nsymbol; j++) {
			const Elf64_Sym *s = &o->symbol[j];
			if (!is_defined(s))
				continue;
			Global *g = find_global(l, symbol_name(o, j));
			if (g->object)
				return ctx_error(l->ctx, o->path, "%s is defined here and in %s",
						 symbol_name(o, j), g->object->path);
			*g = (Global){.name = symbol_name(o, j), .object = o, .symbol = j};
			if (ELF64_ST_VISIBILITY(s->st_other) == STV_DEFAULT)
				array_push(l->ctx->arena, &l->exported, g);
		}
	}
	return true;
}

/* ---- which sections are needed ---- */

static PartName part_of(const Elf64_Shdr *s, const char *name)
{
	if (s->sh_type == SHT_NOBITS)
		return BSS;
	if (s->sh_type == SHT_INIT_ARRAY || s->sh_type == SHT_FINI_ARRAY)
		return s->sh_type == SHT_INIT_ARRAY ? INIT : FINI;
	if (!(s->sh_flags & SHF_WRITE))
		return s->sh_flags & SHF_EXECINSTR ? TEXT : RODATA;
	return strncmp(name, ".data.rel.ro", 12) == 0 ? RELRO : DATA;
}

static const char *section_name(const Object *o, const Elf64_Shdr *s)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)(const void *)o->data;
	const Elf64_Shdr *names =
		e->e_shstrndx < o->nsection ? o->section[e->e_shstrndx].header : NULL;
	return names && s->sh_name < names->sh_size
		       ? (const char *)o->data + names->sh_offset + s->sh_name
		       : "";
}

static void need(Link *l, InputSection *s)
{
	if (s->live || !(s->header->sh_flags & SHF_ALLOC))
		return;
	s->live = true;
	array_push(l->ctx->arena, &l->live[part_of(s->header, section_name(s->object, s->header))],
		   s);
	array_push(l->ctx->arena, &l->todo, s);
}

static bool import(Link *l, const Object *o, Global *g, const char *name, bool weak)
{
	uint32_t version;
	if (!elf_version_find(&l->versions, name, &version)) {
		if (weak)
			return true;
		return ctx_error(l->ctx, o->path, "%s is defined nowhere", name);
	}
	g->name = name;
	g->import = ARENA_NEW(l->ctx->arena, ImportedSymbol);
	*g->import = (ImportedSymbol){.name = name, .version = version, .number = l->import.n + 1};
	array_push(l->ctx->arena, &l->import, g->import);
	return true;
}

static bool target_of(Link *l, Object *o, uint32_t k, RelocTarget *out)
{
	if (k >= o->nsymbol || o->symbol[k].st_shndx == SHN_COMMON)
		return object_error(l, o, "its relocations");
	*out = (RelocTarget){.object = o, .symbol = k};
	if (o->symbol[k].st_shndx != SHN_UNDEF)
		return true;
	Global *g = find_global(l, symbol_name(o, k));
	if (!g->object && !g->import)
		TRY(import(l, o, g, symbol_name(o, k),
			   ELF64_ST_BIND(o->symbol[k].st_info) == STB_WEAK));
	*out = (RelocTarget){g->object, g->symbol, g->object ? NULL : g->import};
	return true;
}

static void need_slot(Link *l, const RelocTarget *t)
{
	uint32_t *at = t->object   ? &t->object->slot[t->symbol]
		       : t->import ? &t->import->slot
				   : NULL;
	if (!at || *at)
		return;
	array_push(l->ctx->arena, &l->slot, *t);
	*at = l->slot.n;
}

static void need_stub(Link *l, const RelocTarget *t)
{
	if (!t->import || t->import->stub)
		return;
	need_slot(l, t);
	array_push(l->ctx->arena, &l->stub, t->import);
	t->import->stub = l->stub.n;
}

/* Notes what a relocation needs; the target's section is live from then on. */
static bool follow(Link *l, InputSection *s, const Elf64_Rela *r, uint64_t *dynamic)
{
	Object *o = s->object;
	RelocTarget t;
	TRY(target_of(l, o, (uint32_t)ELF64_R_SYM(r->r_info), &t));
	if (t.object) {
		uint16_t at = t.object->symbol[t.symbol].st_shndx;
		if (at < t.object->nsection)
			need(l, &t.object->section[at]);
	}
	switch (ELF64_R_TYPE(r->r_info)) {
	case R_X86_64_64:
		++*dynamic;
		return true;
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
		need_stub(l, &t);
		return true;
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX:
		need_slot(l, &t);
		return t.object || t.import || object_error(l, o, "a weak symbol");
	default:
		return object_error(l, o,
				    arena_printf(l->ctx->arena, "a relocation of kind %u",
						 (unsigned)ELF64_R_TYPE(r->r_info)));
	}
}

static bool find_needed(Link *l, uint64_t *dynamic)
{
	for (uint32_t k = 0; k < l->exported.n; k++) {
		const Global *g = l->exported.data[k];
		uint16_t at = g->object->symbol[g->symbol].st_shndx;
		if (at < g->object->nsection)
			need(l, &g->object->section[at]);
	}
	for (uint32_t k = 0; k < l->in->nobject; k++)
		for (uint32_t j = 0; j < l->object[k].nsection; j++) {
			uint32_t type = l->object[k].section[j].header->sh_type;
			if (type == SHT_INIT_ARRAY || type == SHT_FINI_ARRAY)
				need(l, &l->object[k].section[j]);
		}
	while (l->todo.n) {
		InputSection *s = l->todo.data[--l->todo.n];
		for (uint64_t k = 0; k < s->nrela; k++)
			TRY(follow(l, s, &s->rela[k], dynamic));
	}
	return true;
}

/* ---- places ---- */

static uint64_t up(uint64_t n, uint64_t align)
{
	return align > 1 ? (n + align - 1) / align * align : n;
}

/* Places the sections of a part, from its beginning. */
static void place_sections(Link *l, PartName p)
{
	uint64_t size = l->part[p].size;
	for (uint32_t k = 0; k < l->live[p].n; k++) {
		InputSection *s = l->live[p].data[k];
		if (s->header->sh_addralign > l->part[p].align)
			l->part[p].align = s->header->sh_addralign;
		s->address = size = up(size, s->header->sh_addralign);
		size += s->header->sh_size;
	}
	l->part[p].size = size;
}

/* Places the parts. A segment begins on a page of its own in memory, and where the last one ends
 * in the file. */
static void place_parts(Link *l)
{
	uint64_t offset = sizeof(Elf64_Ehdr) + NHEADER * sizeof(Elf64_Phdr), ahead = 0;
	for (uint32_t p = 0; p < NPART; p++) {
		OutputPart *part = &l->part[p];
		if (kinds[p].align > part->align)
			part->align = kinds[p].align;
		place_sections(l, p);
		if (p && kinds[p].segment != kinds[p - 1].segment)
			ahead += PAGE;
		part->offset = offset = up(offset, part->align);
		part->address = offset + ahead;
		if (kinds[p].type != SHT_NOBITS)
			offset += part->size;
		for (uint32_t k = 0; k < l->live[p].n; k++)
			l->live[p].data[k]->address += part->address;
	}
}

static uint64_t address_of(const RelocTarget *t)
{
	const Elf64_Sym *s = &t->object->symbol[t->symbol];
	return s->st_value +
	       (s->st_shndx < t->object->nsection ? t->object->section[s->st_shndx].address : 0);
}

static uint64_t slot_address(const Link *l, const RelocTarget *t)
{
	return l->part[GOT].address +
	       ((t->object ? t->object->slot[t->symbol] : t->import->slot) - 1) * (uint64_t)SLOT;
}

/* ---- tables of the loader ---- */

static void *make(Link *l, PartName p, uint64_t size)
{
	l->part[p].size = size;
	l->part[p].data = arena_calloc(l->ctx->arena, 1, size + 8);
	return l->part[p].data;
}

/* Makes the tables, whose sizes are known once sections are. */
static void make_tables(Link *l, uint64_t dynamic)
{
	const uint32_t nsymbol = 1 + l->import.n + l->exported.n;
	Elf64_Sym *symbol = make(l, DYNSYM, nsymbol * sizeof *symbol);
	uint32_t *hash = make(l, HASH, (3 + (uint64_t)nsymbol) * sizeof *hash);
	uint16_t *version = make(l, VERSYM, nsymbol * sizeof *version);
	Text text;
	text_init(&text, l->ctx->arena);
	text_addn(&text, "", 1);
	hash[0] = 1;
	hash[1] = nsymbol;
	for (uint32_t k = 1; k < nsymbol; k++) { /* all in one bucket, of which only exported ones
	                                            are found */
		const bool imported = k <= l->import.n;
		const char *name = imported ? l->import.data[k - 1]->name
					    : l->exported.data[k - 1 - l->import.n]->name;
		symbol[k].st_name = (uint32_t)text.n;
		symbol[k].st_info = ELF64_ST_INFO(STB_GLOBAL, imported ? STT_NOTYPE : STT_FUNC);
		version[k] = imported ? (uint16_t)l->import.data[k - 1]->version : VER_NDX_GLOBAL;
		text_addn(&text, name, strlen(name) + 1);
		if (!imported) {
			hash[3 + k] = hash[2];
			hash[2] = k;
		}
	}
	uint64_t size;
	const void *needs = elf_version_table(&l->versions, &text, &size);
	uint8_t *needs_at = make(l, VERNEED, size);
	if (size)
		memcpy(needs_at, needs, size);
	memcpy(make(l, DYNSTR, text.n), text.data, text.n);
	make(l, RELA, (dynamic + l->slot.n) * sizeof(Elf64_Rela));
	make(l, STUBS, l->stub.n * (uint64_t)STUB);
	make(l, GOT, l->slot.n * (uint64_t)SLOT);
	make(l, DYNAMIC, (24 + l->versions.nneeded) * sizeof(Elf64_Dyn));
}

static void fill_symbols(Link *l)
{
	Elf64_Sym *symbol = (Elf64_Sym *)(void *)l->part[DYNSYM].data;
	for (uint32_t k = 0; k < l->exported.n; k++) {
		const Global *g = l->exported.data[k];
		Elf64_Sym *s = &symbol[1 + l->import.n + k];
		const Elf64_Sym *from = &g->object->symbol[g->symbol];
		s->st_info = from->st_info;
		s->st_shndx = TEXT + 1; /* it is defined: loaders look at no more */
		s->st_value = address_of(&(RelocTarget){g->object, g->symbol, NULL});
		s->st_size = from->st_size;
	}
}

static void fill_dynamic(Link *l)
{
	Elf64_Dyn *d = (Elf64_Dyn *)(void *)l->part[DYNAMIC].data;
	const OutputPart *p = l->part;
	for (uint32_t k = 0; k < l->versions.nneeded; k++)
		*d++ = (Elf64_Dyn){DT_NEEDED, {l->versions.needed[k]}};
	const struct {
		PartName part;
		int64_t where, size;
	} tables[] = {{HASH, DT_HASH, 0},
		      {DYNSTR, DT_STRTAB, DT_STRSZ},
		      {DYNSYM, DT_SYMTAB, 0},
		      {RELA, DT_RELA, DT_RELASZ},
		      {VERSYM, DT_VERSYM, 0},
		      {VERNEED, DT_VERNEED, 0},
		      {INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
		      {FINI, DT_FINI_ARRAY, DT_FINI_ARRAYSZ}};
	for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
		if (!p[tables[k].part].size)
			continue;
		*d++ = (Elf64_Dyn){tables[k].where, {p[tables[k].part].address}};
		if (tables[k].size)
			*d++ = (Elf64_Dyn){tables[k].size, {p[tables[k].part].size}};
	}
	*d++ = (Elf64_Dyn){DT_SYMENT, {sizeof(Elf64_Sym)}};
	*d++ = (Elf64_Dyn){DT_RELAENT, {sizeof(Elf64_Rela)}};
	*d++ = (Elf64_Dyn){DT_RELACOUNT, {l->relative.n}};
	if (l->versions.nneed)
		*d++ = (Elf64_Dyn){DT_VERNEEDNUM, {l->versions.nneed}};
	*d++ = (Elf64_Dyn){DT_FLAGS, {DF_BIND_NOW}};
	*d++ = (Elf64_Dyn){DT_FLAGS_1, {DF_1_NOW}};
}

/* Fills in the stubs: jmp *slot(%rip); int3. */
static void fill_stubs(Link *l)
{
	for (uint32_t k = 0; k < l->stub.n; k++) {
		uint8_t *at = l->part[STUBS].data + k * STUB;
		int32_t to = (int32_t)(slot_address(l, &(RelocTarget){.import = l->stub.data[k]}) -
				       (l->part[STUBS].address + k * STUB + 6));
		memcpy(at, (const uint8_t[]){0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc}, STUB);
		memcpy(at + 2, &to, sizeof to);
	}
}

static void fill_slots(Link *l)
{
	for (uint32_t k = 0; k < l->slot.n; k++) {
		const RelocTarget *t = &l->slot.data[k];
		uint64_t at = l->part[GOT].address + k * (uint64_t)SLOT;
		if (t->object)
			array_push(l->ctx->arena, &l->relative,
				   (Elf64_Rela){at, R_X86_64_RELATIVE, (int64_t)address_of(t)});
		else
			array_push(l->ctx->arena, &l->other,
				   (Elf64_Rela){at,
						ELF64_R_INFO(t->import->number, R_X86_64_GLOB_DAT),
						0});
	}
}

/* Adds the relocations of addresses in tables. */
static bool dynamic_relocations(Link *l)
{
	for (uint32_t p = 0; p < NPART; p++)
		for (uint32_t k = 0; k < l->live[p].n; k++) {
			const InputSection *s = l->live[p].data[k];
			for (uint64_t j = 0; j < s->nrela; j++) {
				const Elf64_Rela *r = &s->rela[j];
				RelocTarget t;
				if (ELF64_R_TYPE(r->r_info) != R_X86_64_64)
					continue;
				TRY(target_of(l, s->object, (uint32_t)ELF64_R_SYM(r->r_info), &t));
				if (kinds[p].segment < 2)
					return object_error(l, s->object,
							    "an address in what is not written");
				const uint64_t at = s->address + r->r_offset;
				if (t.object)
					array_push(l->ctx->arena, &l->relative,
						   (Elf64_Rela){at, R_X86_64_RELATIVE,
								(int64_t)address_of(&t) +
									r->r_addend});
				else if (t.import)
					array_push(l->ctx->arena, &l->other,
						   (Elf64_Rela){at,
								ELF64_R_INFO(t.import->number,
									     R_X86_64_64),
								r->r_addend});
			}
		}
	return true;
}

static bool fill_relocations(Link *l)
{
	fill_slots(l);
	TRY(dynamic_relocations(l));
	Elf64_Rela *out = (Elf64_Rela *)(void *)l->part[RELA].data;
	if (l->relative.n)
		memcpy(out, l->relative.data, l->relative.n * sizeof *out);
	if (l->other.n)
		memcpy(out + l->relative.n, l->other.data, l->other.n * sizeof *out);
	/* weak symbols have none */
	l->part[RELA].size = (l->relative.n + (uint64_t)l->other.n) * sizeof *out;
	return true;
}

/* ---- the file ---- */

/* Computes a section's relocations relative to where it is, in a copy. */
static bool relocate(Link *l, const InputSection *s, uint8_t *data)
{
	for (uint64_t k = 0; k < s->nrela; k++) {
		const Elf64_Rela *r = &s->rela[k];
		const uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
		RelocTarget t;
		TRY(target_of(l, s->object, (uint32_t)ELF64_R_SYM(r->r_info), &t));
		if (r->r_offset > s->header->sh_size ||
		    s->header->sh_size - r->r_offset < (type == R_X86_64_64 ? 8u : 4u))
			return object_error(l, s->object, "its relocations");
		if (type == R_X86_64_64)
			continue; /* the loader's */
		const bool direct = type == R_X86_64_PC32 || type == R_X86_64_PLT32;
		const uint64_t to =
			!direct    ? slot_address(l, &t)
			: t.object ? address_of(&t)
			: t.import ? l->part[STUBS].address + (t.import->stub - 1) * (uint64_t)STUB
				   : 0;
		const int64_t distance =
			(int64_t)(to + (uint64_t)r->r_addend - (s->address + r->r_offset));
		if (distance != (int32_t)distance)
			return ctx_error(
				l->ctx, s->object->path,
				"the model is too large for one shared object: use --weights file");
		memcpy(data + r->r_offset, &(int32_t){(int32_t)distance}, 4);
	}
	return true;
}

static bool put(FILE *f, const void *data, uint64_t n, uint64_t *at)
{
	*at += n;
	return !n || fwrite(data, n, 1, f) == 1;
}

static bool pad(FILE *f, uint64_t to, uint64_t *at)
{
	static const uint8_t zero[2 * PAGE];
	return put(f, zero, to - *at, at);
}

static bool write_section(Link *l, FILE *f, const InputSection *s, uint64_t *at)
{
	const uint8_t *data = s->object->data + s->header->sh_offset;
	const size_t n = s->header->sh_size;
	if (!s->nrela)
		return put(f, data, n, at);
	if (n > l->nscratch) {
		l->scratch = arena_alloc(l->ctx->arena, n);
		l->nscratch = n;
	}
	memcpy(l->scratch, data, n);
	TRY(relocate(l, s, l->scratch));
	return put(f, l->scratch, n, at);
}

static void headers(const Link *l, uint64_t sections, Elf64_Ehdr *e, Elf64_Phdr *h)
{
	*e = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				      EV_CURRENT},
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof *e,
			  .e_shoff = sections,
			  .e_ehsize = sizeof *e,
			  .e_phentsize = sizeof *h,
			  .e_phnum = NHEADER,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = NPART + 2,
			  .e_shstrndx = NPART + 1};
	const uint64_t size = NHEADER * sizeof *h;
	*h++ = (Elf64_Phdr){PT_PHDR, PF_R, sizeof *e, sizeof *e, sizeof *e, size, size, 8};
	for (uint32_t k = 0, p = 0; k < NSEGMENT; k++) {
		uint64_t begin = k ? l->part[p].offset : 0, address = k ? l->part[p].address : 0,
			 end = begin, high = address;
		for (; p < NPART && kinds[p].segment == k; p++) {
			high = l->part[p].address + l->part[p].size;
			end = kinds[p].type == SHT_NOBITS ? end
							  : l->part[p].offset + l->part[p].size;
		}
		*h++ = (Elf64_Phdr){PT_LOAD, segment_flags[k], begin,          address,
				    address, end - begin,      high - address, PAGE};
	}
	const OutputPart *d = &l->part[DYNAMIC];
	*h++ = (Elf64_Phdr){PT_DYNAMIC, PF_R | PF_W, d->offset, d->address,
			    d->address, d->size,     d->size,   8};
	const Elf64_Phdr *relro = h - 3; /* segment 2; the next one begins on another page */
	*h = *relro;
	h->p_type = PT_GNU_RELRO;
	h->p_flags = PF_R;
	h->p_memsz = up(relro->p_vaddr + relro->p_memsz, PAGE) - relro->p_vaddr;
	h->p_align = 1;
	h[1] = (Elf64_Phdr){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16};
}

static bool write_section_headers(const Link *l, FILE *f, uint64_t *at)
{
	Elf64_Shdr s[NPART + 2] = {{0}};
	Text names;
	text_init(&names, l->ctx->arena);
	text_addn(&names, "", 1);
	for (uint32_t p = 0; p < NPART; p++) {
		const OutputPart *part = &l->part[p];
		s[p + 1] = (Elf64_Shdr){
			.sh_name = (uint32_t)names.n,
			.sh_type = kinds[p].type,
			.sh_flags = kinds[p].flags,
			.sh_addr = part->address,
			.sh_offset = part->offset,
			.sh_size = part->size,
			.sh_link = p == DYNSYM || p == VERNEED || p == DYNAMIC ? DYNSTR + 1
				   : p == HASH || p == VERSYM || p == RELA     ? DYNSYM + 1
									       : 0,
			.sh_info = p == DYNSYM    ? 1
				   : p == VERNEED ? l->versions.nneed
						  : 0,
			.sh_addralign = part->align,
			.sh_entsize = kinds[p].entry};
		text_addn(&names, kinds[p].name, strlen(kinds[p].name) + 1);
	}
	s[NPART + 1] = (Elf64_Shdr){.sh_name = (uint32_t)names.n,
				    .sh_type = SHT_STRTAB,
				    .sh_offset = *at + sizeof s,
				    .sh_addralign = 1};
	text_addn(&names, ".shstrtab", sizeof ".shstrtab");
	s[NPART + 1].sh_size = names.n;
	return put(f, s, sizeof s, at) && put(f, names.data, names.n, at);
}

static bool write_file(Link *l, FILE *f)
{
	Elf64_Ehdr e;
	Elf64_Phdr h[NHEADER];
	uint64_t at = 0;
	headers(l, up(l->part[BSS].offset, 8), &e, h);
	TRY(put(f, &e, sizeof e, &at) && put(f, h, sizeof h, &at));
	for (uint32_t p = 0; p < BSS; p++) {
		const OutputPart *part = &l->part[p];
		TRY(pad(f, part->offset, &at));
		if (part->data) {
			TRY(put(f, part->data, part->size, &at));
			continue;
		}
		for (uint32_t k = 0; k < l->live[p].n; k++) {
			const InputSection *s = l->live[p].data[k];
			TRY(pad(f, part->offset + (s->address - part->address), &at) &&
			    write_section(l, f, s, &at));
		}
	}
	TRY(pad(f, e.e_shoff, &at));
	return write_section_headers(l, f, &at);
}

bool elf_links_for(uint16_t machine)
{
	return machine == EM_X86_64;
}

bool elf_link(Ctx *ctx, const ElfLink *in, const char *out)
{
	Link *l = ARENA_NEW(ctx->arena, Link);
	uint64_t dynamic = 0;
	*l = (Link){.ctx = ctx, .in = in, .object = ARENA_ARRAY(ctx->arena, Object, in->nobject)};
	TRY(elf_versions_read(ctx, in->library, in->nlibrary, &l->versions));
	for (uint32_t k = 0; k < in->nobject; k++)
		TRY(read_object(l, &l->object[k], in->object[k]));
	TRY(read_globals(l) && find_needed(l, &dynamic));
	make_tables(l, dynamic);
	place_parts(l);
	fill_symbols(l);
	fill_stubs(l);
	TRY(fill_relocations(l));
	fill_dynamic(l);
	FILE *f = fopen(out, "wbe");
	if (!f)
		return ctx_error(ctx, out, "cannot be written: %s", strerror(errno));
	const uint32_t before = ctx->nerror;
	bool ok = write_file(l, f);
	ok = fclose(f) == 0 && ok;
	if (!ok && ctx->nerror == before)
		ctx_error(ctx, out, "cannot be written: %s", strerror(errno));
	return ok;
}
