"""The C of pages as a program: doc_examples.py OUTPUT.c PAGE...

A block that begins with ```c run is the body of a function with a new Weft *w, which returns 0 if all is well. The program executes
each in the folder that it is given, and says which failed.
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"^```c run\n(.*?)^```$", re.S | re.M)
HEAD = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft.h"
#include "weft_call.h"
#include "weft_graph.h"
#include "weft_trace.h"

/* The whole file, for free_file. */
__attribute__((unused)) static void *read_file(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	char *data = f && fseek(f, 0, SEEK_END) == 0 ? malloc(*bytes = (size_t)ftell(f)) : NULL;
	if (!data)
		exit((perror(path), 1));
	rewind(f);
	if (fread(data, 1, *bytes, f) != *bytes)
		exit((perror(path), 1));
	fclose(f);
	return data;
}

__attribute__((unused)) static void free_file(void *user, const void *data)
{
	(void)user;
	free((void *)(size_t)data);
}
"""
TAIL = """
int main(int argc, char **argv)
{
	int bad = argc != 2 || chdir(argv[1]) != 0;
	for (size_t k = 0; !bad && k < sizeof example / sizeof *example; k++) {
		Weft *w = weft_new();
		int code = example[k].body(w);
		if (code)
			printf("FAIL %s: %d\\n%s", example[k].where, code, weft_messages(w));
		bad |= code != 0;
		weft_free(w);
	}
	return bad;
}
"""

out, rows = HEAD, []
for page in sys.argv[2:]:
    text = pathlib.Path(page).read_text()
    for m in BLOCK.finditer(text):
        line = text.count("\n", 0, m.start(1)) + 1
        rows.append(f'{{"{pathlib.Path(page).name}:{line}", example_{line}}}')
        out += f'\nstatic int example_{line}(Weft *w)\n{{\n#line {line} "{page}"\n{m[1]}return 0;\n}}\n'
if not rows:
    sys.exit("no page has an example")
out += f"\nstatic const struct {{\n\tconst char *where;\n\tint (*body)(Weft *);\n}} example[] = {{{', '.join(rows)}}};\n{TAIL}"
pathlib.Path(sys.argv[1]).write_text(out)
