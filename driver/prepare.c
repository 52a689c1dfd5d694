#include "driver/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "driver/elf_object.h"
#include "driver/jobs.h"
#include "ir/interp/tensor.h"
#include "runtime/runtime.h"

enum { PAGE = WEFT_WEIGHT_HEADER };

/* The layout with numbers for symbols: constants have constant shapes. */
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

/* One constant on its way into the section; arranged without a context, by any thread. */
typedef struct {
	const Const *source;
	DType dtype;
	void *converted; /* room for the elements where dtype is not the source's */
	char *to;
	uint32_t nlayout;
	WeftLayoutDim layout[2 * MAX_RANK];
} Piece;

/* The constant's elements in the dtype they are stored in. */
static const void *stored_data(const Piece *c)
{
	const Const *s = c->source;
	if (!c->converted)
		return s->data;
	Tensor from = {.dtype = s->dtype, .rank = 1, .data = (void *)(uintptr_t)s->data};
	from.dim[0] = (int64_t)(s->bytes / dtype_size(s->dtype));
	Tensor to = from;
	to.dtype = c->dtype;
	to.data = c->converted;
	enum { CHUNK = 1024 };
	double wide[CHUNK];
	for (int64_t i = 0; i < from.dim[0]; i += CHUNK) {
		int64_t n = from.dim[0] - i < CHUNK ? from.dim[0] - i : CHUNK;
		tensor_read_f64(&from, i, n, wide);
		tensor_write_f64(&to, i, n, wide);
	}
	return to.data;
}

/* Where c goes and how, checked. */
static Piece piece_of(Program *p, const ProgramConst *c, char *section)
{
	Ctx *ctx = p->ir->ctx;
	const Const *s = ir_const_of(p->ir, c->source);
	Piece q = {.source = s, .dtype = c->dtype, .to = section + c->offset, .nlayout = c->layout.n};
	if (!layout_numbers(p, c, q.layout))
		ctx_bug(ctx, "constant %s has a symbolic layout", c->name);
	uint64_t bytes = dtype_size(c->dtype), plain = s->bytes / dtype_size(s->dtype) * bytes;
	for (uint32_t k = 0; k < c->layout.n; k++)
		bytes *= (uint64_t)q.layout[k].padded;
	if (c->layout.n == 0)
		bytes = plain;
	if (bytes > c->bytes || c->offset > p->weight_bytes ||
	    c->bytes > p->weight_bytes - c->offset)
		ctx_bug(ctx, "constant %s does not fit its place: %llu bytes", c->name,
			(unsigned long long)bytes);
	if (s->dtype != c->dtype)
		q.converted = arena_alloc(ctx->scratch, plain);
	return q;
}

typedef struct {
	const Piece *piece;
	uint32_t n;
	atomic_uint next;
} Filling;

static void *fill(void *arg)
{
	Filling *f = arg;
	for (uint32_t k; (k = atomic_fetch_add(&f->next, 1)) < f->n;) {
		const Piece *c = &f->piece[k];
		weft_relayout(c->to, stored_data(c), dtype_size(c->dtype), c->source->rank, c->source->dim,
			      c->nlayout, c->layout);
	}
	return NULL;
}

void section_fill(Program *p, char *section, uint32_t jobs)
{
	enum { MOST = 16 };
	Arena *scratch = p->ir->ctx->scratch;
	ArenaMark mark = arena_mark(scratch);
	Piece *piece = ARENA_ARRAY(scratch, Piece, p->constant.n);
	for (uint32_t k = 0; k < p->constant.n; k++)
		piece[k] = piece_of(p, &p->constant.data[k], section);
	Filling f = {.piece = piece, .n = p->constant.n};
	pthread_t thread[MOST];
	uint32_t n = 0, want = jobs > MOST ? MOST : jobs;
	/* Starting a thread costs about what copying this much does. */
	while (n + 1 < want && p->weight_bytes > 1 << 20 && pthread_create(&thread[n], NULL, fill, &f) == 0)
		n++;
	fill(&f);
	while (n)
		pthread_join(thread[--n], NULL);
	arena_release(scratch, mark);
}

typedef struct {
	void *data;
	uint64_t bytes;
} Mapped;

static void unmap(void *arg)
{
	const Mapped *m = arg;
	if (m->data)
		munmap(m->data, m->bytes);
}

bool section_map(Program *p, uint32_t jobs, const void **out)
{
	Ctx *ctx = p->ir->ctx;
	uint64_t bytes = p->weight_bytes;
	*out = NULL;
	if (!bytes)
		return true;
	Mapped *m = ARENA_NEW(ctx->arena, Mapped);
	ctx_defer(ctx, unmap, m);
	void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		return ctx_error(ctx, NULL, "no memory for %llu bytes of weights: %s", (unsigned long long)bytes,
				 strerror(errno));
	*m = (Mapped){data, bytes};
	madvise(data, bytes, MADV_HUGEPAGE); /* an optimisation only */
	section_fill(p, data, jobs ? jobs : jobs_default());
	*out = data;
	return mprotect(data, bytes, PROT_READ) == 0 ||
	       ctx_error(ctx, NULL, "cannot protect the weights: %s", strerror(errno));
}

/* The file's kind of integers is the machine's: so are the weights. */
const char *section_hash(Program *p)
{
	Ctx *ctx = p->ir->ctx;
	uint64_t h[2] = {hash_combine(1, p->weight_bytes), hash_combine(2, p->state_init)};
	for (uint32_t k = 0; k < p->constant.n; k++) {
		const ProgramConst *c = &p->constant.data[k];
		WeftLayoutDim layout[2 * MAX_RANK] = {0};
		if (!layout_numbers(p, c, layout))
			ctx_bug(ctx, "constant %s has a symbolic layout", c->name);
		const uint64_t what[] = {const_hash(p->ir, c->source), (uint64_t)c->dtype, c->offset, c->bytes,
					 c->layout.n};
		for (int i = 0; i < 2; i++) {
			h[i] = hash_bytes(what, sizeof what, h[i]);
			for (uint32_t d = 0; d < c->layout.n; d++) {
				const WeftLayoutDim *l = &layout[d];
				const int64_t dim[] = {l->axis, l->divisor, l->extent, l->padded};
				h[i] = hash_bytes(dim, sizeof dim, h[i]);
			}
		}
	}
	return arena_printf(ctx->arena, "%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]);
}

/* Everything of the file but the section itself. */
static void decorate(Program *p, SectionKind kind, const char *symbol, const char *triple,
		     const char *hash, char *file)
{
	if (kind == SECTION_FILE) {
		WeftWeightHeader *h = (WeftWeightHeader *)file;
		memcpy(h->magic, WEFT_WEIGHT_MAGIC, sizeof h->magic);
		strncpy(h->hash, hash, sizeof h->hash - 1);
		h->bytes = p->weight_bytes;
		h->checksum = weft_checksum(file + PAGE, p->weight_bytes);
	}
	if (kind == SECTION_OBJECT)
		elf_object_write(file, PAGE, p->weight_bytes, symbol, triple);
}

int section_write(Program *p, SectionKind kind, const char *symbol, const char *triple,
		  const char *hash, const char *path)
{
	uint64_t start = kind == SECTION_RAW ? 0 : PAGE;
	uint64_t size = start + p->weight_bytes;
	if (kind == SECTION_OBJECT)
		size = elf_object_bytes(PAGE, p->weight_bytes, symbol);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;
	if (size == 0)
		return close(fd) ? errno : 0;
	/* Reserve the space first: a full disk must not end in a signal when the mapping is
	 * written. */
	int err = posix_fallocate(fd, 0, (off_t)size);
	char *file = err ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err = err ? err : errno;
	close(fd);
	if (file == MAP_FAILED)
		return err;
	section_fill(p, file + start, jobs_default());
	decorate(p, kind, symbol, triple, hash, file);
	return munmap(file, size) ? errno : 0;
}
