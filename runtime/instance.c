/* Instances: the weights, embedded or mapped, and the state. */
#include "instance_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_header(const WeftModel *m, const WeftWeightHeader *h, uint64_t size, const char *path,
			WeftStatus *status)
{
	if (size < WEFT_WEIGHT_HEADER || memcmp(h->magic, WEFT_WEIGHT_MAGIC, sizeof h->magic))
		return weft_fail(status, WEFT_ERR_FILE, "%s: not a file of weights", path);
	if (!m->weights_hash || strncmp(h->hash, m->weights_hash, sizeof h->hash) || h->bytes != m->weights_bytes)
		return weft_fail(status, WEFT_ERR_FILE, "%s: weights of another model, or arranged for another target",
				 path);
	if (size - WEFT_WEIGHT_HEADER < h->bytes)
		return weft_fail(status, WEFT_ERR_FILE, "%s: truncated", path);
	return WEFT_OK;
}

static int map_weights(WeftInstance *in, const char *path, bool verify, WeftStatus *status)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for a writer */
	if (fd < 0)
		return weft_fail(status, WEFT_ERR_FILE, "%s: cannot read the weights: %s", path, strerror(errno));
	bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	size_t size = regular ? (size_t)st.st_size : 0;
	void *p = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	close(fd);
	if (p == MAP_FAILED)
		return weft_fail(status, WEFT_ERR_FILE, "%s: %s", path,
				 !regular ? "not a regular file"
				 : size   ? "cannot map the weights"
					  : "truncated");
	in->map = p;
	in->map_bytes = size;
	in->weights = (const char *)p + WEFT_WEIGHT_HEADER;
	TRY(check_header(in->model, p, size, path, status));
	const WeftWeightHeader *h = p;
	if (verify && weft_checksum(in->weights, h->bytes) != h->checksum)
		return weft_fail(status, WEFT_ERR_FILE, "%s: damaged: its checksum differs", path);
	return WEFT_OK;
}

/* name in the folder of object (NULL: as it is); 0 where there is not enough room. */
static int beside(char path[4096], const char *object, const char *name)
{
	const char *slash = object ? strrchr(object, '/') : NULL;
	int n = snprintf(path, 4096, "%.*s%s", slash ? (int)(slash + 1 - object) : 0,
			 slash ? object : "", name);
	return n >= 0 && n < 4096;
}

/* The weight file lies beside the object that holds the table; of one that was opened through a
 * symbolic link beside the file that this leads to, or else beside the link. */
static int map_beside(WeftInstance *in, bool verify, WeftStatus *status)
{
	Dl_info info;
	char path[4096];
	const char *name = in->model->weights_file, *object = NULL;
	if (!name)
		return weft_fail(status, WEFT_ERR_FILE, "the model has no weights; name a file");
	if (name[0] != '/' && dladdr((const void *)in->model, &info))
		object = info.dli_fname;
	char *real = object ? realpath(object, NULL) : NULL;
	int fits = real && beside(path, real, name) && access(path, F_OK) == 0;
	free(real);
	if (!fits && !beside(path, object, name))
		return weft_fail(status, WEFT_ERR_FILE, "the path of the weights is too long");
	return map_weights(in, path, verify, status);
}

static int find_weights(WeftInstance *in, const WeftOpen *o, WeftStatus *status)
{
	const WeftModel *m = in->model;
	const bool verify = o && o->size > offsetof(WeftOpen, flags) && o->flags & WEFT_OPEN_VERIFY;
	if (o && o->weights) {
		if (o->weights_bytes != m->weights_bytes || (uintptr_t)o->weights % 64)
			return weft_fail(status, WEFT_ERR_ARGUMENT, "weights of another size, or not 64-byte aligned");
		in->weights = o->weights;
		return WEFT_OK;
	}
	if (o && o->weights_path)
		return map_weights(in, o->weights_path, verify, status);
	in->weights = m->weights;
	return m->weights || m->weights_bytes == 0 ? WEFT_OK : map_beside(in, verify, status);
}

static void *alloc_section(uint64_t bytes)
{
	return bytes > SIZE_MAX - 64 ? NULL : aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
}

static int make_state(WeftInstance *in, WeftStatus *status)
{
	const WeftModel *m = in->model;
	if (m->state_bytes == 0)
		return WEFT_OK;
	if (!in->weights)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "no weights for the state to begin with");
	in->state = alloc_section(m->state_bytes);
	if (!in->state)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for the state");
	memcpy(in->state, (const char *)in->weights + m->state_init, (size_t)m->state_bytes);
	return WEFT_OK;
}

int weft_rt_open(const WeftModel *m, const WeftOpen *o, WeftInstance **out, WeftStatus *status)
{
	char missing[32];
	status_clear(status);
	if (!m || !out)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "open: no model or no place for the result");
	*out = NULL;
	if (m->abi != WEFT_ABI_VERSION || m->size < offsetof(WeftModel, user_ops) || (o && o->size < offsetof(WeftOpen, flags)))
		return weft_fail(status, WEFT_ERR_ABI, "the model has ABI version %u, expected %u", (unsigned)m->abi,
				 (unsigned)WEFT_ABI_VERSION);
	if (weft_cpu_lacks(m->manifest->features, missing))
		return weft_fail(status, WEFT_ERR_CPU,
				 "%s was compiled for %s, but this processor has no "
				 "%s; compile it with a lower --target",
				 m->manifest->name, m->manifest->target, missing);
	WeftInstance *in = calloc(1, sizeof *in);
	if (!in)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for an instance");
	in->model = m;
	in->ncpu = threads_ncpu();
	int code = find_weights(in, o, status);
	code = code == WEFT_OK ? make_state(in, status) : code;
	if (code != WEFT_OK)
		weft_rt_close(in);
	else
		threads_opened(), *out = in;
	return code;
}

void weft_rt_close(WeftInstance *in)
{
	if (!in)
		return;
	if (in->map)
		munmap(in->map, in->map_bytes);
	free(in->replaced);
	free(in->state);
	free(in);
}

static int same_shape(const WeftTensor *t, const WeftParamInfo *p)
{
	int same = t->ndim == (int32_t)p->rank && t->dtype.code == p->dtype.code && t->dtype.bits == p->dtype.bits &&
		   t->device.type == WEFT_CPU && t->data;
	for (uint32_t k = 0; same && k < p->rank; k++)
		same = t->shape[k] == p->dim[k];
	return same && tensor_row_major(t);
}

/* Store the tensor wherever the parameter is kept. */
static int replace(const WeftModel *m, char *section, const char *name, const WeftTensor *t, WeftStatus *status)
{
	int found = 0;
	for (uint32_t k = 0; k < m->nparam; k++) {
		const WeftParamInfo *p = &m->param[k];
		if (strcmp(p->name, name))
			continue;
		found = 1;
		if (!same_shape(t, p))
			return weft_fail(status, WEFT_ERR_INPUT,
					 "weight %s: other dtype, shape or layout than the model's", name);
		weft_relayout(section + p->offset, (char *)t->data + t->byte_offset, dtype_bytes(p->dtype), p->rank,
			      p->dim, p->nlayout, p->layout);
	}
	return found ? WEFT_OK : weft_fail(status, WEFT_ERR_ARGUMENT, "the model has no weight %s", name);
}

int weft_rt_set_weights(WeftInstance *in, uint32_t n, const char *const *names, const WeftTensor *values,
			WeftStatus *status)
{
	status_clear(status);
	if (!in || (n && (!names || !values)))
		return weft_fail(status, WEFT_ERR_ARGUMENT, "set_weights: a null pointer");
	const WeftModel *m = in->model;
	if (!m->replaceable)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "the model was not compiled with --replaceable-weights");
	char *section = alloc_section(m->weights_bytes);
	if (!section)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for other weights");
	memcpy(section, in->weights, (size_t)m->weights_bytes);
	for (uint32_t k = 0; k < n; k++) {
		int code = replace(m, section, names[k], &values[k], status);
		if (code != WEFT_OK) {
			free(section);
			return code;
		}
	}
	free(in->replaced);
	in->weights = in->replaced = section;
	return WEFT_OK;
}
