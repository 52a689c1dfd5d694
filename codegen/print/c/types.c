#include <string.h>

#include "codegen/print/c/emit_priv.h"

const char *c_elem(DType d)
{
	switch (dtype_compute(d)) {
	case DT_bool: return "bool";
	case DT_u8: return "uint8_t";
	case DT_i8: return "int8_t";
	case DT_i16: return "int16_t";
	case DT_i32: return "int32_t";
	case DT_i64: return "int64_t";
	case DT_u16: return "uint16_t";
	case DT_u32: return "uint32_t";
	case DT_u64: return "uint64_t";
	case DT_f32: return "float";
	case DT_f64: return "double";
	default: return "void";
	}
}

const char *c_storage(DType d)
{
	return c_elem(dtype_raw(d));
}

const char *type_label(CUnit *u, LType t)
{
	if (t.lanes == 1)
		return dtype_name(dtype_compute(t.dtype));
	if (t.dtype == DT_bool)
		return arena_printf(u->arena, "b%u", t.lanes);
	return arena_printf(u->arena, "%sx%u", dtype_name(dtype_compute(t.dtype)), t.lanes);
}

static void declare_mask(CUnit *u, const char *name, uint32_t lanes)
{
	u->intrinsics |= u->target->isa.masks == MASK_BITS;
	if (u->target->isa.masks == MASK_BITS)
		text_printf(&u->types, "typedef __mmask%u %s;\n", lanes < 8 ? 8 : lanes, name);
	else
		text_printf(&u->types, "typedef int32_t %s __attribute__((vector_size(%u)));\n",
			    name, lanes * 4);
}

static uint32_t vector_size(LType t)
{
	return t.lanes * dtype_size(dtype_compute(t.dtype));
}

/* Declares a type of several elements, which a thread loads or stores in one access. CUDA C has no
 * vectors to compute with. */
static void declare_pack(CUnit *u, const char *name, LType t)
{
	text_printf(&u->types, "struct __align__(%u) %s {\n\t%s at[%u];\n};\n", vector_size(t),
		    name, c_elem(t.dtype), t.lanes);
}

const char *c_pack_function(CUnit *u, LType t)
{
	bool fresh;
	const char *name = c_type(u, t), *elem = c_elem(t.dtype),
		   *function = arena_printf(u->arena, "pack_%s", name);
	intern(&u->known, function, strlen(function), &fresh);
	if (!fresh)
		return function;
	text_printf(&u->types, "%s %s %s(", u->dialect->helper, name, function);
	for (uint32_t k = 0; k < t.lanes; k++)
		text_printf(&u->types, "%s%s x%u", k ? ", " : "", elem, k);
	text_printf(&u->types, ")\n{\n\t%s v;\n", name);
	for (uint32_t k = 0; k < t.lanes; k++)
		text_printf(&u->types, "\tv.at[%u] = x%u;\n", k, k);
	text_add(&u->types, "\treturn v;\n}\n");
	return function;
}

const char *c_type(CUnit *u, LType t)
{
	if (t.lanes == 1)
		return c_elem(t.dtype);
	const char *name = type_label(u, t);
	bool fresh;
	intern(&u->known, name, strlen(name), &fresh);
	if (!fresh)
		return name;
	if (u->dialect->block) {
		declare_pack(u, name, t);
		return name;
	}
	u->wide |= t.dtype != DT_bool && vector_size(t) > u->target->isa.vector_bytes;
	if (t.dtype == DT_bool)
		declare_mask(u, name, t.lanes);
	else
		text_printf(&u->types, "typedef %s %s __attribute__((vector_size(%u)));\n",
			    c_elem(t.dtype), name, vector_size(t));
	return name;
}

const CDialect c_dialect = {
	.helper = "static inline",
	.function = "static",
	.table = "static const",
	.local = "_Alignas(64)",
	.restrict_word = "restrict",
	.gnu = true,
};

void unit_init(CUnit *u, Ctx *ctx, const Target *target, const CDialect *dialect)
{
	memset(u, 0, sizeof *u);
	u->ctx = ctx;
	u->arena = ctx->arena;
	u->target = target;
	u->dialect = dialect;
	intern_init(&u->known, u->arena);
	text_init(&u->types, u->arena);
	text_init(&u->helpers, u->arena);
}

void unit_head(CUnit *u, Text *out, const char *kernels, const char *vector)
{
	const Prelude *p = prelude_of(u->target);
	if (u->intrinsics && p->header && vector)
		text_printf(out, "#include \"%s\"\n", vector);
	else if (u->intrinsics && p->header)
		text_printf(out, "#include <%s>\n", p->include);
	text_add(out, u->dialect->head
			      ? u->dialect->head
			      : "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n"
				"#include <string.h>\n");
	if (kernels)
		text_printf(out, "\n#include \"%s\"\n", kernels);
	/* index lanes take several registers; such values stay within this file, whatever the
	 * calling convention */
	if (u->wide)
		text_add(out,
			 "\n#ifdef __GNUC__\n#pragma GCC diagnostic ignored \"-Wpsabi\"\n#endif\n");
	if (u->types.n)
		text_printf(out, "\n%s", u->types.data);
	if (u->helpers.n)
		text_printf(out, "\n%s", u->helpers.data);
}

/* Appends the parts of <immintrin.h> that the target needs, where gcc is known to have them, since
 * reading all of it takes longer than compiling most units. Its parts may only be included by
 * itself; how it says so is the same in these versions. */
void x86_header(const Target *t, Text *out)
{
	static const char *const parts[] = {"avx",      "avx2",       "fma",       "f16c",
					    "avx512f",  "avx512cd",   "avx512vl",  "avx512bw",
					    "avx512dq", "avx512vlbw", "avx512vldq"};
	uint32_t n = t->isa.vector_bytes == 64                                ? 11
		     : t->isa.vector_bytes == 32 || isa_has(&t->isa, ISA_FMA) ? 4
									      : 0;
	text_add(out,
		 "#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 9 && __GNUC__ <= 13\n"
		 "#define _IMMINTRIN_H_INCLUDED\n#include <smmintrin.h>\n");
	for (uint32_t k = 0; k < n; k++)
		text_printf(out, "#include <%sintrin.h>\n", parts[k]);
	if (isa_has(&t->isa, ISA_TILE_BF16) || isa_has(&t->isa, ISA_TILE_INT8))
		text_add(out, "#include <amxtileintrin.h>\n#include <amxint8intrin.h>\n#include "
			      "<amxbf16intrin.h>\n");
	if (isa_has(&t->isa, ISA_VNNI))
		text_add(out, t->isa.vector_bytes == 64 ? "#include <avx512vnniintrin.h>\n"
							: "#include <avxvnniintrin.h>\n");
	if (isa_has(&t->isa, ISA_BF16))
		text_add(out, "#include <avx512bf16vlintrin.h>\n#include <avx512bf16intrin.h>\n");
	text_add(out, "#else\n#include <immintrin.h>\n#endif\n");
}

void neon_header(const Target *t, Text *out)
{
	(void)t;
	text_add(out, "#include <arm_neon.h>\n");
}
