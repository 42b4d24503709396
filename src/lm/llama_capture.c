/* llama_capture.c: runs prompts in batches through libllama, and passes on the results.
 *
 * Prompts of a batch are sequences 1, 2, ... of one cache. The common beginning of all prompts is computed once, as
 * sequence 0; the beginning of a stem, as the sequence of its first prompt. The other sequences share those cells. A batch is
 * decoded in pieces, and the results of a piece are passed on at once. The cells are the same as without pieces; numbers agree
 * to rounding, or, if weights are quantised, to within what lm.h says about batches.
 *
 * Candidates are sequences after those of their batch, which begin with all cells of their prompt. */
#include "lm/llama_decode.h"
#include "lm/scores.h"
#include "num/cpu/cpu.h"

#include <math.h>
#include <string.h>

cgam_lm_capture_opts cgam_lm_capture_opts_default(void)
{
    return (cgam_lm_capture_opts){.exact = false};
}

cgam_lm_observe_opts cgam_lm_observe_opts_default(void)
{
    return (cgam_lm_observe_opts){.run = cgam_lm_capture_opts_default(), .states = true};
}

/* ---- Requested rows ------------------------------------------------------------------------ */
int64_t cgam_running_from(const cgam_running *r, int64_t i)
{
    if (r->opts->from) return r->opts->from[i];
    return r->opts->all_tokens ? 0 : r->prompts[i].count - 1;
}

int64_t cgam_running_tail(const cgam_running *r, int64_t i)
{
    int64_t tokens = 0;
    if (!r->candidate) return 0;
    for (int64_t c = r->first[i]; c < r->first[i + 1]; c++) tokens += r->candidate[c].length - 1;
    return tokens;
}

int64_t cgam_running_needless(const cgam_running *r, int64_t b)
{
    const cgam_packing *p = &r->packing;
    int64_t tokens = 0;
    for (int64_t i = p->first[b]; i < p->first[b + 1]; i++) {
        int64_t which = p->order[i];
        const cgam_stem *stem = &p->stem[p->of[which]];
        if (r->candidate || !r->opts->run.there || !r->opts->run.there[which]) return 0;
        tokens += r->prompts[which].count - (i > stem->first ? stem->tokens : p->shared);
    }
    return tokens;
}

static cgam_status check_tokens(cgam_lm *lm, const char *what, int64_t which, int64_t count,
                                const int32_t *tokens)
{
    for (int64_t k = 0; k < count; k++)
        if (tokens[k] < 0 || tokens[k] >= lm->info.vocab)
            return cgam_fail(lm->env, CGAM_E_ARG, "%s %lld: no token %d (the vocabulary has %lld)",
                             what, (long long)which, tokens[k], (long long)lm->info.vocab);
    return CGAM_OK;
}

cgam_status cgam_prompts_check(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts)
{
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        if (prompts[i].count < 1)
            return cgam_fail(lm->env, CGAM_E_ARG, "text %lld has no tokens", (long long)i);
        if (prompts[i].count > lm->info.context)
            return cgam_fail(
                lm->env, CGAM_E_ARG, "text %lld has %lld tokens, the model's context holds %lld",
                (long long)i, (long long)prompts[i].count, (long long)lm->info.context);
        status = check_tokens(lm, "prompt", i, prompts[i].count, prompts[i].tokens);
    }
    return status;
}

/* ---- States and scores of prompts ---------------------------------------------------------- */
void cgam_running_tell(const cgam_running *r, const char *what, double done)
{
    cgam_progress_tell(&r->opts->run.progress,
                       (cgam_progress_at){.phase = what,
                                          .done = done,
                                          .total = (double)r->packing.tokens,
                                          .unit = "tokens",
                                          .seconds_left = NAN});
}

/* A model with damaged weights or header computes NaN or infinities; results from them would be meaningless. */
static cgam_status not_finite(const cgam_lm *lm)
{
    return cgam_fail(
        lm->env, CGAM_E_VALUE,
        "%s computes numbers that are not finite: the model is damaged, or an edit is too large",
        lm->info.file);
}

cgam_status cgam_running_hand(const cgam_running *r, const cgam_lm_span *span)
{
    const cgam_lm_info *info = &r->lm->info;
    int64_t states = span->states ? r->layers_count * span->count * cgam_running_width(r) : 0;
    int64_t scores = span->scores ? span->count * info->vocab : 0;
    float zero = 0; /* 0 times a finite number */
    for (int64_t i = 0; i < states; i++) zero += 0.0F * span->states[i];
    for (int64_t i = 0; i < scores; i++) zero += 0.0F * span->scores[i];
    if (zero != 0) return not_finite(r->lm);
    return r->sink ? r->sink(r->user, span) : r->last(r->user, span->which, span->states);
}

typedef struct handing {
    cgam_running *r;
    float *states, *scores; /* [layers, CGAM_PIECE, d], [CGAM_PIECE, vocab] as passed on */
    int64_t done;           /* tokens */
} handing;

/* Passes outputs [begin, end) of a piece, all of one sequence, to prompt `which`. */
static cgam_status hand_over(handing *h, cgam_decoder *d, int64_t which, int64_t begin, int64_t end)
{
    const cgam_running *r = h->r;
    int64_t width = cgam_running_width(r), vocab = r->lm->info.vocab,
            from = cgam_running_from(r, which);
    while (begin < end && d->row[d->from + d->output[begin]].position < from) begin++;
    if (begin == end) return CGAM_OK;
    cgam_lm_span span = {
        .which = which, .first = d->row[d->from + d->output[begin]].position, .count = end - begin};
    bool whole = span.count == d->outputs; /* no copy is needed */
    for (int64_t l = 0; l < r->layers_count && !whole; l++)
        memcpy(h->states + l * span.count * width, d->states + (l * d->outputs + begin) * width,
               (size_t)(span.count * width) * sizeof *h->states);
    for (int64_t k = begin; k < end && r->opts->scores; k++) {
        const float *scores = cgam_decoder_scores(d, k);
        if (!scores) return cgam_fail(r->lm->env, CGAM_E_INTERNAL, "libllama returned no scores");
        memcpy(h->scores + (k - begin) * vocab, scores, (size_t)vocab * sizeof *scores);
    }
    span.states = r->layers_count == 0 ? NULL : whole ? d->states : h->states;
    span.scores = r->opts->scores ? h->scores : NULL;
    return cgam_running_hand(r, &span);
}

/* Passes on the results of a piece; a shared prefix goes to each of its prompts. */
static cgam_status hand_over_piece(void *user, cgam_decoder *d)
{
    handing *h = user;
    const cgam_running *r = h->r;
    cgam_status status = CGAM_OK;
    int64_t ended = 0;
    bool want = d->wanted && (r->layers_count > 0 || r->opts->scores);
    for (int64_t k = 0, end; k < d->outputs && d->wanted && status == CGAM_OK; k = end) {
        const cgam_decoder_row *row = &d->row[d->from + d->output[k]];
        for (end = k; end < d->outputs && d->row[d->from + d->output[end]].seq == row->seq;) end++;
        const cgam_stem *stem = &r->packing.stem[r->packing.of[row->prompt]];
        bool common = row->seq > 0 && row->position < stem->tokens;
        if (row->seq > 0 && !common) ended++;
        if (want && row->seq > 0 && !common) status = hand_over(h, d, row->prompt, k, end);
        for (int64_t i = 0; i < stem->count && want && common && status == CGAM_OK; i++)
            status = hand_over(h, d, r->packing.order[stem->first + i], k, end);
        for (int64_t i = 0; i < r->count && want && row->seq == 0 && status == CGAM_OK; i++)
            status = hand_over(h, d, i, k, end);
    }
    if (status == CGAM_OK && ended > 0 && r->opts->run.batch_end)
        status = r->opts->run.batch_end(r->user);
    h->done += d->tokens;
    cgam_running_tell(r, "capture", (double)h->done);
    return status;
}

/* The first token of stem s that any of its prompts requests; of all prompts if s is NULL. */
static int64_t wanted_from(const cgam_running *r, const cgam_stem *s)
{
    int64_t from = INT64_MAX;
    for (int64_t i = 0; i < (s ? s->count : r->count) && !r->candidate; i++) {
        int64_t one = cgam_running_from(r, r->packing.order[(s ? s->first : 0) + i]);
        from = one < from ? one : from;
    }
    return from;
}

cgam_status cgam_llama_prefix(const cgam_running *r, cgam_decoder *d, cgam_decoder_taken taken,
                              void *user)
{
    int64_t from = wanted_from(r, NULL), shared = r->packing.shared, first = r->packing.order[0];
    cgam_status status = CGAM_OK;
    for (int64_t at = 0; at < shared && status == CGAM_OK; at += CGAM_PIECE) {
        int64_t n = shared - at < CGAM_PIECE ? shared - at : CGAM_PIECE;
        cgam_decoder_append(d, r->prompts[first].tokens + at, n, at, first, 0, from);
        status = cgam_decoder_run(d, taken, user);
    }
    return status;
}

cgam_status cgam_llama_batch(const cgam_running *r, cgam_decoder *d, int64_t b,
                             cgam_decoder_taken taken, void *user)
{
    const cgam_packing *p = &r->packing;
    int64_t begin = p->first[b], end = p->first[b + 1];
    for (int64_t i = begin; i < end; i++) {
        cgam_decoder_forget(d, (int32_t)(i - begin) + 1);
        if (p->shared > 0) cgam_decoder_share(d, 0, (int32_t)(i - begin) + 1);
    }
    const cgam_stem *stem;
    for (int64_t i = begin; i < end; i += stem->count) {
        stem = &p->stem[p->of[p->order[i]]];
        cgam_decoder_append(d, r->prompts[p->order[i]].tokens + p->shared, stem->tokens - p->shared,
                            p->shared, p->order[i], (int32_t)(i - begin) + 1, wanted_from(r, stem));
    }
    cgam_status status = d->rows > 0 ? cgam_decoder_run(d, taken, user) : CGAM_OK;
    for (int64_t i = begin; i < end && status == CGAM_OK; i++) {
        int64_t which = p->order[i];
        const cgam_lm_prompt *prompt = &r->prompts[which];
        stem = &p->stem[p->of[which]];
        if (i > stem->first && stem->tokens > p->shared)
            cgam_decoder_share(d, (int32_t)(stem->first - begin) + 1, (int32_t)(i - begin) + 1);
        cgam_decoder_append(d, prompt->tokens + stem->tokens, prompt->count - stem->tokens,
                            stem->tokens, which, (int32_t)(i - begin) + 1,
                            r->candidate ? prompt->count - 1 : cgam_running_from(r, which));
    }
    return status == CGAM_OK ? cgam_decoder_run(d, taken, user) : status;
}

static void forget_batch(const cgam_running *r, cgam_decoder *d, int64_t b)
{
    for (int64_t i = r->packing.first[b]; i < r->packing.first[b + 1]; i++)
        cgam_decoder_forget(d, (int32_t)(i - r->packing.first[b]) + 1);
}

static cgam_status observe_by_llama(cgam_running *r)
{
    cgam_env *env = r->lm->env;
    const cgam_packing *p = &r->packing;
    cgam_decoder d;
    handing h = {.r = r};
    cgam_decoder_opts o = {.capacity = p->batch_tokens,
                           .cells = p->batch_tokens + p->shared,
                           .sequences = p->batch_prompts + 1,
                           .layers = r->layers,
                           .layers_count = r->layers_count,
                           .part = r->opts->part,
                           .scores = r->opts->scores,
                           .plan = r->plan};
    cgam_status status = cgam_decoder_open(r->lm, &o, &d);
    if (status == CGAM_OK)
        status = cgam_alloc_all(
            env, "states",
            CGAM_ARRAY(h.states, r->layers_count * CGAM_PIECE * cgam_running_width(r)),
            CGAM_ARRAY(h.scores, r->opts->scores ? CGAM_PIECE * r->lm->info.vocab : 1));
    if (status == CGAM_OK) status = cgam_llama_prefix(r, &d, hand_over_piece, &h);
    for (int64_t b = 0; b < p->batches && status == CGAM_OK; b++) {
        int64_t left_out = cgam_running_needless(r, b);
        h.done += left_out;
        if (left_out > 0) continue;
        status = cgam_llama_batch(r, &d, b, hand_over_piece, &h);
        forget_batch(r, &d, b);
    }
    cgam_decoder_close(&d);
    cgam_free_all(env, h.states, h.scores);
    return status;
}

/* ---- Candidates --------------------------------------------------------------------------- */
void cgam_running_first(const cgam_running *r, int64_t i, const float *scores)
{
    cgam_softmax all = cgam_scores_softmax(scores, r->lm->info.vocab);
    for (int64_t c = r->first[i]; c < r->first[i + 1]; c++)
        r->log_p[c] = cgam_scores_log_p(&all, (double)scores[r->candidate[c].tokens[0]]);
}

void cgam_running_next(const cgam_running *r, int64_t c, int64_t k, const float *scores)
{
    cgam_softmax all = cgam_scores_softmax(scores, r->lm->info.vocab);
    r->log_p[c] += cgam_scores_log_p(&all, (double)scores[r->candidate[c].tokens[k]]);
}

typedef struct tails {
    cgam_running *r;
    int64_t *candidate; /* [sequences] candidates of the current tails */
    int64_t first;      /* the sequence of the first of them */
    int64_t done;
} tails;

static cgam_status take_scores(void *user, cgam_decoder *d)
{
    tails *t = user;
    const cgam_running *r = t->r;
    t->done += d->tokens;
    for (int64_t k = 0; k < d->outputs && d->wanted; k++) {
        const cgam_decoder_row *row = &d->row[d->from + d->output[k]];
        const float *scores = cgam_decoder_scores(d, k);
        if (!scores) return cgam_fail(r->lm->env, CGAM_E_INTERNAL, "libllama returned no scores");
        if (row->seq < t->first) cgam_running_first(r, row->prompt, scores);
        else
            cgam_running_next(r, t->candidate[row->seq - t->first],
                              row->position - r->prompts[row->prompt].count + 1, scores);
    }
    cgam_running_tell(r, "score", (double)t->done);
    return CGAM_OK;
}

/* Runs the candidates of a batch's prompts, as many at once as sequences and cells allow. */
static cgam_status run_tails(tails *t, cgam_decoder *d, int64_t b)
{
    const cgam_running *r = t->r;
    const cgam_packing *p = &r->packing;
    cgam_status status = CGAM_OK;
    int64_t flying = 0;
    for (int64_t i = p->first[b]; i < p->first[b + 1] && status == CGAM_OK; i++) {
        int64_t which = p->order[i];
        int32_t prompt = (int32_t)(i - p->first[b]) + 1;
        for (int64_t c = r->first[which]; c < r->first[which + 1] && status == CGAM_OK; c++) {
            int64_t n = r->candidate[c].length - 1;
            if (n == 0) continue;
            if (flying == CGAM_SEQUENCES_MAX || (flying > 0 && d->rows + n > CGAM_PIECE)) {
                status = cgam_decoder_run(d, take_scores, t);
                for (; flying > 0; flying--)
                    cgam_decoder_forget(d, (int32_t)(t->first + flying) - 1);
            }
            int32_t seq = (int32_t)(t->first + flying);
            t->candidate[flying++] = c;
            cgam_decoder_share(d, prompt, seq);
            cgam_decoder_append(d, r->candidate[c].tokens, n, r->prompts[which].count, which, seq,
                                0);
        }
    }
    if (status == CGAM_OK && flying > 0) status = cgam_decoder_run(d, take_scores, t);
    for (; flying > 0; flying--) cgam_decoder_forget(d, (int32_t)(t->first + flying) - 1);
    return status;
}

static cgam_status score_by_llama(cgam_running *r)
{
    const cgam_packing *p = &r->packing;
    int64_t in_flight[CGAM_SEQUENCES_MAX], longest = CGAM_PIECE;
    for (int64_t c = 0; c < r->first[r->count]; c++)
        longest = r->candidate[c].length > longest ? r->candidate[c].length : longest;
    tails t = {.r = r, .candidate = in_flight, .first = p->batch_prompts + 1};
    cgam_decoder d;
    cgam_decoder_opts o = {.capacity = p->batch_tokens > longest ? p->batch_tokens : longest,
                           .cells = p->batch_tokens + p->shared + longest,
                           .sequences = p->batch_prompts + 1 + CGAM_SEQUENCES_MAX,
                           .scores = true,
                           .plan = r->plan};
    cgam_status status = cgam_decoder_open(r->lm, &o, &d);
    if (status == CGAM_OK) status = cgam_llama_prefix(r, &d, take_scores, &t);
    for (int64_t b = 0; b < p->batches && status == CGAM_OK; b++) {
        status = cgam_llama_batch(r, &d, b, take_scores, &t);
        if (status == CGAM_OK) status = run_tails(&t, &d, b);
        forget_batch(r, &d, b);
    }
    cgam_decoder_close(&d);
    return status;
}

/* ---- The calls ---------------------------------------------------------------------------- */
/* Tokens of a batch: as requested, or suited to the engine. */
static cgam_status choose_batch(const cgam_running *r, int64_t *tokens)
{
    enum { BATCH = 512, BATCH_EXACT = 2048, BATCH_EXACT_LEAST = 64, BATCH_MAX = 1 << 16 };
    /* Some seconds for two cores, two operations a parameter and token. */
    const double work = cgam_cpu_best()->split ? 2e12 : 6e11;
    const cgam_lm_capture_opts *o = &r->opts->run;
    if (o->batch_tokens < 0 || o->batch_tokens > BATCH_MAX)
        return cgam_fail(r->lm->env, CGAM_E_ARG,
                         "batch_tokens is %lld, it must be from 0 (default) to %d",
                         (long long)o->batch_tokens, BATCH_MAX);
    *tokens = o->batch_tokens > 0 ? o->batch_tokens : BATCH;
    if (o->batch_tokens == 0 && o->exact) {
        /* every batch recomputes the shared tokens, so it has at least as many further ones */
        double least = (double)cgam_running_shared(r);
        *tokens = (int64_t)fmin(BATCH_EXACT, fmax(fmax(BATCH_EXACT_LEAST, least),
                                                  work / (2 * (double)r->lm->info.parameters + 1)));
    }
    return CGAM_OK;
}

/* Plans the edits and packs the prompts; undone by unpack, on failure too. */
static cgam_status pack_prompts(cgam_running *r, int64_t prompts_max, cgam_edit_plan *plan)
{
    const cgam_lm_capture_opts *o = &r->opts->run;
    cgam_env *env = r->lm->env;
    int64_t tokens = 0, longest = 0;
    *plan = (cgam_edit_plan){0};
    for (int64_t c = 0; r->candidate && c < r->first[r->count]; c++)
        longest = r->candidate[c].length - 1 > longest ? r->candidate[c].length - 1 : longest;
    cgam_edit_reach reach = {r->opts->prompt_tokens, longest};
    cgam_status status = o->exact ? cgam_exact_knows(r->lm) : CGAM_OK;
    if (status == CGAM_OK) status = cgam_prompts_check(r->lm, r->count, r->prompts);
    if (status == CGAM_OK)
        status = cgam_edit_plan_make(env, &r->lm->info, r->count, r->prompts, reach, o->edits,
                                     o->edits_each, plan);
    r->plan = plan;
    if (status == CGAM_OK) status = choose_batch(r, &tokens);
    if (status == CGAM_OK)
        status =
            cgam_packing_new(r, tokens, o->exact ? tokens : prompts_max, o->exact, &r->packing);
    return status;
}

static void free_packing(cgam_running *r, cgam_edit_plan *plan)
{
    cgam_packing_free(r->lm->env, &r->packing);
    cgam_edit_plan_clear(r->lm->env, plan);
    r->plan = NULL;
}

static cgam_status carry_out(cgam_running *r, int64_t prompts_max,
                             cgam_status (*llama)(cgam_running *r))
{
    cgam_edit_plan plan;
    cgam_status status = pack_prompts(r, prompts_max, &plan);
    if (status == CGAM_OK) status = (r->opts->run.exact ? cgam_exact_run : llama)(r);
    free_packing(r, &plan);
    return status;
}

cgam_status cgam_lm_capture_goes_on(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts,
                                    const cgam_lm_capture_opts *opts, bool *out)
{
    const cgam_lm_observe_opts o = {.run = *opts};
    cgam_running r = {.lm = lm, .prompts = prompts, .count = count, .opts = &o};
    const cgam_packing *p = &r.packing;
    cgam_edit_plan plan;
    *out = true;
    if (count < 1 || !opts->there) return CGAM_OK;
    cgam_status status = pack_prompts(&r, CGAM_SEQUENCES_MAX, &plan);
    for (int64_t b = 0; b < p->batches && status == CGAM_OK; b++)
        for (int64_t i = p->first[b]; i < p->first[b + 1]; i++)
            if (opts->there[p->order[i]] != opts->there[p->order[p->first[b]]]) *out = false;
    free_packing(&r, &plan);
    return status;
}

static cgam_status check_wanted(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts,
                                const cgam_lm_observe_opts *o)
{
    int64_t first = o->part == CGAM_LM_RESIDUAL ? 0 : 1;
    if (o->part > CGAM_LM_HEADS)
        return cgam_fail(lm->env, CGAM_E_ARG, "invalid part %d (valid: 0 to 3)", (int)o->part);
    if (o->part == CGAM_LM_HEADS && cgam_lm_heads_known(lm) != CGAM_OK) return CGAM_E_UNSUPPORTED;
    for (int64_t i = 0; i < o->layers_count && o->layers; i++) {
        if (first == 1 && o->layers[i] == 0)
            return cgam_fail(
                lm->env, CGAM_E_ARG, "layer 0 is no block: it has no %s (valid: 1 to %lld)",
                cgam_word(cgam_lm_block_part_words, o->part), (long long)lm->info.layers);
        if (o->layers[i] < 0 || o->layers[i] > lm->info.layers ||
            (i > 0 && o->layers[i] <= o->layers[i - 1]))
            return cgam_fail(
                lm->env, CGAM_E_ARG,
                "layer %lld: layers must be from 0 to %lld, each once, in rising order",
                (long long)o->layers[i], (long long)lm->info.layers);
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t from = o->from ? o->from[i] : 0, own = o->prompt_tokens ? o->prompt_tokens[i] : 1;
        if (from < 0 || from >= prompts[i].count || own < 1 || own > prompts[i].count)
            return cgam_fail(lm->env, CGAM_E_ARG,
                             "no token %lld in prompt %lld, which has %lld tokens",
                             (long long)(from < 0 || from >= prompts[i].count ? from : own),
                             (long long)i, (long long)prompts[i].count);
    }
    return CGAM_OK;
}

static cgam_status observe_prompts(cgam_running r)
{
    cgam_lm *lm = r.lm;
    const cgam_lm_observe_opts *o = r.opts;
    if (r.count < 1) return CGAM_OK;
    cgam_status status = cgam_prompts_check(lm, r.count, r.prompts);
    if (status == CGAM_OK) status = check_wanted(lm, r.count, r.prompts, o);
    if (status != CGAM_OK) return status;
    int64_t L = lm->info.layers, first = o->part == CGAM_LM_RESIDUAL ? 0 : 1;
    int64_t *all = cgam_alloc(lm->env, (size_t)L + 1, sizeof *all);
    if (!all) return cgam_fail_nomem(lm->env, "layers");
    for (int64_t l = 0; l <= L; l++) all[l] = l;
    r.layers = o->layers ? o->layers : all + first;
    r.layers_count = !o->states ? 0 : o->layers ? o->layers_count : L + 1 - first;
    status = carry_out(&r, CGAM_SEQUENCES_MAX, observe_by_llama);
    cgam_free(lm->env, all);
    return status;
}

cgam_status cgam_lm_observe(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts,
                            const cgam_lm_observe_opts *opts, cgam_lm_span_sink sink, void *user)
{
    cgam_lm_observe_opts o = opts ? *opts : cgam_lm_observe_opts_default();
    return observe_prompts((cgam_running){
        .lm = lm, .prompts = prompts, .count = count, .opts = &o, .sink = sink, .user = user});
}

cgam_status cgam_lm_capture(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts,
                            const cgam_lm_capture_opts *opts, cgam_lm_sink sink, void *user)
{
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    if (opts) o.run = *opts;
    if (o.run.exact && o.run.no_states)
        return cgam_fail(lm->env, CGAM_E_ARG, "exact and no_states cannot be combined");
    o.states = !o.run.no_states;
    return observe_prompts((cgam_running){
        .lm = lm, .prompts = prompts, .count = count, .opts = &o, .last = sink, .user = user});
}

cgam_status cgam_lm_score(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts,
                          int64_t candidates, const cgam_lm_candidate *candidate,
                          const cgam_lm_capture_opts *opts, double *out)
{
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    if (opts) o.run = *opts;
    cgam_env *env = lm->env;
    if (count < 1 || candidates < 1) return CGAM_OK;
    int64_t *first = cgam_zalloc(env, (size_t)count + 1, sizeof *first);
    cgam_status status = first ? CGAM_OK : cgam_fail_nomem(env, "candidates");
    if (status == CGAM_OK) status = cgam_prompts_check(lm, count, prompts);
    for (int64_t c = 0; c < candidates && status == CGAM_OK; c++) {
        int64_t p = candidate[c].prompt, n = candidate[c].length;
        if (p < 0 || p >= count || (c > 0 && p < candidate[c - 1].prompt))
            status = cgam_fail(
                env, CGAM_E_ARG,
                "candidate %lld belongs to prompt %lld; candidates must be in the order of the %lld prompts",
                (long long)c, (long long)p, (long long)count);
        else if (n < 1 || n > lm->info.context - prompts[p].count)
            status = cgam_fail(
                env, CGAM_E_ARG,
                "candidate %lld has %lld tokens after a prompt of %lld, the model's context holds %lld",
                (long long)c, (long long)n, (long long)prompts[p].count,
                (long long)lm->info.context);
        else status = check_tokens(lm, "candidate", c, n, candidate[c].tokens);
        if (status == CGAM_OK) first[p + 1]++;
    }
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) first[i + 1] += first[i];
    cgam_running r = {.lm = lm,
                      .prompts = prompts,
                      .count = count,
                      .opts = &o,
                      .candidate = candidate,
                      .first = first,
                      .log_p = out};
    if (status == CGAM_OK) status = carry_out(&r, CGAM_SEQUENCES_MAX - 2, score_by_llama);
    for (int64_t c = 0; c < candidates && status == CGAM_OK; c++)
        if (isnan(out[c])) status = not_finite(lm);
    cgam_free(env, first);
    return status;
}

typedef struct score_copy {
    float *out;
    int64_t vocab;
} score_copy;

static cgam_status copy_scores(void *user, const cgam_lm_span *span)
{
    score_copy *s = user;
    memcpy(s->out, span->scores, (size_t)s->vocab * sizeof *s->out);
    return CGAM_OK;
}

cgam_status cgam_lm_logits(cgam_lm *lm, const cgam_lm_prompt *prompt, float *out)
{
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    o.states = false;
    o.scores = true;
    score_copy s = {out, lm->info.vocab};
    return cgam_lm_observe(lm, 1, prompt, &o, copy_scores, &s);
}
