/* Checks of functions with fragments: declarations and shapes, and that on every path of a task a
 * fragment gets a value before it is read. */
#include "ir/loop/verify_priv.h"

#include <stdarg.h>

typedef struct {
	LoopFn *f;
	uint32_t count; /* fragments declared so far */
	bool ok;
} Frags;

static void fail(Frags *v, const LsData *s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void fail(Frags *v, const LsData *s, const char *fmt, ...)
{
	Text t;
	va_list ap;
	Arena *arena = v->f->ir->ctx->scratch;
	text_init(&t, arena);
	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	v->ok = false;
	ctx_error(v->f->ir->ctx, v->f->name, "loop IR: %s %s: %s", ls_row(s->kind)->name,
		  ls_subject(v->f, s), t.data);
}

/* Returns the most fragments that the function may have: the least number that one of its
 * operations allows; without operations, what the first operation of the table allows. */
static uint32_t most_fragments(const LoopFn *f)
{
	uint32_t most = UINT32_MAX;
	for (uint32_t k = 0; k < f->ls.n; k++)
		if (f->ls.data[k].kind == LS_FRAG_DOT && f->ls.data[k].k < FRAG_OPS &&
		    frag_row((FragOp)f->ls.data[k].k)->count < most)
			most = frag_row((FragOp)f->ls.data[k].k)->count;
	for (FragOp op = 0; op < FRAG_OPS && most == UINT32_MAX; op++)
		most = frag_row(op)->count;
	return most;
}

static void check_declaration(Frags *v, const LsData *s)
{
	const uint64_t bytes = (uint64_t)s->cols * dtype_size(s->dtype),
		       most = most_fragments(v->f);
	if (s->k != v->count)
		fail(v, s, "begins at number %u, not at %u", s->k, v->count);
	if (s->count > most || v->count + s->count > most)
		fail(v, s, "more than %u fragments", (uint32_t)most);
	else
		v->count += (uint32_t)s->count;
	if (!s->rows || s->rows > FRAG_ROWS || !s->cols || bytes > FRAG_ROW_BYTES || bytes % 4)
		fail(v, s, "%u rows of %u elements: at most %d rows of %d bytes, a multiple of 4",
		     s->rows, s->cols, (int)FRAG_ROWS, (int)FRAG_ROW_BYTES);
}

/* Returns the declaration; NULL after an error. */
static const LsData *declared(Frags *v, const LsData *s, uint32_t k)
{
	const LsData *d = loop_frag(v->f, s->frag[k]);
	if (!d)
		fail(v, s, "no such fragments");
	else if (s->frag[k].k >= d->count)
		fail(v, s, "fragment %u of %llu", s->frag[k].k, (unsigned long long)d->count);
	return d && s->frag[k].k < d->count ? d : NULL;
}

static bool has_shape(const LsData *d, DType dtype, uint32_t rows, uint32_t cols)
{
	return d->dtype == dtype && d->rows == rows && d->cols == cols;
}

static void check_dot(Frags *v, const LsData *s)
{
	const LsData *d[3];
	if (s->k >= FRAG_OPS) {
		fail(v, s, "no such operation");
		return;
	}
	for (uint32_t k = 0; k < 3; k++)
		if (!(d[k] = declared(v, s, k)))
			return;
	const FragRow *r = frag_row((FragOp)s->k);
	const uint32_t m = d[0]->rows, n = d[0]->cols, steps = d[1]->cols;
	if (m > r->rows || n > r->cols || steps > r->k || steps % r->group)
		fail(v, s, "%s takes at most %u x %u x %u, and groups of %u", r->name, r->rows,
		     r->cols, r->k, r->group);
	else if (!has_shape(d[0], r->acc, m, n) || !has_shape(d[1], r->a, m, steps) ||
		 !has_shape(d[2], r->b, steps / r->group, n * r->group))
		fail(v, s, "the fragments do not fit %s", r->name);
}

static void check_rows(Frags *v, const LsData *s)
{
	const LsData *d = declared(v, s, 0);
	if (d && s->mem.dtype != d->dtype && s->mem.dtype != dtype_raw(d->dtype))
		fail(v, s, "the memory has elements of %s, the fragment of %s",
		     dtype_name(s->mem.dtype), dtype_name(d->dtype));
}

/* ---- values before use ---- */

/* Whether the fragments that the statement reads are among `have`, a bit for each. */
static void check_use(Frags *v, const LsData *s, uint64_t have)
{
	const bool reads = s->kind == LS_FRAG_DOT || s->kind == LS_FRAG_STORE;
	for (uint32_t k = 0; reads && k < ls_row(s->kind)->frags; k++)
		if (!(have >> loop_frag_number(v->f, s->frag[k]) & 1))
			fail(v, s, "fragment %u of %s has no value", s->frag[k].k,
			     v->f->lv.data[s->frag[k].of.i].name);
}

static void check_statement(Frags *v, const LsData *s, bool enter)
{
	switch (s->kind) {
	case LS_FRAG:
		if (!enter)
			fail(v, s, "not in `enter`");
		else
			check_declaration(v, s);
		break;
	case LS_FRAG_ZERO: (void)declared(v, s, 0); break;
	case LS_FRAG_LOAD: case LS_FRAG_STORE: check_rows(v, s); break;
	case LS_FRAG_DOT: check_dot(v, s); break;
	case LS_CALL:
		fail(v, s, "in a function with fragments, whose registers the operator may use");
		break;
	default: break;
	}
}

/* Returns the fragments that have values behind the block, a bit for each; have: those that have
 * values ahead of it. */
static uint64_t check_block(Frags *v, Lb b, uint64_t have, bool enter)
{
	for (uint32_t k = 0; b.i && k < v->f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &v->f->ls.data[v->f->block.data[b.i].stmt.data[k]];
		check_statement(v, s, enter);
		if (!v->ok)
			return have;
		check_use(v, s, have);
		if (s->kind == LS_FRAG_ZERO || s->kind == LS_FRAG_LOAD)
			have |= UINT64_C(1) << loop_frag_number(v->f, s->frag[0]);
		const uint64_t then = check_block(v, s->body, have, false),
			       other = check_block(v, s->other, have, false);
		have |= s->kind == LS_IF ? then & other : 0; /* a loop may have no rounds */
	}
	return have;
}

bool verify_frag(LoopFn *f)
{
	Frags v = {.f = f, .ok = true};
	for (uint32_t k = 0; k < LOOP_TOPS && v.ok; k++)
		(void)check_block(&v, loop_top(f, k), 0, k == 0);
	if (v.ok && f->threads != 1) {
		LsData none = {.kind = LS_FRAG};
		fail(&v, &none, "in a function of CPUs only");
	}
	return v.ok;
}
