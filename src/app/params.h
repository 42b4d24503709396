/* params.h: short forms for the rows of the verbs' tables, and the rows that several verbs share.
 *
 *     CGAM_PARAM_TEXT("query", "FILE[:NAME]", "one query (d) or several (B,d)", .required = true)
 *
 * Further fields of cgam_param may follow the help. */
#ifndef CGAM_SRC_APP_PARAMS_H
#define CGAM_SRC_APP_PARAMS_H

#include "app/verb.h"

#include <math.h>

/* clang-format off */
#define CGAM_PARAM(kind_, name_, value_, fallback_, min_, max_, ...)                               \
    {.name = name_, .kind = kind_, .value = value_, .fallback = fallback_, .min = min_,            \
     .max = max_, .help = __VA_ARGS__}
/* clang-format on */

/* name, help */
#define CGAM_PARAM_FLAG(name_, ...) CGAM_PARAM(CGAM_FLAG, name_, NULL, NULL, 0, 0, __VA_ARGS__)
/* name, value, help */
#define CGAM_PARAM_TEXT(name_, value_, ...)                                                        \
    CGAM_PARAM(CGAM_TEXT, name_, value_, NULL, 0, 0, __VA_ARGS__)
#define CGAM_PARAM_WORDS(name_, value_, ...)                                                       \
    CGAM_PARAM(CGAM_WORDS, name_, value_, NULL, 0, 0, __VA_ARGS__)
/* name, words, default, help */
#define CGAM_PARAM_CHOICE(name_, words_, fallback_, ...)                                           \
    CGAM_PARAM(CGAM_CHOICE, name_, words_, fallback_, 0, 0, __VA_ARGS__)
/* name, value, default, least, largest, help */
#define CGAM_PARAM_INT(name_, ...) CGAM_PARAM(CGAM_INT, name_, __VA_ARGS__)
#define CGAM_PARAM_REAL(name_, ...) CGAM_PARAM(CGAM_REAL, name_, __VA_ARGS__)
#define CGAM_PARAM_INTS(name_, ...) CGAM_PARAM(CGAM_INTS, name_, __VA_ARGS__)
#define CGAM_PARAM_REALS(name_, ...) CGAM_PARAM(CGAM_REALS, name_, __VA_ARGS__)
/* Ends a table. */
#define CGAM_PARAM_END CGAM_PARAM(CGAM_FLAG, "", NULL, NULL, 0, 0, NULL)

/* ---- rows that several verbs share ---------------------------------------------------------- */
#define CGAM_PARAM_BANK CGAM_PARAM_BANK_IF(true)
#define CGAM_PARAM_BANK_IF(required_)                                                              \
    CGAM_PARAM_TEXT("bank", "FILE[:NAME]",                                                         \
                    "memories, one per row: .npy, .npz, .safetensors or .csv, - for standard "     \
                    "input; NAME selects one of several arrays; for several files: a "             \
                    "quoted pattern, 'Z-*.npy', or the index of a sharded bank, Z.index.json; "    \
                    "demo: is a small bank of random memories",                                    \
                    .required = required_, .input = CGAM_INPUT_BANK)
#define CGAM_PARAM_NORMALIZE CGAM_PARAM_FLAG("normalize", "divide each memory by its norm")
#define CGAM_PARAM_ALPHA(fallback_)                                                                \
    CGAM_PARAM_REAL("alpha", "X", fallback_, 0, INFINITY,                                          \
                    "penalty between similar memories, 0 or more")
#define CGAM_PARAM_LAMBDA(fallback_)                                                               \
    CGAM_PARAM_REAL("lambda", "X", fallback_, 0, INFINITY,                                         \
                    "coupling between gates and retrieval, 0 or more")
#define CGAM_PARAM_BETA(fallback_)                                                                 \
    CGAM_PARAM_REAL("beta", "X", fallback_, CGAM_ABOVE_0, INFINITY, "inverse temperature, above 0")
#define CGAM_PARAM_SEED(help_) CGAM_PARAM_INT("seed", "N", "1", 0, 9e15, help_)
#define CGAM_PARAM_OUT(fallback_, help_)                                                           \
    CGAM_PARAM(CGAM_TEXT, "out", "DIR", fallback_, 0, 0, help_, .writes = true)
#define CGAM_PARAM_FIGURES(help_) CGAM_PARAM_CHOICE("figures", "yes|no", "yes", help_)

#endif
