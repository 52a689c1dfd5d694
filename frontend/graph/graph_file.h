/* Graphs with their constants in one file: a .safetensors file (frontend/files/safetensors.h) whose
 * metadata have
 *   weft.version    "1"
 *   weft.graph      the text form of the graph (ir/build/text.h), with the hashes of constants
 *   weft.constants  JSON: a list of objects, of which element k - 1 is constant #k of the text;
 *                   null: one that the text does not name
 *   weft.facts      JSON: what the text does not say of the graph
 * A constant's contents are the tensor that its object names, of the same bytes. Errors are
 * recorded in the context and begin with the path. */
#ifndef WEFT_FRONTEND_GRAPH_GRAPH_FILE_H
#define WEFT_FRONTEND_GRAPH_GRAPH_FILE_H

#include "frontend/files/safetensors.h"
#include "ir/graph/graph.h"

/* Whether the bytes, those of a .safetensors file, are one with a graph. */
bool is_graph_file(const void *data, size_t size);
/* Reads a graph into an Ir without constants. Its constants stay in the bytes, where they are
 * aligned, which must stay as long as the Ir. *transformed: as graph_file_save was told. Returns
 * NULL after an error: also if the contents of a constant are not those that were written. */
Graph *graph_file_load(Ir *, const char *path, void *data, size_t size, bool *transformed);
/* Writes a graph, whole or not at all. The same graph gives the same bytes. transformed: a
 * transform or a pass made it. Returns false after an error: a constant has no values, or is
 * computed of others. */
bool graph_file_save(const Graph *, const char *path, bool transformed);

#endif
