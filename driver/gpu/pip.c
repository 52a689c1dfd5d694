#include "driver/gpu/pip.h"

#include <dlfcn.h>
#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/artifact/link.h"

/* Where packages lie below the prefix of a Python: of a virtual environment, and of Debian's. */
static const char *const packages[] = {"lib/python3*/site-packages",
				       "local/lib/python3*/dist-packages"};

/* Finds the folder that has the Python in its folder bin. */
static bool find_prefix(char prefix[PATH_MAX])
{
	const char *named = getenv("WEFT_PYTHON");
	struct stat st;
	named = named && *named ? named : NULL;
	if (named && stat(named, &st) == 0 && S_ISDIR(st.st_mode))
		return snprintf(prefix, PATH_MAX, "%s", named) < PATH_MAX;
	char path[PATH_MAX];
	if (!on_path(named ? named : "python3", path))
		return false;
	snprintf(prefix, PATH_MAX, "%s", dirname(dirname(path)));
	return true;
}

/* Writes the path as a pattern that only the path matches. */
static bool quote(const char *path, char pattern[PATH_MAX])
{
	size_t n = 0;
	for (; *path && n < PATH_MAX - 2; path++) {
		if (strchr("\\*?[", *path))
			pattern[n++] = '\\';
		pattern[n++] = *path;
	}
	pattern[n] = 0;
	return !*path;
}

/* Whether a package of NVIDIA in the folder prefix/below has the library. `below` is a pattern. */
static bool find_below(const char *prefix, const char *below, const char *library,
		       char folder[PATH_MAX])
{
	char quoted[PATH_MAX], pattern[PATH_MAX];
	glob_t g = {0};
	bool found = quote(prefix, quoted) &&
		     snprintf(pattern, PATH_MAX, "%s/%s/nvidia/*/lib/%s", quoted, below, library) <
			     PATH_MAX &&
		     glob(pattern, 0, NULL, &g) == 0 && g.gl_pathc &&
		     snprintf(folder, PATH_MAX, "%s", dirname(g.gl_pathv[0])) < PATH_MAX;
	globfree(&g);
	return found;
}

/* Finds the folder of Weft's own package, where this code is a part of one. */
static bool find_own(char folder[PATH_MAX])
{
	static const char here;
	Dl_info info;
	if (!dladdr(&here, &info) || *info.dli_fname != '/' ||
	    snprintf(folder, PATH_MAX, "%s", info.dli_fname) >= PATH_MAX)
		return false;
	dirname(folder);
	return true;
}

bool pip_folder(const char *library, char folder[PATH_MAX])
{
	char prefix[PATH_MAX];
	if (find_own(prefix) && find_below(prefix, "..", library, folder))
		return true;
	if (!find_prefix(prefix))
		return false;
	for (size_t k = 0; k < sizeof packages / sizeof *packages; k++)
		if (find_below(prefix, packages[k], library, folder))
			return true;
	return false;
}
