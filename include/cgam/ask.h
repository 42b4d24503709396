/* ask.h: every verb of the program as a function - options in as one JSON object, its document out
 * as JSON text.
 *
 * It has the same table of verbs, the same checks of every option and the same document as --json on
 * the command line. The other headers compute the same with numbers instead of files; use this one to
 * forward requests.
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
    bool negative; /* completed with a negative answer: a check failed, a solve did not converge */
} cgam_document;

/* Runs `verb` ("recall", "lm sweep"). `options` is a JSON object, or NULL = none. Names are those of
 * the command line without the dashes, in upper case for positional arguments. Values are numbers,
 * texts, true or false for flags, and arrays of these if an option takes several. For an option that
 * writes a file or folder, false writes nothing, not even to its default. `threads` is checked and then
 * ignored, because the env already has its threads. opts NULL = defaults. Gives *out, {0} on failure.
 * CGAM_E_ARG for an unknown verb or option; the message suggests similar names. The verb "help"
 * returns the table of verbs. */
CGAM_API CGAM_NODISCARD cgam_status cgam_ask(cgam_env *env, const char *verb, const char *options,
                                             const cgam_ask_opts *opts, cgam_document *out);

#ifdef __cplusplus
}
#endif
#endif
