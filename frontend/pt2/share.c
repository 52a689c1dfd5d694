/* Parameters, buffers and constants that lie in the same memory: views of one another that a module
 * registers under names of their own, or a buffer and the constant that tracing without TorchDynamo
 * makes of the object that holds it. As long as nothing writes them they are constants of their
 * own. Once one is written, the one that holds all the memory is the state, and the others are
 * views of it. */
#include <stdlib.h>
#include <string.h>

#include "frontend/pt2/priv.h"

/* A state spec's bytes in its member. */
typedef struct {
	uint32_t spec;
	const void *member;
	uint64_t first, end;
	bool has_gaps;
} Room;

static int by_place(const void *a, const void *b)
{
	const Room *x = a, *y = b;
	if (x->member != y->member)
		return (uintptr_t)x->member < (uintptr_t)y->member ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	if (x->has_gaps != y->has_gaps)
		return x->has_gaps ? 1 : -1;
	return x->spec < y->spec ? -1 : x->spec > y->spec;
}

/* Finds the bytes that a tensor has. Its extents were checked when the contents were read. */
static bool room_of(Import *im, uint32_t k, Room *r)
{
	const StateSpec *s = &im->state[k];
	if (!s->member || !s->member->size) /* of `meta`: all lie in no memory */
		return false;
	uint64_t item = dtype_size(s->meta.dtype), numel = 1, last = 0;
	int64_t offset = sym_const_or(im->syms, s->meta.offset, 0), size, stride;
	for (uint32_t d = 0; d < s->meta.rank; d++) {
		if (!sym_is_const(im->syms, s->meta.size[d], &size) || size == 0 ||
		    !sym_is_const(im->syms, s->meta.stride[d], &stride))
			return false;
		numel *= (uint64_t)size;
		last += (uint64_t)(size - 1) * (uint64_t)stride;
	}
	*r = (Room){k, s->member, (uint64_t)offset * item, ((uint64_t)offset + last + 1) * item,
		    numel != last + 1};
	return true;
}

static bool same_place(Import *im, const Meta *a, const Meta *b)
{
	bool same = a->dtype == b->dtype && a->rank == b->rank &&
		    sym_eq(im->syms, a->offset, b->offset) == YES;
	for (uint32_t k = 0; k < a->rank && same; k++)
		same = a->size[k].i == b->size[k].i && a->stride[k].i == b->stride[k].i;
	return same;
}

/* Finds several names of one parameter or buffer: the first is its name. Room k is compared with
 * those before it in the same bytes. */
static void find_names(Import *im, const Room *room, uint32_t k)
{
	StateSpec *s = &im->state[room[k].spec];
	for (uint32_t j = k; j-- > 0 && room[j].member == room[k].member &&
			     room[j].first == room[k].first && room[j].end == room[k].end;) {
		const StateSpec *first = &im->state[im->state[room[j].spec].same_as];
		if (first->kind != s->kind || !s->constant.i ||
		    !same_place(im, &first->meta, &s->meta))
			continue;
		s->same_as = im->state[room[j].spec].same_as;
		im->ir->constant.data[s->constant.i].same_as = first->constant;
		return;
	}
}

void share_find(Import *im, uint32_t n)
{
	Arena *a = im->ctx->scratch;
	ARRAY(Room) room = {0};
	for (uint32_t k = 0; k < n; k++) {
		Room r;
		im->state[k].owner = k;
		im->state[k].same_as = k;
		im->state[k].tangled = -1;
		if (room_of(im, k, &r))
			array_push(a, &room, r);
	}
	if (room.n)
		qsort(room.data, room.n, sizeof *room.data, by_place);
	for (uint32_t k = 1, at = 0; k < room.n; k++) {
		find_names(im, room.data, k);
		const Room *in = &room.data[at], *r = &room.data[k];
		if (r->member != in->member || r->first >= in->end) {
			at = k;
			continue;
		}
		im->state[r->spec].owner = in->spec;
		if (r->end > in->end ||
		    im->state[r->spec].meta.dtype != im->state[in->spec].meta.dtype) {
			im->state[in->spec].tangled = (int32_t)r->spec;
			room.data[at].end = r->end > in->end ? r->end : in->end;
		}
		ConstId c = im->state[r->spec].constant;
		if (c.i)
			im->ir->constant.data[c.i].holder = im->state[in->spec].constant;
	}
}

void share_written(Import *im, uint32_t spec)
{
	im->state[spec].written = true;
	im->state[im->state[spec].owner].written = true;
}

bool share_check(Import *im, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const StateSpec *s = &im->state[k];
		if (s->written && s->owner == k && s->tangled >= 0)
			return ctx_error(im->ctx, NULL,
					 "%s and %s share memory that the graph writes: expected "
					 "one that holds all of it, of the same dtype",
					 s->name, im->state[s->tangled].name);
	}
	return true;
}

uint32_t share_view(Scope *s, uint32_t spec, uint32_t owner, const char *name)
{
	Import *im = s->st->im;
	const Meta *m = &im->state[spec].meta;
	if (same_place(im, m, &s->st->value.data[owner].meta))
		return owner;
	return strided_view(s, owner, m, m->offset, name);
}
