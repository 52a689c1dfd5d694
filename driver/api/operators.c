/* The op table, in the API's terms. */
#include "driver/api/given.h"

#include <string.h>

#include "ir/op/op.h"
#include "weft.h"

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static const char *kind_of(const OpInfo *op)
{
	return op->scalar      ? "scalar"
	       : op->expand    ? "expansion"
	       : op_builds(op) ? "code"
			       : "primitive";
}

/* Says what differentiates or batches an operator: a rule of its `own`, else, of a composite,
 * the rules of its expansion. */
static const char *rule(bool own, const OpInfo *op, const char *otherwise)
{
	return own ? "rule" : op->expand || op_builds(op) ? "expansion" : otherwise;
}

static const char *dtypes(const OpInfo *op)
{
	switch (op->promote) {
	case PROMOTE_DEFAULT:
		return "common dtype";
	case PROMOTE_FLOAT:
		return "common float dtype";
	case PROMOTE_BOOL:
		return "common dtype to bool";
	case PROMOTE_INT:
		return "common dtype, bool to i64";
	case PROMOTE_NONE:
		break;
	}
	return op->result == DT_none ? "" : dtype_name(op->result);
}

bool weft_table_operator(uint32_t k, WeftOperator *out)
{
	if (!out)
		return false;
	uint32_t size = out->size;
	WeftOperator o = {size, "", "", "", "", "", "", "", "", "", ""};
	bool there = k + 1 < op_count();
	if (there) {
		Op op = (Op)(k + 1);
		const OpInfo *info = op_info(op);
		o.name = op_name(op);
		o.schema = info->schema;
		o.aliases = or_empty(info->aliases);
		o.doc = or_empty(info->doc);
		o.kind = kind_of(info);
		o.definition = or_empty(info->scalar ? info->scalar : info->expand);
		o.dtypes = dtypes(info);
		o.derivative = rule(op_has_vjp(op), info, "none");
		o.batch = rule(op_has_batch(op), info, "member by member");
		o.deviates = or_empty(info->deviates);
	}
	memcpy(out, &o, size < sizeof o ? size : sizeof o);
	return there;
}
