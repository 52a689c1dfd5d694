/* Recorded texts of operators. Each record is a folder of TEST_DATA that has a file for each family
 * of operators: aten/norm.txt is of those whose blocks stand in ops/aten/norm.c, so that a new
 * operator touches one small file. tests/help/families.py does the same for what records. Functions
 * fail the cmocka test that runs where something cannot be read. */
#ifndef WEFT_TESTS_HELP_RECORDS_H
#define WEFT_TESTS_HELP_RECORDS_H

#include <stdint.h>
#include <stdio.h>

/* Opens all files of a record, one behind the other, in the order of their names. The caller closes
 * the file. */
FILE *records_open(const char *record);
/* Returns the family of an operator (op_name), a static text like "aten/norm". */
const char *records_family(const char *op);
/* Fails the cmocka test that runs unless the files of a record are those of the n families. With
 * BLESS=1 in the environment it removes other files. */
void records_only(const char *record, const char *const *family, uint32_t n);

#endif
