/* A model of ABI 2, as wefts before this ABI compiled them: its table, with the structures of that
 * time. It has one entry, without inputs and outputs, and functions that must not be called, since
 * their arguments are others today. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
	const char *name, *weft_version, *target, *features, *source_hash, *compiler;
} Manifest;

typedef struct {
	uint32_t size, flags;
	const char *name;
	uint32_t ninput, noutput, nsymbol, ncall;
	const void *input, *output, *symbol, *call;
	const int64_t *seen;
	const uint8_t *state_use;
	double flops;
	uint64_t sizes_bytes;
	void (*sizes_fn)(void), (*run_fn)(void);
	uint32_t nslot, nmessage;
	const char *const *message;
	uint32_t nroom, reserved;
	const void *launch;
} Entry;

typedef struct {
	uint32_t size, abi, stride[16];
	const Manifest *manifest;
	uint32_t nentry, nparam;
	const Entry *const *entry;
	const void *param;
	uint32_t replaceable, nstate;
	const void *state;
	uint64_t state_bytes;
	const void *weights;
	const char *weights_file, *weights_hash;
	uint64_t weights_bytes;
	const char *user_ops;
	void (*open)(void), (*close)(void), (*sizes)(void), (*run)(void), (*threads_new)(void), (*threads_free)(void);
	void (*set_weights)(void), (*state_get)(void), (*state_set)(void), (*state_reset)(void), (*clone)(void);
	uint32_t nsource, reserved;
	const void *source, *prepare;
} Model;

static void never(void)
{
	abort();
}

static const Manifest manifest = {"old", "0.1.0", "generic-c", "", "", ""};
static const Entry entry = {.size = sizeof entry, .name = "run", .sizes_bytes = 24, .sizes_fn = never, .run_fn = never, .nslot = 1};
static const Entry *const entries[] = {&entry};

const Model *weft_model(void);

const Model *weft_model(void)
{
	static const Model m = {.size = sizeof m, .abi = 2, .stride = {24, 96, 24, 56, 32, 80, 48}, .manifest = &manifest, .nentry = 1,
				.entry = entries, .open = never, .close = never, .sizes = never, .run = never, .threads_new = never,
				.threads_free = never, .set_weights = never, .state_get = never, .state_set = never, .state_reset = never,
				.clone = never};
	return &m;
}
