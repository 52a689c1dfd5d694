/* The parts of the runtime that stand alone: stored layouts, what a processor has, tensors for
 * operators of the user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/region_priv.h"
#include "runtime/relayout.h"

/* ---- layouts ---- */

/* The element at this position of the stored tensor, by the definition of WeftLayoutDim; -1:
 * padding. */
static int64_t source(int64_t at, uint32_t rank, const int64_t *dim, uint32_t n,
		      const WeftLayoutDim *l)
{
	int64_t index[4] = {0}, from = 0;
	for (uint32_t d = n; d-- > 0; at /= l[d].padded) {
		int64_t c = at % l[d].padded;
		if (c >= l[d].extent)
			return -1;
		index[l[d].axis] += c * l[d].divisor;
	}
	for (uint32_t k = 0; k < rank; k++) {
		if (index[k] >= dim[k])
			return -1;
		from = from * dim[k] + index[k];
	}
	return from;
}

static void relayout(void *to, const void *from, size_t elem, uint32_t rank, const int64_t *dim,
		     uint32_t n, const WeftLayoutDim *l)
{
	const WeftPacking p = weft_packing(from, elem, rank, dim, n, l);
	weft_pack_part(&p, 0, p.count, to);
}

static void check_layout(uint32_t rank, const int64_t *dim, uint32_t n, const WeftLayoutDim *l)
{
	int64_t numel = 1, stored = 1;
	for (uint32_t k = 0; k < rank; k++)
		numel *= dim[k];
	for (uint32_t d = 0; d < n; d++)
		stored *= l[d].padded;
	static const size_t sizes[] = {1, 2, 3, 4, 6, 8, 16};
	for (size_t s = 0; s < 7; s++) {
		const size_t elem = sizes[s];
		unsigned char *x = malloc((size_t)numel * elem), *y = malloc((size_t)stored * elem),
			      zero[16] = {0};
		for (size_t k = 0; k < (size_t)numel * elem; k++)
			x[k] = (unsigned char)(k * 7 + k / 251 + 1);
		memset(y, 0xa5, (size_t)stored * elem);
		relayout(y, x, elem, rank, dim, n, l);
		for (int64_t at = 0; at < stored; at++) {
			int64_t from = source(at, rank, dim, n, l);
			assert_memory_equal(y + (size_t)at * elem,
					    from < 0 ? zero : x + (size_t)from * elem, elem);
		}
		free(x);
		free(y);
	}
}

static void test_layouts(void **state)
{
	(void)state;
	const int64_t matrix[] = {5, 7}, cube[] = {3, 4, 5}, row[] = {10}, filter[] = {6, 5, 3, 3};
	const WeftLayoutDim same[] = {{0, 1, 5, 5}, {1, 1, 7, 7}},
			    turned[] = {{1, 1, 7, 7}, {0, 1, 5, 5}};
	const WeftLayoutDim padded[] = {{0, 1, 5, 6}, {1, 1, 7, 8}},
			    first[] = {{1, 1, 7, 9}, {0, 1, 5, 8}};
	const WeftLayoutDim panels[] = {{1, 4, 2, 2}, {0, 1, 5, 5}, {1, 1, 4, 4}},
			    rows[] = {{0, 2, 3, 3}, {1, 1, 7, 8}, {0, 1, 2, 2}};
	const WeftLayoutDim both[] = {{0, 4, 2, 2}, {1, 2, 4, 5}, {1, 1, 2, 2}, {0, 1, 4, 4}};
	const WeftLayoutDim thrice[] = {{0, 6, 2, 2}, {0, 2, 3, 3}, {0, 1, 2, 3}};
	const WeftLayoutDim mixed[] = {{2, 2, 3, 3}, {0, 1, 3, 4}, {1, 1, 4, 4}, {2, 1, 2, 2}};
	const WeftLayoutDim conv[] = {
		{0, 4, 2, 2}, {2, 1, 3, 3}, {3, 1, 3, 3}, {1, 1, 5, 5}, {0, 1, 4, 4}};
	check_layout(2, matrix, 2, same);
	check_layout(2, matrix, 2, turned);
	check_layout(2, matrix, 2, padded);
	check_layout(2, matrix, 2, first);
	check_layout(2, matrix, 3, panels);
	check_layout(2, matrix, 3, rows);
	check_layout(2, matrix, 4, both);
	check_layout(1, row, 3, thrice);
	check_layout(3, cube, 4, mixed);
	check_layout(4, filter, 5, conv);
	char x[3] = "abc", y[3];
	const int64_t three = 3;
	relayout(y, x, 1, 1, &three, 0, NULL);
	assert_memory_equal(x, y, 3);
	relayout(y, x + 1, 1, 0, NULL, 0, NULL); /* a number */
	assert_memory_equal(y, "bbc", 3);
}

/* Every length counts, and so does where a word stands. */
static void test_checksum(void **state)
{
	(void)state;
	char data[70];
	for (int k = 0; k < 70; k++)
		data[k] = (char)k;
	uint64_t seen[71];
	for (uint64_t n = 0; n <= 70; n++) {
		seen[n] = weft_checksum(data, n);
		for (uint64_t k = 0; k < n; k++)
			assert_true(seen[k] != seen[n]);
	}
	/* words that change places */
	char other[70];
	memcpy(other, data, 70);
	for (int k = 0; k < 8; k++)
		for (int j = 0; j < k; j++) {
			memcpy(other + 8 * j, data + 8 * k, 8);
			memcpy(other + 8 * k, data + 8 * j, 8);
			assert_true(weft_checksum(other, 70) != seen[70]);
			memcpy(other + 8 * j, data + 8 * j, 8);
			memcpy(other + 8 * k, data + 8 * k, 8);
		}
}

/* ---- processors ---- */

/* Names that the system has for what is asked for here. */
static const struct {
	const char *name, *flag;
} flags[] = {{"sse3", "pni"},
	     {"ssse3", "ssse3"},
	     {"fma", "fma"},
	     {"sse4.1", "sse4_1"},
	     {"sse4.2", "sse4_2"},
	     {"movbe", "movbe"},
	     {"popcnt", "popcnt"},
	     {"avx", "avx"},
	     {"f16c", "f16c"},
	     {"bmi", "bmi1"},
	     {"avx2", "avx2"},
	     {"bmi2", "bmi2"},
	     {"avx512f", "avx512f"},
	     {"avx512dq", "avx512dq"},
	     {"avx512cd", "avx512cd"},
	     {"avx512bw", "avx512bw"},
	     {"avx512vl", "avx512vl"},
	     {"avx512vnni", "avx512_vnni"},
	     {"avx512bf16", "avx512_bf16"},
	     {"avxvnni", "avx_vnni"},
	     {"lzcnt", "abm"}};

#if defined(__x86_64__) && defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const WeftManifest tiles_manifest = {.features = "avx amxtile"},
			  plain_manifest = {.features = "sse3"};
static const WeftModel tiles_model = {.manifest = &tiles_manifest},
		       plain_model = {.manifest = &plain_manifest};
static const WeftModel *tiles_level(void) { return &tiles_model; }
static const WeftModel *plain_level(void) { return &plain_model; }

/* From now on the system refuses this process registers that it has to ask for. */
static bool refuse_permission(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x1023, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof code / sizeof *code, code};
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* A process that is not given AMX's registers takes the next level, and is told what is missing. */
static void test_permission(void **state)
{
	(void)state;
	enum { CHOSE_NEXT, CANNOT_REFUSE, CHOSE_WRONG, NAMES_WRONG };
	const WeftModel *(*const level[])(void) = {tiles_level, plain_level};
	char missing[32];
	int status;
	pid_t child = fork(); /* ahead of the first question: the answer is kept */
	if (child == 0) {
		if (!refuse_permission())
			_exit(CANNOT_REFUSE);
		if (weft_rt_select(level, 2) != &plain_model)
			_exit(CHOSE_WRONG);
		_exit(weft_cpu_lacks("sse3 amxtile", missing) && !strcmp(missing, "amxtile")
			      ? CHOSE_NEXT
			      : NAMES_WRONG);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT_REFUSE)
		skip();
	assert_int_equal(WEXITSTATUS(status), CHOSE_NEXT);
	/* where nothing is refused, the processor decides */
	const bool here = !weft_cpu_lacks("amxtile", missing);
	assert_ptr_equal(weft_rt_select(level, 2), here ? &tiles_model : &plain_model);
}
#endif

static void test_features(void **state)
{
	(void)state;
	char *line = NULL, missing[32], list[64];
	size_t room = 0;
	FILE *f = fopen("/proc/cpuinfo", "r");
	bool found = false;
	while (f && !found && getline(&line, &room, f) > 0)
		found = !strncmp(line, "flags", 5);
	if (f)
		fclose(f);
	if (found)
		line[strcspn(line, "\n")] = ' ';
	for (size_t k = 0; found && k < sizeof flags / sizeof *flags; k++) {
		snprintf(list, sizeof list, " %s ", flags[k].flag);
		bool has = strstr(line, list) != NULL;
		snprintf(list, sizeof list, "%s", flags[k].name);
		assert_int_equal(weft_cpu_lacks(list, missing), !has);
		if (!has)
			assert_string_equal(missing, flags[k].name);
		snprintf(list, sizeof list, "  cx8  %s  more ", flags[k].name);
		assert_int_equal(weft_cpu_lacks(list, missing), !has);
		if (!has)
			assert_string_equal(missing, flags[k].name);
	}
	free(line);
	assert_int_equal(weft_cpu_lacks(NULL, missing), 0);
	assert_int_equal(weft_cpu_lacks("", missing), 0);
	/* implied by others */
	assert_int_equal(weft_cpu_lacks("nobody has heard of this", missing), 0);
	memset(missing, 0x55, sizeof missing);
	/* no room */
	assert_int_equal(weft_cpu_lacks("a.name.of.thirty-two.letters.123", missing), 0);
	assert_int_equal((unsigned char)missing[0], 0x55);
	assert_int_equal(weft_cpu_lacks("a.name.of.thirty-one.letters.12", missing), 0);
	assert_string_equal(missing, "a.name.of.thirty-one.letters.12");
}

/* The first that this processor has all of; the last one needs nothing that is asked for. */
static const WeftModel *level(uint32_t k)
{
	static const WeftManifest manifest[] = {{.features = "sse3 its.own"},
						{.features = "avx512vnni avx512f"},
						{.features = "its.own"}};
	static WeftModel model[3];
	model[k].manifest = &manifest[k];
	return &model[k];
}

static const WeftModel *first(void)
{
	return level(0);
}

static const WeftModel *second(void)
{
	return level(1);
}

static const WeftModel *last_one(void)
{
	return level(2);
}

static void test_levels(void **state)
{
	(void)state;
	char missing[32];
	const WeftModel *(*const all[])(void) = {second, last_one, first},
				 *(*const two[])(void) = {first, second},
				 *(*const one[])(void) = {second};
	bool has = !weft_cpu_lacks("avx512vnni avx512f", missing);
	assert_ptr_equal(weft_rt_select(all, 3), has ? level(1) : level(2));
	assert_ptr_equal(weft_rt_select(two, 2),
			 weft_cpu_lacks("sse3", missing) ? level(1) : level(0));
	assert_ptr_equal(weft_rt_select(one, 1), level(1)); /* whether it has it or not: opening it
	                                                       says what is missing */
}

/* ---- operators of the user ---- */

typedef struct {
	WeftTensor t[4];
	void *work;
	uint64_t work_bytes;
	int result, code;
	const char *message;
	WeftOpContext context;
} Call;

static Call last;

static int fn(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
	      void *work, uint64_t work_bytes, WeftStatus *status)
{
	memcpy(last.t, in, 3 * sizeof *in);
	last.t[3] = *out;
	last.context = *context;
	last.work = work;
	last.work_bytes = work_bytes;
	assert_ptr_equal(out, in + 3);
	assert_int_equal(status->code, 0);
	assert_string_equal(status->message, "");
	status->code = last.code;
	snprintf(status->message, sizeof status->message, "%s", last.message);
	return last.result;
}

static void test_operator(void **state)
{
	(void)state;
	static const WeftOpTensor tensor[] = {{{WEFT_FLOAT, 32, 1}, 2, 1},
					      {{WEFT_INT, 64, 1}, 0, -1},
					      {{WEFT_INT, 64, 1}, 1, -1},
					      {{WEFT_FLOAT, 64, 1}, 1, 0}};
	static int mine, theirs, stream;
	static const WeftOpCall call = {"lib::f", fn, &mine, tensor, 3, 1, 2};
	const WeftComm comm = {.size = sizeof comm, .ranks = 1};
	const WeftContext context = {
		.size = sizeof context, .user = &theirs, .stream = &stream, .comm = &comm};
	WeftRegion region = {.context = &context, .threads = 3};
	char buffer[3];
	void *buf[] = {buffer, buffer + 1, buffer + 2};
	int64_t value[] = {7, 8, 42, 2, 100, 200, 9, 64}, failure[WEFT_FAILURE] = {55, 66};
	WeftStatus status = {0};
	const WeftFrame f = {buf, NULL, failure, &status, &region};
	last = (Call){.message = ""};
	assert_int_equal(weft_op_call(&f, &call, value, 0), 0);
	assert_ptr_equal(last.t[0].data, buffer + 1);
	assert_int_equal(last.t[0].ndim, 2);
	assert_int_equal(last.t[0].dtype.bits, 32);
	assert_ptr_equal(last.t[0].shape, value);
	assert_null(last.t[0].strides);
	assert_int_equal(last.t[0].device.type, WEFT_CPU);
	assert_int_equal(last.t[1].ndim, 0);
	assert_ptr_equal(last.t[1].data, value + 2); /* a number among the values */
	assert_ptr_equal(last.t[2].shape, value + 3);
	assert_ptr_equal(last.t[2].data, value + 4); /* a list of two */
	assert_ptr_equal(last.t[3].shape, value + 6);
	assert_ptr_equal(last.t[3].data, buffer);
	assert_ptr_equal(last.work, buffer + 2);
	assert_int_equal(last.work_bytes, 64);
	assert_int_equal(last.context.size, sizeof last.context);
	assert_int_equal(last.context.thread, 0);
	assert_int_equal(last.context.threads, 3);
	assert_ptr_equal(last.context.op_user, &mine);
	assert_ptr_equal(last.context.user, &theirs);
	assert_int_equal(last.context.device.type, WEFT_CPU);
	assert_ptr_equal(last.context.stream, &stream);
	assert_ptr_equal(last.context.comm, &comm);
	assert_int_equal(failure[0], 55); /* nothing failed */
	value[7] = 0;
	assert_int_equal(weft_op_call(&f, &call, value, 0), 0);
	assert_null(last.work);
	assert_int_equal(last.work_bytes, 0);
	last = (Call){.result = -3, .message = ""};
	assert_int_equal(weft_op_call(&f, &call, value, 7), WEFT_TOLD);
	assert_string_equal(status.message, "lib::f: failed with -3");
	assert_int_equal(status.code, WEFT_ERR_CHECK);
	assert_int_equal(failure[0], 7); /* that of the first task is told */
	assert_int_equal(failure[1], WEFT_ERR_CHECK);
	last = (Call){.result = 1, .code = WEFT_ERR_MEMORY, .message = "no room"};
	assert_int_equal(weft_op_call(&f, &call, value, 0), WEFT_TOLD);
	assert_string_equal(status.message, "lib::f: no room");
	assert_int_equal(status.code, WEFT_ERR_MEMORY);
	assert_int_equal(failure[1], WEFT_ERR_MEMORY);
	char wordy[508];
	memset(wordy, 'w', sizeof wordy - 1);
	wordy[sizeof wordy - 1] = 0;
	last = (Call){.result = 1, .message = wordy};
	assert_int_equal(weft_op_call(&f, &call, value, 0), WEFT_TOLD);
	assert_int_equal(strlen(status.message), strlen("lib::f: ") + 440);
	last = (Call){.code = WEFT_ERR_MEMORY, .message = "but it went well"};
	status.code = 0;
	assert_int_equal(weft_op_call(&f, &call, value, 0), 0);
	assert_int_equal(status.code, 0);
}

/* Calls at the same time have the least numbers that nobody has. */
static void test_numbers(void **state)
{
	(void)state;
	static Job job;
	const WeftContext context = {.size = sizeof context};
	WeftRegion region = {.context = &context, .threads = WEFT_MAX_THREADS, .job = &job};
	WeftOpContext c[WEFT_MAX_THREADS];
	for (int32_t k = 0; k < WEFT_MAX_THREADS; k++) {
		c[k] = weft_op_enter(&region);
		assert_int_equal(c[k].thread, k);
	}
	weft_op_leave(&region, &c[200]);
	weft_op_leave(&region, &c[31]);
	assert_int_equal(weft_op_enter(&region).thread, 31);
	assert_int_equal(weft_op_enter(&region).thread, 200);
	for (int32_t k = 0; k < WEFT_MAX_THREADS; k++)
		weft_op_leave(&region, &c[k]);
	region.threads = 33;
	for (int32_t k = 0; k < 33; k++)
		assert_int_equal(weft_op_enter(&region).thread, k);
}

/* ---- numbers that the control of a program reads ---- */

static void test_values(void **state)
{
	(void)state;
	static const struct {
		int code, bits;
		int64_t want;
	} cases[] = {{WEFT_INT, 8, -2},      {WEFT_UINT, 8, 254}, {WEFT_INT, 16, -2},
		     {WEFT_UINT, 16, 65534}, {WEFT_INT, 32, -2},  {WEFT_UINT, 32, 4294967294},
		     {WEFT_INT, 64, -2},     {WEFT_UINT, 64, -2}, {WEFT_BOOL, 8, 1}};
	const int64_t all = -2;
	const uint8_t no = 0;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		assert_true(weft_value(&all, cases[k].code, cases[k].bits) == cases[k].want);
	assert_int_equal(weft_value(&no, WEFT_BOOL, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_checksum),
#if defined(__x86_64__) && defined(__linux__)
		cmocka_unit_test(test_permission),
#endif
		cmocka_unit_test(test_features),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_operator),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_values)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
