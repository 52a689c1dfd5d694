/* Private to the stand-in for the CUDA driver (standin.c): what its files have in common. */
#ifndef WEFT_TESTS_DEVICE_STANDIN_H
#define WEFT_TESTS_DEVICE_STANDIN_H

#include <pthread.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_IMAGE = 200,
	INVALID_CONTEXT = 201,
	NO_BINARY = 209,
	NOT_FOUND = 500,
	NOT_READY = 600,
	ILLEGAL_ADDRESS = 700,
	LAUNCH_FAILED = 719,
	NOT_SUPPORTED = 801
};
enum { ARGUMENTS = 512 };

typedef uint64_t Address;
typedef struct {
	uint64_t at, bytes;
} Block;

extern struct Standin {
	pthread_mutex_t lock;
	int begun, retained, modules;
	char *real, *window; /* SPACE bytes each */
	Block *block;        /* by offset */
	uint32_t n;
	uint64_t used;
	void *stream; /* of the last launch */
	int sticky;   /* an error after which nothing works */
	int events;
	uint64_t launches;
} self;

/* Work of a stream. */
/* CALL: `from` with `arg`, of the stand-in for cuBLASLt. */
typedef enum { COPY, FILL, FREE, LAUNCH, MARK, CALL } Kind;
typedef struct Op {
	Kind kind;
	void *stream;
	uint64_t to, from; /* addresses as the program gives them; of a launch the function */
	uint64_t bytes;    /* of a launch: blocks */
	int64_t value;     /* of a fill; of a mark its number; of a launch the number of
			      arguments */
	int64_t *arg;
	char *data; /* what is copied, where it had to be read at once */
	struct Op *next;
} Op;

/* Returns OK if a context is current and nothing has failed for good, else what is wrong. */
int state(void);
/* Executes what the stream was given; all: what all were given. */
void drain(void *stream, int all);
/* Executes the work at once on the default stream, else when somebody waits; keeps that of the
 * captured stream in capture_op. The queue owns what it points to. Returns a result. */
int give(Op op);
/* Returns the real address of bytes of the device's memory; NULL if they are not in one block. */
char *real_of(Address p, uint64_t bytes);
/* Whether the function is of an image for this CPU. */
int launchable(void *function);
extern Op *capture_op; /* what the captured stream was given */
extern void *captured_stream;

#endif
