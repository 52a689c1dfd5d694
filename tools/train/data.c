#include "tools/train/data.h"

#include <math.h>
#include <stdlib.h>

/* ---- what the model takes ---- */

static const Number *number_of(const Number *number, uint32_t n, const char *name)
{
	for (uint32_t k = 0; k < n; k++)
		if (!strcmp(number[k].name, name))
			return &number[k];
	return NULL;
}

/* Lists the names of a file's tensors, of many the first. */
static const char *names_in(const WeftTensors *t, char text[300])
{
	size_t n = 0;
	snprintf(text, 300, "none");
	for (uint32_t k = 0; k < weft_tensors_count(t); k++) {
		const char *name = weft_tensors_name(t, k);
		if (n + strlen(name) + 10 > 300) {
			snprintf(text + n, 300 - n, ", ...");
			break;
		}
		n += (size_t)snprintf(text + n, 300 - n, "%s%s", k ? ", " : "", name);
	}
	return text;
}

static void type_of(const Data *d, const WeftTensorInfo *info, char out[200])
{
	char dtype[16];
	size_t n = (size_t)snprintf(out, 200, "%s[", dtype_text(info->dtype, dtype));
	for (uint32_t k = 0; k < info->rank && n < 180; k++)
		n += (size_t)snprintf(out + n, 200 - n, "%s%.40s", k ? ", " : "",
				      tensor_dim(d->call->r->model, info, k)->text);
	snprintf(out + n, 200 - n, "]");
}

static void type_given(const WeftTensor *t, char out[200])
{
	char dtype[16];
	size_t n = (size_t)snprintf(out, 200, "%s[", dtype_text(t->dtype, dtype));
	for (int32_t k = 0; k < t->ndim && n < 170; k++)
		n += (size_t)snprintf(out + n, 200 - n, "%s%lld", k ? ", " : "",
				      (long long)t->shape[k]);
	snprintf(out + n, 200 - n, "]");
}

static bool fits(const Data *d, const WeftTensorInfo *info, const WeftTensor *t)
{
	if (memcmp(&t->dtype, &info->dtype, sizeof t->dtype) != 0 ||
	    t->ndim != (int32_t)info->rank || !t->ndim)
		return false;
	for (uint32_t k = 1; k < info->rank; k++) {
		const int64_t want = tensor_dim(d->call->r->model, info, k)->value;
		if (want >= 0 && want != t->shape[k])
			return false;
	}
	return true;
}

/* Returns what to do with labels of another type. */
static const char *label_hint(const WeftTensorInfo *info, const WeftTensor *t)
{
	const bool classes = !strcmp(info->name, "label") && info->dtype.code == WEFT_INT;
	if (!classes)
		return "";
	return t->ndim > (int32_t)info->rank
		       ? ": labels are numbers of classes, without a dimension for the classes"
		       : ": labels are numbers of classes, 0 for the first one, in 64 bits";
}

/* Says which classes the labels of a batch name. */
void data_tell_labels(const Data *d)
{
	for (uint32_t k = 0; k < d->call->entry->ninput; k++) {
		const WeftTensor *t = &d->in[k];
		if (strcmp(entry_input(d->call, k)->name, "label") != 0 || !values_of(t) ||
		    t->dtype.code != WEFT_INT)
			continue;
		double least = value_at(t, 0), most = least;
		for (int64_t i = 1; i < values_of(t); i++) {
			least = fmin(least, value_at(t, i));
			most = fmax(most, value_at(t, i));
		}
		fprintf(stderr, "%s: note: the labels of the batch are from %.0f to %.0f\n",
			d->path, least, most);
	}
}

static bool take(Data *d, const WeftTensors *file, uint32_t k)
{
	const WeftTensorInfo *info = entry_input(d->call, k);
	char key[32], names[300], want[200], have[200];
	snprintf(key, sizeof key, "x.%u", k);
	const WeftTensor *t = weft_tensors_find(file, info->name);
	t = t ? t : weft_tensors_find(file, key);
	if (!info->rank && !strcmp(info->name, "lr"))
		return fail("%s: the step takes a learning rate: give it by --lr",
			    d->call->r->path),
		       false;
	if (!info->rank)
		return fail("%s: the step takes %s, a number: give it by --number %s=X",
			    d->call->r->path, info->name, info->name),
		       false;
	if (!t)
		return fail("%s: no tensor %s, which the step takes; the file has %s", d->path,
			    info->name, names_in(file, names)),
		       false;
	type_of(d, info, want);
	type_given(t, have);
	if (!fits(d, info, t))
		return fail("%s: %s is %s, the step takes %s (the first dimension is that of "
			    "samples)%s",
			    d->path, info->name, have, want, label_hint(info, t)),
		       false;
	if (d->rows >= 0 && t->shape[0] != d->rows)
		return fail("%s: %s has %lld samples, the tensors before it have %lld", d->path,
			    info->name, (long long)t->shape[0], (long long)d->rows),
		       false;
	d->rows = t->shape[0];
	d->of[k] = t;
	return true;
}

/* Sets the size of a batch. An entry whose first extents are constants takes one size. */
static bool choose_batch(Data *d, int64_t asked)
{
	const WeftModel *m = d->call->r->model;
	for (uint32_t k = 0; k < d->call->entry->ninput; k++) {
		const WeftTensorInfo *info = entry_input(d->call, k);
		if (!d->of[k])
			continue;
		const WeftDim *dim = tensor_dim(m, info, 0);
		if (dim->value >= 0 && asked && dim->value != asked)
			return fail("%s was exported with batches of %lld (%s): --batch %lld needs "
				    "a "
				    "model with a symbolic size there (dynamic_shapes)",
				    d->call->r->path, (long long)dim->value, info->name,
				    (long long)asked),
			       false;
		if (dim->value >= 0) {
			d->fixed = true;
			d->batch = dim->value;
		} else if (dim->symbol >= 0 && !asked && !d->batch) {
			d->batch = d->call->entry->seen[dim->symbol];
		}
	}
	if (asked)
		d->batch = asked;
	return d->batch > 0 || (fail("give the size of a batch: --batch N"), false);
}

/* Whether a batch of that many samples is in the range of the model's sizes. */
static bool takes(const Data *d, int64_t samples)
{
	const WeftModel *m = d->call->r->model;
	for (uint32_t k = 0; k < d->call->entry->ninput; k++) {
		if (!d->of[k])
			continue;
		const int32_t s = tensor_dim(m, entry_input(d->call, k), 0)->symbol;
		if (s < 0)
			continue;
		const WeftSymbolInfo *i = weft_symbol(m, d->call->entry, (uint32_t)s);
		if (samples < i->lo || samples > i->hi)
			return false;
	}
	return true;
}

static bool make_room(Data *d)
{
	for (uint32_t k = 0; k < d->call->entry->ninput; k++) {
		WeftTensor *in = &d->in[k];
		const WeftTensorInfo *info = entry_input(d->call, k);
		in->device = (WeftDevice){WEFT_CPU, 0};
		in->dtype = info->dtype;
		in->ndim = (int32_t)info->rank;
		in->shape = calloc(info->rank + 1, sizeof *in->shape);
		if (!in->shape)
			return false;
		if (d->of[k])
			memcpy(in->shape, d->of[k]->shape, info->rank * sizeof *in->shape);
		if (info->rank)
			in->shape[0] = d->batch;
		in->data = aligned_alloc(64, (bytes_of(in) + 127) / 64 * 64);
		if (!in->data)
			return false;
	}
	return true;
}

bool data_open(Data *d, Weft *w, const char *path, const EntryCall *call, const Number *number,
	       uint32_t n, int64_t batch)
{
	*d = (Data){.path = path, .call = call, .rows = -1};
	d->of = calloc(call->entry->ninput + 1, sizeof *d->of);
	d->in = calloc(call->entry->ninput + 1, sizeof *d->in);
	if (!d->of || !d->in)
		return fail("out of memory"), false;
	WeftTensors *file = weft_tensors_read(w, path);
	if (!file)
		return fail_messages(w), false;
	for (uint32_t k = 0; k < call->entry->ninput; k++) {
		const WeftTensorInfo *info = entry_input(call, k);
		const bool given = number_of(number, n, info->name);
		if (given &&
		    (info->rank || info->dtype.code != WEFT_FLOAT || info->dtype.bits != 64))
			return fail("%s: the input %s is no number (f64 without dimensions)",
				    call->r->path, info->name),
			       false;
		if (!given && !take(d, file, k))
			return false;
	}
	if (d->rows < 0)
		return fail("%s: the step takes no data", path), false;
	if (!choose_batch(d, batch))
		return false;
	if (d->rows < d->batch && (d->fixed || !takes(d, d->rows)))
		return fail("%s: %lld samples are fewer than a batch of %lld", path,
			    (long long)d->rows, (long long)d->batch),
		       false;
	if (!d->fixed && !takes(d, d->batch < d->rows ? d->batch : d->rows))
		return fail("%s: a batch of %lld is out of the range of sizes that it was exported "
			    "with",
			    call->r->path, (long long)d->batch),
		       false;
	d->order = malloc((size_t)(d->rows + 1) * sizeof *d->order);
	if (!d->order || !make_room(d))
		return fail("no memory for %lld samples", (long long)d->rows), false;
	for (int64_t k = 0; k < d->rows; k++)
		d->order[k] = k;
	return true;
}

void data_close(Data *d)
{
	for (uint32_t k = 0; d->in && k < d->call->entry->ninput; k++) {
		free(d->in[k].data);
		free(d->in[k].shape);
	}
	free(d->in);
	free(d->of);
	free(d->order);
	*d = (Data){0};
}

/* ---- the order ---- */

/* Returns 64 random bits: Philox 4x32 with 10 rounds, whose key is the seed and whose counter is
 * the epoch and the place. */
static uint64_t random_bits(uint64_t seed, uint64_t epoch, uint64_t place)
{
	uint32_t c[4] = {(uint32_t)place, (uint32_t)(place >> 32), (uint32_t)epoch,
			 (uint32_t)(epoch >> 32)},
		 key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	for (int round = 0; round < 10; round++) {
		const uint64_t a = (uint64_t)c[0] * 0xD2511F53, b = (uint64_t)c[2] * 0xCD9E8D57;
		const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b,
					  (uint32_t)(a >> 32) ^ c[3] ^ key[1], (uint32_t)a};
		memcpy(c, next, sizeof c);
		key[0] += 0x9E3779B9;
		key[1] += 0xBB67AE85;
	}
	return (uint64_t)c[0] << 32 | c[1];
}

/* Returns the upper half of a product of 64-bit numbers. */
static uint64_t upper(uint64_t a, uint64_t b)
{
	const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	const uint64_t low = a0 * b0, mid = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)mid;
	return a1 * b1 + (mid >> 32) + (other >> 32);
}

void data_shuffle(Data *d, uint64_t seed, uint64_t epoch)
{
	for (int64_t k = 0; k < d->rows; k++)
		d->order[k] = k;
	for (int64_t k = d->rows - 1; k > 0; k--) {
		const int64_t other =
			(int64_t)upper(random_bits(seed, epoch, (uint64_t)k), (uint64_t)k + 1);
		const int64_t kept = d->order[k];
		d->order[k] = d->order[other];
		d->order[other] = kept;
	}
}

/* ---- batches ---- */

int64_t data_batches(const Data *d)
{
	const int64_t whole = d->rows / d->batch, rest = d->rows % d->batch;
	return whole + (rest && !d->fixed && !(d->several && rest == 1) && takes(d, rest));
}

int64_t data_left_out(const Data *d)
{
	const int64_t taken = data_batches(d) * d->batch;
	return taken < d->rows ? d->rows - taken : 0;
}

int64_t data_batch(Data *d, int64_t k, const Number *number, uint32_t n)
{
	const int64_t from = k * d->batch, left = d->rows - from,
		      samples = left < d->batch ? left : d->batch;
	for (uint32_t i = 0; i < d->call->entry->ninput; i++) {
		WeftTensor *in = &d->in[i];
		if (!d->of[i]) {
			*(double *)in->data =
				number_of(number, n, entry_input(d->call, i)->name)->value;
			continue;
		}
		const size_t row = (size_t)(bytes_of(d->of[i]) / (uint64_t)d->rows);
		const char *data = (const char *)d->of[i]->data + d->of[i]->byte_offset;
		for (int64_t r = 0; r < samples; r++)
			memcpy((char *)in->data + (size_t)r * row,
			       data + (size_t)d->order[from + r] * row, row);
		in->shape[0] = samples;
	}
	return samples;
}

uint64_t data_hash(const Data *d)
{
	uint64_t h = 0xCBF29CE484222325;
	for (uint32_t i = 0; i < d->call->entry->ninput; i++) {
		if (!d->of[i])
			continue;
		const uint64_t n = bytes_of(d->of[i]);
		const char *data = (const char *)d->of[i]->data + d->of[i]->byte_offset;
		for (uint64_t at = 0; at < n; at += 8) {
			uint64_t word = 0;
			memcpy(&word, data + at, n - at < 8 ? (size_t)(n - at) : 8);
			h = (h ^ word) * 0x9E3779B97F4A7C15;
			h ^= h >> 29;
		}
	}
	return h;
}
