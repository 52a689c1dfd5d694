#include "ir/loop/loop.h"

#include <string.h>

/* ---- kinds ---- */

static const LsRow row[] = {
	[LS_LET] = {"let", "let $v = $x", .v = V_LET, .x = FIELD_VALUE},
	[LS_VAR] = {"var", "var $v = $x", .v = V_VAR, .x = FIELD_VALUE},
	[LS_SET] = {"set", "$n := $x", .v = V_SET, .x = FIELD_VALUE},
	[LS_LOAD] = {"load", "$v = $m[$o]$w$i$r", .v = V_LOADED, .mem = MEM_READ,
		     .offset = FIELD_INDEX, .masked = true},
	[LS_GATHER] = {"gather", "$v = $m[$o + $x]$l$w", .v = V_DATA, .mem = MEM_READ,
		       .offset = FIELD_INDEX, .x = FIELD_LANES, .masked = true},
	[LS_STORE] = {"store", "$m[$o] = $x$w", .mem = MEM_WRITE, .offset = FIELD_INDEX,
		      .x = FIELD_VALUE, .masked = true},
	[LS_STREAM] = {"stream", "stream $m[$o] = $x", .mem = MEM_WRITE, .offset = FIELD_INDEX,
		       .x = FIELD_VALUE},
	[LS_SCATTER] = {"scatter", "$m[$o + $y] = $x$w", .mem = MEM_WRITE, .offset = FIELD_INDEX,
			.x = FIELD_VALUE, .y = FIELD_LANES, .masked = true},
	[LS_FOR] = {"for", "for $n in $x .. $y$s$b", .v = V_LOOP, .x = FIELD_INDEX,
		    .y = FIELD_INDEX, .body = true},
	[LS_WHILE] = {"while", "while $x$b", .x = FIELD_BOOL, .body = true, .anew = true},
	[LS_IF] = {"if", "if $x$b$e", .x = FIELD_BOOL, .body = true, .other = true},
	[LS_LOCAL] = {"local", "local $n: $d[$c]", .v = V_ARRAY},
	[LS_FAIL] = {"fail", "fail message $k ($a)", .arg = FIELD_INDEX, .most = MAX_FAIL_ARGS,
		     .effect = true},
	[LS_CALL] = {"call", "call $f", .arg = FIELD_INDEX, .effect = true},
	[LS_PREFETCH] = {"prefetch", "prefetch$k $m[$o]", .mem = MEM_HINT, .offset = FIELD_INDEX},
	[LS_FENCE] = {"fence", "fence", .effect = true},
	[LS_COMMENT] = {"comment", "; $t"},
	[LS_FRAG] = {"frag", "frags $n: $c x $d[$h] at $k", .v = V_ARRAY, .effect = true},
	[LS_FRAG_ZERO] = {"frag_zero", "frag $0 = 0", .frags = 1, .effect = true},
	[LS_FRAG_LOAD] = {"frag_load", "frag $0 = $m[$o] rows $y$z", .frags = 1, .mem = MEM_READ_ROWS,
			  .offset = FIELD_INDEX, .y = FIELD_INDEX, .effect = true},
	[LS_FRAG_STORE] = {"frag_store", "$m[$o] rows $y = frag $0", .frags = 1, .mem = MEM_WRITE_ROWS,
			   .offset = FIELD_INDEX, .y = FIELD_INDEX, .effect = true},
	[LS_FRAG_DOT] = {"frag_dot", "frag $0 += $1 . $2 by $q", .frags = 3, .effect = true},
	[LS_FRAG_CONFIG] = {"frag_config", "frag config", .effect = true, .legal = true},
	[LS_FRAG_RELEASE] = {"frag_release", "frag release", .effect = true, .legal = true},
	[LS_SHARED] = {"shared", "shared $n: $d[$c]", .v = V_ARRAY, .block = true},
	[LS_SYNC] = {"sync", "sync", .effect = true, .block = true},
	[LS_COPY_ASYNC] = {"copy_async", "copy_async $m[$o] = $g[$x] bytes $c$w", .mem = MEM_COPY,
			   .offset = FIELD_INDEX, .x = FIELD_INDEX, .masked = true, .block = true},
	[LS_COPY_COMMIT] = {"copy_commit", "copy_commit", .effect = true, .block = true},
	[LS_COPY_WAIT] = {"copy_wait", "copy_wait $k", .effect = true, .block = true},
	[LS_LAUNCH] = {"launch", "launch $k [$x] ($u; $p)$j", .x = FIELD_INDEX,
		       .arg = FIELD_BUFFERS, .effect = true},
	[LS_READ] = {"read", "read $v = $d at $x", .v = V_DATA, .x = FIELD_ADDRESS, .effect = true},
	[LS_ROOM] = {"room", "room $k ($a)", .arg = FIELD_INDEX, .effect = true},
	[LS_COPY] = {"copy", "copy ($o, $x, $y)", .offset = FIELD_ADDRESS, .x = FIELD_ADDRESS,
		     .y = FIELD_INDEX, .effect = true},
	[LS_SAVE] = {"save", "save ($u; $p)", .arg = FIELD_BUFFERS, .effect = true},
	[LS_ASSERT] = {"assert", "assert $x message $k ($a)", .x = FIELD_BOOL, .arg = FIELD_INDEX,
		       .effect = true},
	[LS_RESULT] = {"result", "result $k = $x", .x = FIELD_INDEX, .effect = true},
	[LS_OUTLINED] = {"outlined", "outlined $k from $c ($a)", .arg = FIELD_INDEX, .effect = true},
	[LS_LAUNCHES] = {"launches", "launches ($a)$b", .arg = FIELD_INDEX, .body = true, .effect = true,
		      .legal = true},
};
_Static_assert(sizeof row / sizeof *row == LS_COUNT, "every kind of statement has its row");

const LsRow *ls_row(LsKind kind)
{
	return &row[kind];
}

static Arena *arena_of(const LoopFn *f)
{
	return f->ir->ctx->arena;
}

static Lb block_new(LoopFn *f)
{
	array_push(arena_of(f), &f->block, (struct LBlock){{0}});
	return (Lb){f->block.n - 1};
}

static Lv lv_new(LoopFn *f, LType type, const char *name, bool is_mutable)
{
	array_push(arena_of(f), &f->lv, (LvData){type, name, is_mutable, false});
	return (Lv){f->lv.n - 1};
}

LoopFn *loop_new(Ir *ir, const char *name)
{
	Arena *arena = ir->ctx->arena;
	LoopFn *f = ARENA_NEW(arena, LoopFn);
	f->ir = ir;
	f->name = name;
	f->comment = "";
	intern_init(&f->lx_table, arena);
	array_push(arena, &f->lx, (LxData){LX_INT});
	array_push(arena, &f->nonneg, false);
	array_push(arena, &f->lv, (LvData){{0}, "", false, false});
	array_push(arena, &f->block, (struct LBlock){{0}});
	f->threads = 1;
	f->body = block_new(f);
	f->task = lv_new(f, (LType){DT_i64, 1}, "task", false);
	f->lv.data[f->task.i].nonneg = true;
	array_push(arena, &f->open, f->body);
	return f;
}

uint32_t loop_buf(LoopFn *f, LArg arg)
{
	array_push(arena_of(f), &f->buf, arg);
	return f->buf.n - 1;
}

uint32_t loop_param(LoopFn *f, const char *name)
{
	array_push(arena_of(f), &f->param, name);
	return f->param.n - 1;
}

Lv loop_arg(LoopFn *f, const char *name, LType type)
{
	Lv v = lv_new(f, type, name, false);
	array_push(arena_of(f), &f->arg, v);
	return v;
}

void loop_block(LoopFn *f, uint32_t threads, uint64_t shared)
{
	f->threads = threads;
	f->shared_most = shared;
}

void loop_enter(LoopFn *f)
{
	f->enter = f->enter.i ? f->enter : block_new(f);
	array_push(arena_of(f), &f->open, f->enter);
}

void loop_leave(LoopFn *f)
{
	f->leave = f->leave.i ? f->leave : block_new(f);
	array_push(arena_of(f), &f->open, f->leave);
}

bool loop_is_of_block(const LoopFn *f)
{
	for (uint32_t k = 0; k < f->ls.n; k++)
		if (row[f->ls.data[k].kind].block)
			return true;
	for (uint32_t k = 1; k < f->lx.n; k++)
		if (f->lx.data[k].kind >= LX_LANE)
			return true;
	return f->threads != 1;
}

/* ---- statements ---- */

static void ls_add(LoopFn *f, LsData s)
{
	if (!f->open.n)
		ctx_bug(f->ir->ctx, "loop %s: statement after the body was closed", f->name);
	Lb b = f->open.data[f->open.n - 1];
	array_push(arena_of(f), &f->ls, s);
	array_push(arena_of(f), &f->block.data[b.i].stmt, f->ls.n - 1);
}

void loop_tasks_to_threads(LoopFn *f, uint32_t threads, uint64_t shared, Lx ntasks)
{
	const Lv old = f->task;
	const Lb statements = f->body;
	int64_t n;
	loop_block(f, threads, shared);
	f->task = lv_new(f, (LType){DT_i64, 1}, "block", false);
	f->lv.data[f->task.i].nonneg = true;
	f->body = block_new(f);
	f->open.data[0] = f->body;
	/* Of no tasks or no elements: nobody would read the number, and indices would be divided by
	 * 0. */
	if ((lx_is_int(f, ntasks, &n) && n == 0) || !f->block.data[statements.i].stmt.n)
		return;
	Lx thread = lx_add(f, lx_mul(f, lx_var(f, f->task), lx_int(f, threads)), lx_thread(f));
	ls_add(f, (LsData){.kind = LS_LET, .v = old, .x = thread});
	for (uint32_t k = 0;
	     lx_is_int(f, ntasks, &n) && n % threads == 0 && k < f->block.data[statements.i].stmt.n;
	     k++)
		array_push(arena_of(f), &f->block.data[f->body.i].stmt,
			   f->block.data[statements.i].stmt.data[k]);
	if (!lx_is_int(f, ntasks, &n) || n % threads)
		ls_add(f, (LsData){.kind = LS_IF,
				   .x = lx_cmp(f, SC_lt, lx_var(f, old), ntasks),
				   .body = statements});
}

/* Opens a block that belongs to the statement just added. */
static Lb ls_open(LoopFn *f)
{
	Lb b = block_new(f);
	array_push(arena_of(f), &f->open, b);
	return b;
}

/* Returns the mask; none for a literal mask of all lanes. */
static Lx clean_mask(const LoopFn *f, Lx mask)
{
	int64_t c;
	return lx_is_int(f, mask, &c) && c ? (Lx){0} : mask;
}

static void note_access(LoopFn *f, LMem mem, bool write)
{
	if (lmem_is_array(mem) || mem.k >= f->buf.n)
		return;
	if (write)
		f->buf.data[mem.k].written = true;
	else
		f->buf.data[mem.k].read = true;
}

Lv ls_let(LoopFn *f, const char *name, Lx x)
{
	Lv v = lv_new(f, lx_type(f, x), name, false);
	f->lv.data[v.i].nonneg = lx_nonneg(f, x);
	ls_add(f, (LsData){.kind = LS_LET, .v = v, .x = x});
	return v;
}

Lv ls_var(LoopFn *f, const char *name, Lx init)
{
	Lv v = lv_new(f, lx_type(f, init), name, true);
	ls_add(f, (LsData){.kind = LS_VAR, .v = v, .x = init});
	return v;
}

void ls_set(LoopFn *f, Lv v, Lx x)
{
	x = lx_splat(f, x, f->lv.data[v.i].type.lanes);
	ls_add(f, (LsData){.kind = LS_SET, .v = v, .x = x});
}

Lv ls_load(LoopFn *f, const char *name, LMem mem, Lx offset, LType type, Lx mask)
{
	Lv v = lv_new(f, type, name, false);
	note_access(f, mem, false);
	ls_add(f, (LsData){.kind = LS_LOAD, .v = v, .mem = mem, .offset = offset,
	                   .mask = clean_mask(f, mask)});
	return v;
}

Lv ls_load_in_order(LoopFn *f, const char *name, LMem mem, Lx offset, LType type, Lx mask)
{
	Lv v = ls_load(f, name, mem, offset, type, mask);
	f->ls.data[f->ls.n - 1].in_order = true;
	return v;
}

Lv ls_gather(LoopFn *f, const char *name, LMem mem, Lx offset, Lx index, DType dtype, Lx mask)
{
	Lv v = lv_new(f, (LType){dtype, lx_type(f, index).lanes}, name, false);
	note_access(f, mem, false);
	ls_add(f, (LsData){.kind = LS_GATHER, .v = v, .mem = mem, .offset = offset, .x = index,
	                   .mask = clean_mask(f, mask)});
	return v;
}

int ls_stride(const LoopFn *f, const LsData *s)
{
	const LxData *x = &f->lx.data[s->x.i];
	int64_t first, step;
	bool known = s->kind == LS_GATHER && !s->mask.i && x->kind == LX_RAMP &&
		     x->type.lanes > 1 && lx_is_int(f, x->in[0], &first) && first == 0 &&
		     lx_is_int(f, x->in[1], &step);
	return known && (step == -1 || step == 2) ? (int)step : 0;
}

void ls_store(LoopFn *f, LMem mem, Lx offset, Lx value, Lx mask)
{
	note_access(f, mem, true);
	ls_add(f, (LsData){.kind = LS_STORE, .mem = mem, .offset = offset, .x = value,
	                   .mask = clean_mask(f, mask)});
}

void ls_stream(LoopFn *f, LMem mem, Lx offset, Lx value)
{
	note_access(f, mem, true);
	ls_add(f, (LsData){.kind = LS_STREAM, .mem = mem, .offset = offset, .x = value});
}

void ls_scatter(LoopFn *f, LMem mem, Lx offset, Lx index, Lx value, Lx mask)
{
	note_access(f, mem, true);
	ls_add(f, (LsData){.kind = LS_SCATTER, .mem = mem, .offset = offset, .x = value, .y = index,
	                   .mask = clean_mask(f, mask)});
}

Lv ls_for(LoopFn *f, const char *name, Lx lo, Lx hi, int64_t step)
{
	Lv v = lv_new(f, (LType){DT_i64, 1}, name, false);
	f->lv.data[v.i].nonneg = step > 0 && lx_nonneg(f, lo);
	ls_add(f, (LsData){.kind = LS_FOR, .v = v, .x = lo, .y = hi, .step = step});
	uint32_t at = f->ls.n - 1;
	f->ls.data[at].body = ls_open(f);
	return v;
}

void ls_while(LoopFn *f, Lx x)
{
	ls_add(f, (LsData){.kind = LS_WHILE, .x = x});
	uint32_t at = f->ls.n - 1;
	f->ls.data[at].body = ls_open(f);
}

void ls_if(LoopFn *f, Lx x)
{
	ls_add(f, (LsData){.kind = LS_IF, .x = x});
	uint32_t at = f->ls.n - 1;
	f->ls.data[at].body = ls_open(f);
}

void ls_else(LoopFn *f)
{
	if (f->open.n < 2)
		ctx_bug(f->ir->ctx, "loop %s: else outside an if", f->name);
	f->open.n--;
	struct LBlock *b = &f->block.data[f->open.data[f->open.n - 1].i];
	uint32_t at = b->stmt.data[b->stmt.n - 1];
	if (f->ls.data[at].kind != LS_IF || f->ls.data[at].other.i)
		ctx_bug(f->ir->ctx, "loop %s: else without an if", f->name);
	f->ls.data[at].other = ls_open(f);
}

void ls_end(LoopFn *f)
{
	if (f->open.n < 2)
		ctx_bug(f->ir->ctx, "loop %s: end without an open statement", f->name);
	f->open.n--;
}

LMem ls_local(LoopFn *f, const char *name, DType dtype, uint64_t count)
{
	Lv v = lv_new(f, (LType){dtype, 1}, name, true);
	ls_add(f, (LsData){.kind = LS_LOCAL, .v = v, .dtype = dtype, .count = count});
	return (LMem){MEM_LOCAL, v.i, dtype};
}

Lx lx_fails(LoopFn *f, Lx ok, Lx mask)
{
	Lx bad = lx_sc(f, SC_not, lx_type(f, ok), &ok, 1);
	mask = clean_mask(f, mask);
	return mask.i ? lx_and(f, bad, mask) : bad;
}

const char *ls_subject(const LoopFn *f, const LsData *s)
{
	LsMemory mem = ls_row(s->kind)->mem;
	if (ls_row(s->kind)->frags)
		return s->frag[0].of.i < f->lv.n ? f->lv.data[s->frag[0].of.i].name : "";
	if (mem != MEM_WRITE && mem != MEM_COPY)
		return s->v.i ? f->lv.data[s->v.i].name : "";
	if (lmem_is_array(s->mem))
		return f->lv.data[s->mem.k].name;
	return s->mem.k < f->buf.n ? f->buf.data[s->mem.k].name : "";
}

/* Counts the statements of a kind up to the statement. Sets *found if it was met. */
static uint32_t count_kind(const LoopFn *f, Lb b, const LsData *of, bool *found)
{
	uint32_t n = 0;
	for (uint32_t k = 0; b.i && k < f->block.data[b.i].stmt.n && !*found; k++) {
		const LsData *s = &f->ls.data[f->block.data[b.i].stmt.data[k]];
		n += s->kind == of->kind;
		*found = s == of;
		n += count_kind(f, s->body, of, found) + count_kind(f, s->other, of, found);
	}
	return n;
}

uint32_t ls_number(const LoopFn *f, const LsData *s)
{
	uint32_t n = 0;
	bool found = false;
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		n += count_kind(f, loop_top(f, k), s, &found);
	return n;
}

uint64_t loop_shared_bytes(const LsData *s, uint64_t before)
{
	uint64_t at = (before + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
	return at + s->count * dtype_size(s->dtype);
}

uint32_t loop_statements(const LoopFn *f, Lb b)
{
	uint32_t n = 0;
	for (uint32_t k = 0; b.i && k < f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &f->ls.data[f->block.data[b.i].stmt.data[k]];
		n += 1 + loop_statements(f, s->body) + loop_statements(f, s->other);
	}
	return n;
}

bool ls_is_rare(const LoopFn *f, const LsData *s)
{
	const struct LBlock *b = &f->block.data[s->body.i];
	return s->kind == LS_IF && b->stmt.n &&
	       f->ls.data[b->stmt.data[b->stmt.n - 1]].kind == LS_FAIL;
}

void ls_prefetch(LoopFn *f, LMem mem, Lx offset, uint32_t level)
{
	ls_add(f, (LsData){.kind = LS_PREFETCH, .mem = mem, .offset = offset, .k = level});
}

void ls_fence(LoopFn *f)
{
	ls_add(f, (LsData){.kind = LS_FENCE});
}

void ls_comment(LoopFn *f, const char *text)
{
	ls_add(f, (LsData){.kind = LS_COMMENT, .text = text});
}

/* ---- fragments ---- */

static bool has_frags(const LoopFn *f, Lb b)
{
	for (uint32_t k = 0; b.i && k < f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &f->ls.data[f->block.data[b.i].stmt.data[k]];
		if (s->kind == LS_FRAG || row[s->kind].frags || has_frags(f, s->body) ||
		    has_frags(f, s->other))
			return true;
	}
	return false;
}

bool loop_has_frags(const LoopFn *f)
{
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		if (has_frags(f, loop_top(f, k)))
			return true;
	return false;
}

const LsData *loop_frag(const LoopFn *f, LFrag r)
{
	const struct LBlock *b = &f->block.data[f->enter.i];
	for (uint32_t k = 0; f->enter.i && k < b->stmt.n; k++) {
		const LsData *s = &f->ls.data[b->stmt.data[k]];
		if (s->kind == LS_FRAG && s->v.i == r.of.i)
			return s;
	}
	return NULL;
}

uint32_t loop_frag_number(const LoopFn *f, LFrag r)
{
	const LsData *s = loop_frag(f, r);
	return s ? s->k + r.k : r.k;
}

void loop_frag_config(const LoopFn *f, uint8_t config[FRAG_CONFIG_BYTES])
{
	enum { PALETTE = 0, ROW_BYTES = 16, ROWS = 48, REGISTERS = 8 };
	const struct LBlock *b = &f->block.data[f->enter.i];
	memset(config, 0, FRAG_CONFIG_BYTES);
	config[PALETTE] = 1;
	for (uint32_t k = 0; f->enter.i && k < b->stmt.n; k++) {
		const LsData *s = &f->ls.data[b->stmt.data[k]];
		for (uint32_t j = s->k; s->kind == LS_FRAG && j < s->k + s->count && j < REGISTERS;
		     j++) {
			config[ROW_BYTES + 2 * j] = (uint8_t)(s->cols * dtype_size(s->dtype));
			config[ROWS + j] = (uint8_t)s->rows;
		}
	}
}

Lv ls_frag(LoopFn *f, const char *name, DType dtype, uint32_t rows, uint32_t cols, uint32_t count)
{
	uint32_t first = 0;
	for (uint32_t k = 0; k < f->ls.n; k++)
		if (f->ls.data[k].kind == LS_FRAG)
			first += (uint32_t)f->ls.data[k].count;
	Lv v = lv_new(f, (LType){dtype, 1}, name, true);
	ls_add(f, (LsData){.kind = LS_FRAG,
			   .v = v,
			   .dtype = dtype,
			   .count = count,
			   .k = first,
			   .rows = rows,
			   .cols = cols});
	return v;
}

void ls_frag_zero(LoopFn *f, LFrag to)
{
	ls_add(f, (LsData){.kind = LS_FRAG_ZERO, .frag = {to}});
}

void ls_frag_load(LoopFn *f, LFrag to, LMem mem, Lx offset, Lx stride)
{
	note_access(f, mem, false);
	ls_add(f, (LsData){.kind = LS_FRAG_LOAD,
			   .frag = {to},
			   .mem = mem,
			   .offset = offset,
			   .y = stride});
}

void ls_frag_load_passing(LoopFn *f, LFrag to, LMem mem, Lx offset, Lx stride)
{
	ls_frag_load(f, to, mem, offset, stride);
	f->ls.data[f->ls.n - 1].passing = true;
}

void ls_frag_store(LoopFn *f, LMem mem, Lx offset, Lx stride, LFrag from)
{
	note_access(f, mem, true);
	ls_add(f, (LsData){.kind = LS_FRAG_STORE,
			   .frag = {from},
			   .mem = mem,
			   .offset = offset,
			   .y = stride});
}

void ls_frag_dot(LoopFn *f, FragOp op, LFrag c, LFrag a, LFrag b)
{
	ls_add(f, (LsData){.kind = LS_FRAG_DOT, .k = op, .frag = {c, a, b}});
}

/* ---- statements of blocks of threads ---- */

LMem ls_shared(LoopFn *f, const char *name, DType dtype, uint64_t count)
{
	Lv v = lv_new(f, (LType){dtype, 1}, name, true);
	ls_add(f, (LsData){.kind = LS_SHARED, .v = v, .dtype = dtype, .count = count});
	return (LMem){MEM_SHARED, v.i, dtype};
}

void ls_sync(LoopFn *f)
{
	ls_add(f, (LsData){.kind = LS_SYNC});
}

void ls_copy_async(LoopFn *f, LMem to, Lx offset, LMem from, Lx from_offset, uint32_t bytes,
		   Lx mask)
{
	note_access(f, from, false);
	ls_add(f, (LsData){.kind = LS_COPY_ASYNC,
			   .mem = to,
			   .offset = offset,
			   .from = from,
			   .x = from_offset,
			   .count = bytes,
			   .mask = clean_mask(f, mask)});
}

void ls_copy_commit(LoopFn *f)
{
	ls_add(f, (LsData){.kind = LS_COPY_COMMIT});
}

void ls_copy_wait(LoopFn *f, uint32_t groups)
{
	ls_add(f, (LsData){.kind = LS_COPY_WAIT, .k = groups});
}

/* ---- program statements ---- */

static const Lx *dup_args(LoopFn *f, const Lx *arg, uint32_t n)
{
	return n ? arena_dup(arena_of(f), arg, n * sizeof *arg) : NULL;
}

void ls_fail(LoopFn *f, uint32_t message, const Lx *arg, uint32_t narg)
{
	ls_add(f,
	       (LsData){
		       .kind = LS_FAIL, .k = message, .narg = narg, .arg = dup_args(f, arg, narg)});
}

void ls_call(LoopFn *f, const LoopCall *call, const Lx *arg, uint32_t narg)
{
	ls_add(f,
	       (LsData){
		       .kind = LS_CALL, .call = call, .narg = narg, .arg = dup_args(f, arg, narg)});
}

void ls_launch(LoopFn *f, uint32_t call, Lx ntasks, const Lx *arg, uint32_t nbuf, uint32_t narg)
{
	ls_add(f, (LsData){.kind = LS_LAUNCH, .k = call, .x = ntasks, .nbuf = nbuf, .narg = narg,
	                   .arg = dup_args(f, arg, narg)});
}

void ls_same_phase(LoopFn *f)
{
	const struct LBlock *b = &f->block.data[f->open.data[f->open.n - 1].i];
	LsData *last = b->stmt.n ? &f->ls.data[b->stmt.data[b->stmt.n - 1]] : NULL;
	if (last && last->kind == LS_LAUNCH)
		last->same_phase = true;
}

Lv ls_read(LoopFn *f, const char *name, DType dtype, Lx address, uint32_t owner)
{
	Lv v = lv_new(f, (LType){dtype == DT_bool ? DT_bool : DT_i64, 1}, name, false);
	ls_add(f, (LsData){.kind = LS_READ, .v = v, .x = address, .k = owner, .dtype = dtype});
	return v;
}

void ls_reads_size(LoopFn *f, Sym size)
{
	f->ls.data[f->ls.n - 1].count = size.i;
}

void ls_room(LoopFn *f, uint32_t buf, const Lx *arg, uint32_t narg)
{
	ls_add(f, (LsData){.kind = LS_ROOM, .k = buf, .arg = dup_args(f, arg, narg), .narg = narg});
}

void ls_copy(LoopFn *f, Lx to, Lx from, Lx bytes)
{
	ls_add(f, (LsData){.kind = LS_COPY, .offset = to, .x = from, .y = bytes});
}

void ls_save(LoopFn *f, const Lx *arg, uint32_t nbuf, uint32_t narg, uint32_t values, uint32_t at)
{
	ls_add(f, (LsData){.kind = LS_SAVE,
			   .k = values,
			   .count = at,
			   .nbuf = nbuf,
			   .narg = narg,
			   .arg = dup_args(f, arg, narg)});
}

void ls_assert(LoopFn *f, Lx ok, uint32_t message, const Lx *arg, uint32_t narg)
{
	int64_t c;
	if (lx_is_int(f, ok, &c) && c)
		return;
	ls_add(f, (LsData){.kind = LS_ASSERT, .x = ok, .k = message, .narg = narg,
	                   .arg = dup_args(f, arg, narg)});
}

void ls_result(LoopFn *f, uint32_t slot, Lx x)
{
	ls_add(f, (LsData){.kind = LS_RESULT, .k = slot, .x = x});
}

void ls_outlined(LoopFn *f, uint32_t k, uint64_t first_extent, const Lx *arg, uint32_t narg)
{
	ls_add(f, (LsData){.kind = LS_OUTLINED,
			   .k = k,
			   .count = first_extent,
			   .narg = narg,
			   .arg = dup_args(f, arg, narg)});
}

void ls_visit(const LoopFn *f, const LsData *s, void (*visit)(void *, Lx), void *data)
{
	(void)f;
	const Lx fixed[] = {s->offset, s->x, s->y, s->mask};
	for (uint32_t k = 0; k < 4; k++)
		if (fixed[k].i)
			visit(data, fixed[k]);
	for (uint32_t k = 0; k < s->narg; k++)
		if (s->arg[k].i)
			visit(data, s->arg[k]);
}

void ls_map(LoopFn *f, LsData *s, Lx (*map)(void *, Lx), void *data)
{
	Lx *fixed[] = {&s->offset, &s->x, &s->y, &s->mask};
	Lx *arg = s->narg ? ARENA_ARRAY(f->ir->ctx->arena, Lx, s->narg) : NULL;
	for (uint32_t k = 0; k < 4; k++)
		if (fixed[k]->i)
			*fixed[k] = map(data, *fixed[k]);
	for (uint32_t k = 0; k < s->narg; k++)
		if (s->arg[k].i)
			arg[k] = map(data, s->arg[k]);
	s->arg = arg;
}

/* ---- shared subexpressions ---- */

typedef struct {
	const LoopFn *f;
	LoopShared *s;
} Sharing;

static void count_uses(void *data, Lx x)
{
	Sharing *c = data;
	const LxData *d = &c->f->lx.data[x.i];
	if (c->s->uses[x.i]++)
		return;
	for (uint32_t k = 0; k < d->nin; k++)
		count_uses(c, d->in[k]);
}

/* Visits every counted expression once, operands first, and clears its count. */
static void collect_shared(void *data, Lx x)
{
	Sharing *c = data;
	const LxData *d = &c->f->lx.data[x.i];
	uint32_t uses = c->s->uses[x.i];
	if (!uses)
		return;
	c->s->uses[x.i] = 0;
	for (uint32_t k = 0; k < d->nin; k++)
		collect_shared(c, d->in[k]);
	if (uses > 1 && d->nin)
		array_push(arena_of(c->f), &c->s->x, x);
}

void loop_shared(const LoopFn *f, const LsData *s, LoopShared *shared)
{
	if (shared->n < f->lx.n) { /* callers add expressions from one statement to the next */
		shared->n = 2 * f->lx.n;
		shared->uses = ARENA_ARRAY(arena_of(f), uint32_t, shared->n);
	}
	shared->x.n = 0;
	Sharing c = {f, shared};
	ls_visit(f, s, count_uses, &c);
	ls_visit(f, s, collect_shared, &c);
}
