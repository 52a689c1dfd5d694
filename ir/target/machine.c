#include "ir/target/machine.h"

#include <string.h>

/* {instructions a cycle, latency} of elements of 4 bytes, then of 8. */
#define R(issue4, latency4, issue8, latency8) {{issue4, latency4}, {issue8, latency8}}
#define SAME(issue, latency) R(issue, latency, issue, latency)

/* From the vendors' optimisation guides and uops.info; what memory gives is for one core of a
 * server part while the others rest. Of x86 processors before Haswell `fma` is its emulation. */
static const Machine table[] = {
	{
		/* Nothing in particular: scalar code for whatever a C compiler compiles for. */
		.name = "generic", .family = "generic", .unit_bytes = 8,
		.rate = {
			[MOP_add] = SAME(2, 4), [MOP_mul] = SAME(2, 4), [MOP_fma] = SAME(2, 4), [MOP_dot] = SAME(2, 4), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(2, 4), [MOP_div] = R(0.1f, 12, 0.06f, 18),
			[MOP_sqrt] = R(0.1f, 15, 0.05f, 20), [MOP_simple] = SAME(2, 1), [MOP_int_mul] = SAME(1, 3),
			[MOP_convert] = SAME(1, 4), [MOP_shuffle] = SAME(1, 1), [MOP_load] = SAME(2, 4), [MOP_store] = SAME(1, 1),
			[MOP_gather] = SAME(1, 4), [MOP_scalar] = SAME(2, 1),
		},
		.l1 = 32 << 10, .l2 = 256 << 10, .line = 64, .ways = 8, .l1_bytes = 8, .l2_bytes = 8, .l3_bytes = 4, .memory_bytes = 2, .ghz = 2,
		.phase = 5120, .call = 10, .branch = 20, .window = 64, .code = 0.5f,
	}, {
		.name = "nehalem", .family = "x86-64", .unit_bytes = 16,
		.rate = {
			[MOP_add] = SAME(1, 3), [MOP_mul] = R(1, 4, 1, 5), [MOP_fma] = R(0.1f, 40, 0.02f, 60), [MOP_dot] = R(0.1f, 40, 0.02f, 60), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = R(0.1f, 40, 0.02f, 60),
			[MOP_div] = R(0.07f, 14, 0.05f, 22), [MOP_sqrt] = R(0.06f, 18, 0.03f, 32), [MOP_simple] = SAME(2, 1),
			[MOP_int_mul] = R(0.5f, 6, 0.3f, 10), [MOP_convert] = R(1, 3, 0.5f, 4), [MOP_shuffle] = SAME(1, 1),
			[MOP_load] = SAME(1, 5), [MOP_store] = SAME(1, 1), [MOP_gather] = SAME(0.5f, 6), [MOP_scalar] = SAME(3, 1),
		},
		.l1 = 32 << 10, .l2 = 256 << 10, .l3 = 2 << 20, .line = 64, .ways = 8, .l1_bytes = 16, .l2_bytes = 16, .l3_bytes = 6, .memory_bytes = 3,
		.ghz = 2.8f, .phase = 4000, .call = 12, .branch = 24, .window = 128, .code = 0.5f,
	}, {
		.name = "haswell", .family = "x86-64", .unit_bytes = 32,
		.rate = {
			[MOP_add] = SAME(1, 3), [MOP_mul] = SAME(2, 5), [MOP_fma] = SAME(2, 5), [MOP_dot] = SAME(2, 5), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(2, 5), [MOP_div] = R(0.07f, 18, 0.04f, 28),
			[MOP_sqrt] = R(0.07f, 19, 0.036f, 29), [MOP_simple] = SAME(2, 1), [MOP_int_mul] = R(0.5f, 10, 0.2f, 15),
			[MOP_convert] = R(1, 3, 0.5f, 6), [MOP_shuffle] = SAME(1, 2), [MOP_load] = SAME(2, 7),
			[MOP_store] = SAME(1, 1), [MOP_gather] = SAME(0.6f, 12), [MOP_scalar] = SAME(3, 1),
		},
		.l1 = 32 << 10, .l2 = 256 << 10, .l3 = 2 << 20, .line = 64, .ways = 8, .l1_bytes = 64, .l2_bytes = 25, .l3_bytes = 8, .memory_bytes = 4,
		.ghz = 3.2f, .phase = 4000, .call = 12, .branch = 24, .window = 192, .code = 0.5f,
	}, {
		.name = "skylake-x", .family = "x86-64", .unit_bytes = 64,
		.rate = {
			[MOP_add] = SAME(2, 4), [MOP_mul] = SAME(2, 4), [MOP_fma] = SAME(2, 4), [MOP_dot] = SAME(2, 4), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(2, 4), [MOP_div] = R(0.1f, 18, 0.06f, 24),
			[MOP_sqrt] = R(0.08f, 20, 0.04f, 32), [MOP_simple] = SAME(2, 1), [MOP_int_mul] = R(1, 10, 0.66f, 15),
			[MOP_convert] = R(2, 4, 1, 7), [MOP_shuffle] = SAME(1, 3), [MOP_load] = SAME(2, 7),
			[MOP_store] = SAME(1, 1), [MOP_gather] = SAME(0.7f, 12), [MOP_scalar] = SAME(3, 1),
		},
		.l1 = 32 << 10, .l2 = 1 << 20, .l3 = 1408 << 10, .line = 64, .ways = 8, .l1_bytes = 128, .l2_bytes = 48, .l3_bytes = 10,
		.memory_bytes = 4, .ghz = 2.7f, .phase = 5000, .call = 12, .branch = 24, .window = 224, .code = 0.5f,
	}, {
		/* What the levels of x86-64 assume where nothing is said: it runs all of them at
		 * full width. */
		.name = "sapphire-rapids", .family = "x86-64", .unit_bytes = 64,
		.rate = {
			[MOP_add] = SAME(2, 3), [MOP_mul] = SAME(2, 4), [MOP_fma] = SAME(2, 4), [MOP_dot] = SAME(2, 5), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(0.5f, 10), [MOP_div] = R(0.1f, 11, 0.06f, 15),
			[MOP_sqrt] = R(0.08f, 13, 0.04f, 19), [MOP_simple] = SAME(2, 1), [MOP_int_mul] = R(1, 10, 0.66f, 15),
			[MOP_convert] = R(2, 4, 1, 7), [MOP_shuffle] = SAME(1, 3), [MOP_load] = SAME(2, 7),
			[MOP_store] = SAME(1, 1), [MOP_gather] = SAME(1, 12), [MOP_scalar] = SAME(4, 1),
		},
		.l1 = 48 << 10, .l2 = 2 << 20, .l3 = 2 << 20, .line = 64, .ways = 8, .l1_bytes = 128, .l2_bytes = 48, .l3_bytes = 10, .memory_bytes = 4,
		.ghz = 3, .phase = 5120, .call = 12, .branch = 24, .window = 512, .code = 0.5f,
	}, {
		.name = "zen3", .family = "x86-64", .unit_bytes = 32,
		.rate = {
			[MOP_add] = SAME(2, 3), [MOP_mul] = SAME(2, 3), [MOP_fma] = SAME(2, 4), [MOP_dot] = SAME(2, 4), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(2, 4), [MOP_div] = R(0.28f, 10, 0.2f, 13),
			[MOP_sqrt] = R(0.2f, 14, 0.11f, 20), [MOP_simple] = SAME(3, 1), [MOP_int_mul] = R(2, 3, 0.5f, 8),
			[MOP_convert] = R(2, 3, 1, 4), [MOP_shuffle] = SAME(2, 1), [MOP_load] = SAME(2, 7),
			[MOP_store] = SAME(1, 1), [MOP_gather] = SAME(0.5f, 14), [MOP_scalar] = SAME(4, 1),
		},
		.l1 = 32 << 10, .l2 = 512 << 10, .l3 = 4 << 20, .line = 64, .ways = 8, .l1_bytes = 64, .l2_bytes = 32, .l3_bytes = 16, .memory_bytes = 7,
		.ghz = 3.5f, .phase = 4000, .call = 10, .branch = 20, .window = 256, .code = 0.5f,
	}, {
		.name = "zen4", .family = "x86-64", .unit_bytes = 32,
		.rate = {
			[MOP_add] = SAME(2, 3), [MOP_mul] = SAME(2, 3), [MOP_fma] = SAME(2, 4), [MOP_dot] = SAME(2, 4), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(2, 4), [MOP_div] = R(0.2f, 11, 0.12f, 13),
			[MOP_sqrt] = R(0.2f, 15, 0.11f, 21), [MOP_simple] = SAME(3, 1), [MOP_int_mul] = R(2, 3, 2, 3),
			[MOP_convert] = R(2, 4, 1, 5), [MOP_shuffle] = SAME(2, 2), [MOP_load] = SAME(2, 7),
			[MOP_store] = SAME(1, 1), [MOP_gather] = SAME(0.9f, 14), [MOP_scalar] = SAME(4, 1),
		},
		.l1 = 32 << 10, .l2 = 1 << 20, .l3 = 4 << 20, .line = 64, .ways = 8, .l1_bytes = 64, .l2_bytes = 32, .l3_bytes = 16, .memory_bytes = 7,
		.ghz = 3.7f, .phase = 4000, .call = 10, .branch = 20, .window = 320, .code = 0.5f,
		.stream_bytes = 32,
	}, {
		.name = "zen5", .family = "x86-64", .unit_bytes = 64,
		.rate = {
			[MOP_add] = SAME(2, 2), [MOP_mul] = SAME(2, 3), [MOP_fma] = SAME(2, 4), [MOP_dot] = SAME(2, 4), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(2, 4), [MOP_div] = R(0.2f, 11, 0.11f, 13),
			[MOP_sqrt] = R(0.15f, 15, 0.08f, 21), [MOP_simple] = SAME(3, 1), [MOP_int_mul] = R(2, 3, 2, 3),
			[MOP_convert] = R(2, 4, 1, 5), [MOP_shuffle] = SAME(2, 2), [MOP_load] = SAME(2, 7),
			[MOP_store] = SAME(1, 1), [MOP_gather] = SAME(1, 14), [MOP_scalar] = SAME(4, 1),
		},
		.l1 = 48 << 10, .l2 = 1 << 20, .l3 = 4 << 20, .line = 64, .ways = 8, .l1_bytes = 128, .l2_bytes = 64, .l3_bytes = 20, .memory_bytes = 8,
		.ghz = 3.8f, .phase = 4000, .call = 10, .branch = 20, .window = 448, .code = 0.5f,
	}, {
		/* two halves, in order */
		.name = "cortex-a53", .family = "aarch64", .unit_bytes = 8,
		.rate = {
			[MOP_add] = SAME(1, 4), [MOP_mul] = SAME(1, 4), [MOP_fma] = SAME(1, 8), [MOP_dot] = SAME(1, 8), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(1, 8), [MOP_div] = R(0.07f, 13, 0.04f, 22),
			[MOP_sqrt] = R(0.07f, 12, 0.04f, 22), [MOP_simple] = SAME(1, 2), [MOP_int_mul] = R(1, 4, 0.25f, 8),
			[MOP_convert] = SAME(1, 4), [MOP_shuffle] = SAME(1, 2), [MOP_load] = SAME(1, 4),
			[MOP_store] = SAME(1, 1), [MOP_gather] = SAME(0.4f, 5), [MOP_scalar] = SAME(2, 1),
		},
		.l1 = 32 << 10, .l2 = 512 << 10, .line = 64, .ways = 8, .l1_bytes = 8, .l2_bytes = 6, .l3_bytes = 2, .memory_bytes = 2, .ghz = 1.4f,
		.phase = 6000, .call = 15, .branch = 30, .window = 1, .code = 1,
	}, {
		/* What aarch64 assumes where nothing is said. */
		.name = "cortex-a72", .family = "aarch64", .unit_bytes = 16,
		.rate = {
			[MOP_add] = SAME(2, 4), [MOP_mul] = SAME(2, 4), [MOP_fma] = SAME(2, 7), [MOP_dot] = SAME(2, 7), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(2, 7), [MOP_div] = R(0.06f, 18, 0.03f, 32),
			[MOP_sqrt] = R(0.06f, 18, 0.03f, 32), [MOP_simple] = SAME(2, 3), [MOP_int_mul] = R(0.5f, 5, 0.25f, 8),
			[MOP_convert] = R(1, 3, 0.5f, 4), [MOP_shuffle] = SAME(2, 3), [MOP_load] = SAME(1, 5),
			[MOP_store] = SAME(0.5f, 1), [MOP_gather] = SAME(0.5f, 8), [MOP_scalar] = SAME(2, 1),
		},
		.l1 = 32 << 10, .l2 = 512 << 10, .line = 64, .ways = 8, .l1_bytes = 16, .l2_bytes = 12, .l3_bytes = 4, .memory_bytes = 4, .ghz = 1.8f,
		.phase = 5120, .call = 12, .branch = 24, .window = 128, .code = 0.5f,
	}, {
		.name = "neoverse-n1", .family = "aarch64", .unit_bytes = 16,
		.rate = {
			[MOP_add] = SAME(2, 2), [MOP_mul] = SAME(2, 3), [MOP_fma] = SAME(2, 4), [MOP_dot] = SAME(2, 4), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = SAME(2, 4), [MOP_div] = R(0.12f, 10, 0.07f, 15),
			[MOP_sqrt] = R(0.12f, 10, 0.06f, 17), [MOP_simple] = SAME(2, 2), [MOP_int_mul] = R(1, 4, 0.5f, 6),
			[MOP_convert] = R(1, 3, 1, 3), [MOP_shuffle] = SAME(2, 2), [MOP_load] = SAME(2, 5),
			[MOP_store] = SAME(2, 1), [MOP_gather] = SAME(1, 8), [MOP_scalar] = SAME(3, 1),
		},
		.l1 = 64 << 10, .l2 = 1 << 20, .l3 = 1 << 20, .line = 64, .ways = 8, .l1_bytes = 32, .l2_bytes = 24, .l3_bytes = 10, .memory_bytes = 6,
		.ghz = 2.6f, .phase = 5000, .call = 12, .branch = 24, .window = 128, .code = 0.5f,
	}, {
		/* What riscv64 assumes where nothing is said: registers of 32 bytes, in order. */
		.name = "spacemit-x60", .family = "riscv64", .unit_bytes = 32,
		.rate = {
			[MOP_add] = SAME(1, 4), [MOP_mul] = SAME(1, 4), [MOP_fma] = R(1, 5, 1, 6), [MOP_dot] = R(1, 5, 1, 6), [MOP_tile] = SAME(1, 3.25f), [MOP_dot_bf16] = R(1, 5, 1, 6), [MOP_div] = R(0.07f, 15, 0.03f, 30),
			[MOP_sqrt] = R(0.07f, 16, 0.03f, 32), [MOP_simple] = SAME(1, 4), [MOP_int_mul] = R(1, 4, 0.5f, 5),
			[MOP_convert] = R(1, 4, 0.5f, 4), [MOP_shuffle] = SAME(0.5f, 4), [MOP_load] = SAME(1, 6),
			[MOP_store] = SAME(1, 1), [MOP_gather] = SAME(0.25f, 10), [MOP_scalar] = SAME(2, 1),
		},
		.l1 = 32 << 10, .l2 = 512 << 10, .line = 64, .ways = 8, .l1_bytes = 16, .l2_bytes = 8, .l3_bytes = 3, .memory_bytes = 3, .ghz = 1.6f,
		.phase = 5120, .call = 15, .branch = 30, .window = 1, .code = 1,
	},
};
enum { NMACHINE = sizeof table / sizeof *table };

static const char *const alias[][2] = {
	{"znver3", "zen3"}, {"znver4", "zen4"}, {"znver5", "zen5"}, {"skylake-avx512", "skylake-x"},
	{"sapphirerapids", "sapphire-rapids"},
};

const char *machine_op_name(MachineOp op)
{
	static const char *const name[] = {
#define X(n) #n,
		MACHINE_OPS(X)
#undef X
	};
	return name[op];
}

const Machine *machine_at(uint32_t k)
{
	return k < NMACHINE ? &table[k] : NULL;
}

const Machine *machine_find(const char *name)
{
	for (uint32_t k = 0; k < sizeof alias / sizeof *alias; k++)
		if (strcmp(alias[k][0], name) == 0)
			name = alias[k][1];
	for (uint32_t k = 0; k < NMACHINE; k++)
		if (strcmp(table[k].name, name) == 0)
			return &table[k];
	return NULL;
}

const char *machine_list(Arena *a, const char *family)
{
	const char *list = NULL;
	for (uint32_t k = 0; k < NMACHINE; k++)
		if (!family || !strcmp(family, table[k].family))
			list = list ? arena_printf(a, "%s, %s", list, table[k].name)
				    : table[k].name;
	return list ? list : "none";
}

static const MachineRate *rate_of(const Machine *m, MachineOp op, DType d)
{
	return &m->rate[op][dtype_size(d == DT_bool ? DT_f32 : dtype_compute(d)) == 8];
}

double machine_cycles(const Machine *m, MachineOp op, DType d, uint32_t lanes)
{
	uint32_t bytes = lanes * dtype_size(d == DT_bool ? DT_f32 : dtype_compute(d));
	uint32_t turns = op == MOP_gather || op == MOP_scalar
				 ? lanes
				 : (bytes + m->unit_bytes - 1) / m->unit_bytes;
	return (double)turns / (double)rate_of(m, op, d)->issue;
}

double machine_latency(const Machine *m, MachineOp op, DType d)
{
	return (double)rate_of(m, op, d)->latency;
}

double machine_memory_cycles(const Machine *m, double bytes, double set)
{
	float rate = set <= m->l1                   ? m->l1_bytes
		     : set <= m->l2                 ? m->l2_bytes
		     : set <= m->l2 + (double)m->l3 ? m->l3_bytes
						    : m->memory_bytes;
	return bytes / (double)rate;
}
