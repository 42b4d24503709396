/* ask.h: every verb of the program as a function - options in as one JSON object, its document out
 * as JSON text.
 *
 * This is a door like the command line: the same table of verbs, the same checks of every option,
 * the same document as --json. What a verb computes is found in the other headers, with numbers
 * instead of files; this one is for those who hand requests on.
 */
#ifndef CGAM_ASK_H
#define CGAM_ASK_H

#include <cgam/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cgam_ask_opts {
    bool progress; /* show progress on standard error; default false */
} cgam_ask_opts;
CGAM_API cgam_ask_opts cgam_ask_opts_default(void);

typedef struct cgam_document {
    char *text;    /* JSON; free it with cgam_text_free */
    bool negative; /* done, but the answer is no: a check failed, a solve did not converge */
} cgam_document;

/* Runs `verb` ("recall", "lm sweep"). `options` is a JSON object: names as on the command line without
 * the dashes, in upper case for positional arguments; values are numbers, texts, true or false for
 * flags, and arrays of these where an option takes several; false for an option that writes a file or
 * folder leaves that out, its default too; NULL = none. `threads` is checked and
 * otherwise left alone, since the env has its threads already. opts NULL = defaults. Gives *out, {0}
 * after a failure. CGAM_E_ARG for a verb or an option that there is not, with what is near in the
 * message. The verb "help" answers with the table of verbs. */
CGAM_API CGAM_NODISCARD cgam_status cgam_ask(cgam_env *env, const char *verb, const char *options,
                                             const cgam_ask_opts *opts, cgam_document *out);

#ifdef __cplusplus
}
#endif
#endif
