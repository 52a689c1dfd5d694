/* model.c of an artifact: sizes, run, and the tables that describe the model, as
 * codegen/print/model_image.c built them. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "codegen/print/c/emit_priv.h"
#include "codegen/print/model_image.h"
#include "weft_model.h"

typedef struct {
	CUnit *u;
	const Program *p;
	const EmitOptions *o;
	const ModelImage *im;
	Text *out;
	bool *printed; /* by object */
} Printer;

const char *c_string(Arena *arena, const char *s)
{
	Text t;
	text_init(&t, arena);
	text_char(&t, '"');
	for (; s && *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			text_printf(&t, "\\%c", c);
		else if (c == '\n')
			text_add(&t, "\\n");
		else if (isprint(c) && !(c == '?' && s[1] == '?'))
			text_char(&t, (char)c);
		else
			text_printf(&t, "\\%03o", c);
	}
	text_char(&t, '"');
	return t.data;
}

/* ---- tables ---- */

static const char *number_at(const Printer *m, uint64_t at)
{
	for (uint32_t k = 0; k < m->im->number.n; k++)
		if (m->im->number.data[k].at == at)
			return m->im->number.data[k].c;
	return NULL;
}

/* Returns the C text of a pointer that is not NULL. */
static const char *pointer_text(const Printer *m, const ImagePointer *p)
{
	if (p->symbol || p->text)
		return p->symbol ? p->symbol : c_string(m->u->arena, p->text);
	const ImageObject *to = image_object(m->im, p->to);
	return arena_printf(m->u->arena, "%s%s", to->array ? "" : "&", to->name);
}

static const char *decimal(Arena *arena, uint64_t v)
{
	char text[20], *p = text + sizeof text;
	for (; v; v /= 10)
		*--p = (char)('0' + v % 10);
	return arena_strndup(arena, p, (size_t)(text + sizeof text - p));
}

static const char *signed_decimal(Arena *arena, int64_t v)
{
	return v < 0 ? arena_printf(arena, "%lld", (long long)v) : decimal(arena, (uint64_t)v);
}

/* Returns the C text of the field's value at byte `at` of the image; NULL if the value is 0, which
 * an initialiser leaves out. */
static const char *value_text(const Printer *m, const ImageField *f, uint64_t at)
{
	Arena *a = m->u->arena;
	union {
		int64_t i64;
		uint64_t u64;
		int32_t i32;
		uint32_t u32;
		uint8_t u8;
		double f64;
		WeftDType dtype;
	} v = {0};
	const char *c = number_at(m, at);
	const ImagePointer *p = f->kind == IMAGE_POINTER ? image_pointer(m->im, at) : NULL;
	if (c || f->kind == IMAGE_POINTER)
		return c ? c : p ? pointer_text(m, p) : NULL;
	bool wide = f->kind == IMAGE_I64 || f->kind == IMAGE_U64 || f->kind == IMAGE_F64;
	memcpy(&v, m->im->data + at, wide ? 8 : f->kind == IMAGE_U8 ? 1 : 4);
	switch (f->kind) {
	case IMAGE_U8: return v.u8 ? decimal(a, v.u8) : NULL;
	case IMAGE_I32: return v.i32 ? signed_decimal(a, v.i32) : NULL;
	case IMAGE_U32: return v.u32 ? decimal(a, v.u32) : NULL;
	case IMAGE_I64: return v.i64 ? signed_decimal(a, v.i64) : NULL;
	case IMAGE_U64: return v.u64 ? decimal(a, v.u64) : NULL;
	case IMAGE_F64:
		if (v.f64 == 0)
			return NULL;
		return fabs(v.f64) < 1e15 && v.f64 == floor(v.f64)
			       ? signed_decimal(a, (int64_t)v.f64)
			       : arena_printf(a, "%.17g", v.f64);
	default: return arena_printf(a, "{%u, %u, %u}", v.dtype.code, v.dtype.bits, v.dtype.lanes);
	}
}

/* Returns the macro of runtime.h that initialises a group of fields, if v is the first function of
 * the group; "" for any other function of the runtime, which such a macro initialises; NULL if v is
 * no function of the runtime. */
static const char *runtime_functions(const char *v)
{
	static const char *const first[][2] = {{"weft_rt_open", "WEFT_RUNTIME_FUNCTIONS"},
	                                       {"weft_rt_open_lapack", "WEFT_LAPACK_FUNCTIONS"},
	                                       {"weft_rt_open_ranks", "WEFT_RANKS_FUNCTIONS"},
	                                       {"weft_rt_state_get", "WEFT_STATE_FUNCTIONS"},
	                                       {"weft_rt_no_reset", "WEFT_NO_STATE_FUNCTIONS"},
	                                       {"weft_rt_wait", "WEFT_DEVICE_FUNCTIONS"}};
	if (strncmp(v, "weft_rt_", 8) != 0)
		return NULL;
	for (uint32_t k = 0; k < sizeof first / sizeof *first; k++)
		if (strcmp(v, first[k][0]) == 0)
			return first[k][1];
	return "";
}

static void print_fields(const Printer *m, const ImageType *t, uint64_t at, const char *separator)
{
	bool any = false;
	text_add(m->out, separator[1] == '\n' ? "{\n\t" : "{");
	for (uint32_t k = 0; k < t->nfield; k++) {
		const char *v = value_text(m, &t->field[k], at + t->field[k].at);
		const char *group = v ? runtime_functions(v) : "";
		if (group && *group)
			text_printf(m->out, "%s%s", separator, group);
		if (group)
			continue;
		text_add(m->out, any ? separator : "");
		text_char(m->out, '.');
		text_add(m->out, t->field[k].name);
		text_add(m->out, " = ");
		text_add(m->out, v);
		any = true;
	}
	text_printf(m->out, "%s%s}", any ? "" : "0", separator[1] == '\n' ? "\n" : "");
}

static void print_object(Printer *m, const ImageObject *o);

/* Prints the objects that an object points to, which C wants ahead of it. */
static void print_targets(Printer *m, const ImageObject *o)
{
	for (uint32_t k = 0; k < o->n * o->type->nfield; k++) {
		const ImageField *f = &o->type->field[k % o->type->nfield];
		uint64_t at = o->at + (uint64_t)(k / o->type->nfield) * o->type->size + f->at;
		const ImagePointer *p = f->kind == IMAGE_POINTER ? image_pointer(m->im, at) : NULL;
		if (p && !p->symbol && !p->text)
			print_object(m, image_object(m->im, p->to));
	}
}

static void print_object(Printer *m, const ImageObject *o)
{
	bool *printed = &m->printed[o - m->im->object.data];
	if (*printed)
		return;
	*printed = true;
	print_targets(m, o);
	text_printf(m->out, "static const %s %s%s = ", o->type->c_type, o->name,
		    o->array ? "[]" : "");
	bool plain = !o->type->field[0].name,
	     line = plain && o->type->field[0].kind != IMAGE_POINTER;
	text_add(m->out, o->array ? "{" : "");
	for (uint32_t k = 0; k < o->n; k++) {
		uint64_t at = o->at + (uint64_t)k * o->type->size;
		const char *v = plain ? value_text(m, &o->type->field[0], at) : NULL;
		text_add(m->out, line ? k ? ", " : "" : o->array ? "\n\t" : "");
		if (plain)
			text_add(m->out, v ? v : "0");
		else
			print_fields(m, o->type, at, o->array ? ", " : ",\n\t");
		text_add(m->out, o->array && !line ? "," : "");
	}
	text_add(m->out, !o->array ? ";\n\n" : line ? "};\n\n" : "\n};\n\n");
}

void c_export(Text *out, const char *export_name)
{
	const char *name = export_name ? export_name : "weft_model";
	text_printf(out,
	            "#if defined(__GNUC__)\n__attribute__((visibility(\"default\")))\n#endif\n"
	            "const WeftModel *%s(void);\n\nconst WeftModel *%s(void)\n",
	            name, name);
}

/* ---- the file ---- */

/* Prints functions that were cut out of a long `sizes` or `run`, as noinline: inlined, they would
 * make the long function again. */
static void print_outlined(Printer *m, const ProgramEntry *e, LoopFn *const *fn, uint32_t n,
			   FnRole role, const char *const *kernel_name)
{
	for (uint32_t k = 0; k < n; k++) {
		text_add(m->out, "#if defined(__GNUC__)\n__attribute__((noinline))\n#endif\n");
		c_function(m->u, fn[k], fn[k]->name, role, e, kernel_name, m->out);
		text_char(m->out, '\n');
	}
}

static void print_entry(Printer *m, const ProgramEntry *e, const char *const *kernel_name)
{
	print_outlined(m, e, e->sizes_outlined.data, e->sizes_outlined.n, FN_SIZES, kernel_name);
	print_outlined(m, e, e->run_outlined.data, e->run_outlined.n, FN_RUN, kernel_name);
	c_function(m->u, e->sizes, e->sizes->name, FN_SIZES, e, kernel_name, m->out);
	text_char(m->out, '\n');
	c_function(m->u, e->run, e->run->name, FN_RUN, e, kernel_name, m->out);
	text_char(m->out, '\n');
}

void c_model(CUnit *u, const Program *p, const EmitOptions *o, const char *const *kernel_name,
	     Text *out)
{
	ModelImage im;
	model_image(&im, p, u->target, u->target->isa.features, o);
	Printer m = {u, p, o, &im, out, ARENA_ARRAY(u->arena, bool, im.object.n)};
	for (uint32_t k = 0; k < p->entry.n; k++)
		print_entry(&m, &p->entry.data[k], kernel_name);
	if (o->weights_symbol)
		text_printf(out, "extern const unsigned char %s[];\n\n", o->weights_symbol);
	if (p->recipes && p->recipes->program)
		text_printf(out, "const WeftModel *%s(void);\n\n", o->recipes_export);
	print_object(&m, image_object(&im, im.model));
	if (o->hidden)
		text_printf(out, "const WeftModel *%s(void);\n\nconst WeftModel *%s(void)\n",
			    o->export_name, o->export_name);
	else
		c_export(out, o->export_name);
	text_add(out, "{\n\treturn &model;\n}\n");
}
