/* stream.h: texts that grow one token at a time, on either engine. */
#ifndef CGAM_SRC_LM_STREAM_H
#define CGAM_SRC_LM_STREAM_H

#include "lm/edit.h"

typedef struct cgam_stream cgam_stream;

typedef struct cgam_stream_opts {
    bool exact;
    int64_t count;                 /* 1 .. CGAM_STREAMS_MAX */
    const cgam_lm_prompt *prompts; /* [count], each at most the context */
    int64_t more;                  /* tokens that may follow each */
    cgam_lm_edits edits;
    const cgam_lm_edits *edits_each;
    bool states; /* keep the state after the last layer */
} cgam_stream_opts;
enum { CGAM_STREAMS_MAX = 32 };

/* Runs the prompts. Free *out with cgam_stream_close. */
CGAM_NODISCARD cgam_status cgam_stream_open(cgam_lm *lm, const cgam_stream_opts *opts,
                                            cgam_stream **out);
void cgam_stream_close(cgam_stream *stream); /* NULL is fine */
/* The scores [vocab] of the next token of text i. The stream owns them; valid until the next step. */
const float *cgam_stream_scores(const cgam_stream *stream, int64_t i);
/* The state [width] that these are made of; only with opts->states. */
const float *cgam_stream_state(const cgam_stream *stream, int64_t i);
/* Appends tokens[i] to every text i with alive[i], and runs it. */
CGAM_NODISCARD cgam_status cgam_stream_step(cgam_stream *stream, const int32_t *tokens,
                                            const bool *alive);

#endif
