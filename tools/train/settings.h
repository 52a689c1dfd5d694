/* Options of a training that its checkpoints record. A training that goes on takes those that are
 * not given from its checkpoint. */
#ifndef WEFT_TOOLS_TRAIN_SETTINGS_H
#define WEFT_TOOLS_TRAIN_SETTINGS_H

#include "tools/tool.h"

enum { MOST_SETTINGS = 16 };

typedef struct {
	const char *option;
	const char **text; /* its value; NULL: it has a list */
	StringList *list;
	bool may_change; /* a training may go on with another value */
	bool of_model;   /* it is about how a model file becomes a step */
} Setting;

/* Options with their values, and texts of values that a checkpoint gave. */
typedef struct {
	uint32_t n;
	Setting of[MOST_SETTINGS];
	char *read; /* owned; NULL: none */
} Settings;

/* Returns lines "OPTION VALUE", for settings_resume; NULL after a message. The caller frees it. */
char *settings_text(const Settings *);
/* Sets the options that are not given to those of the text, of the checkpoint `path`; the text
 * becomes theirs. Returns false after a message: one that may not change has another value.
 * of_model: whether options of model files count. */
bool settings_resume(Settings *, char *text, const char *path, bool of_model);
/* Frees the texts that options may have. */
void settings_free(Settings *);

#endif
