/* Values in place of values whose types a file states: the types may be written in other ways, and
 * where the file's are true for some sizes only, a call with other sizes is an error. */
#ifndef WEFT_IR_ADOPT_H
#define WEFT_IR_ADOPT_H

#include "ir/build/build.h"

/* Compares two types, element by element those of tuples. NO: a dtype or a rank differs, or an
 * extent, as graph_same_extent compares them. MAYBE: extents may be equal. */
Truth adopt_compare(const Graph *, TypeId, TypeId);
/* Returns x, a tensor or a tuple, with the type `file`: for a pair that adopt_compare does not
 * answer with NO. A guard requires each extent that is not provably the same. */
Node adopt_type(Build *, Node x, TypeId file);

#endif
