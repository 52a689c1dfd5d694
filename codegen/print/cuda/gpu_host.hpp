/* Executes the printed kernels of a GPU on this CPU: the threads of a block are fibres, one of which
 * runs at a time. Included ahead of the text of kernels, which g++ and clang++ then compile as it
 * is. What only some threads of a block or of a warp reach ends the process with a message. */
#define WEFT_GPU_HOST 1
#undef _FORTIFY_SOURCE /* whose longjmp refuses to go to another stack */
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static thread_local

struct WeftFrame {
	void *const *buf;
	const int64_t *p;
	int64_t *failure;
};

struct WeftIndex {
	unsigned x;
};
static thread_local WeftIndex threadIdx, blockIdx, blockDim;

/* ---- fibres ---- */

enum { WEFT_LANES = 32, WEFT_MOST = 1024, WEFT_STACK = 1 << 20 };

/* What a thread waits for. */
enum WeftWait { WEFT_RUNS, WEFT_ENDED, WEFT_AT_BARRIER, WEFT_AT_EXCHANGE };

struct WeftFibre {
	jmp_buf at; /* where the thread goes on */
	bool begun; /* its stack has weft_fibre_main on it */
	WeftWait wait;
	unsigned exchanges; /* how often it exchanged */
	uint64_t given[2];  /* to its warp, in turn */
};

struct WeftBlock {
	jmp_buf scheduler;
	WeftFibre fibre[WEFT_MOST];
	char *stacks;
	unsigned n;
	void (*run)(void *);
	void *arg;
};
static thread_local WeftBlock *weft_block;

static void weft_stop(const char *what)
{
	fprintf(stderr, "block %u, thread %u: %s\n", blockIdx.x, threadIdx.x, what);
	abort();
}

static void weft_pause(WeftWait what)
{
	WeftBlock *b = weft_block;
	if (!b)
		weft_stop("a barrier or an exchange in a kernel that has none");
	WeftFibre *f = &b->fibre[threadIdx.x];
	f->wait = what;
	if (!_setjmp(f->at))
		_longjmp(b->scheduler, 1);
}

/* A fibre executes one thread of each block, and is paused in between. */
static void weft_fibre_main()
{
	for (;;) {
		weft_block->run(weft_block->arg);
		weft_pause(WEFT_ENDED);
	}
}

/* Lets threads go on that [from, to) all wait for. Returns whether there are any. */
static bool weft_release(WeftBlock *b, unsigned from, unsigned to, WeftWait what)
{
	for (unsigned k = from; k < to; k++)
		if (b->fibre[k].wait != what)
			return false;
	for (unsigned k = from; k < to; k++)
		b->fibre[k].wait = WEFT_RUNS;
	return true;
}

static bool weft_release_some(WeftBlock *b)
{
	bool any = weft_release(b, 0, b->n, WEFT_AT_BARRIER);
	for (unsigned k = 0; k < b->n; k += WEFT_LANES)
		any = weft_release(b, k, k + WEFT_LANES, WEFT_AT_EXCHANGE) || any;
	return any;
}

static WeftBlock *weft_block_new()
{
	WeftBlock *b = (WeftBlock *)calloc(1, sizeof *b);
	void *stacks = mmap(NULL, (size_t)WEFT_MOST * WEFT_STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!b || stacks == MAP_FAILED) {
		fprintf(stderr, "no memory for the stacks of a block\n");
		abort();
	}
	b->stacks = (char *)stacks;
	return b;
}

static void weft_begin(WeftBlock *b, unsigned k)
{
	ucontext_t start;
	getcontext(&start);
	start.uc_stack.ss_sp = b->stacks + (size_t)k * WEFT_STACK;
	start.uc_stack.ss_size = WEFT_STACK;
	start.uc_link = NULL;
	makecontext(&start, weft_fibre_main, 0);
	b->fibre[k].begun = true;
	setcontext(&start);
}

/* Lets a thread run until it pauses. The variables that change lie in memory, not on this stack. */
static void weft_resume(WeftBlock *b, unsigned k)
{
	threadIdx.x = k;
	if (_setjmp(b->scheduler))
		return;
	if (b->fibre[k].begun)
		_longjmp(b->fibre[k].at, 1);
	weft_begin(b, k);
}

/* Runs the threads in turn, each until it waits or ends. */
static void weft_run_fibres(unsigned n, void (*run)(void *), void *arg)
{
	static thread_local WeftBlock *mine;
	WeftBlock *b = mine = mine ? mine : weft_block_new();
	weft_block = b;
	b->n = n;
	b->run = run;
	b->arg = arg;
	for (unsigned k = 0; k < n; k++) {
		b->fibre[k].wait = WEFT_RUNS;
		b->fibre[k].exchanges = 0;
	}
	for (bool any = true; any; any = weft_release_some(b))
		for (unsigned k = 0; k < n; k++)
			if (b->fibre[k].wait == WEFT_RUNS)
				weft_resume(b, k);
	for (unsigned k = 0; k < n; k++) {
		threadIdx.x = k;
		if (b->fibre[k].wait == WEFT_AT_BARRIER)
			weft_stop("waits at a barrier that not all threads reach");
		if (b->fibre[k].wait == WEFT_AT_EXCHANGE)
			weft_stop("waits at an exchange that not all threads of the warp reach");
	}
	weft_block = NULL;
}

static void __attribute__((unused)) __syncthreads() { weft_pause(WEFT_AT_BARRIER); }

/* ---- exchanges ---- */

/* Gives x to the warp; then all have given. Two slots in turn: a fast thread gives for the next
 * exchange before a slow one has read. */
template <typename T> static void weft_give(T x)
{
	WeftBlock *b = weft_block;
	if (!b)
		weft_stop("an exchange in a kernel that has none");
	WeftFibre *f = &b->fibre[threadIdx.x];
	f->given[f->exchanges++ % 2] = 0;
	memcpy(&f->given[(f->exchanges - 1) % 2], &x, sizeof x);
	weft_pause(WEFT_AT_EXCHANGE);
}

template <typename T> static T weft_taken(unsigned lane)
{
	WeftFibre *own = &weft_block->fibre[threadIdx.x];
	T x;
	memcpy(&x, &weft_block->fibre[threadIdx.x / WEFT_LANES * WEFT_LANES + lane].given[(own->exchanges - 1) % 2], sizeof x);
	return x;
}

template <typename T> static T weft_from(T x, int64_t lane)
{
	weft_give(x);
	return lane >= 0 && lane < WEFT_LANES ? weft_taken<T>((unsigned)lane) : x;
}

static uint32_t __attribute__((unused)) weft_ballot(bool x)
{
	uint32_t bits = 0;
	weft_give((uint64_t)x);
	for (unsigned k = 0; k < WEFT_LANES; k++)
		bits |= (uint32_t)weft_taken<uint64_t>(k) << k;
	return bits;
}

#define weft_lane_number() (int64_t)(threadIdx.x % WEFT_LANES)
#define weft_xor(x, k) weft_from(x, weft_lane_number() ^ (int64_t)(k))
#define weft_up(x, k) weft_from(x, weft_lane_number() - (int64_t)(k))
#define weft_down(x, k) weft_from(x, weft_lane_number() + (int64_t)(k))
#define weft_lane(x, k) weft_from(x, (int64_t)(k))
#define weft_any(x) (weft_ballot(x) != 0)
#define weft_all(x) (weft_ballot(x) == 0xffffffffu)

/* ---- asynchronous copies: done when they begin ---- */

static void __attribute__((unused)) weft_copy(void *to, const void *from, bool in, size_t n)
{
	if ((uintptr_t)to % n || (in && (uintptr_t)from % n))
		weft_stop("an asynchronous copy is misaligned");
	if (in)
		memcpy(to, from, n);
	else
		memset(to, 0, n);
}
#define weft_copy_4(to, from, in) weft_copy(to, from, in, 4)
#define weft_copy_8(to, from, in) weft_copy(to, from, in, 8)
#define weft_copy_16(to, from, in) weft_copy(to, from, in, 16)
#define weft_commit() (void)0
#define weft_wait(n) (void)0

/* ---- atomics: blocks run in several threads of the CPU ---- */

static int __attribute__((unused)) atomicCAS(int *p, int expected, int value)
{
	__atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return expected;
}
static int __attribute__((unused)) atomicExch(int *p, int value) { return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST); }
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* ---- blocks ---- */

/* Executes the blocks [begin, end) of `threads` threads; run(task) is the kernel. fibres: it has
 * barriers or exchanges. */
template <typename Run> static void weft_blocks(int64_t begin, int64_t end, unsigned threads, bool fibres, Run run)
{
	blockDim.x = threads;
	blockIdx.x = 0;
	for (int64_t task = begin; task < end; task++) {
		struct Call {
			Run *run;
			int64_t task;
		} call = {&run, task};
		if (fibres) {
			weft_run_fibres(threads, [](void *arg) {
				Call *c = (Call *)arg;
				(*c->run)(c->task);
			}, &call);
			continue;
		}
		for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
			run(task);
	}
}
