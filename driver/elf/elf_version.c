#include "driver/elf/elf_version.h"

#include <elf.h>
#include <string.h>

#include "base/array.h"
#include "frontend/files/file.h"

typedef struct {
	uint16_t theirs, ours; /* numbers of a version, in the library and in the file that is
	                          made */
} Used;

struct ElfLibrary {
	const char *name;
	const uint8_t *data;
	size_t size;
	const Elf64_Sym *symbol;
	uint32_t nsymbol;
	const char *text;
	uint64_t ntext;
	const uint16_t *version; /* by symbol, for the first nversion of them */
	uint64_t nversion;
	uint64_t definitions, ndefinitions; /* of versions: where, and bytes */
	bool used;
	ARRAY(Used) of;
};

/* ---- reading ---- */

static const void *bytes_at(const ElfLibrary *l, uint64_t at, uint64_t n)
{
	return at <= l->size && n <= l->size - at && at % 2 == 0 ? l->data + at : NULL;
}

static bool read_library(Ctx *ctx, ElfLibrary *l, const char *path)
{
	FileMap f;
	TRY(file_map_full(ctx, path, &f));
	*l = (ElfLibrary){.name = file_base(path), .data = f.data, .size = f.size};
	const Elf64_Ehdr *e = bytes_at(l, 0, sizeof *e);
	bool good = e && !memcmp(e->e_ident, ELFMAG, SELFMAG) &&
		    e->e_ident[EI_CLASS] == ELFCLASS64 && e->e_type == ET_DYN;
	const Elf64_Shdr *s = good && e->e_shentsize == sizeof *s
				      ? bytes_at(l, e->e_shoff, (uint64_t)e->e_shnum * sizeof *s)
				      : NULL;
	for (uint32_t k = 0; s && k < e->e_shnum; k++) {
		const void *at = s[k].sh_type == SHT_NOBITS
					 ? NULL
					 : bytes_at(l, s[k].sh_offset, s[k].sh_size);
		if (at && s[k].sh_type == SHT_DYNSYM && s[k].sh_link < e->e_shnum) {
			l->symbol = at;
			l->nsymbol = (uint32_t)(s[k].sh_size / sizeof *l->symbol);
			l->text = bytes_at(l, s[s[k].sh_link].sh_offset, s[s[k].sh_link].sh_size);
			l->ntext = s[s[k].sh_link].sh_size;
		} else if (at && s[k].sh_type == SHT_GNU_versym) {
			l->version = at;
			l->nversion = s[k].sh_size / sizeof *l->version;
		} else if (at && s[k].sh_type == SHT_GNU_verdef) {
			l->definitions = s[k].sh_offset;
			l->ndefinitions = s[k].sh_size;
		}
	}
	good = l->symbol && l->text && l->ntext && !l->text[l->ntext - 1];
	return good ||
	       ctx_error(ctx, path, "expected a shared library with symbols: install ld or lld");
}

bool elf_versions_read(Ctx *ctx, const char *const *path, uint32_t n, ElfVersions *v)
{
	*v = (ElfVersions){.arena = ctx->arena,
			   .library = ARENA_ARRAY(ctx->arena, ElfLibrary, n),
			   .nlibrary = n,
			   .next = 2};
	for (uint32_t k = 0; k < n; k++)
		TRY(read_library(ctx, &v->library[k], path[k]));
	return true;
}

/* ---- looking ---- */

static uint32_t number(ElfVersions *v, ElfLibrary *l, uint16_t theirs)
{
	for (uint32_t k = 0; k < l->of.n; k++)
		if (l->of.data[k].theirs == theirs)
			return l->of.data[k].ours;
	array_push(v->arena, &l->of, (Used){theirs, v->next});
	return v->next++;
}

bool elf_version_find(ElfVersions *v, const char *name, uint32_t *version)
{
	const uint16_t hidden = 0x8000;
	for (uint32_t k = 0; k < v->nlibrary; k++) {
		ElfLibrary *l = &v->library[k];
		for (uint32_t j = 1; j < l->nsymbol; j++) {
			const Elf64_Sym *s = &l->symbol[j];
			if (s->st_shndx == SHN_UNDEF || s->st_name >= l->ntext ||
			    strcmp(l->text + s->st_name, name) != 0)
				continue;
			const uint16_t theirs = j < l->nversion ? l->version[j] : VER_NDX_GLOBAL;
			if (theirs & hidden)
				continue;
			l->used = true;
			*version = theirs > VER_NDX_GLOBAL ? number(v, l, theirs) : VER_NDX_GLOBAL;
			return true;
		}
	}
	return false;
}

/* ---- the table ---- */

static const char *version_name(const ElfLibrary *l, uint16_t theirs)
{
	uint64_t at = l->definitions, end = l->definitions + l->ndefinitions;
	while (at + sizeof(Elf64_Verdef) <= end) {
		const Elf64_Verdef *d = bytes_at(l, at, sizeof *d);
		const Elf64_Verdaux *a = d ? bytes_at(l, at + d->vd_aux, sizeof *a) : NULL;
		if (!a)
			break;
		if (d->vd_ndx == theirs)
			return a->vda_name < l->ntext ? l->text + a->vda_name : "";
		if (!d->vd_next)
			break;
		at += d->vd_next;
	}
	return "";
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 0;
	for (; *name; name++) {
		h = (h << 4) + (uint8_t)*name;
		h = (h ^ (h >> 24 & 0xf0)) & 0xfffffff;
	}
	return h;
}

static uint32_t add_name(Text *names, const char *name)
{
	uint32_t at = (uint32_t)names->n;
	text_addn(names, name, strlen(name) + 1);
	return at;
}

const void *elf_version_table(ElfVersions *v, Text *names, uint64_t *size)
{
	Text t;
	uint64_t *needed = ARENA_ARRAY(v->arena, uint64_t, v->nlibrary);
	Elf64_Verneed last = {0};
	size_t at = 0;
	text_init(&t, v->arena);
	v->needed = needed;
	for (uint32_t k = 0; k < v->nlibrary; k++) {
		const ElfLibrary *l = &v->library[k];
		if (!l->used)
			continue;
		needed[v->nneeded++] = add_name(names, l->name);
		if (!l->of.n)
			continue;
		if (v->nneed++) { /* the one before is not the last */
			last.vn_next = (uint32_t)(t.n - at);
			memcpy(t.data + at, &last, sizeof last);
		}
		at = t.n;
		last = (Elf64_Verneed){VER_NEED_CURRENT, (uint16_t)l->of.n,
				       (uint32_t)needed[v->nneeded - 1], sizeof last, 0};
		text_addn(&t, (const char *)&last, sizeof last);
		for (uint32_t j = 0; j < l->of.n; j++) {
			const char *name = version_name(l, l->of.data[j].theirs);
			const Elf64_Vernaux a = {hash_of(name), 0, l->of.data[j].ours,
						 add_name(names, name),
						 j + 1 < l->of.n ? sizeof a : 0};
			text_addn(&t, (const char *)&a, sizeof a);
		}
	}
	*size = t.n;
	return t.data;
}
