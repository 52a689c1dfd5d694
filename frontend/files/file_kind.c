#include "frontend/files/file_kind.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#define SAVE "export it with torch.export.export and torch.export.save"

/* The first bytes of files that are taken for models. */
static const struct {
	const char *magic;
	size_t n, at;
	const char *what;
} kinds[] = {
	{"\xfd"
	 "7zXZ",
	 5, 0, "it is compressed by xz: unpack it first (xz -d)"},
	{"\x1f\x8b", 2, 0, "it is compressed by gzip: unpack it first (gzip -d)"},
	{"\x28\xb5\x2f\xfd", 4, 0, "it is compressed by zstd: unpack it first (zstd -d)"},
	{"BZh", 3, 0, "it is compressed by bzip2: unpack it first (bzip2 -d)"},
	{"\x7f"
	 "ELF",
	 4, 0, "it is compiled code (ELF)"},
	{"\x93NUMPY", 6, 0, "it is an array of NumPy"},
	{"\x89HDF", 4, 0, "it is an HDF5 file (Keras?)"},
	{"GGUF", 4, 0, "it is a GGUF file, which holds weights and no graph"},
	{"TFL3", 4, 4, "it is a model of TensorFlow Lite"},
	{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46", 8, 0, "it is a pickle of torch.save: " SAVE},
	{"\x80\x02", 2, 0, "it is a Python pickle: " SAVE},
	{"\x80\x03", 2, 0, "it is a Python pickle: " SAVE},
	{"\x80\x04", 2, 0, "it is a Python pickle: " SAVE},
	{"\x80\x05", 2, 0, "it is a Python pickle: " SAVE},
	{"{", 1, 8, "it is a .safetensors file, which holds tensors and no graph"},
};

bool is_onnx(const void *data, size_t size)
{
	const uint8_t *p = data;
	return size > 3 && p[0] == 8 && p[1] >= 1 && p[1] <= 20 && (p[2] & 7) <= 2 &&
	       p[2] >> 3 >= 2 && p[2] >> 3 <= 20;
}

const char *file_kind(const void *data, size_t size)
{
	const uint8_t *p = data;
	if (!size)
		return "it is empty";
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		if (size >= kinds[k].at + kinds[k].n &&
		    !memcmp(p + kinds[k].at, kinds[k].magic, kinds[k].n))
			return kinds[k].what;
	return memchr(p, 0, size < 4096 ? size : 4096) ? "it is a binary file of an unknown kind"
						       : NULL;
}

bool is_graph_text(const char *text, size_t size)
{
	const char *p = text, *end = text + size;
	while (p < end) {
		if (isspace((unsigned char)*p)) {
			p++;
		} else if (*p == ';') {
			p = memchr(p, '\n', (size_t)(end - p));
			if (!p)
				return false;
		} else {
			break;
		}
	}
	return end - p >= 5 && !memcmp(p, "graph", 5);
}
