/* Loop IR statements as C: kernels, and the program's sizes and run functions. */
#include <string.h>

#include "codegen/legal/launches.h"
#include "codegen/print/c/fn.h"
#include "ir/graph/dtype_api.h"

static void line(Fn *f)
{
	for (uint32_t k = 0; k < f->indent; k++)
		text_char(f->out, '\t');
}

/* ---- stores ---- */

static void print_store(Fn *f, const LsData *s)
{
	CUnit *u = f->u;
	LType type = lx_at(f, s->x)->type;
	bool scatter = s->kind == LS_SCATTER, masked = s->mask.i != 0;
	if (type.lanes == 1) {
		line(f);
		const char *value = text_of(f, s->x);
		text_printf(f->out, "%s = %s;\n", c_element(f, s, true).s, value);
		return;
	}
	if (u->dialect->block) {
		line(f);
		const char *value = text_of(f, s->x);
		text_printf(f->out, "*(%s *)(%s) = %s;\n", c_type(u, type),
			    c_pointer(f, s->mem, s->offset, true).s, value);
		return;
	}
	CExpr in[4];
	uint32_t n = 0;
	in[n++] = c_pointer(f, s->mem, s->offset, true);
	if (scatter)
		in[n++] = c_lx(f, s->y);
	in[n++] = c_lx(f, s->x);
	if (masked)
		in[n++] = c_lx(f, s->mask);
	const char *op = scatter  ? masked ? "scatter_masked" : "scatter"
			 : masked ? "store_masked"
				  : ls_row(s->kind)->name;
	line(f);
	text_printf(
		f->out, "%s;\n",
		c_call(u, c_helper(u, op, type, scatter ? lx_at(f, s->y)->type : type), in, n).s);
}

/* ---- statements ---- */

static void print_block(Fn *f, Lb b);

static const char *name_var(Fn *f, Lv v)
{
	f->var[v.i] = names_add(&f->names, f->f->lv.data[v.i].name);
	return f->var[v.i];
}

static void print_define(Fn *f, const LsData *s, bool constant, const char *value)
{
	const char *type =
		narrow_var(f->narrow, s->v) ? "int32_t" : c_type(f->u, f->f->lv.data[s->v.i].type);
	line(f);
	text_printf(f->out, "%s%s %s = %s;\n", constant ? "const " : "", type, name_var(f, s->v),
		    value);
}

static void print_body(Fn *f, Lb b)
{
	text_add(f->out, " {\n");
	f->indent++;
	names_push(&f->names);
	print_block(f, b);
	names_pop(&f->names);
	f->indent--;
	line(f);
	text_char(f->out, '}');
}

static void print_for(Fn *f, const LsData *s)
{
	const char *lo = text_of(f, s->x), *hi = c_arg(f->u, c_lx(f, s->y), PREC_ADD);
	names_push(&f->names);
	const char *v = name_var(f, s->v);
	line(f);
	text_printf(f->out, "for (%s %s = %s; %s < %s; ",
		    narrow_var(f->narrow, s->v) ? "int32_t" : "int64_t", v, lo, v, hi);
	if (s->step == 1)
		text_printf(f->out, "%s++)", v);
	else
		text_printf(f->out, "%s += %lld)", v, (long long)s->step);
	print_body(f, s->body);
	names_pop(&f->names);
	text_char(f->out, '\n');
}

static void print_while(Fn *f, const LsData *s)
{
	line(f);
	text_printf(f->out, "while (%s)", text_of(f, s->x));
	print_body(f, s->body);
	text_char(f->out, '\n');
}

static void print_if(Fn *f, const LsData *s)
{
	line(f);
	text_printf(f->out,
		    s->rare && f->u->dialect->gnu ? "if (__builtin_expect(%s, 0))" : "if (%s)",
		    text_of(f, s->x));
	print_body(f, s->body);
	if (s->other.i && f->f->block.data[s->other.i].stmt.n) {
		text_add(f->out, " else");
		print_body(f, s->other);
	}
	text_char(f->out, '\n');
}

static void print_list(Fn *f, const char *decl, const Lx *arg, uint32_t n)
{
	line(f);
	text_printf(f->out, "%s = {", decl);
	for (uint32_t k = 0; k < n; k++)
		text_printf(f->out, "%s%s", k ? ", " : "", text_of(f, arg[k]));
	text_add(f->out, "};\n");
}

/* Prints an LS_FAIL of a kernel for blocks of threads, which records only the first failure of each
 * thread; weft_fail keeps that of the first thread. */
static void print_block_fail(Fn *f, const LsData *s)
{
	f->used.checks = true;
	line(f);
	text_add(f->out, "if (!failed) {\n");
	f->indent++;
	line(f);
	text_add(f->out, "failed = true;\n");
	if (s->narg)
		print_list(f, "const int64_t value[]", s->arg, s->narg);
	line(f);
	text_printf(f->out, "weft_fail(failure, launch, %u, %s, %s, %u);\n", s->k,
		    f->var[f->f->task.i], s->narg ? "value" : "NULL", s->narg);
	f->indent--;
	line(f);
	text_add(f->out, "}\n");
}

static void print_fail(Fn *f, const LsData *s)
{
	if (f->u->dialect->block) {
		print_block_fail(f, s);
		return;
	}
	f->used.checks = true;
	line(f);
	text_add(f->out, "if (!failed) {\n");
	f->indent++;
	line(f);
	text_printf(f->out, "failed = %u;\n", s->k);
	line(f);
	text_printf(f->out, "f->failure[0] = %s;\n", f->var[f->f->task.i]);
	for (uint32_t k = 0; k < s->narg; k++) {
		line(f);
		text_printf(f->out, "f->failure[%u] = %s;\n", k + 1, text_of(f, s->arg[k]));
	}
	f->indent--;
	line(f);
	text_add(f->out, "}\n");
}

/* Prints the call of a user operator. c_user_tables has printed the table of the call ahead of the
 * function. */
static void print_user_call(Fn *f, const LsData *s)
{
	f->used.checks = true;
	line(f);
	text_add(f->out, "{\n");
	f->indent++;
	names_push(&f->names);
	const char *value = names_add(&f->names, "value");
	print_list(f, arena_printf(f->u->arena, "int64_t %s[]", value), s->arg, s->narg);
	line(f);
	text_add(f->out, "if (!failed)\n");
	f->indent++;
	line(f);
	text_printf(f->out, "failed = weft_op_call(f, &%s, %s, %s);\n",
		    c_user_call(f->u, f->name, f->f, s), value, f->var[f->f->task.i]);
	f->indent -= 2;
	names_pop(&f->names);
	line(f);
	text_add(f->out, "}\n");
}

static void print_prefetch(Fn *f, const LsData *s)
{
	line(f);
	text_printf(f->out, "__builtin_prefetch(%s, 0, %u);\n",
		    c_pointer(f, s->mem, s->offset, false).s, ls_locality(s));
}

static void print_fence(Fn *f)
{
	line(f);
	text_printf(f->out, "%s;\n", prelude_of_statement(&f->u->target->isa, "fence", false)->c);
}

static void print_comment(Fn *f, const char *text)
{
	line(f);
	text_add(f->out, "/* ");
	c_comment(f->out, text, " ");
	text_add(f->out, " */\n");
}

static void print_local(Fn *f, const LsData *s)
{
	line(f);
	text_printf(f->out, "%s %s %s[%llu];\n", f->u->dialect->local, c_storage(s->dtype),
	            name_var(f, s->v), (unsigned long long)s->count);
}

/* ---- fragments ---- */

static void print_config(Fn *f)
{
	uint8_t config[FRAG_CONFIG_BYTES];
	loop_frag_config(f->f, config);
	const char *name = names_add(&f->names, "tiles");
	line(f);
	text_printf(f->out, "static const _Alignas(64) uint8_t %s[] = {", name);
	for (uint32_t k = 0; k < FRAG_CONFIG_BYTES; k++)
		text_printf(f->out, "%s%u", k ? ", " : "", config[k]);
	text_add(f->out, "};\n");
	line(f);
	text_printf(f->out, "_tile_loadconfig(%s);\n", name);
}

/* Prints a load or store of a fragment's rows, an AMX tile. A load of memory that the function
 * writes stands between barriers for the compiler: gcc does not know that its _tile_loadd reads
 * memory. */
static void print_rows(Fn *f, const LsData *s)
{
	const bool store = s->kind == LS_FRAG_STORE,
		   written = lmem_is_array(s->mem) || f->f->buf.data[s->mem.k].written;
	const char *barrier = store || !written ? "" : "__asm__ volatile(\"\" ::: \"memory\"); ";
	const char *p = c_pointer(f, s->mem, s->offset, store).s,
		   *stride = c_arg(f->u, c_lx(f, s->y), PREC_MUL);
	line(f);
	text_printf(f->out, "%s_tile_%s(%u, %s, %s * %u);%s\n", barrier,
		    store        ? "stored"
		    : s->passing ? "stream_loadd"
				 : "loadd",
		    loop_frag_number(f->f, s->frag[0]), p, stride, dtype_size(s->mem.dtype),
		    *barrier ? " __asm__ volatile(\"\" ::: \"memory\");" : "");
}

static void print_frag(Fn *f, const LsData *s)
{
	uint32_t number[3];
	for (uint32_t k = 0; k < ls_row(s->kind)->frags; k++)
		number[k] = loop_frag_number(f->f, s->frag[k]);
	f->u->intrinsics = true;
	switch (s->kind) {
	case LS_FRAG: return; /* a register */
	case LS_FRAG_CONFIG: print_config(f); return;
	case LS_FRAG_LOAD: case LS_FRAG_STORE: print_rows(f, s); return;
	default: break;
	}
	line(f);
	if (s->kind == LS_FRAG_RELEASE)
		text_add(f->out, "_tile_release();\n");
	else if (s->kind == LS_FRAG_ZERO)
		text_printf(f->out, "_tile_zero(%u);\n", number[0]);
	else
		text_printf(f->out, "%s(%u, %u, %u);\n",
			    prelude_of_frag(&f->u->target->isa, (FragOp)s->k, false)->c, number[0],
			    number[1], number[2]);
}

/* ---- blocks of threads ---- */

static void print_shared(Fn *f, const LsData *s)
{
	line(f);
	text_printf(f->out, "%s %s %s[%llu];\n", f->u->dialect->block->shared, c_storage(s->dtype),
		    name_var(f, s->v), (unsigned long long)s->count);
}

static void print_copy_async(Fn *f, const LsData *s)
{
	line(f);
	const char *mask = s->mask.i ? text_of(f, s->mask) : "true";
	const char *from = c_pointer(f, s->from, s->x, false).s;
	text_printf(f->out, "%s_%llu(%s, %s, %s);\n", f->u->dialect->block->copy,
		    (unsigned long long)s->count, c_pointer(f, s->mem, s->offset, true).s, from,
		    mask);
}

static void print_block_statement(Fn *f, const LsData *s)
{
	const CBlock *b = f->u->dialect->block;
	switch (s->kind) {
	case LS_SHARED: print_shared(f, s); return;
	case LS_COPY_ASYNC: print_copy_async(f, s); return;
	default: break;
	}
	line(f);
	if (s->kind == LS_COPY_WAIT)
		text_printf(f->out, "%s(%u);\n", b->wait, s->k);
	else
		text_printf(f->out, "%s();\n", s->kind == LS_SYNC ? b->sync : b->commit);
}

/* ---- program statements ---- */

/* Prints the `return 1;` of `run`, which ends the call, behind the condition for it. */
static void print_stop(Fn *f)
{
	f->indent++;
	line(f);
	f->indent--;
	text_add(f->out, "return 1;\n");
}

static void print_launch(Fn *f, const LsData *s)
{
	const ProgramCall *call = program_call(f->entry, s->k);
	print_comment(f, call->name);
	line(f);
	text_add(f->out, "{\n");
	f->indent++;
	if (s->nbuf)
		print_list(f, "void *const b[]", s->arg, s->nbuf);
	if (s->narg > s->nbuf)
		print_list(f, "const int64_t p[]", s->arg + s->nbuf, s->narg - s->nbuf);
	const char *text = text_of(f, s->x);
	line(f);
	text_printf(f->out, "%sweft_phase(r, %s, %s, %s, %u%s%s, %s)%s\n",
		    s->same_phase ? "" : "if (", f->kernel_name[call->fn], s->nbuf ? "b" : "NULL",
		    s->narg > s->nbuf ? "p" : "NULL", s->k, s->same_phase ? " | WEFT_JOINED" : "",
		    call->alone ? " | WEFT_ALONE" : "", text, s->same_phase ? ";" : ")");
	if (!s->same_phase)
		print_stop(f);
	f->indent--;
	line(f);
	text_add(f->out, "}\n");
}

static void print_words(Fn *f, const char *name, const int64_t *word, uint32_t n)
{
	enum { LINE = 16 };
	line(f);
	text_printf(f->out, "static const int64_t %s[] = {", name);
	for (uint32_t k = 0; k < n; k++) {
		if (k % LINE == 0) {
			text_char(f->out, '\n');
			line(f);
		}
		text_printf(f->out, k % LINE ? " %lld," : "\t%lld,", (long long)word[k]);
	}
	text_char(f->out, '\n');
	line(f);
	text_add(f->out, "};\n");
}

static void print_table(Fn *f, const LsData *s)
{
	const LaunchTable *t = s->launches;
	line(f);
	text_add(f->out, "{\n");
	f->indent++;
	line(f);
	text_add(f->out, "static const WeftKernel kernel[] = {");
	for (uint32_t k = 0; k < t->fn.n; k++)
		text_printf(f->out, "%s%s", k ? ", " : "", f->kernel_name[t->fn.data[k]]);
	text_add(f->out, "};\n");
	print_words(f, "shape", t->shape.data, t->shape.n);
	print_words(f, "word", t->word.data, t->word.n);
	line(f);
	text_printf(f->out, "static const WeftLaunches launches = {kernel, shape, word, %u};\n",
		    t->word.n);
	line(f);
	text_printf(f->out, "void *b[%u];\n", t->nbuf ? t->nbuf : 1);
	line(f);
	text_printf(f->out, "int64_t p[%u];\n", t->nparam ? t->nparam : 1);
	if (t->value.n)
		print_list(f, "const int64_t value[]", s->arg, s->narg);
	line(f);
	text_printf(f->out, "if (weft_launches(r, &launches, buf, %s, b, p))\n",
		    t->value.n ? "value" : "NULL");
	print_stop(f);
	f->used.bufs = true;
	f->indent--;
	line(f);
	text_add(f->out, "}\n");
}

/* Prints an LS_ASSERT. The arguments become long long, which messages have formats for. */
static void print_assert(Fn *f, const LsData *s)
{
	CExpr ok = c_lx(f, s->x);
	LType bool1 = {DT_bool, 1};
	const char *message = c_string(f->u->arena, f->entry->program->message.data[s->k]);
	f->used.fails = true;
	line(f);
	text_printf(f->out, "if (%s)\n", c_op(f->u, SC_not, bool1, bool1, &ok, 1, 0).s);
	f->indent++;
	line(f);
	f->indent--;
	if (f->role == FN_SIZES)
		text_printf(f->out, "return weft_fail(status, WEFT_ERR_INPUT, %s", message);
	else
		text_printf(f->out, "return weft_region_fail(r, %s", message);
	for (uint32_t k = 0; k < s->narg; k++)
		text_printf(f->out, ", (long long)%s", c_arg(f->u, c_lx(f, s->arg[k]), PREC_UNARY));
	text_add(f->out, ");\n");
}

static void print_part(Fn *f, const LsData *s)
{
	bool sizes = f->role == FN_SIZES;
	const char *name =
		(sizes ? f->entry->sizes_outlined.data : f->entry->run_outlined.data)[s->k]->name;
	line(f);
	if (sizes) {
		f->used.extents = f->used.fails = true;
		text_printf(f->out, "if (%s(extent + %llu, slot, status))\n", name,
			    (unsigned long long)s->count);
		f->indent++;
		line(f);
		f->indent--;
		text_add(f->out, "return WEFT_ERR_INPUT;\n");
	} else if (s->narg) {
		text_add(f->out, "{\n");
		f->indent++;
		print_list(f, "const int64_t p[]", s->arg, s->narg);
		line(f);
		text_printf(f->out, "if (%s(r, buf, p))\n", name);
		print_stop(f);
		f->indent--;
		line(f);
		text_add(f->out, "}\n");
	} else {
		text_printf(f->out, "if (%s(r, buf, slot))\n", name);
		print_stop(f);
	}
	f->used.bufs = true;
	f->used.slots = f->used.slots || !s->narg;
}

static void print_read(Fn *f, const LsData *s)
{
	const char *code = c_dtype_code(dtype_to_api(s->dtype));
	print_define(f, s, true,
		     arena_printf(f->u->arena, "weft_read(r, %s, %s, %u)%s", text_of(f, s->x), code,
				  8 * dtype_size(s->dtype), s->dtype == DT_bool ? " != 0" : ""));
}

static void print_save(Fn *f, const LsData *s)
{
	line(f);
	text_add(f->out, "weft_save(r");
	for (uint32_t k = 0; k < s->narg; k++)
		text_printf(f->out, "%s, %s", k == 3 && s->nbuf == 3 ? ", NULL" : "",
			    text_of(f, s->arg[k]));
	text_add(f->out, ");\n");
}

static void print_room(Fn *f, const LsData *s)
{
	if (!s->narg) {
		line(f);
		text_printf(f->out, "weft_room(r, %u, 0);\n", s->k);
		return;
	}
	line(f);
	text_add(f->out, "{\n");
	f->indent++;
	print_list(f, "const int64_t p[]", s->arg, s->narg);
	line(f);
	text_printf(f->out, "if (weft_room(r, %u, p))\n", s->k);
	print_stop(f);
	f->indent--;
	line(f);
	text_add(f->out, "}\n");
}

static void print_copy(Fn *f, const LsData *s)
{
	const char *bytes = text_of(f, s->y), *from = text_of(f, s->x);
	line(f);
	text_printf(f->out, "weft_copy(r, %s, %s, %s);\n", text_of(f, s->offset), from, bytes);
}

static void print_program(Fn *f, const LsData *s)
{
	switch (s->kind) {
	case LS_LAUNCH:
		print_launch(f, s);
		break;
	case LS_READ:
		print_read(f, s);
		break;
	case LS_ROOM:
		print_room(f, s);
		break;
	case LS_COPY:
		print_copy(f, s);
		break;
	case LS_SAVE:
		print_save(f, s);
		break;
	case LS_LAUNCHES:
		print_table(f, s);
		break;
	case LS_ASSERT:
		print_assert(f, s);
		break;
	case LS_OUTLINED:
		print_part(f, s);
		break;
	default:
		f->used.slots = true;
		line(f);
		text_printf(f->out, "slot[%u] = %s;\n", s->k, text_of(f, s->x));
		break;
	}
}

static void print_kind(Fn *f, const LsData *s)
{
	switch (s->kind) {
	case LS_LET:
		print_define(f, s, true, text_of(f, s->x));
		break;
	case LS_VAR:
		print_define(f, s, false, text_of(f, s->x));
		break;
	case LS_SET:
		line(f);
		text_printf(f->out, "%s = %s;\n", f->var[s->v.i], text_of(f, s->x));
		break;
	case LS_LOAD: case LS_GATHER:
		print_define(f, s, true, c_load(f, s).s);
		break;
	case LS_STORE: case LS_STREAM: case LS_SCATTER: print_store(f, s); break;
	case LS_FOR: print_for(f, s); break;
	case LS_WHILE: print_while(f, s); break;
	case LS_IF: print_if(f, s); break;
	case LS_LOCAL: print_local(f, s); break;
	case LS_FAIL: print_fail(f, s); break;
	case LS_CALL: print_user_call(f, s); break;
	case LS_PREFETCH: print_prefetch(f, s); break;
	case LS_FENCE: print_fence(f); break;
	case LS_COMMENT: print_comment(f, s->text); break;
	case LS_FRAG:
	case LS_FRAG_ZERO:
	case LS_FRAG_LOAD:
	case LS_FRAG_STORE:
	case LS_FRAG_DOT:
	case LS_FRAG_CONFIG:
	case LS_FRAG_RELEASE:
		print_frag(f, s);
		break;
	case LS_SHARED: case LS_SYNC: case LS_COPY_ASYNC: case LS_COPY_COMMIT: case LS_COPY_WAIT:
		print_block_statement(f, s);
		break;
	default: print_program(f, s); break;
	}
}

static void print_block(Fn *f, Lb b)
{
	for (uint32_t k = 0; b.i && k < f->f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &f->f->ls.data[f->f->block.data[b.i].stmt.data[k]];
		print_kind(f, s);
	}
}

/* ---- functions ---- */

static void print_buffers(const Fn *f, Text *out)
{
	for (uint32_t k = 0; k < f->f->buf.n; k++) {
		const LArg *b = &f->f->buf.data[k];
		if (f->used.buf[k])
			text_printf(out, "\t%s%s *%s%s = f->buf[%u];\n", b->written ? "" : "const ",
				    c_storage(b->dtype), b->restrict_ok ? "restrict " : "",
				    f->buf[k], k);
	}
}

/* Defines the used parameters from number `begin` to `end`, which are the first elements of the
 * array `from`. Returns false if none of them is used. */
static bool print_params(const Fn *f, Text *out, const char *from, uint32_t begin, uint32_t end)
{
	bool any = false;
	for (uint32_t k = begin; k < end; k++) {
		if (f->used.param[k])
			text_printf(out, "\tconst int64_t %s = %s[%u];\n", f->param[k], from,
				    k - begin);
		any = any || f->used.param[k];
	}
	return any;
}

static const char *top_text(const Fn *f, uint32_t k)
{
	return f->top[k].data ? f->top[k].data : "";
}

static void print_kernel(const Fn *f, const char *name, Text *out)
{
	bool frame = f->used.bufs || f->used.checks;
	for (uint32_t k = 0; k < f->f->param.n; k++)
		frame = frame || f->used.param[k];
	text_printf(out, "int %s(const WeftFrame *f, int64_t begin, int64_t end)\n{\n", name);
	if (!frame)
		text_add(out, "\t(void)f;\n");
	print_buffers(f, out);
	print_params(f, out, "f->p", 0, f->f->param.n);
	if (f->used.checks)
		text_add(out, "\tint failed = 0;\n");
	const char *task = f->var[f->f->task.i];
	text_add(out, top_text(f, 0));
	text_printf(out, "\tfor (int64_t %s = begin; %s < end; %s++) {\n%s\t}\n", task, task, task,
		    top_text(f, 1));
	text_printf(out, "%s\treturn %s;\n}\n", top_text(f, 2), f->used.checks ? "failed" : "0");
}

/* Whether the text reads the low half of the parameter. */
static bool is_cut(const Fn *f, uint32_t k)
{
	return f->used.param[k] && narrow_param(f->narrow, k);
}

/* Prints a kernel for blocks of threads. Its signature has all buffers and parameters, used or not,
 * since a launch is made from the LoopFn alone. */
static void print_block_kernel(const Fn *f, const char *name, Text *out)
{
	const CBlock *b = f->u->dialect->block;
	text_printf(out, b->kernel, f->f->threads);
	text_printf(out, " %s(", name);
	for (uint32_t k = 0; k < f->f->buf.n; k++) {
		const LArg *a = &f->f->buf.data[k];
		text_printf(out, "%s%s *%s%s%s, ", a->written ? "" : "const ", c_storage(a->dtype),
			    a->restrict_ok ? f->u->dialect->restrict_word : "",
			    a->restrict_ok ? " " : "", f->buf[k]);
	}
	for (uint32_t k = 0; k < f->f->param.n; k++)
		text_printf(out, "const int64_t %s%s, ", f->param[k], is_cut(f, k) ? "_64" : "");
	text_printf(out, "const int64_t first, %s *failure, const int64_t launch)\n{\n",
		    b->failure);
	text_add(out, "\tif (weft_stopped(failure, launch))\n\t\treturn;\n");
	for (uint32_t k = 0; k < f->f->param.n; k++)
		if (is_cut(f, k))
			text_printf(out, "\tconst int32_t %s = (int32_t)%s_64;\n", f->param[k],
				    f->param[k]);
	const bool narrow = narrow_var(f->narrow, f->f->task);
	text_printf(out,
		    narrow ? "\t[[maybe_unused]] const int32_t %s = (int32_t)(first + %s);\n"
			   : "\t[[maybe_unused]] const int64_t %s = first + %s;\n",
		    f->var[f->f->task.i], b->task);
	if (f->used.checks)
		text_add(out, "\tbool failed = false;\n");
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		text_add(out, top_text(f, k));
	text_add(out, "}\n");
}

static void print_sizes(const Fn *f, const char *name, Text *out)
{
	Text values;
	text_init(&values, f->u->arena);
	uint32_t nslot = program_nslot_params(f->entry, f->f);
	bool slots = print_params(f, &values, "slot", 0, nslot);
	bool extents = print_params(f, &values, "extent", nslot, f->f->param.n);
	text_printf(out,
		    "static int %s(const int64_t *extent, int64_t *slot, WeftStatus *status)\n{\n",
		    name);
	if (!extents && !f->used.extents)
		text_add(out, "\t(void)extent;\n");
	if (!slots && !f->used.slots)
		text_add(out, "\t(void)slot;\n");
	if (!f->used.fails)
		text_add(out, "\t(void)status;\n");
	text_printf(out, "%s%s\treturn WEFT_OK;\n}\n", values.data ? values.data : "",
		    top_text(f, 1));
}

static void print_run(const Fn *f, const char *name, Text *out)
{
	Text values;
	text_init(&values, f->u->arena);
	bool slots = print_params(f, &values, "slot", 0, f->f->param.n);
	text_printf(out, "static int %s(WeftRegion *r, void *const *buf, const int64_t *slot)\n{\n",
		    name);
	if (!f->used.bufs)
		text_add(out, "\t(void)buf;\n");
	if (!slots && !f->used.slots)
		text_add(out, "\t(void)slot;\n");
	text_printf(out, "%s%s\treturn 0;\n}\n", values.data ? values.data : "", top_text(f, 1));
}

static void fn_init(Fn *f)
{
	static const char *const own[4][12] = {
		[FN_KERNEL] = {"f", "begin", "end", "failed"},
		[FN_LIBRARY] = {NULL},
		[FN_SIZES] = {"extent", "slot", "status"},
		[FN_RUN] = {"buf", "slot", "r", "b", "p", "kernel", "shape", "word", "launches",
			    "value"},
	};
	Arena *arena = f->u->arena;
	const LoopFn *l = f->f;
	names_init(&f->names, arena);
	for (uint32_t k = 0; own[f->role][k]; k++)
		names_reserve(&f->names, own[f->role][k]);
	if (f->u->dialect->cpp)
		names_reserve_cpp(&f->names);
	for (uint32_t k = 0; f->u->dialect->own && f->u->dialect->own[k]; k++)
		names_reserve(&f->names, f->u->dialect->own[k]);
	f->var = ARENA_ARRAY(arena, const char *, l->lv.n);
	f->buf = ARENA_ARRAY(arena, const char *, l->buf.n);
	f->param = ARENA_ARRAY(arena, const char *, l->param.n);
	f->used.buf = ARENA_ARRAY(arena, bool, l->buf.n);
	f->used.param = ARENA_ARRAY(arena, bool, l->param.n);
	for (uint32_t k = 0; k < l->buf.n && f->role == FN_KERNEL; k++)
		f->buf[k] = names_add(&f->names, l->buf.data[k].name);
	for (uint32_t k = 0; k < l->param.n; k++)
		f->param[k] = names_add(&f->names, l->param.data[k]);
	if (f->role != FN_LIBRARY)
		name_var(f, l->task);
	for (uint32_t k = 0; k < l->arg.n; k++)
		name_var(f, l->arg.data[k]);
}

static bool is_read(const LoopFn *l, Lv v)
{
	for (uint32_t k = 1; k < l->lx.n; k++)
		if (l->lx.data[k].kind == LX_VAR && l->lx.data[k].u.v.i == v.i)
			return true;
	return false;
}

static void print_library(Fn *f, const char *name, Text *out)
{
	const LoopFn *l = f->f;
	text_printf(out, "%s %s %s(",
		    l->is_inline ? f->u->dialect->helper : f->u->dialect->function,
		    c_type(f->u, lx_type(l, l->result)), name);
	for (uint32_t k = 0; k < l->arg.n; k++)
		text_printf(out, "%s%s %s", k ? ", " : "",
			    c_type(f->u, l->lv.data[l->arg.data[k].i].type),
			    f->var[l->arg.data[k].i]);
	text_printf(out, "%s)\n{\n", l->arg.n ? "" : "void");
	for (uint32_t k = 0; k < l->arg.n; k++)
		if (!is_read(l, l->arg.data[k]))
			text_printf(out, "\t(void)%s;\n", f->var[l->arg.data[k].i]);
	text_printf(out, "%s\treturn %s;\n}\n\n", top_text(f, 1), text_of(f, l->result));
}

/* Prints top-level block k of the function into f->top[k]. Block 1 of a kernel is the body of the
 * loop over its tasks. */
static void print_top(Fn *f, uint32_t k)
{
	text_init(&f->top[k], f->u->arena);
	f->out = &f->top[k];
	f->indent = f->role == FN_KERNEL && k == 1 && !f->u->dialect->block ? 2 : 1;
	if (k == 1)
		names_push(&f->names);
	print_block(f, loop_top(f->f, k));
	if (k == 1)
		names_pop(&f->names);
}

void c_function(CUnit *u, const LoopFn *l, const char *name, FnRole role, const ProgramEntry *entry,
                const char *const *kernel_name, Text *out)
{
	Fn f = {.u = u,
		.f = l,
		.role = role,
		.entry = entry,
		.kernel_name = kernel_name,
		.name = name};
	if (loop_is_of_block(l) && !u->dialect->block)
		ctx_bug(l->ir->ctx, "C: %s is executed by a block of threads", l->name);
	if (role == FN_KERNEL && u->dialect->block)
		f.narrow = narrow_of(l, u->arena);
	fn_init(&f);
	names_push(&f.names);
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		print_top(&f, k);
	c_user_tables(u, l, name, out);
	c_head_comment(l, out);
	if (role == FN_KERNEL && u->dialect->block)
		print_block_kernel(&f, name, out);
	else if (role == FN_KERNEL)
		print_kernel(&f, name, out);
	else if (role == FN_LIBRARY)
		print_library(&f, name, out);
	else if (role == FN_SIZES)
		print_sizes(&f, name, out);
	else
		print_run(&f, name, out);
}
