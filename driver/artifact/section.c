#include "driver/artifact/section.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/parallel.h"
#include "driver/elf/elf_object.h"
#include "driver/artifact/jobs.h"
#include "ir/interp/tensor.h"
#include "runtime/relayout.h"
#include "runtime/runtime.h"

enum { PAGE = WEFT_WEIGHT_HEADER, LINE = 64, SMALL = 16 * PAGE };

/* Sets out[] to the layout with numbers for symbols: constants have constant shapes. */
static bool layout_numbers(Program *p, const ProgramConst *c, WeftLayoutDim *out)
{
	const SymTab *t = p->ir->syms;
	for (uint32_t k = 0; k < c->layout.n; k++) {
		const LayoutDim *d = &c->layout.dim[k];
		out[k] = (WeftLayoutDim){.axis = d->axis, .divisor = d->divisor};
		TRY(sym_is_const(t, d->extent, &out[k].extent));
		TRY(sym_is_const(t, d->padded, &out[k].padded));
	}
	return true;
}

/* ---- parts of the section ---- */

/* A constant in its place. */
typedef struct {
	WeftPacking packing;
	DType source, stored; /* converted on the way where they differ */
	uint64_t at, bytes;
} SectionPiece;

/* By offset. What lies between pieces is zero. */
typedef struct {
	const SectionPiece *piece;
	uint32_t n;
	uint64_t bytes;
} ConstSection;

/* What a thread takes at once: it stays in a cache on its way to the file. */
enum { PART = 1 << 20 };

static SectionPiece piece_of(Program *p, const ProgramConst *c)
{
	Ctx *ctx = p->ir->ctx;
	const Const *s = ir_const_of(p->ir, c->source);
	WeftLayoutDim layout[WEFT_MAX_LAYOUT];
	size_t item = dtype_size(c->dtype);
	if (!layout_numbers(p, c, layout))
		ctx_bug(ctx, "constant %s has a symbolic layout", c->name);
	SectionPiece q = {.source = s->dtype, .stored = c->dtype, .at = c->offset};
	q.packing =
		weft_packing(s->data, dtype_size(s->dtype), s->rank, s->dim, c->layout.n, layout);
	q.bytes = q.packing.count * item;
	if (q.bytes > c->bytes || c->offset % item || c->offset > p->weight_bytes ||
	    c->bytes > p->weight_bytes - c->offset)
		ctx_bug(ctx, "constant %s does not fit its place: %llu bytes", c->name,
			(unsigned long long)q.bytes);
	return q;
}

static int by_offset(const void *a, const void *b)
{
	const SectionPiece *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

static ConstSection section_of(Program *p, Arena *a)
{
	SectionPiece *piece = ARENA_ARRAY(a, SectionPiece, p->constant.n);
	for (uint32_t k = 0; k < p->constant.n; k++)
		piece[k] = piece_of(p, &p->constant.data[k]);
	qsort(piece, p->constant.n, sizeof *piece, by_offset);
	return (ConstSection){piece, p->constant.n, p->weight_bytes};
}

/* Packs the elements first to first + n in the dtype they are stored in. */
static void piece_part(const SectionPiece *c, uint64_t first, uint64_t n, char *to)
{
	enum { CHUNK = 1024 };
	double wide[CHUNK], packed[2 * CHUNK];
	if (c->source == c->stored) {
		weft_pack_part(&c->packing, first, n, to);
		return;
	}
	Tensor from = {.dtype = c->source, .rank = 1, .data = packed};
	Tensor stored = {.dtype = c->stored, .rank = 1, .data = to};
	for (uint64_t i = 0; i < n; i += CHUNK) {
		int64_t k = n - i < CHUNK ? (int64_t)(n - i) : CHUNK;
		from.dim[0] = stored.dim[0] = k;
		weft_pack_part(&c->packing, first + i, (uint64_t)k, packed);
		tensor_read_f64(&from, 0, k, wide);
		tensor_write_f64(&stored, 0, k, wide);
		stored.data = (char *)stored.data + (uint64_t)k * dtype_size(c->stored);
	}
}

/* Writes the bytes lo to hi of the section; both are multiples of 64, or the end. */
static void section_part(const ConstSection *s, uint64_t lo, uint64_t hi, char *to)
{
	uint64_t done = lo;
	for (uint32_t k = 0; k < s->n && s->piece[k].at < hi; k++) {
		const SectionPiece *c = &s->piece[k];
		uint64_t end = c->at + c->bytes < hi ? c->at + c->bytes : hi,
			 begin = c->at > lo ? c->at : lo;
		if (end <= begin)
			continue;
		if (begin > done)
			memset(to + (done - lo), 0, begin - done);
		size_t item = dtype_size(c->stored);
		piece_part(c, (begin - c->at) / item, (end - begin) / item, to + (begin - lo));
		done = end > done ? end : done;
	}
	memset(to + (done - lo), 0, hi - done);
}

static uint64_t part_end(const ConstSection *s, uint64_t lo)
{
	return s->bytes - lo < PART ? s->bytes : lo + PART;
}

/* ---- in memory ---- */

typedef struct {
	const ConstSection *section;
	char *to;
	atomic_uint_least64_t next;
} Filling;

static void *fill(void *arg)
{
	Filling *f = arg;
	for (uint64_t lo; (lo = atomic_fetch_add(&f->next, PART)) < f->section->bytes;)
		section_part(f->section, lo, part_end(f->section, lo), f->to + lo);
	return NULL;
}

static void section_fill(Program *p, char *to, uint32_t jobs)
{
	Arena *scratch = p->ir->ctx->scratch;
	ArenaMark mark = arena_mark(scratch);
	const ConstSection s = section_of(p, scratch);
	Filling f = {.section = &s, .to = to};
	/* Starting a thread costs about what copying a part does. */
	parallel_run(s.bytes > PART ? jobs : 1, fill, &f);
	arena_release(scratch, mark);
}

void section_unmap(SectionMap *m)
{
	if (m->data)
		munmap(m->data, m->bytes);
	m->data = NULL;
}

static void unmap(void *arg)
{
	section_unmap(arg);
}

bool section_map(Program *p, uint32_t jobs, SectionMap **out)
{
	Ctx *ctx = p->ir->ctx;
	uint64_t bytes = p->weight_bytes;
	SectionMap *m = *out = ARENA_NEW(ctx->arena, SectionMap);
	if (!bytes)
		return true;
	ctx_defer(ctx, unmap, m);
	void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		return ctx_error(ctx, NULL, "no memory for %llu bytes of weights: %s",
				 (unsigned long long)bytes, strerror(errno));
	*m = (SectionMap){data, bytes};
	madvise(data, bytes, MADV_HUGEPAGE); /* an optimisation only */
	section_fill(p, data, jobs ? jobs : jobs_default());
	return mprotect(data, bytes, PROT_READ) == 0 ||
	       ctx_error(ctx, NULL, "cannot protect the weights: %s", strerror(errno));
}

/* Returns a hash of the section. The file's kind of integers is the machine's: so are the
 * weights. */
const char *section_hash(Program *p)
{
	Ctx *ctx = p->ir->ctx;
	uint64_t h[2] = {hash_combine(1, p->weight_bytes), hash_combine(2, 0)};
	for (uint32_t k = 0; k < p->constant.n; k++) {
		const ProgramConst *c = &p->constant.data[k];
		WeftLayoutDim layout[2 * MAX_RANK] = {0};
		if (!layout_numbers(p, c, layout))
			ctx_bug(ctx, "constant %s has a symbolic layout", c->name);
		const uint64_t what[] = {const_hash(p->ir, c->source), (uint64_t)c->dtype,
					 c->offset, c->bytes, c->layout.n};
		for (int i = 0; i < 2; i++) {
			h[i] = hash_bytes(what, sizeof what, h[i]);
			for (uint32_t d = 0; d < c->layout.n; d++) {
				const WeftLayoutDim *l = &layout[d];
				const int64_t dim[] = {l->axis, l->divisor, l->extent, l->padded};
				h[i] = hash_bytes(dim, sizeof dim, h[i]);
			}
		}
	}
	return arena_printf(ctx->arena, "%016llx%016llx", (unsigned long long)h[0],
			    (unsigned long long)h[1]);
}

/* ---- in a file ---- */

typedef struct {
	const ConstSection *section;
	int fd;
	uint64_t start; /* of the section in the file */
	char *buffer;   /* of PART bytes, of the first thread */
	atomic_bool taken;
	atomic_uint_least64_t next;
	atomic_int why; /* errno of the first failure; the others stop then */
	/* The checksum goes through the section from front to back, a thread after the other. */
	bool checked;
	pthread_mutex_t lock;
	pthread_cond_t turn;
	uint64_t summed, checksum[4];
} Writing;

/* Writes all n bytes, at that place of the file. Returns 0 or errno. */
static int write_at(int fd, const char *data, uint64_t n, uint64_t at)
{
	while (n) {
		ssize_t k = pwrite(fd, data, n, (off_t)at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k ? errno : EIO;
		data += k, n -= (uint64_t)k, at += (uint64_t)k;
	}
	return 0;
}

static void add_to_checksum(Writing *w, const char *part, uint64_t lo, uint64_t hi)
{
	pthread_mutex_lock(&w->lock);
	while (w->summed != lo)
		pthread_cond_wait(&w->turn, &w->lock);
	pthread_mutex_unlock(&w->lock);
	if (part)
		weft_checksum_add(w->checksum, part, hi - lo);
	pthread_mutex_lock(&w->lock);
	w->summed = hi;
	pthread_cond_broadcast(&w->turn);
	pthread_mutex_unlock(&w->lock);
}

static void *write_parts(void *arg)
{
	Writing *w = arg;
	bool first = !atomic_exchange(&w->taken, true);
	char *part = first ? w->buffer : malloc(PART);
	for (uint64_t lo; part && (lo = atomic_fetch_add(&w->next, PART)) < w->section->bytes;) {
		uint64_t hi = part_end(w->section, lo);
		bool go = !atomic_load(&w->why);
		if (go)
			section_part(w->section, lo, hi, part);
		int why = go ? write_at(w->fd, part, hi - lo, w->start + lo) : 0, none = 0;
		if (why)
			atomic_compare_exchange_strong(&w->why, &none, why);
		if (w->checked) /* the others wait for it in any case */
			add_to_checksum(w, go ? part : NULL, lo, hi);
	}
	if (!first)
		free(part);
	return NULL;
}

/* Returns where the section begins in the file. In an object that is its alignment too: a small
 * section at a page would take mostly padding. */
static uint64_t start_of(const Program *p, SectionKind kind)
{
	if (kind == SECTION_RAW)
		return 0;
	return kind == SECTION_OBJECT && p->weight_bytes < SMALL ? LINE : PAGE;
}

/* Writes what stands before and behind the section. */
static int write_rest(Program *p, const Writing *w, SectionKind kind, const SectionNames *names)
{
	Arena *scratch = p->ir->ctx->scratch;
	if (kind == SECTION_RAW)
		return 0;
	char *head = arena_alloc(scratch, w->start);
	uint64_t tail_bytes = 0;
	char *tail = NULL;
	if (kind == SECTION_OBJECT) {
		tail_bytes = elf_object_bytes(w->start, p->weight_bytes, names->symbol) - w->start -
			     p->weight_bytes;
		tail = arena_alloc(scratch, tail_bytes);
		elf_object_write(head, tail, w->start, p->weight_bytes, names->symbol,
				 names->triple);
	} else {
		WeftWeightHeader *h = (WeftWeightHeader *)head;
		memcpy(h->magic, WEFT_WEIGHT_MAGIC, sizeof h->magic);
		strncpy(h->hash, names->hash, sizeof h->hash - 1);
		h->bytes = p->weight_bytes;
		h->checksum = weft_checksum_end(w->checksum);
	}
	int why = write_at(w->fd, head, w->start, 0);
	return why ? why : write_at(w->fd, tail, tail_bytes, w->start + p->weight_bytes);
}

static int write_all(Program *p, int fd, SectionKind kind, const SectionNames *names, uint32_t jobs)
{
	Arena *scratch = p->ir->ctx->scratch;
	const ConstSection s = section_of(p, scratch);
	Writing w = {.section = &s,
		     .fd = fd,
		     .start = start_of(p, kind),
		     .checked = kind == SECTION_FILE,
		     .buffer = arena_alloc(scratch, PART),
		     .lock = PTHREAD_MUTEX_INITIALIZER,
		     .turn = PTHREAD_COND_INITIALIZER};
	weft_checksum_begin(w.checksum, s.bytes);
	parallel_run(s.bytes > PART ? jobs : 1, write_parts, &w);
	int why = atomic_load(&w.why);
	return why ? why : write_rest(p, &w, kind, names);
}

int section_write(Program *p, SectionKind kind, const SectionNames *names, uint32_t jobs,
		  const char *path)
{
	Arena *scratch = p->ir->ctx->scratch;
	ArenaMark mark = arena_mark(scratch);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;
	int why = write_all(p, fd, kind, names, jobs ? jobs : jobs_default());
	arena_release(scratch, mark);
	return close(fd) && !why ? errno : why;
}
