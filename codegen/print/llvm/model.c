/* The unit around the kernels: sizes, run, and the tables that describe the model. */
#include "codegen/print/llvm/priv.h"
#include "codegen/print/model_image.h"

typedef struct {
	LUnit *u;
	const ModelImage *im;
	LLVMValueRef table;
	LLVMTypeRef type;
} Tables;

static LLVMTypeRef bytes_type(LUnit *u, uint64_t n)
{
	return LLVMArrayType2(LLVMInt8TypeInContext(u->c), n);
}

/* Returns the type of the tables: a packed structure, runs of bytes with pointers between them. */
static LLVMTypeRef table_type(LUnit *u, const ModelImage *im)
{
	LLVMTypeRef *field = ARENA_ARRAY(u->arena, LLVMTypeRef, 2 * (size_t)im->pointer.n + 1);
	uint64_t at = 0;
	uint32_t n = 0;
	for (uint32_t k = 0; k < im->pointer.n; k++) {
		field[n++] = bytes_type(u, im->pointer.data[k].at - at);
		field[n++] = l_pointer(u);
		at = im->pointer.data[k].at + 8;
	}
	field[n++] = bytes_type(u, im->n - at);
	return LLVMStructTypeInContext(u->c, field, n, true);
}

static LLVMValueRef byte_of(Tables *t, uint64_t at)
{
	LLVMValueRef index = l_i64(t->u, (int64_t)at);
	return LLVMConstInBoundsGEP2(LLVMInt8TypeInContext(t->u->c), t->table, &index, 1);
}

static LLVMValueRef symbol(LUnit *u, const char *name)
{
	LLVMValueRef x = LLVMGetNamedFunction(u->m, name);
	x = x ? x : LLVMGetNamedGlobal(u->m, name);
	return x ? x : LLVMAddGlobal(u->m, LLVMInt8TypeInContext(u->c), name);
}

static LLVMValueRef bytes_value(LUnit *u, const ModelImage *im, uint64_t from, uint64_t to)
{
	return LLVMConstStringInContext2(u->c, im->data + from, to - from, true);
}

static void fill_table(Tables *t)
{
	LUnit *u = t->u;
	const ModelImage *im = t->im;
	LLVMValueRef *field = ARENA_ARRAY(u->arena, LLVMValueRef, 2 * (size_t)im->pointer.n + 1);
	uint64_t at = 0;
	uint32_t n = 0;
	for (uint32_t k = 0; k < im->pointer.n; k++) {
		const ImagePointer *p = &im->pointer.data[k];
		field[n++] = bytes_value(u, im, at, p->at);
		field[n++] = p->symbol ? symbol(u, p->symbol) : byte_of(t, p->to);
		at = p->at + 8;
	}
	field[n++] = bytes_value(u, im, at, im->n);
	LLVMSetInitializer(t->table, LLVMConstStructInContext(u->c, field, n, true));
}

static const char *features(const LUnit *u)
{
	const Isa *isa = &u->target->isa;
	const char *more = isa->attribute_features;
	return more && *more ? arena_printf(u->arena, "%s %s", isa->features, more) : isa->features;
}

/* Adds the artifact's function, which returns a table, and leaves the builder in its body. */
static LLVMValueRef table_function(LUnit *u, const char *export_name, bool hidden)
{
	LLVMTypeRef type = LLVMFunctionType(l_pointer(u), NULL, 0, false);
	LLVMValueRef fn = LLVMAddFunction(u->m, export_name ? export_name : "weft_model", type);
	if (hidden)
		LLVMSetVisibility(fn, LLVMHiddenVisibility);
	l_attribute(u, fn, "nounwind");
	LLVMPositionBuilderAtEnd(u->b, LLVMAppendBasicBlockInContext(u->c, fn, ""));
	return fn;
}

static void build_entry(LUnit *u, const ProgramEntry *e, const char *const *kernel_name)
{
	for (uint32_t k = 0; k < e->sizes_outlined.n; k++)
		l_function(u, e->sizes_outlined.data[k], e->sizes_outlined.data[k]->name, FN_SIZES,
			   e, kernel_name);
	for (uint32_t k = 0; k < e->run_outlined.n; k++)
		l_function(u, e->run_outlined.data[k], e->run_outlined.data[k]->name, FN_RUN, e,
			   kernel_name);
	l_function(u, e->sizes, e->sizes->name, FN_SIZES, e, kernel_name);
	l_function(u, e->run, e->run->name, FN_RUN, e, kernel_name);
}

void l_model(LUnit *u, const Program *p, const EmitOptions *o, const char *const *kernel_name)
{
	ModelImage im;
	for (uint32_t k = 0; k < p->entry.n; k++)
		build_entry(u, &p->entry.data[k], kernel_name);
	model_image(&im, p, u->target, features(u), o);
	Tables t = {.u = u, .im = &im, .type = table_type(u, &im)};
	t.table = LLVMAddGlobal(u->m, t.type, "tables");
	LLVMSetLinkage(t.table, LLVMInternalLinkage);
	LLVMSetGlobalConstant(t.table, true);
	LLVMSetAlignment(t.table, 16);
	fill_table(&t);
	table_function(u, o->export_name, o->hidden);
	LLVMBuildRet(u->b, byte_of(&t, im.model));
}

static LLVMValueRef level_array(LUnit *u, const EmitSelect *s)
{
	LLVMTypeRef get = LLVMFunctionType(l_pointer(u), NULL, 0, false);
	LLVMValueRef *level = ARENA_ARRAY(u->arena, LLVMValueRef, s->n);
	for (uint32_t k = 0; k < s->n; k++) {
		level[k] = LLVMAddFunction(u->m, s->level_export[k], get);
		LLVMSetVisibility(level[k], LLVMHiddenVisibility);
	}
	LLVMValueRef array = LLVMAddGlobal(u->m, LLVMArrayType2(l_pointer(u), s->n), "level");
	LLVMSetLinkage(array, LLVMInternalLinkage);
	LLVMSetGlobalConstant(array, true);
	LLVMSetInitializer(array, LLVMConstArray2(l_pointer(u), level, s->n));
	return array;
}

void l_select(LUnit *u, const EmitSelect *s)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(u->c);
	LLVMTypeRef type =
		LLVMFunctionType(l_pointer(u), (LLVMTypeRef[]){l_pointer(u), i32}, 2, false);
	LLVMValueRef in[] = {level_array(u, s), LLVMConstInt(i32, s->n, false)};
	table_function(u, s->export_name, false);
	LLVMBuildRet(u->b,
		     LLVMBuildCall2(u->b, type, l_extern(u, "weft_rt_select", type), in, 2, ""));
}
