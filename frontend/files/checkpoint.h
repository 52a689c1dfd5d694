/* Files that hold the weights of models: .safetensors, also in several parts behind an index
 * (model.safetensors.index.json), .npz and .gguf. And how names in them belong to names in a
 * model. Errors are recorded in the context and begin with the path. */
#ifndef WEFT_FRONTEND_FILES_CHECKPOINT_H
#define WEFT_FRONTEND_FILES_CHECKPOINT_H

#include "base/intern.h"
#include "frontend/files/gguf.h"

typedef struct {
	const char *name, *path;
	Tensor tensor;          /* dtype DT_none: blocks of `gguf` */
	const GgufTensor *gguf; /* NULL: numbers */
} SavedWeight;

typedef struct {
	ARRAY(SavedWeight) weight;
	Intern names;   /* id k: weight k - 1 */
	GgufFile gguf;  /* metadata of the first .gguf file */
	const char *path; /* of the first file */
	bool trained;     /* one of them is of weft_checkpoint.h: it has those weights only that
			     were trained, and the state of the optimiser, "state.NAME.KEY" */
} Checkpoint;
#define CHECKPOINT_META "weft.checkpoint" /* the key of metadata that says so */

/* Opens n files, whose names of weights all differ. Data are valid as long as the context. Returns
 * false after an error. */
bool checkpoint_open(Ctx *, const char *const *path, uint32_t n, Checkpoint *);
/* Returns the weight of that name, or NULL, without an error, if there is none. */
const SavedWeight *checkpoint_find(const Checkpoint *, const char *name);

/* What a weight of the model is called in the file. */
typedef struct {
	const char *name; /* in the arena */
	uint32_t heads;   /* if not 0: rows of the file are those of so many heads, and rows i and
			     i + half of a head stand beside each other */
} SavedName;

typedef struct {
	const char *model, *file; /* patterns; * is any text, the same in both, by place */
	const char *heads;        /* a number, or a key of metadata; NULL: rows stay */
} NameRule;

typedef struct {
	const NameRule *rule;
	uint32_t n;
} NameRules;

/* Reads a text of rules, a line each: PATTERN = PATTERN [heads=NUMBER|heads=KEY], # begins a
 * comment. path: for messages. Returns false after an error. */
bool names_parse(Ctx *, const char *path, const char *text, size_t size, NameRules *);
/* Returns the rules of transformers' names and of a GGUF file of that general.architecture; n is 0
 * if they are not known. */
NameRules names_of_architecture(const char *architecture);
/* Finds what a weight of the model is called in the files: by the first rule whose pattern is the
 * name, or its end behind a dot, and that gives the name of a weight that is there; if no such rule
 * does, by the first; without one, its own name. Returns false after an error: the
 * metadata that a rule names are not there, or no number of heads. */
bool names_find(Ctx *, const NameRules *, const Checkpoint *, const char *model, SavedName *);

#endif
