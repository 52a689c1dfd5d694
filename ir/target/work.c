#include "ir/target/work.h"

double target_cycles(const Target *t, Work w)
{
	const Machine *m = &t->machine;
	uint32_t lanes = target_width(t);
	double one = machine_cycles(m, MOP_add, DT_f32, lanes) / lanes;
	return w.operations * one + machine_memory_cycles(m, w.bytes, w.bytes) +
	       w.phases * m->phase;
}

double target_cycles_at_once(const Target *t, MachineOp op, DType d)
{
	return machine_cycles(&t->machine, op, d, target_width(t));
}
