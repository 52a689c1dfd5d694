/* Every operator of role ROOT has one function, and no other has any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lower/graph/graph.h"

static void test_functions(void **state)
{
	(void)state;
	for (Op op = 1; op < op_count(); op++) {
		const RootFn *fn = root_fn(op);
		bool wants = op_lower(op)->role == LOWER_ROOT;
		if (wants != (fn != NULL))
			fail_msg("%s: %s", op_name(op),
				 wants ? "no function in lower/graph/roots.c" : "is no root");
		if (fn && !fn->value == !fn->steps)
			fail_msg("%s: expected one kind of function", op_name(op));
		if (fn && fn->steps && op_lower(op)->reads != ALL_OPERANDS)
			fail_msg("%s: makes steps, so its operands are to be stored", op_name(op));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
