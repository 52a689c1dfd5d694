/* The operators of a program: a table that the room with the blocks (ops/table.c) installs, so that
 * nothing below the blocks includes or names them. A program without such a table has OP_none
 * alone. */
#ifndef WEFT_IR_OP_TABLE_H
#define WEFT_IR_OP_TABLE_H

#include "ir/op/op.h"

#include <stdatomic.h>

/* The block of an operator, and of an overload its row there. */
typedef struct {
	const OpInfo *block;
	Op op;        /* of the block */
	bool is_row;
	uint32_t row; /* which of block->overloads */
} OpPlace;

/* The table, and memory for what is built once of it: arrays of n elements, of `named` 2 * n, which
 * are zero at first. */
typedef struct OpTable {
	uint32_t n; /* operators are 1 .. n - 1; 0 is OP_none */
	const OpPlace *place;
	_Atomic(const Schema *) *schema;
	_Atomic(const OpInfo *) *overload;
	Op *named;
	/* op_expand, op_expand_node and op_complex, which graphs and the interpreter call */
	Node (*expand)(Build *, Op, const Node *in, uint32_t nin, AttrId);
	Node (*expand_node)(Build *, Node);
	Node (*complex)(Build *, Node);
} OpTable;

/* The block of OP_none. */
extern const OpInfo op_none;

/* Makes the table the program's, which it stays. Call it before any other function of ir/op, from
 * one thread, once. The table must outlive the program. */
void op_install(const OpTable *);

#endif
