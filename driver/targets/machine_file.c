#include "driver/targets/machine_file.h"

#include <string.h>

#include "base/nearest.h"
#include "driver/targets/fields.h"

#define AT(field) offsetof(Machine, field)
#define RATE(op) {#op, FIELD_REALS, AT(rate[MOP_##op]), 4, 1000},
static const Field fields[] = {
	{"name", FIELD_TEXT, AT(name), 0, 0},
	{"unit_bytes", FIELD_NUMBER, AT(unit_bytes), 4, 64},
	{"l1", FIELD_NUMBER, AT(l1), 4 << 10, 16 << 20},
	{"l2", FIELD_NUMBER, AT(l2), 16 << 10, 1 << 30},
	{"l3", FIELD_NUMBER, AT(l3), 0, 1 << 30},
	{"line", FIELD_NUMBER, AT(line), 16, 4096},
	{"ways", FIELD_NUMBER, AT(ways), 1, 64},
	{"l1_bytes", FIELD_REAL, AT(l1_bytes), 0, 1024},
	{"l2_bytes", FIELD_REAL, AT(l2_bytes), 0, 1024},
	{"l3_bytes", FIELD_REAL, AT(l3_bytes), 0, 1024},
	{"memory_bytes", FIELD_REAL, AT(memory_bytes), 0, 1024},
	{"stream_bytes", FIELD_NUMBER, AT(stream_bytes), 0, 64},
	{"ghz", FIELD_REAL, AT(ghz), 0, 100},
	{"phase", FIELD_NUMBER, AT(phase), 0, 1 << 30},
	{"call", FIELD_NUMBER, AT(call), 0, 1 << 20},
	{"branch", FIELD_NUMBER, AT(branch), 0, 1 << 20},
	{"window", FIELD_NUMBER, AT(window), 1, 4096},
	{"code", FIELD_REAL, AT(code), 0, 1000},
	{"threads", FIELD_NUMBER, AT(threads), 0, 4096},
	MACHINE_OPS(RATE)
};
_Static_assert(sizeof(MachineRate[2]) == 4 * sizeof(float), "a rate is four numbers in a file");

static const Machine *named(Ctx *ctx, const char *name, const char *family)
{
	const Machine *m = machine_find(name);
	if (m && !strcmp(m->family, family))
		return m;
	const char *all = machine_list(ctx->arena, family);
	ctx_error(ctx, NULL,
		  "no machine %s of the family %s; there are %s, or a .json file that describes "
		  "one%s",
		  name, family, all, nearest_of_list(ctx->arena, name, all));
	ctx_kind(ctx, REFUSAL_TARGET);
	return NULL;
}

const Machine *machine_read(Ctx *ctx, const char *name, const char *family)
{
	if (!is_description_file(name))
		return named(ctx, name, family);
	JsonDoc *doc = fields_open(ctx, name, "a machine");
	if (!doc)
		return NULL;
	FieldReader r = {ctx, name, fields, sizeof fields / sizeof *fields, "docs/targets.md"};
	const char *base = json_string_value(json_object_get(doc->root, "base"));
	const Machine *from = base ? machine_find(base) : NULL;
	Machine *m = ARENA_NEW(ctx->arena, Machine);
	bool ok = from && !strcmp(from->family, family);
	if (ok) {
		*m = *from;
		ok = fields_read(&r, doc->root, m, NULL, NULL);
	} else {
		ctx_error(ctx, name, "field \"base\": expected one of %s",
			  machine_list(ctx->arena, family));
	}
	json_release(doc);
	return ok ? m : NULL;
}
