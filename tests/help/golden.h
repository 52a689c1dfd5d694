/* Long texts that tests make, compared line by line with a recorded one. */
#ifndef WEFT_TESTS_HELP_GOLDEN_H
#define WEFT_TESTS_HELP_GOLDEN_H

/* Fails the cmocka test that runs, after the first differences, unless the file holds this text.
 * With BLESS=1 in the environment it is written first: read what changed. */
void golden_check(const char *path, const char *text);

#endif
