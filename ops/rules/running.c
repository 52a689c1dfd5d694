#include "ops/rules/running.h"

#include <string.h>

#include "ir/op/op.h"

static const Running running[] = {
	{"aten.batch_norm", "training", false, true},
	{"aten.native_batch_norm", "training", false, false},
	{"aten.cudnn_batch_norm", "training", false, false},
	{"aten._native_batch_norm_legit", "training", false, false},
	{"aten._batch_norm_with_update", NULL, false, false},
	{"aten.instance_norm", "use_input_stats", true, false},
};

const Running *running_of(const char *name)
{
	for (size_t k = 0; k < sizeof running / sizeof *running; k++)
		if (!strcmp(name, running[k].name))
			return &running[k];
	return NULL;
}

Node b_running_stats(Build *b, const Running *r, Node x, Node mean, Node var, double momentum)
{
	const Node in[] = {x, mean, var};
	const Attr attr[] = {attr_none(),
			     attr_none(),
			     attr_none(),
			     attr_float(momentum),
			     attr_bool(r->instance),
			     attr_bool(r->some)};
	return b_node(b, OP_running_stats, in, 3, attr, 6);
}
