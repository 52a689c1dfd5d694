/* File tests of graphs that replace state. */
#ifndef WEFT_TESTS_TEXT_FILE_CALLS_H
#define WEFT_TESTS_TEXT_FILE_CALLS_H

#include "file_test.h"

/* "; calls: N" (3) of the graph, compiled and interpreted, the symbols of `e` being bound; prints
 * outputs, the state at the end, and what differs; quick: no file is compiled; FileTest.loops:
 * nothing is. False where something differs, and after ctx_error. */
bool file_calls(const FileTest *, Weft *, Graph *, EvalCtx *, const WeftOptions *, bool quick, Text *out);

#endif
