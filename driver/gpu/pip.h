/* Libraries of NVIDIA that pip installed for a Python, which is not run. */
#ifndef WEFT_DRIVER_GPU_PIP_H
#define WEFT_DRIVER_GPU_PIP_H

#include <limits.h>
#include <stdbool.h>

/* Whether a package of NVIDIA has a library of that name, in the environment of the Python package
 * that this code is a part of, else in that of the Python $WEFT_PYTHON (a program, or a folder with
 * bin/python), else of python3; then writes the library's folder. */
bool pip_folder(const char *library, char folder[PATH_MAX]);

#endif
