/* folder.h: a folder of the test program's own, made at the first call and removed with all that is in it when the program ends.
 * TMPDIR says where; folder_in_memory, called before all others, puts it into memory if there is such a place. */
#ifndef CGAM_TESTS_FOLDER_H
#define CGAM_TESTS_FOLDER_H

void folder_in_memory(void); /* for tests that sync thousands of files */
const char *folder_path(void);
const char *folder_file(const char *name); /* a path in it; stays until the program ends */

/* Writes a file; reads one (NULL if it cannot be read, otherwise free it). */
const char *folder_write(const char *name, const char *text);
char *folder_text(const char *name);

/* Exit status of a command that the shell runs in the folder, -1 if it ended by a signal. */
int folder_run(const char *command);
void folder_clear(const char *name); /* removes a file, or a folder with all that is in it */

#endif
