#include "ir/target/target.h"

#include <pthread.h>
#include <string.h>

#include "ir/target/micro.h"

static const Isa isas[] = {
	{
		.name = "generic-c", .family = "generic", .page = 4096, .nvreg = 16, .npointer = 10, .masks = MASK_NONE,
		.features = "", .flags = "", .machine = "generic",
	}, {
		.name = "x86-64-v2", .family = "x86-64", .triple = "x86_64-linux-gnu", .cpu = "x86-64-v2",
		.vector_bytes = 16, .nvreg = 16, .npointer = 10, .ops = ISA_LESSER | ISA_CONVERT | ISA_MADD | ISA_SIGNS, .masks = MASK_VECTOR, .page = 4096,
		.features = "sse3 ssse3 sse4.1 sse4.2 popcnt", .flags = "-march=x86-64-v2", .machine = "sapphire-rapids",
	}, {
		.name = "x86-64-v3", .family = "x86-64", .triple = "x86_64-linux-gnu", .cpu = "x86-64-v3",
		.vector_bytes = 32, .nvreg = 16, .npointer = 10, .ops = ISA_FMA | ISA_F16 | ISA_LESSER | ISA_CONVERT | ISA_MADD | ISA_SIGNS, .masks = MASK_VECTOR,
		.masked_memory = true, .page = 4096,
		.features = "avx avx2 fma bmi bmi2 f16c lzcnt movbe", .flags = "-march=x86-64-v3",
		.machine = "sapphire-rapids",
	}, {
		.name = "x86-64-v4", .family = "x86-64", .triple = "x86_64-linux-gnu", .cpu = "x86-64-v4",
		.attributes = "-prefer-256-bit",
		.vector_bytes = 64, .nvreg = 32, .npointer = 10, .ops = ISA_FMA | ISA_F16 | ISA_LESSER | ISA_CONVERT | ISA_MADD, .masks = MASK_BITS,
		.masked_memory = true, .page = 4096,
		.features = "avx2 fma bmi bmi2 f16c lzcnt movbe avx512f avx512bw avx512cd avx512dq "
			    "avx512vl",
		.flags = "-march=x86-64-v4 -mprefer-vector-width=512", .machine = "sapphire-rapids",
	}, {
		/* Pages of 64 KB exist; f16 conversions belong to the base instruction set. */
		.name = "aarch64-linux-gnu", .family = "aarch64", .triple = "aarch64-linux-gnu",
		.attributes = "+neon,+fp-armv8",
		.vector_bytes = 16, .nvreg = 32, .npointer = 10, .ops = ISA_FMA | ISA_F16, .masks = MASK_VECTOR, .page = 65536,
		.features = "fp asimd", .flags = "-march=armv8-a", .machine = "cortex-a72",
	}, {
		/* Vectors of the extension V used at their least width. gcc 12 does not know the
		 * extension: from C the vectors become scalars. */
		.name = "riscv64-linux-gnu", .family = "riscv64", .triple = "riscv64-linux-gnu",
		.cpu = "generic-rv64", .attributes = "+m,+a,+f,+d,+c,+v,+zvl128b", .abi = "lp64d",
		.vector_bytes = 16, .nvreg = 32, .npointer = 10, .ops = ISA_FMA | ISA_GATHER, .masks = MASK_VECTOR, .page = 4096,
		.features = "i m a f d c", .attribute_features = "v", .flags = "-march=rv64gc "
									       "-mabi=lp64d",
		.machine = "spacemit-x60",
	},
};
/* Extensions of the rows above: "x86-64-v4+bf16" is the row x86-64-v4 with the first. */
static const struct {
	const char *name, *base;
	uint32_t ops;
	const char *features, *attributes, *flags; /* more of each */
} features[] = {
	{"vnni", "x86-64-v3", ISA_VNNI, "avxvnni", "+avxvnni", "-mavxvnni"},
	{"vnni", "x86-64-v4", ISA_VNNI, "avx512vnni", "+avx512vnni", "-mavx512vnni"},
	{"bf16", "x86-64-v4", ISA_BF16, "avx512bf16", "+avx512bf16", "-mavx512bf16"},
	{"amx", "x86-64-v4", ISA_TILE_BF16 | ISA_TILE_INT8 | ISA_BF16 | ISA_VNNI,
	 "avx512vnni avx512bf16 amxtile amxbf16 amxint8",
	 "+avx512vnni,+avx512bf16,+amx-tile,+amx-bf16,+amx-int8",
	 "-mavx512vnni -mavx512bf16 -mamx-tile -mamx-bf16 -mamx-int8"},
};
enum { NFEATURE = sizeof features / sizeof *features, MOST_EXTENDED = 16 };

enum { NTARGET = sizeof isas / sizeof isas[0] };

/* A thread of a GPU: scalars. */
static const Isa thread_isa = {
	.name = "gpu-thread", .family = "gpu", .ops = ISA_FMA, .nvreg = 32, .npointer = 32, .page = 4096, .masks = MASK_NONE, .of_block = true,
	.features = "", .flags = "", .machine = "gpu-thread",
};

/* Each with the machine that is assumed for it. */
enum { MOST_GPUS = 16 };
static Target table[NTARGET], gpus[MOST_GPUS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
	for (uint32_t k = 0; k < NTARGET; k++)
		table[k] = (Target){.isa = isas[k], .machine = *machine_find(isas[k].machine)};
	for (uint32_t k = 0; gpu_at(k) && k < MOST_GPUS; k++) {
		gpus[k] = (Target){
			.isa = thread_isa, .machine = gpu_machine(gpu_at(k)), .gpu = gpu_at(k)};
		gpus[k].isa.name = gpu_at(k)->name;
	}
}

/* Other names of the rows above. */
static const char *const alias[][2] = {
	{"generic", "generic-c"},
	{"x86-64", "x86-64-v2"}, {"x86_64", "x86-64-v2"}, {"x86_64-linux-gnu", "x86-64-v2"},
	{"aarch64", "aarch64-linux-gnu"}, {"arm64", "aarch64-linux-gnu"},
	{"riscv64", "riscv64-linux-gnu"}, {"riscv64gc", "riscv64-linux-gnu"},
};

const Target *target_at(uint32_t k)
{
	pthread_once(&once, fill_table);
	return k < NTARGET ? &table[k] : NULL;
}

const Target *target_gpu_at(uint32_t k)
{
	pthread_once(&once, fill_table);
	return k < MOST_GPUS && gpu_at(k) ? &gpus[k] : NULL;
}

/* ---- extensions ---- */

/* Those of one base, by the set of their features; made where they are asked for, and kept. */
static struct {
	pthread_mutex_t lock;
	Arena *arena;
	uint32_t n;
	struct {
		const Target *base;
		uint64_t features;
		Target target;
	} at[MOST_EXTENDED];
} extended = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *joined(const char *a, const char *between, const char *b)
{
	return !a || !*a ? b : arena_printf(extended.arena, "%s%s%s", a, between, b);
}

static Target extend(const Target *base, uint64_t set)
{
	Target t = *base;
	for (uint32_t k = 0; k < NFEATURE; k++) {
		if (!(set >> k & 1))
			continue;
		t.isa.name = joined(t.isa.name, "+", features[k].name);
		t.isa.ops |= features[k].ops;
		t.isa.features = joined(t.isa.features, " ", features[k].features);
		t.isa.attributes = joined(t.isa.attributes, ",", features[k].attributes);
		t.isa.flags = joined(t.isa.flags, " ", features[k].flags);
	}
	return t;
}

/* A base with features. */
typedef struct {
	const Target *base;
	uint64_t set;
	const Target *found; /* NULL: there is no room for one more */
} Wanted;

static void find_or_make(void *arg)
{
	Wanted *w = arg;
	uint32_t k = 0;
	while (k < extended.n &&
	       (extended.at[k].base != w->base || extended.at[k].features != w->set))
		k++;
	extended.arena = extended.arena ? extended.arena : arena_new(NULL);
	if (k == MOST_EXTENDED || !extended.arena)
		return;
	if (k == extended.n) {
		extended.at[k].base = w->base;
		extended.at[k].features = w->set;
		extended.at[k].target = extend(w->base, w->set);
		extended.n++;
	}
	w->found = &extended.at[k].target;
}

/* Returns the target that extends `base` by a set of features; NULL if there is no room for one
 * more. If memory runs out, gives the lock back before it unwinds. */
static const Target *extended_target(const Target *base, uint64_t set)
{
	Wanted w = {.base = base, .set = set};
	pthread_mutex_lock(&extended.lock);
	const bool ok = arena_try(find_or_make, &w);
	pthread_mutex_unlock(&extended.lock);
	if (!ok)
		arena_out_of_memory();
	return w.found;
}

const char *target_feature_at(const Target *base, uint32_t k, const char **needs)
{
	for (uint32_t f = 0; f < NFEATURE; f++)
		if (!strcmp(features[f].base, base->isa.name) && k-- == 0) {
			*needs = features[f].features;
			return features[f].name;
		}
	return NULL;
}

/* Returns the target that extends `base` by features, "+amx+bf16": their names, each behind a
 * plus. NULL if one is no feature of it. */
static const Target *find_extended(const Target *base, const char *names)
{
	uint64_t set = 0;
	while (*names == '+') {
		const size_t n = strcspn(++names, "+");
		uint32_t k = 0;
		while (k < NFEATURE &&
		       (strcmp(features[k].base, base->isa.name) || strlen(features[k].name) != n ||
			strncmp(features[k].name, names, n)))
			k++;
		if (k == NFEATURE)
			return NULL;
		set |= UINT64_C(1) << k;
		names += n;
	}
	return extended_target(base, set);
}

bool target_multiplies_bytes(const Target *t, DType a, DType b)
{
	return !t->isa.of_block && micro_groups(micro_row(&t->isa, a, b, DT_i32, 0));
}

const Target *target_find(const char *name)
{
	char base[64];
	const size_t n = strcspn(name, "+");
	if (name[n] && n < sizeof base) {
		memcpy(base, name, n);
		base[n] = 0;
		const Target *t = target_find(base);
		return t && !t->gpu ? find_extended(t, name + n) : NULL;
	}
	for (uint32_t k = 0; k < sizeof alias / sizeof *alias; k++)
		if (strcmp(alias[k][0], name) == 0)
			name = alias[k][1];
	for (uint32_t k = 0; k < NTARGET; k++)
		if (strcmp(isas[k].name, name) == 0)
			return target_at(k);
	for (uint32_t k = 0; target_gpu_at(k); k++)
		if (strcmp(target_gpu_at(k)->isa.name, name) == 0)
			return target_gpu_at(k);
	return NULL;
}

const char *target_list(Arena *a)
{
	const char *list = isas[0].name;
	for (uint32_t k = 1; k < NTARGET; k++)
		list = arena_printf(a, "%s, %s", list, isas[k].name);
	for (uint32_t k = 0; k < NFEATURE; k++)
		list = arena_printf(a, "%s, %s+%s", list, features[k].base, features[k].name);
	for (uint32_t k = 0; gpu_at(k); k++)
		list = arena_printf(a, "%s, %s", list, gpu_at(k)->name);
	return list;
}

uint32_t target_lanes(const Target *t, DType d)
{
	uint32_t size = dtype_size(d == DT_bool ? DT_f32 : dtype_compute(d));
	return t->isa.vector_bytes && size ? t->isa.vector_bytes / size : 1;
}

bool target_holds_members(const Target *t, DType d, int64_t elements)
{
	enum { LOCAL_BYTES = 160 << 10 };
	const int64_t each = (int64_t)dtype_size(d) * target_lanes(t, d);
	return !t->isa.of_block && each && elements <= LOCAL_BYTES / each;
}

uint32_t target_panel(const Target *t)
{
	uint32_t most = target_width(t);
	for (uint32_t k = 0; t->isa.vector_bytes && k < NTARGET; k++)
		if (!strcmp(isas[k].family, t->isa.family) && target_width(target_at(k)) > most)
			most = target_width(target_at(k));
	return most;
}

uint32_t target_width(const Target *t)
{
	return target_lanes(t, DT_f32);
}

const char *target_common_flags(void)
{
	return "-O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing "
	       "-Wno-psabi";
}
