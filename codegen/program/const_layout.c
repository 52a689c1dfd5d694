/* One stored layout for each large constant.
 *
 * A contraction would have its weights in panels, the lookup of an embedding reads the rows of the
 * same table, and of a family's levels each may want panels of its own. A file that holds a
 * constant in every layout that somebody wants is larger, and so is the memory that is in use, for
 * little: reading another layout costs a load for each element. So
 *
 *   wants    for each kernel that reads the constant: the layout that it would pack; `given` where
 *            it packs nothing
 *   equal    nothing to choose: each kernel packs for itself, and all get the same
 *   others   for each layout that somebody wants, and for the given one: every kernel is scheduled
 *            with it, and the predicted cycles of all are added up. The least is chosen, and its
 *            buffers are fixed
 *
 * Only constants with several readers cost anything here, and equal kernels are scheduled once for
 * each layout. */
#include "codegen/program/distinct.h"

/* Bytes: copies of less cost nothing that could be measured. */
enum { LARGE = 64 << 10 };

/* Layouts of one constant that are compared; further ones would each cost a schedule of all its
 * readers. */
enum { MOST_WANTS = 8 };

/* Equal kernels of a level that read a constant at the same place. */
typedef struct {
	uint32_t level;
	const Kernel *kernel; /* one of them */
	double times;
} Reader;

typedef struct {
	uint32_t loads;         /* in all levels */
	const Kernel *last;     /* that was counted as a reader */
	Layout given;
	ARRAY(Buffer *) buf;    /* of all levels */
	ARRAY(Layout) want;     /* different ones */
	ARRAY(uint32_t) reader; /* indices into Chooser.reader */
} Choice;

typedef ARRAY(LayoutWant) WantList;

typedef struct {
	const ScheduleLevel *level;
	uint32_t n;
	Arena *arena;
	DistinctKernels *kernels; /* by level */
	WantList *want;           /* by level, then by id of a kernel's key - 1 */
	Intern constant;          /* source and dtype */
	ARRAY(Choice) choice;     /* by id - 1 */
	Intern reading;           /* choice, level, key */
	ARRAY(Reader) reader;     /* by id - 1 */
	bool **met;               /* by level and buffer */
	double times;             /* that the kernel at hand runs */
} Chooser;

typedef void Visit(Chooser *, uint32_t level, const Kernel *);

static void each_kernel(Chooser *c, uint32_t level, const StepList *list, Visit *visit)
{
	double times = c->times;
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *s = &list->step.data[i];
		StepList *inner[MAX_STEP_LISTS];
		if (s->kind == STEP_KERNEL)
			visit(c, level, s->kernel);
		c->times = s->kind == STEP_LOOP
				   ? times * (double)sym_hint(c->level[level].lowered->ir->syms,
							      s->extent)
				   : times;
		for (uint32_t k = 0, n = step_lists(s, inner); k < n; k++)
			each_kernel(c, level, inner[k], visit);
		c->times = times;
	}
}

static void each_level(Chooser *c, Visit *visit)
{
	c->times = 1;
	for (uint32_t level = 0; level < c->n; level++)
		each_kernel(c, level, &c->level[level].lowered->steps, visit);
}

/* ---- which constants ---- */

static bool is_large(const Lowered *l, const Buffer *b)
{
	return sym_const_or(l->ir->syms, layout_numel(l->ir, &b->layout), 0) >
	       LARGE / dtype_size(b->dtype);
}

/* Returns the choice for the large constant that x loads, added the first time; NULL if x loads
 * none, or the constant's layout is fixed. */
static Choice *choice_of(Chooser *c, uint32_t level, const KxData *x)
{
	const Lowered *l = c->level[level].lowered;
	if (x->kind != KX_LOAD || buf_of(l, x->buf)->kind != BUF_CONST)
		return NULL;
	const Buffer *b = buf_of(l, x->buf);
	uint32_t key[] = {b->k, b->dtype};
	uint32_t id = intern_find(&c->constant, key, sizeof key);
	if (id)
		return &c->choice.data[id - 1];
	if (b->layout_fixed || !is_large(l, b))
		return NULL;
	intern(&c->constant, key, sizeof key, NULL);
	array_push(c->arena, &c->choice, (Choice){.given = b->layout});
	return &c->choice.data[c->choice.n - 1];
}

static void count_loads(Chooser *c, uint32_t level, const Kernel *k)
{
	for (uint32_t i = 1; i < k->kx.n; i++) {
		Choice *x = choice_of(c, level, &k->kx.data[i]);
		if (!x)
			continue;
		BufId b = k->kx.data[i].buf;
		x->loads++;
		if (!c->met[level][b.i])
			array_push(c->arena, &x->buf, buf_of(c->level[level].lowered, b));
		c->met[level][b.i] = true;
	}
}

/* ---- what kernels want ---- */

static void add_want(Chooser *c, Choice *x, const Layout *layout)
{
	for (uint32_t i = 0; i < x->want.n; i++)
		if (layout_equal(&x->want.data[i], layout))
			return;
	if (x->want.n < MOST_WANTS)
		array_push(c->arena, &x->want, *layout);
}

static void add_reader(Chooser *c, Choice *x, uint32_t level, const Kernel *k, uint32_t kernel)
{
	uint32_t key[] = {(uint32_t)(x - c->choice.data), level, kernel};
	bool fresh;
	uint32_t id = intern(&c->reading, key, sizeof key, &fresh);
	if (fresh) {
		array_push(c->arena, &c->reader, (Reader){level, k, 0});
		array_push(c->arena, &x->reader, id - 1);
	}
	c->reader.data[id - 1].times += c->times;
	x->last = k;
}

static bool has_choice(Chooser *c, uint32_t level, const Kernel *k)
{
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const Choice *x = choice_of(c, level, &k->kx.data[i]);
		if (x && x->loads > 1)
			return true;
	}
	return false;
}

static void find_wants(Chooser *c, uint32_t level, const Kernel *k)
{
	const ScheduleLevel *at = &c->level[level];
	bool fresh;
	if (!has_choice(c, level, k))
		return;
	uint32_t id = distinct_key(&c->kernels[level], k, &fresh);
	if (fresh)
		array_push(c->arena, &c->want[level], schedule_wants(at->lowered, k, at->target));
	const LayoutWant *want = &c->want[level].data[id - 1];
	for (uint32_t i = 1; i < k->kx.n; i++) {
		Choice *x = choice_of(c, level, &k->kx.data[i]);
		if (!x || x->loads < 2)
			continue;
		add_want(c, x, i == want->load.i ? &want->layout : &x->given);
		if (x->last != k)
			add_reader(c, x, level, k, id);
	}
}

/* ---- choosing ---- */

static void store_as(const Choice *x, const Layout *layout)
{
	for (uint32_t i = 0; i < x->buf.n; i++) {
		x->buf.data[i]->layout = *layout;
		x->buf.data[i]->layout_fixed = true;
	}
}

/* Stores the constant in a layout, and returns the predicted cycles of all its readers. */
static double cycles_as(const Chooser *c, const Choice *x, const Layout *layout)
{
	double cycles = 0;
	store_as(x, layout);
	for (uint32_t i = 0; i < x->reader.n; i++) {
		const Reader *r = &c->reader.data[x->reader.data[i]];
		const ScheduleLevel *at = &c->level[r->level];
		cycles += r->times * schedule_kernel(at->lowered, r->kernel, at->target)->cycles;
	}
	return cycles;
}

static void choose(Chooser *c, Choice *x)
{
	if (x->want.n < 2)
		return;
	add_want(c, x, &x->given);
	uint32_t best = 0;
	double least = 0;
	for (uint32_t i = 0; i < x->want.n; i++) {
		double cycles = cycles_as(c, x, &x->want.data[i]);
		if (i && cycles >= least)
			continue;
		best = i;
		least = cycles;
	}
	store_as(x, &x->want.data[best]);
}

void choose_const_layouts(const ScheduleLevel *level, uint32_t n)
{
	Arena *arena = level[0].lowered->ir->ctx->arena;
	Chooser c = {.level = level,
		     .n = n,
		     .arena = arena,
		     .kernels = ARENA_ARRAY(arena, DistinctKernels, n),
		     .want = ARENA_ARRAY(arena, WantList, n),
		     .met = ARENA_ARRAY(arena, bool *, n)};
	intern_init(&c.constant, arena);
	intern_init(&c.reading, arena);
	for (uint32_t i = 0; i < n; i++) {
		c.met[i] = ARENA_ARRAY(arena, bool, level[i].lowered->buf.n);
		distinct_init(&c.kernels[i], level[i].lowered, NULL, level[i].target);
	}
	each_level(&c, count_loads);
	each_level(&c, find_wants);
	for (uint32_t i = 0; i < c.choice.n; i++)
		choose(&c, &c.choice.data[i]);
}
