/* Functions of loop IR, some threads in lockstep. */
#include "ir/loop/interp/priv.h"
#include "ir/scalar/priv.h"

#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* loops over threads */
#endif

#define FIXED UINT32_MAX /* the stamp of what stays as it is */
enum { MOST_LANES = 128 /* of what is reduced */ };

static const LxData *lx_at(const Exec *e, Lx x)
{
	return &e->f->lx.data[x.i];
}

/* Returns the bytes of a value in one thread. */
static uint32_t value_bytes(LType t)
{
	return t.lanes * dtype_size(t.dtype);
}

/* ---- plans ---- */

static bool is_fixed(const FnPlan *p, const LxData *d)
{
	bool fixed = d->kind != LX_VAR && d->kind != LX_WARP;
	for (uint32_t k = 0; k < d->nin; k++)
		fixed = fixed && p->fixed[d->in[k].i];
	return fixed;
}

static void plan_arrays(FnPlan *p, const LoopFn *f, Arena *a)
{
	p->bytes = ARENA_ARRAY(a, uint64_t, f->lv.n);
	p->shared = ARENA_ARRAY(a, uint64_t, f->lv.n);
	for (uint32_t k = 0; k < f->ls.n; k++) {
		const LsData *s = &f->ls.data[k];
		/* what legalising replaced stays in the list */
		if (ls_row(s->kind)->v != V_ARRAY || p->bytes[s->v.i])
			continue;
		p->bytes[s->v.i] = s->count * dtype_size(s->dtype) *
				   (s->kind == LS_FRAG ? s->rows * s->cols : 1);
		if (s->kind == LS_SHARED) {
			p->shared_bytes = loop_shared_bytes(s, p->shared_bytes);
			p->shared[s->v.i] = p->shared_bytes - p->bytes[s->v.i];
		}
	}
}

/* Returns the most loops and branches in one another. */
static uint32_t nest_of(const LoopFn *f, Lb b)
{
	uint32_t most = 0;
	for (uint32_t k = 0; b.i && k < f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &f->ls.data[f->block.data[b.i].stmt.data[k]];
		uint32_t body = s->body.i ? 1 + nest_of(f, s->body) : 0,
			 other = s->other.i ? 1 + nest_of(f, s->other) : 0;
		most = body > most ? body : most;
		most = other > most ? other : most;
	}
	return most;
}

FnPlan *loop_plan(const LoopFn *f, Arena *a)
{
	FnPlan *p = ARENA_NEW(a, FnPlan);
	loop_index_init(&p->index, f, a);
	p->fixed = ARENA_ARRAY(a, bool, f->lx.n);
	for (uint32_t k = 1; k < f->lx.n; k++) /* operands come first */
		p->fixed[k] = is_fixed(p, &f->lx.data[k]);
	plan_arrays(p, f, a);
	for (uint32_t k = 0; k < LOOP_TOPS; k++) {
		uint32_t nest = nest_of(f, loop_top(f, k));
		p->nest = nest > p->nest ? nest : p->nest;
	}
	return p;
}

void exec_init(Exec *e, Interp *in, const LoopFn *f, FnPlan *plan, uint32_t n)
{
	Arena *a = in->arena;
	*e = (Exec){.at = {.in = in, .f = f}, .f = f, .plan = plan, .n = n, .now = 1};
	e->value = ARENA_ARRAY(a, char *, f->lx.n);
	e->stamp = ARENA_ARRAY(a, uint32_t, f->lx.n);
	e->var = ARENA_ARRAY(a, char *, f->lv.n);
	e->written = ARENA_ARRAY(a, uint8_t *, f->lv.n);
	e->task = ARENA_ARRAY(a, uint32_t, n);
	e->streamed = ARENA_ARRAY(a, bool, n);
	e->level = ARENA_ARRAY(a, Level, plan->nest);
	for (uint32_t k = 0; k < plan->nest; k++)
		e->level[k] = (Level){ARENA_ARRAY(a, bool, n), ARENA_ARRAY(a, bool, n),
				      ARENA_ARRAY(a, int64_t, n)};
	if (in->report->depths)
		depth_init(e);
}

void exec_locate(Exec *e, uint32_t thread)
{
	e->at.task = e->task[thread];
	e->at.thread = thread;
}

/* ---- expressions ---- */

static void literal(const LxData *d, void *out, uint32_t n)
{
	uint64_t one = 0;
	ScVal v = d->kind == LX_FLOAT ? (ScVal){.f = d->u.f} : (ScVal){.i = d->u.i};
	scalar_pack(d->type.dtype, &one, &v, 1);
	scalar_fill(out, &one, dtype_size(d->type.dtype), n * d->type.lanes);
}

static int64_t index_at(DType t, const void *in, uint32_t k)
{
	return t == DT_i32 ? ((const int32_t *)in)[k] : ((const int64_t *)in)[k];
}

static void ramp(const Exec *e, const LxData *d, const void *const *in, char *out)
{
	DType t = d->type.dtype;
	for (uint32_t k = 0; k < e->n * d->type.lanes; k++) {
		uint32_t thread = k / d->type.lanes, lane = k % d->type.lanes;
		uint64_t step = (uint64_t)index_at(t, in[1], thread) * lane;
		ScVal v = {.i = (int64_t)((uint64_t)index_at(t, in[0], thread) + step)};
		scalar_pack(t, out + (size_t)k * dtype_size(t), &v, 1);
	}
}

/* Reduces lane k with lane k + half, then the halves again. */
static void reduce(const LxData *d, LType from, const char *in, char *out, uint32_t n)
{
	uint32_t size = dtype_size(from.dtype);
	ScIns ins = {.op = d->sc, .dtype = d->type.dtype};
	_Alignas(16) char half[2][MOST_LANES / 2 * 8];
	for (uint32_t t = 0; t < n; t++, in += from.lanes * size) {
		const char *x = in;
		for (uint32_t lanes = from.lanes / 2; lanes; lanes /= 2) {
			char *to = x == half[0] ? half[1] : half[0];
			const void *two[3] = {x, x + lanes * size, x};
			scalar_step(&ins, from.dtype, to, two, lanes);
			x = to;
		}
		memcpy(out + t * size, x, size);
	}
}

static void mask_or_any(const Exec *e, const LxData *d, LType from, const void *in, uint8_t *out)
{
	for (uint32_t t = 0; t < e->n; t++) {
		if (d->kind == LX_MASK) {
			for (uint32_t k = 0; k < d->type.lanes; k++)
				*out++ = k < ((const int64_t *)in)[t];
			continue;
		}
		out[t] = 0;
		for (uint32_t k = 0; k < from.lanes; k++)
			out[t] |= ((const uint8_t *)in)[t * from.lanes + k];
	}
}

/* Picks one element of each thread's value, for all lanes. */
static void pick(const Exec *e, const LxData *d, LType from, uint32_t lane, const char *in,
		 char *out)
{
	uint32_t size = dtype_size(from.dtype), bytes = value_bytes(d->type);
	for (uint32_t t = 0; t < e->n; t++)
		scalar_fill(out + (size_t)t * bytes, in + ((size_t)t * from.lanes + lane) * size,
			    size, d->type.lanes);
}

static void pack(const Exec *e, const LxData *d, const void *const *in, char *out)
{
	uint32_t size = dtype_size(d->type.dtype);
	for (uint32_t t = 0; t < e->n; t++)
		for (uint32_t k = 0; k < d->nin; k++, out += size)
			memcpy(out, (const char *)in[k] + (size_t)t * size, size);
}

static void shuffle(const Exec *e, const LxData *d, LType from, const void *const *in, char *out)
{
	uint32_t size = dtype_size(from.dtype);
	for (uint32_t t = 0; t < e->n; t++)
		for (uint32_t k = 0; k < d->type.lanes; k++, out += size) {
			uint32_t at = shuffle_lane((Shuffle)d->u.k, k, from.lanes);
			const char *x = in[at >= from.lanes];
			memcpy(out, x + ((size_t)t * from.lanes + at % from.lanes) * size, size);
		}
}

static void look_up(const Exec *e, const LxData *d, const void *index, void *out)
{
	ScIns ins = {.op = SC_table, .dtype = d->type.dtype, .table = d->table};
	scalar_step(&ins, DT_i32, out, &index, e->n * d->type.lanes);
}

/* Whether index arithmetic on x and y overflows, divides by zero, or is negative where that is
 * excluded. */
static bool is_bad_index(const LxData *d, int64_t x, int64_t y)
{
	int64_t r;
	if (d->known & KNOWN_NONNEG && (x < 0 || y < 0))
		return true;
	switch (d->sc) {
	case SC_add:
		return __builtin_add_overflow(x, y, &r);
	case SC_sub:
		return __builtin_sub_overflow(x, y, &r);
	case SC_mul:
		return __builtin_mul_overflow(x, y, &r);
	case SC_floordiv:
	case SC_rem:
		return y == 0;
	default:
		return false;
	}
}

/* Whether is_bad_index holds for some of n elements. */
static bool some_bad_index(const LxData *d, const int64_t *x, const int64_t *y, uint32_t n)
{
	uint64_t bad = 0; /* its highest bit says so */
	for (uint32_t t = 0; t < n && d->known & KNOWN_NONNEG; t++)
		bad |= (uint64_t)(x[t] | y[t]);
	if (d->sc == SC_add || d->sc == SC_sub) {
		const uint64_t flip = d->sc == SC_sub ? UINT64_MAX : 0; /* x - y is ~(~x + y) */
		for (uint32_t t = 0; t < n; t++) {
			uint64_t u = (uint64_t)x[t] ^ flip, v = (uint64_t)y[t], r = u + v;
			bad |= (u ^ r) & (v ^ r);
		}
		return bad >> 63;
	}
	for (uint32_t t = 0; t < n && !(bad >> 63); t++)
		bad |= (uint64_t)is_bad_index(d, x[t], y[t]) << 63;
	return bad >> 63;
}

/* Checks that index arithmetic neither overflows nor divides by zero: emitted code relies on
 * that. */
static bool check_index(Exec *e, const Active *a, const LxData *d, const void *const *in)
{
	const int64_t *x = in[0], *y = in[1];
	if (!some_bad_index(d, x, y, e->n))
		return true;
	for (uint32_t t = 0; t < e->n; t++) {
		if (!is_bad_index(d, x[t], y[t]) || !a->on[t])
			continue;
		exec_locate(e, t);
		if (d->known & KNOWN_NONNEG && (x[t] < 0 || y[t] < 0))
			return loop_finding(
				&e->at,
				"index arithmetic: %s of %lld and %lld, taken not to be negative",
				sc_name(d->sc), (long long)x[t], (long long)y[t]);
		return loop_finding(&e->at, "index arithmetic: %s of %lld and %lld %s",
				    sc_name(d->sc), (long long)x[t], (long long)y[t],
				    y[t] ? "overflows" : "is not defined");
	}
	return true;
}

static bool operation(Exec *e, const Active *a, Lx x, const LxData *d, const void *const *in,
		      void *out)
{
	ScIns ins = {.op = d->sc, .dtype = d->type.dtype};
	DType from = lx_type(e->f, d->in[d->sc == SC_select]).dtype;
	bool index =
		d->known & KNOWN_INDEX || (d->type.lanes == 1 && loop_is_index(&e->plan->index, x));
	if (d->nin == 2 && index && !check_index(e, a, d, in))
		return false;
	scalar_step(&ins, from, out, in, e->n * d->type.lanes);
	return true;
}

static bool compute(Exec *e, const Active *a, Lx x, const LxData *d, const void *const *in,
		    void *out)
{
	LType from = d->nin ? lx_type(e->f, d->in[0]) : d->type;
	switch (d->kind) {
	case LX_INT: case LX_FLOAT: literal(d, out, e->n); break;
	case LX_PARAM:
		scalar_fill(out, &e->param[d->u.k], 8, e->n);
		break;
	case LX_SC: return operation(e, a, x, d, in, out);
	case LX_FN: scalar_apply(d->fn, in, out, e->n * d->type.lanes); break;
	case LX_SPLAT: pick(e, d, from, 0, in[0], out); break;
	case LX_SHUFFLE: shuffle(e, d, from, in, out); break;
	case LX_TABLE: look_up(e, d, in[0], out); break;
	case LX_RAMP: ramp(e, d, in, out); break;
	case LX_MASK: case LX_ANY: mask_or_any(e, d, from, in[0], out); break;
	case LX_HREDUCE:
		if (from.lanes > MOST_LANES)
			return loop_finding(&e->at, "reduces %u lanes", from.lanes);
		reduce(d, from, in[0], out, e->n);
		break;
	case LX_LANE: pick(e, d, from, d->u.k, in[0], out); break;
	case LX_PACK: pack(e, d, in, out); break;
	case LX_ADDR: memcpy(out, in[0], e->n * sizeof(int64_t)); break;
	case LX_VAR: break;
	case LX_THREAD:
		for (uint32_t t = 0; t < e->n; t++)
			((int64_t *)out)[t] = e->block ? t : 0;
		break;
	case LX_WARP: return block_exchange(e, a, d, in, out);
	}
	return true;
}

const void *exec_value(Exec *e, const Active *a, Lx x)
{
	const LxData *d = lx_at(e, x);
	if (d->kind == LX_VAR)
		return e->var[d->u.v.i];
	if (e->stamp[x.i] == e->now || e->stamp[x.i] == FIXED)
		return e->value[x.i];
	if (!e->value[x.i])
		e->value[x.i] = arena_alloc(e->at.in->arena, (size_t)e->n * value_bytes(d->type));
	const void *in[4] = {NULL};
	for (uint32_t k = 0; k < d->nin; k++)
		if (!(in[k] = exec_value(e, a, d->in[k])))
			return NULL;
	for (uint32_t k = d->nin; k < 4; k++)
		in[k] = in[0];
	if (!compute(e, a, x, d, in, e->value[x.i]))
		return NULL;
	if (e->depth)
		depth_compute(e, x);
	e->stamp[x.i] = e->plan->fixed[x.i] ? FIXED : e->now;
	return e->value[x.i];
}

bool exec_int(Exec *e, Lx x, int64_t *out)
{
	const Active all = {(const bool[]){true}, 1};
	const int64_t *v = exec_value(e, &all, x);
	*out = v ? *v : 0;
	return v;
}

/* ---- variables ---- */

static bool check_nonneg(Exec *e, const Active *a, const LvData *v, const int64_t *x)
{
	for (uint32_t t = 0; v->nonneg && t < e->n; t++) {
		if (!a->on[t] || x[t] >= 0)
			continue;
		exec_locate(e, t);
		return loop_finding(&e->at, "%s is %lld, and taken not to be negative", v->name,
				    (long long)x[t]);
	}
	return true;
}

static char *variable(Exec *e, Lv v)
{
	if (!e->var[v.i])
		e->var[v.i] = arena_alloc(e->at.in->arena,
					  (size_t)e->n * value_bytes(e->f->lv.data[v.i].type));
	return e->var[v.i];
}

void exec_define(Exec *e, Lv v, int64_t x)
{
	uint32_t size = value_bytes(e->f->lv.data[v.i].type);
	char bit = x != 0;
	scalar_fill(variable(e, v), size == 1 ? (const void *)&bit : (const void *)&x, size, e->n);
}

static bool define(Exec *e, const Active *a, const LsData *s)
{
	const LvData *v = &e->f->lv.data[s->v.i];
	const char *x = exec_value(e, a, s->x);
	char *to = variable(e, s->v);
	uint32_t size = value_bytes(v->type);
	if (x && a->n == e->n)
		memmove(to, x, (size_t)e->n * size);
	for (uint32_t t = 0; x && a->n < e->n && t < e->n; t++)
		if (a->on[t])
			memmove(to + t * size, x + t * size, size);
	if (x && e->depth)
		depth_define(e, a, s->v, s->x);
	return x && check_nonneg(e, a, v, (const int64_t *)(const void *)to);
}

static bool local(Exec *e, const Active *a, const LsData *s)
{
	uint64_t bytes = e->plan->bytes[s->v.i];
	if (bytes > LOOP_INTERP_BYTES / (e->n > LOCKSTEP ? e->n : LOCKSTEP))
		return loop_stop(
			e->at.in, LOOP_LIMIT,
			"a local array of %llu bytes: too large for the interpreter of loop IR",
			(unsigned long long)bytes);
	if (!e->var[s->v.i]) {
		e->var[s->v.i] = arena_alloc(e->at.in->arena, e->n * bytes);
		e->written[s->v.i] = arena_alloc(e->at.in->arena, e->n * bytes);
	}
	for (uint32_t t = 0; t < e->n; t++)
		if (a->on[t])
			memset(e->written[s->v.i] + t * bytes, 0, bytes);
	return true;
}

/* ---- memory ---- */

/* One access of a statement, in one thread. */
typedef struct {
	Exec *e;
	const LsData *s;
	uint32_t thread, lanes, group, size, value_size; /* group: elements of a lane (ls_group);
	                                                    sizes: of an element in memory, as a
	                                                    value */
	uint16_t *depth; /* by lane of the value; NULL: not asked for */
	const char *first; /* the value's first lane */
	bool store, dropped; /* dropped: the element must be there; its contents do not matter */
	uint64_t array_bytes; /* of a local or shared array */
} Move;

static bool touch_local(const Move *m, int64_t at, uint32_t n, char **out)
{
	const Exec *e = m->e;
	uint32_t v = m->s->mem.k;
	const char *name = e->f->lv.data[v].name;
	uint64_t bytes = m->array_bytes, from = (uint64_t)at;
	if (at < 0 || from > bytes || n > bytes - from)
		return loop_finding(
			&e->at, "%s %u bytes at byte %lld of the local array %s, which has %llu",
			m->store ? "writes" : "reads", n, (long long)at, name,
			(unsigned long long)bytes);
	uint8_t *written = e->written[v] + m->thread * bytes + from;
	for (uint32_t k = 0; k < n && !m->store && !m->dropped; k++)
		if (!written[k])
			return loop_finding(
				&e->at,
				"reads byte %lld of the local array %s, which was never written",
				(long long)at + k, name);
	if (m->store)
		memset(written, 1, n);
	*out = e->var[v] + m->thread * bytes + from;
	return true;
}

/* Sets *out to where n elements from element `at` on lie. */
static bool touch(const Move *m, int64_t at, uint32_t n, char **out)
{
	int64_t byte;
	if (__builtin_mul_overflow(at, (int64_t)m->size, &byte))
		return loop_finding(&m->e->at, "element %lld is beyond all memory", (long long)at);
	if (m->s->mem.kind == MEM_SHARED)
		return block_touch(m->e, (Lv){m->s->mem.k}, byte, n * m->size, m->store, out);
	if (m->s->mem.kind == MEM_LOCAL)
		return touch_local(m, byte, n * m->size, out);
	if (m->dropped)
		return view_has(&m->e->at, &m->e->view[m->s->mem.k], byte, n * m->size, m->store);
	return view_touch(&m->e->at, &m->e->view[m->s->mem.k], byte, n * m->size, m->store, out);
}

/* Whether memory has the natural representation of the compute dtype. */
static bool is_plain(DType d)
{
	return d != DT_bool && !dtype_is_narrow(d);
}

static void load_elements(DType d, uint32_t size, void *to, const char *from, uint32_t n)
{
	uint16_t h = 0;
	if (is_plain(d)) {
		memcpy(to, from, (size_t)n * size);
		return;
	}
	for (uint32_t k = 0; k < n; k++) {
		const char *p = from + (size_t)k * size;
		memcpy(&h, p, size);
		if (d == DT_bool)
			((uint8_t *)to)[k] = *p != 0;
		else
			((float *)to)[k] = narrow_to_f32(d, h);
	}
}

static void store_elements(DType d, uint32_t size, char *to, const void *from, uint32_t n)
{
	const float *f = from;
	if (is_plain(d) || d == DT_bool) {
		memcpy(to, from, (size_t)n * size);
		return;
	}
	for (uint32_t k = 0; k < n; k++) {
		uint16_t h = (uint16_t)f32_to_narrow(d, f[k]);
		memcpy(to + (size_t)k * size, &h, size); /* the low byte comes first */
	}
}

/* Moves the chains behind n elements at p, element `at` of what the statement reads or writes. */
static void move_depths(const Move *m, int64_t at, uint32_t n, const char *p, const char *value)
{
	Exec *e = m->e;
	uint16_t *lane = m->depth + (value - m->first) / m->value_size, *there;
	if (m->group > 1) { /* of operands of products, whose roundings do not count */
		memset(lane, 0, n * sizeof *lane);
		return;
	}
	const Region *r = lmem_is_array(m->s->mem) ? NULL : e->view[m->s->mem.k].region;
	for (uint32_t k = 0; k < n; k++, lane++) {
		uint64_t elements = m->array_bytes / m->size;
		if (m->s->mem.kind == MEM_SHARED)
			there = &e->block->depth[p - e->block->data + (int64_t)(k * m->size)];
		else if (!r)
			there = depth_of_var(e, (Lv){m->s->mem.k}, elements) +
				m->thread * elements + (uint64_t)at + k;
		else
			there = r->depth ? &r->depth[p - r->data + (int64_t)(k * m->size)] : NULL;
		if (m->store && r)
			depth_note(e->at.in, *lane);
		if (m->store && there)
			*there = *lane;
		else if (!m->store)
			*lane = there ? *there : 0;
	}
}

/* What a lane holds that nobody may use: a large number. */
enum { LEFT_OUT = 0xfe };

static bool move_elements(const Move *m, int64_t at, uint32_t n, char *value)
{
	char *p;
	if (!touch(m, at, n * m->group, &p))
		return false;
	if (m->dropped)
		memset(value, LEFT_OUT, (size_t)n * m->value_size);
	else if (m->group > 1)
		memcpy(value, p, (size_t)n * m->value_size);
	else if (m->store)
		store_elements(m->s->mem.dtype, m->size, p, value, n);
	else
		load_elements(m->s->mem.dtype, m->size, value, p, n);
	if (m->depth && !m->dropped)
		move_depths(m, at, n, p, value);
	return true;
}

/* Moves lanes. Those that are masked off are not touched; loaded they give 0. */
static bool move_lanes(Move *m, int64_t offset, DType index_type, const void *index,
		       const uint8_t *mask, char *value)
{
	uint32_t size = m->value_size, first = m->thread * m->lanes;
	if (!index && !mask && m->s->drops == DROPS_NONE)
		return (!m->e->block || m->lanes == 1 ||
			block_aligned(m->e, m->s->mem, offset, m->lanes * m->size)) &&
		       move_elements(m, offset, m->lanes, value);
	for (uint32_t k = 0; k < m->lanes; k++) {
		m->dropped = m->s->drops == (k % 2 ? DROPS_ODD : DROPS_EVEN);
		char *to = value + k * size;
		int64_t at, ahead = index ? index_at(index_type, index, first + k)
					  : (int64_t)k * m->group;
		if (mask && !mask[first + k]) {
			if (!m->store)
				memset(to, 0, size);
			if (!m->store && m->depth)
				m->depth[k] = 0;
		} else if (__builtin_add_overflow(offset, ahead, &at)) {
			return loop_finding(&m->e->at, "an index overflows: %lld + %lld",
					    (long long)offset, (long long)ahead);
		} else if (!move_elements(m, at, 1, to)) {
			return false;
		}
	}
	return true;
}

static bool access(Exec *e, const Active *a, const LsData *s)
{
	const LsRow *row = ls_row(s->kind);
	bool store = row->mem == MEM_WRITE;
	Lx at = row->x == FIELD_LANES ? s->x : row->y == FIELD_LANES ? s->y : (Lx){0};
	LType type = store ? lx_type(e->f, s->x) : e->f->lv.data[s->v.i].type;
	const uint32_t group = s->kind == LS_LOAD ? ls_group(s->mem, type) : 1;
	Move m = {e,
		  s,
		  0,
		  type.lanes,
		  group,
		  dtype_size(s->mem.dtype),
		  dtype_size(group > 1 ? DT_u32 : dtype_compute(s->mem.dtype)),
		  NULL,
		  NULL,
		  store,
		  false,
		  lmem_is_array(s->mem) ? e->plan->bytes[s->mem.k] : 0};
	const int64_t *offset = exec_value(e, a, s->offset);
	const void *index = at.i ? exec_value(e, a, at) : NULL,
		   *mask = s->mask.i ? exec_value(e, a, s->mask) : NULL;
	const char *x = store ? exec_value(e, a, s->x) : NULL;
	if (!offset || (at.i && !index) || (s->mask.i && !mask) || (store && !x))
		return false;
	/* what is stored is only read */
	char *value = store ? (char *)(uintptr_t)x : variable(e, s->v);
	uint16_t *depth = !e->depth ? NULL
			  : store   ? depth_of(e, s->x)
				    : depth_of_var(e, s->v, type.lanes);
	const DType index_type = at.i ? lx_type(e->f, at).dtype : DT_i64;
	const size_t bytes = value_bytes(type);
	for (m.thread = 0; m.thread < e->n; m.thread++) {
		if (!a->on[m.thread])
			continue;
		exec_locate(e, m.thread);
		m.first = value + m.thread * bytes;
		m.depth = depth ? depth + m.thread * type.lanes : NULL;
		TRY(move_lanes(&m, offset[m.thread], index_type, index, mask,
			       value + m.thread * bytes));
	}
	return true;
}

bool exec_row(Exec *e, const LsData *s, uint32_t thread, int64_t at, uint32_t n, char *value,
	      uint16_t *depth)
{
	LsData raw = *s;
	raw.mem.dtype = dtype_raw(s->mem.dtype);
	const uint32_t size = dtype_size(raw.mem.dtype);
	Move m = {e,      &raw,
		  thread, n,
		  1,      size,
		  size,   depth,
		  value,  ls_row(s->kind)->mem == MEM_WRITE_ROWS,
		  false,  lmem_is_array(s->mem) ? e->plan->bytes[s->mem.k] : 0};
	return move_elements(&m, at, n, value);
}

/* ---- control flow ---- */

static bool exec_block(Exec *e, const Active *a, Lb b);

/* Counts the next statement, or the next round of a loop. */
static bool step(Exec *e, const Active *a, const LsData *s)
{
	Interp *in = e->at.in;
	e->at.s = s;
	e->now++;
	if (a->n > in->left)
		return loop_stop(in, LOOP_LIMIT,
				 "more than %llu statements of loop IR: too much work for the "
				 "interpreter of loop IR",
				 (unsigned long long)statement_limit(in));
	in->left -= a->n;
	return true;
}

static bool run_rounds(Exec *e, const Active *a, const LsData *s, Level *v)
{
	int64_t *i = (int64_t *)(void *)variable(e, s->v);
	memcpy(v->on, a->on, e->n);
	for (;;) {
		Active in = {v->on, 0};
		for (uint32_t t = 0; t < e->n; t++)
			in.n += v->on[t] = v->on[t] && i[t] < v->end[t];
		if (!in.n)
			return true;
		if (!step(e, &in, s) || !check_nonneg(e, &in, &e->f->lv.data[s->v.i], i) ||
		    !exec_block(e, &in, s->body))
			return false;
		for (uint32_t t = 0; t < e->n; t++)
			if (v->on[t] && __builtin_add_overflow(i[t], s->step, &i[t]))
				return loop_finding(&e->at, "the loop's variable overflows");
	}
}

static bool run_for(Exec *e, const Active *a, const LsData *s)
{
	const int64_t *lo = exec_value(e, a, s->x), *hi = lo ? exec_value(e, a, s->y) : NULL;
	Level *v = &e->level[e->nest++];
	if (!hi)
		return false;
	memcpy(v->end, hi, e->n * sizeof *v->end);
	memcpy(variable(e, s->v), lo, e->n * sizeof *lo);
	bool ok = run_rounds(e, a, s, v);
	e->nest--;
	return ok;
}

/* Finds the threads in which a condition is `when`. Returns false after a finding. */
static bool split(Exec *e, const Active *a, Lx x, bool when, bool *on, uint32_t *n)
{
	const uint8_t *c = exec_value(e, a, x);
	*n = 0;
	for (uint32_t t = 0; c && t < e->n; t++)
		*n += on[t] = a->on[t] && c[t] == when;
	return c;
}

static bool run_while(Exec *e, const Active *a, const LsData *s)
{
	bool *on = e->level[e->nest++].on;
	for (Active in = *a;;) {
		TRY(split(e, &in, s->x, true, on, &in.n));
		in.on = on;
		if (!in.n)
			break;
		TRY(exec_block(e, &in, s->body) && step(e, &in, s));
	}
	e->nest--;
	return true;
}

static bool run_if(Exec *e, const Active *a, const LsData *s)
{
	Level *v = &e->level[e->nest++];
	Active then = {v->on, 0}, other = {v->other, 0};
	TRY(split(e, a, s->x, true, v->on, &then.n) &&
	    split(e, a, s->x, false, v->other, &other.n));
	TRY((!then.n || exec_block(e, &then, s->body)) &&
	    (!other.n || exec_block(e, &other, s->other)));
	e->nest--;
	return true;
}

bool exec_fails_first(const Exec *e, uint32_t thread)
{
	const struct Failure *f = &e->at.in->failure;
	const uint32_t task = e->task[thread];
	return !f->id || task < f->task || (task == f->task && e->block && thread < f->thread);
}

static bool run_fail(Exec *e, const Active *a, const LsData *s)
{
	struct Failure *f = &e->at.in->failure;
	const int64_t *arg[MAX_FAIL_ARGS];
	for (uint32_t k = 0; k < s->narg; k++)
		if (!(arg[k] = exec_value(e, a, s->arg[k])))
			return false;
	for (uint32_t t = 0; t < e->n; t++) {
		if (!a->on[t] || !exec_fails_first(e, t))
			continue;
		*f = (struct Failure){.task = e->task[t], .thread = t, .id = s->k};
		for (uint32_t k = 0; k < s->narg; k++)
			f->arg[k] = arg[k][t];
	}
	return true;
}

static bool note_stream(Exec *e, const Active *a, bool streamed)
{
	for (uint32_t t = 0; t < e->n; t++)
		if (a->on[t])
			e->streamed[t] = streamed;
	return true;
}

static bool statement(Exec *e, const Active *a, const LsData *s)
{
	const LsRow *row = ls_row(s->kind);
	if (s->kind == LS_STREAM)
		note_stream(e, a, true);
	if (row->mem == MEM_READ || row->mem == MEM_WRITE)
		return access(e, a, s);
	switch (s->kind) {
	case LS_LET: case LS_VAR: case LS_SET: return define(e, a, s);
	case LS_FOR: return run_for(e, a, s);
	case LS_WHILE: return run_while(e, a, s);
	case LS_IF: return run_if(e, a, s);
	case LS_LOCAL: return local(e, a, s);
	case LS_FRAG:
	case LS_FRAG_ZERO:
	case LS_FRAG_LOAD:
	case LS_FRAG_STORE:
	case LS_FRAG_DOT:
		return exec_frag(e, a, s);
	case LS_FRAG_CONFIG: case LS_FRAG_RELEASE: return true;
	case LS_FAIL: return run_fail(e, a, s);
	case LS_LAUNCHES: return exec_block(e, a, s->body);
	case LS_CALL: return exec_call(e, a, s);
	case LS_FENCE: return note_stream(e, a, false);
	case LS_PREFETCH: case LS_COMMENT: return true;
	case LS_SHARED:
	case LS_SYNC:
	case LS_COPY_ASYNC:
	case LS_COPY_COMMIT:
	case LS_COPY_WAIT:
		return block_statement(e, a, s);
	default:
		return e->program ? e->program(e, s)
				  : loop_finding(&e->at, "belongs to programs, not to kernels");
	}
}

static bool exec_block(Exec *e, const Active *a, Lb b)
{
	for (uint32_t k = 0; b.i && k < e->f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &e->f->ls.data[e->f->block.data[b.i].stmt.data[k]];
		if (!step(e, a, s) || !statement(e, a, s))
			return false;
	}
	return true;
}

bool exec_top(Exec *e, const Active *a, Lb b)
{
	return exec_block(e, a, b);
}

bool exec_body(Exec *e, const Active *a)
{
	int64_t *task = (int64_t *)(void *)variable(e, e->f->task);
	for (uint32_t t = 0; t < e->n; t++)
		task[t] = e->task[t];
	memset(e->streamed, 0, e->n * sizeof *e->streamed);
	TRY(exec_block(e, a, e->f->body));
	for (uint32_t t = 0; t < e->n; t++)
		if (e->streamed[t])
			return loop_finding(&e->at, "ends without a fence after what it streamed");
	return true;
}
