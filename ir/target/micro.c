#include "ir/target/micro.h"

/* Of equal dtypes the best first. */
static const MicroKernel table[] = {
	{.name = "tile bf16", .a = DT_bf16, .b = DT_bf16, .acc = DT_f32, .group = 2, .rows = 16, .cols = 16, .k = 32, .nfrag = 8, .cost = MOP_tile,
	 .needs = ISA_TILE_BF16},
	{.name = "tile s8s8", .a = DT_i8, .b = DT_i8, .acc = DT_i32, .group = 4, .rows = 16, .cols = 16, .k = 64, .nfrag = 8, .cost = MOP_tile,
	 .needs = ISA_TILE_INT8},
	{.name = "tile u8s8", .a = DT_u8, .b = DT_i8, .acc = DT_i32, .group = 4, .rows = 16, .cols = 16, .k = 64, .nfrag = 8, .cost = MOP_tile,
	 .needs = ISA_TILE_INT8},
	{.name = "tile s8u8", .a = DT_i8, .b = DT_u8, .acc = DT_i32, .group = 4,
	 .rows = 16, .cols = 16, .k = 64, .nfrag = 8, .cost = MOP_tile,
	 .needs = ISA_TILE_INT8},
	{.name = "dot2 bf16", .a = DT_bf16, .b = DT_bf16, .acc = DT_f32, .group = 2, .op = SC_dot2_bf16, .cost = MOP_dot_bf16, .needs = ISA_BF16},
	{.name = "fma bf16", .a = DT_bf16, .b = DT_bf16, .acc = DT_f32, .group = 2, .op = SC_fma, .cost = MOP_fma},
	{.name = "dot4 u8s8", .a = DT_u8, .b = DT_i8, .acc = DT_i32, .group = 4, .op = SC_dot4_u8s8, .cost = MOP_dot, .needs = ISA_VNNI},
	{.name = "dot4 s8s8", .a = DT_i8, .b = DT_i8, .acc = DT_i32, .group = 4, .op = SC_dot4_s8s8, .cost = MOP_dot, .needs = ISA_SDOT},
	{.name = "dot4 s8s8 by u8s8", .a = DT_i8, .b = DT_i8, .acc = DT_i32, .group = 4, .op = SC_dot4_u8s8, .biased = true, .cost = MOP_dot,
	 .needs = ISA_VNNI},
	{.name = "dot4 s8u8", .a = DT_i8, .b = DT_u8, .acc = DT_i32, .group = 4,
	 .op = SC_dot4_u8s8, .turned = true, .cost = MOP_dot, .needs = ISA_VNNI},
	{.name = "dot4 s8u8 by pairs", .a = DT_i8, .b = DT_u8, .acc = DT_i32, .group = 4,
	 .op = SC_pairs_u8s8, .turned = true, .pairs = true, .cost = MOP_int_mul,
	 .needs = ISA_MADD},
	{.name = "dot4 s8s8 by signs", .a = DT_i8, .b = DT_i8, .acc = DT_i32, .group = 4,
	 .op = SC_pairs_s8s8, .signs = true, .cost = MOP_int_mul, .needs = ISA_SIGNS},
	{.name = "dot4 u8s8 by s16", .a = DT_u8, .b = DT_i8, .acc = DT_i32, .group = 4, .op = SC_dot4_u8s8, .cost = MOP_int_mul, .needs = ISA_MADD},
	{.name = "dot4 s8s8 by s16", .a = DT_i8, .b = DT_i8, .acc = DT_i32, .group = 4, .op = SC_dot4_s8s8, .cost = MOP_int_mul, .needs = ISA_MADD},
	{.name = "dot4 s8u8 by s16", .a = DT_i8, .b = DT_u8, .acc = DT_i32, .group = 4,
	 .op = SC_dot4_u8s8, .turned = true, .cost = MOP_int_mul, .needs = ISA_MADD},
	{.name = "fma f32", .acc = DT_f32, .group = 1, .op = SC_fma, .cost = MOP_fma},
	{.name = "fma f64", .acc = DT_f64, .group = 1, .op = SC_fma, .cost = MOP_fma},
	{.name = "mul i32", .acc = DT_i32, .group = 1, .op = SC_fma, .cost = MOP_int_mul},
};

const MicroKernel *micro_at(uint32_t k)
{
	return k < sizeof table / sizeof *table ? &table[k] : NULL;
}

bool micro_has(const Isa *isa, const MicroKernel *m)
{
	return (isa->ops & m->needs) == m->needs && (m->group == 1 || isa->vector_bytes);
}

static bool takes(const MicroKernel *m, DType a, DType b, DType acc)
{
	return m->acc == acc && (m->a == DT_none || (m->a == a && m->b == b));
}

const MicroKernel *micro_row(const Isa *isa, DType a, DType b, DType acc, uint32_t nth)
{
	for (const MicroKernel *m = table; m < table + sizeof table / sizeof *table; m++)
		if (takes(m, a, b, acc) && micro_has(isa, m) && nth-- == 0)
			return m;
	return NULL;
}
