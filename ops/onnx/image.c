/* Images in files. Those that are not compressed are elements of their bytes: BMP of 24 and 32
 * bits, PNM (P5 and P6, of 8 bits, without comments in the header), and TIFF of 8 bits (little
 * endian, in one strip). Where something else is given, the call fails: JPEG, PNG, WebP and JPEG
 * 2000 are decoded outside of a model. */
#include "ops/onnx/priv.h"
#include "ops/prim/data_size.h"


enum {
	BMP_PIXELS = 10, BMP_WIDTH = 18, BMP_HEIGHT = 22, BMP_BITS = 28, BMP_PACKING = 30,
	HEADER = 64, /* of PNM: at most */
};

/* How pixels lie in the bytes, all i64 without dimensions: pixel (row, column) of channel c is byte
 * first + row * line + column * step + c * channel. */
typedef struct {
	Node is, width, height, first, line, step, channel;
} PixelLayout;

static Node byte_at(Build *b, Node data, int64_t k)
{
	return b_convert(b, b_select_dim(b, data, 0, b_int(b, k)), DT_i64);
}

/* Returns the number of n bytes, the lowest first. */
static Node number_at(Build *b, Node data, int64_t at, int n)
{
	Node v = byte_at(b, data, at);
	for (int k = 1; k < n; k++)
		v = b_bin(b, OP_add, v,
			  b_bin_scalar(b, OP_mul, byte_at(b, data, at + k),
				       (double)(INT64_C(1) << (8 * k))));
	return v;
}

static Node i64(Build *b, int64_t v)
{
	return b_full_int(b, DT_i64, v, 0, NULL);
}

static Node is(Build *b, Node x, int64_t v)
{
	return b_bin_scalar(b, OP_eq, x, (double)v);
}

#define both(b, x, y) b_bin(b, OP_bit_and, x, y)

/* ---- BMP ---- */

/* Reads a header of BMP. Rows are filled up to words of 4 bytes, and stand upside down unless
 * the height is negative; pixels are blue, green, red. */
static PixelLayout bmp(Build *b, Node data)
{
	Node bits = number_at(b, data, BMP_BITS, 2),
	     height = b_convert(b, b_convert(b, number_at(b, data, BMP_HEIGHT, 4), DT_i32), DT_i64);
	PixelLayout l = {.width = number_at(b, data, BMP_WIDTH, 4),
			 .height = b_un(b, OP_abs, height),
			 .channel = i64(b, -1)};
	l.is = both(b, is(b, byte_at(b, data, 0), 'B'), is(b, byte_at(b, data, 1), 'M'));
	l.is = both(b, l.is, b_bin(b, OP_bit_or, is(b, bits, 24), is(b, bits, 32)));
	l.is = both(b, l.is, is(b, number_at(b, data, BMP_PACKING, 4), 0));
	l.step = b_select(b, is(b, bits, 32), i64(b, 4), i64(b, 3));
	Node line = b_bin_scalar(b, OP_add, b_bin(b, OP_mul, l.width, l.step), 3);
	line = b_bin(b, OP_sub, line, b_bin_scalar(b, OP_remainder, line, 4));
	Node up = b_bin_scalar(b, OP_gt, height, 0),
	     red = b_bin_scalar(b, OP_add, number_at(b, data, BMP_PIXELS, 4), 2);
	Node last = b_bin(b, OP_mul, b_bin_scalar(b, OP_sub, l.height, 1), line);
	l.first = b_select(b, up, b_bin(b, OP_add, red, last), red);
	l.line = b_select(b, up, b_un(b, OP_neg, line), line);
	return l;
}

/* ---- PNM ---- */

/* The digits of a header, and which of its numbers each belongs to: "P6 32 16 255" has 0 to 3. */
typedef struct {
	Node digit, of; /* f64, i64 [HEADER] */
	Node place;     /* i64: 0, 1, ... */
	Node is_digit;
} Digits;

static Digits digits_of(Build *b, Node head)
{
	Sym n = b_int(b, HEADER), one = b_int(b, 1), back = b_int(b, -1);
	Digits d = {.place = b_iota(b, DT_i64, n),
		    .digit = b_bin_scalar(b, OP_sub, b_convert(b, head, DT_f64), '0')};
	d.is_digit =
		both(b, b_bin_scalar(b, OP_ge, d.digit, 0), b_bin_scalar(b, OP_le, d.digit, 9));
	Node before = b_pad(b, d.is_digit, &one, &back, b_full(b, DT_bool, 0, 0, NULL));
	Node begins = both(b, d.is_digit, b_un(b, OP_bit_not, before));
	d.of = b_bin_scalar(b, OP_sub,
			    b_cumulative(b, "sum", b_convert(b, begins, DT_i64), 0, false), 1);
	return d;
}

/* Returns number k of the header; *end: the place of its last digit. */
static Node header_number(Build *b, const Digits *d, int64_t k, Node *end)
{
	Node mine = both(b, d->is_digit, is(b, d->of, k));
	*end = b_reduce(b, REDUCE_MAX, b_select(b, mine, d->place, i64(b, -1)), 1, DT_none);
	Node exponent = b_convert(b, b_bin(b, OP_sub, *end, d->place), DT_f64);
	Node weight = b_bin(b, OP_pow, b_scalar(b, DT_f64, 10),
			    b_select(b, mine, exponent, b_scalar(b, DT_f64, 0)));
	Node parts = b_select(b, mine, b_bin(b, OP_mul, d->digit, weight), b_scalar(b, DT_f64, 0));
	return b_convert(b, b_reduce(b, REDUCE_SUM, parts, 1, DT_none), DT_i64);
}

static PixelLayout pnm(Build *b, Node data)
{
	Node head = b_slice(b, data, 0, b_int(b, 0), b_int(b, HEADER), b_int(b, 1)), end;
	Digits d = digits_of(b, head);
	Node kind = header_number(b, &d, 0, &end);
	PixelLayout l = {.width = header_number(b, &d, 1, &end),
			 .height = header_number(b, &d, 2, &end)};
	Node most = header_number(b, &d, 3, &end), grey = is(b, kind, 5);
	Node comment =
		both(b, is(b, b_convert(b, head, DT_i64), '#'), b_bin(b, OP_lt, d.place, end));
	l.is = both(b, is(b, byte_at(b, data, 0), 'P'), b_bin(b, OP_bit_or, grey, is(b, kind, 6)));
	l.is = both(b, both(b, l.is, is(b, most, 255)),
		    b_un(b, OP_bit_not, b_reduce(b, REDUCE_OR, comment, 1, DT_none)));
	l.step = b_select(b, grey, i64(b, 1), i64(b, 3));
	l.channel = b_select(b, grey, i64(b, 0), i64(b, 1));
	l.first = b_bin_scalar(b, OP_add, end, 2);
	l.line = b_bin(b, OP_mul, l.width, l.step);
	return l;
}

/* ---- TIFF ---- */

enum { ENTRIES = 64 /* of a directory: at most */, ENTRY = 12 };
enum {
	TIFF_WIDTH = 256,
	TIFF_HEIGHT,
	TIFF_BITS,
	TIFF_PACKING,
	TIFF_COLOURS = 262,
	TIFF_STRIPS = 273,
	TIFF_SAMPLES = 277,
	TIFF_PLANES = 284
};

/* The entries of the first directory, i64 [ENTRIES] each; -1 as the tag of those that are not
 * there. */
typedef struct {
	Node tag, count, value;
} Directory;

/* Returns the numbers of n bytes at these places, which must be within the file only if they
 * matter. */
static Node numbers_at(Build *b, Node data, Node at, int n)
{
	Node v = i64(b, 0);
	for (int k = 0; k < n; k++) {
		Node byte = b_convert(
			b, aten_take_dim(b, data, 0, b_bin_scalar(b, OP_add, at, k), "clamp"),
			DT_i64);
		v = b_bin(b, OP_add, v,
			  b_bin_scalar(b, OP_mul, byte, (double)(INT64_C(1) << (8 * k))));
	}
	return v;
}

static Directory directory(Build *b, Node data)
{
	Node first = number_at(b, data, 4, 4), number = b_iota(b, DT_i64, b_int(b, ENTRIES));
	Node at = b_bin(b, OP_add, b_bin_scalar(b, OP_mul, number, ENTRY),
			b_bin_scalar(b, OP_add, first, 2));
	Node there = b_bin(b, OP_lt, number, numbers_at(b, data, first, 2));
	Node is_short = is(b, numbers_at(b, data, b_bin_scalar(b, OP_add, at, 2), 2), 3),
	     value = b_bin_scalar(b, OP_add, at, 8);
	Directory d = {.count = numbers_at(b, data, b_bin_scalar(b, OP_add, at, 4), 4)};
	d.tag = b_select(b, there, numbers_at(b, data, at, 2), i64(b, -1));
	Node one = is(b, d.count, 1); /* else the value is the place of an array */
	d.value = b_select(b, both(b, is_short, one), numbers_at(b, data, value, 2),
			   numbers_at(b, data, value, 4));
	return d;
}

/* Returns `what` of the entry with that tag; `otherwise` if there is none. */
static Node entry(Build *b, const Directory *d, Node what, int64_t tag, int64_t otherwise)
{
	Node found = is(b, d->tag, tag),
	     v = b_reduce(b, REDUCE_MAX, b_select(b, found, what, i64(b, -1)), 1, DT_none);
	return b_select(b, b_reduce(b, REDUCE_OR, found, 1, DT_none), v, i64(b, otherwise));
}

static PixelLayout tiff(Build *b, Node data)
{
	Directory d = directory(b, data);
	Node samples = entry(b, &d, d.value, TIFF_SAMPLES, 1), grey = is(b, samples, 1),
	     bits = entry(b, &d, d.value, TIFF_BITS, 1);
	PixelLayout l = {.width = entry(b, &d, d.value, TIFF_WIDTH, 0),
			 .height = entry(b, &d, d.value, TIFF_HEIGHT, 0)};
	Node many = b_bin_scalar(b, OP_gt, entry(b, &d, d.count, TIFF_BITS, 1), 1);
	bits = b_select(b, many, numbers_at(b, data, bits, 2), bits);
	l.is = both(b, is(b, number_at(b, data, 0, 4), 0x2a4949),
		    is(b, entry(b, &d, d.value, TIFF_PACKING, 1), 1));
	l.is = both(b, both(b, l.is, is(b, bits, 8)),
		    is(b, entry(b, &d, d.count, TIFF_STRIPS, 0), 1));
	l.is = both(b, both(b, l.is, is(b, entry(b, &d, d.value, TIFF_PLANES, 1), 1)),
		    b_bin(b, OP_bit_or, grey, is(b, samples, 3)));
	/* 1: black is 0; 2: red, green, blue */
	Node colours = entry(b, &d, d.value, TIFF_COLOURS, 0);
	l.is = both(b, l.is, b_bin(b, OP_eq, colours, b_select(b, grey, i64(b, 1), i64(b, 2))));
	l.first = entry(b, &d, d.value, TIFF_STRIPS, 0);
	l.step = samples;
	l.channel = b_select(b, grey, i64(b, 0), i64(b, 1));
	l.line = b_bin(b, OP_mul, l.width, samples);
	return l;
}

/* ---- all of them ---- */

static PixelLayout chosen(Build *b, const PixelLayout *x, const PixelLayout *y)
{
	return (PixelLayout){
		.is = b_bin(b, OP_bit_or, x->is, y->is),
		.width = b_select(b, x->is, x->width, y->width),
		.height = b_select(b, x->is, x->height, y->height),
		.first = b_select(b, x->is, x->first, y->first),
		.line = b_select(b, x->is, x->line, y->line),
		.step = b_select(b, x->is, x->step, y->step),
		.channel = b_select(b, x->is, x->channel, y->channel),
	};
}

/* Returns a size of the image; 0 where the format is none of these, so that the message says so. */
static Sym extent(Build *b, const PixelLayout *l, Node v, const char *what)
{
	Sym size = data_size_new(b);
	b_to_size(b, b_select(b, l->is, v, i64(b, 0)), size, (Sym){0}, what);
	return size;
}

/* Returns [H, W, 3] of the bytes: red, green, blue. */
static Node pixels(Build *b, Node data, const PixelLayout *l)
{
	Sym height = extent(b, l, l->height, "the height of the image"),
	    width = extent(b, l, l->width, "the width of the image");
	Shape s = shape_of(3, (Sym[]){height, width, b_int(b, 3)});
	Node place = l->first;
	const Node by[] = {l->line, l->step, l->channel};
	for (uint32_t k = 0; k < 3; k++)
		place = b_bin(b, OP_add, place,
			      b_bin(b, OP_mul, aten_iota_dim(b, &s, k, DT_i64), by[k]));
	return aten_take_dim(b, data, 0, place, "check");
}

/* Returns the luma of ITU-R 601, rounded as PIL does: [H, W, 1]. */
static Node grey_of(Build *b, Node rgb)
{
	static const double weight[] = {19595, 38470, 7471};
	Node sum = i64(b, 1 << 15);
	for (uint32_t k = 0; k < 3; k++) {
		Node c = b_slice(b, rgb, 2, b_int(b, k), b_int(b, k + 1), b_int(b, 1));
		sum = b_bin(b, OP_add, sum,
			    b_bin_scalar(b, OP_mul, b_convert(b, c, DT_i64), weight[k]));
	}
	return b_convert(b, b_bin(b, OP_shift_right, sum, i64(b, 16)), DT_u8);
}

static Node build_image_decoder(Build *b, Node n)
{
	Node data = arg(b, n, "encoded_stream");
	if (!aten_check_word(b, n, "pixel_format", "RGB BGR Grayscale"))
		return (Node){0};
	if (aten_rank(b, data) != 1 || aten_dtype(b, data) != DT_u8)
		return b_error(b, "the image is of %s and rank %u, expected bytes u8[n]",
			       dtype_name(aten_dtype(b, data)), aten_rank(b, data));
	/* so that a short file has a header, too */
	Sym none = b_int(b, 0), more = b_int(b, HEADER);
	Node head = b_pad(b, data, &none, &more, b_full_int(b, DT_u8, 0, 0, NULL));
	PixelLayout formats[] = {bmp(b, head), pnm(b, head), tiff(b, head)}, l = formats[0];
	for (uint32_t k = 1; k < 3; k++)
		l = chosen(b, &l, &formats[k]);
	Attr attr[] = {attr_none(),
		       attr_str(b->g->ir, "ImageDecoder: the image is no BMP of 24 or 32 bits, no "
					  "PNM (P5, P6) and no TIFF of 8 bits that is not "
					  "compressed: other formats are not supported")};
	if (!l.is.i)
		return l.is;
	b_node(b, OP_assert, &l.is, 1, attr, 2);
	Node rgb = pixels(b, data, &l);
	return aten_is(b, n, "pixel_format", "Grayscale") ? grey_of(b, rgb)
	       : aten_is(b, n, "pixel_format", "BGR")     ? b_reverse(b, rgb, 2)
							  : rgb;
}

OP(onnx_ImageDecoder_20){
	.schema = "onnx.ImageDecoder.20(Tensor encoded_stream, *, str pixel_format=\"RGB\") -> "
		  "Tensor",
	.build = build_image_decoder,
	.no_sample = NODE_TESTS,
};
