/* llama_exact_run.c: runs prompts through the plain pass, a batch at a time.
 *
 * Segment 0 of a batch is the common beginning of all prompts, segments 1 .. count are its prompts. Then follow the
 * beginnings of the stems, which continue segment 0 and are continued by their prompts, and candidates, which
 * continue prompts. */
#include "lm/exact.h"

#include <string.h>

enum { AT_ONCE = 64 }; /* tokens passed on together, and whose scores are held */

typedef struct exact_batch {
    cgam_running *r;
    cgam_exact p;
    float *states; /* [layers, rows_max, d] of the requested rows of the batch */
    int64_t *rows; /* [tokens_max] the requested rows */
    int64_t *slot; /* [tokens_max] a row's index among them */
    int64_t wanted;
    int64_t *from;               /* [segments but candidates] the first requested token of each */
    int64_t tails;               /* the first segment that is a candidate */
    float *span_states, *scores; /* [layers, AT_ONCE, d], [AT_ONCE, vocab] */
    int64_t held[AT_ONCE];       /* rows whose scores are held, in the order they are passed on */
    int64_t held_count, held_at; /* their count; the first not yet passed on */
    int64_t done;
} exact_batch;

static void empty_batch(exact_batch *b)
{
    cgam_env *env = b->r->lm->env;
    cgam_exact_free(&b->p);
    cgam_free_all(env, b->states, b->rows, b->slot, b->from, b->span_states, b->scores);
}

/* The most rows requested of one batch. */
static int64_t most_wanted(const cgam_running *r)
{
    const cgam_packing *k = &r->packing;
    int64_t most = 0;
    for (int64_t b = 0; b < k->batches; b++) {
        int64_t wanted = k->shared;
        for (int64_t i = k->first[b]; i < k->first[b + 1]; i++)
            wanted += r->prompts[k->order[i]].count - cgam_running_from(r, k->order[i]);
        most = wanted > most ? wanted : most;
    }
    return most;
}

static cgam_status prepare_batch(exact_batch *b, cgam_running *r)
{
    cgam_env *env = r->lm->env;
    const cgam_packing *k = &r->packing;
    int64_t tails = 0, tokens = k->shared + k->batch_tokens, d = cgam_running_width(r);
    for (int64_t i = 0; i < k->batches && r->candidate; i++) {
        int64_t of_batch = 0;
        for (int64_t j = k->first[i]; j < k->first[i + 1]; j++)
            of_batch += r->first[k->order[j] + 1] - r->first[k->order[j]];
        tails = of_batch > tails ? of_batch : tails;
    }
    *b = (exact_batch){.r = r, .done = k->shared};
    int64_t segments = 2 * k->batch_prompts + 1; /* a stem has two prompts or more */
    cgam_status status = cgam_exact_new(&b->p, r->lm, tokens, segments + tails, 0, 0);
    if (status != CGAM_OK) return status;
    b->p.plan = r->plan;
    b->p.part = r->opts->part;
    if (b->p.part == CGAM_LM_ATTENTION) {
        status = cgam_alloc_all(env, "states", CGAM_ARRAY(b->p.attention, tokens * d));
        if (status != CGAM_OK) return status;
    }
    bool scores = r->candidate || r->opts->scores;
    int64_t rows = r->layers_count > 0 ? most_wanted(r) : 1;
    int64_t layers = r->layers_count > 0 ? r->layers_count : 1;
    return cgam_alloc_all(env, "states", CGAM_ARRAY(b->states, layers * rows * d),
                          CGAM_ARRAY(b->span_states, layers * AT_ONCE * d),
                          CGAM_ARRAY(b->scores, scores ? AT_ONCE * r->lm->info.vocab : 1),
                          CGAM_ARRAY(b->rows, tokens), CGAM_ARRAY(b->slot, tokens),
                          CGAM_ARRAY(b->from, segments));
}

int64_t cgam_exact_fill(cgam_exact *p, const cgam_running *r, int64_t number, bool cached)
{
    const cgam_packing *k = &r->packing;
    int64_t begin = k->first[number], end = k->first[number + 1], shared = k->shared;
    int64_t stems = end - begin + 1;
    p->tokens = p->segments = 0;
    cgam_exact_append(p, r->prompts[k->order[begin]].tokens, shared,
                      (cgam_exact_segment){.parent = -1, .cache = -1, .prompt = k->order[begin]});
    for (int64_t i = begin; i < end; i++) {
        int64_t which = k->order[i];
        const cgam_stem *stem = &k->stem[k->of[which]];
        if (i == stem->first && stem->tokens > shared) stems++;
        cgam_exact_append(p, r->prompts[which].tokens + stem->tokens,
                          r->prompts[which].count - stem->tokens,
                          (cgam_exact_segment){.position = stem->tokens,
                                               .parent = stem->tokens > shared ? stems - 1 : 0,
                                               .cache = cached ? which : -1,
                                               .prompt = which});
    }
    const cgam_stem *stem;
    for (int64_t i = begin; i < end; i += stem->count) {
        stem = &k->stem[k->of[k->order[i]]];
        if (stem->tokens == shared) continue;
        cgam_exact_append(p, r->prompts[k->order[i]].tokens + shared, stem->tokens - shared,
                          (cgam_exact_segment){
                              .position = shared, .parent = 0, .cache = -1, .prompt = k->order[i]});
    }
    return stems;
}

static void add_candidates(exact_batch *b, int64_t count)
{
    const cgam_running *r = b->r;
    for (int64_t i = 1; i <= count && r->candidate; i++) {
        int64_t which = b->p.segment[i].prompt;
        for (int64_t c = r->first[which]; c < r->first[which + 1]; c++)
            if (r->candidate[c].length > 1)
                cgam_exact_append(&b->p, r->candidate[c].tokens, r->candidate[c].length - 1,
                                  (cgam_exact_segment){.position = r->prompts[which].count,
                                                       .parent = i,
                                                       .cache = -1,
                                                       .prompt = which});
    }
}

/* Lists the requested rows: those of segment 0 and of stems from the first token that any prompt requests. */
static void list_wanted(exact_batch *b, int64_t count)
{
    const cgam_running *r = b->r;
    cgam_exact *p = &b->p;
    for (int64_t g = 0; g < b->tails; g++) b->from[g] = INT64_MAX;
    for (int64_t i = 1; i <= count; i++) {
        int64_t from = cgam_running_from(r, p->segment[i].prompt);
        for (int64_t g = i; g >= 0; g = p->segment[g].parent)
            b->from[g] = from < b->from[g] ? from : b->from[g];
    }
    b->wanted = 0;
    for (int64_t g = 0; g < b->tails && r->layers_count > 0; g++) {
        const cgam_exact_segment *seg = &p->segment[g];
        for (int64_t t = 0; t < seg->count; t++) {
            if (seg->position + t < b->from[g]) continue;
            b->slot[seg->begin + t] = b->wanted;
            b->rows[b->wanted++] = seg->begin + t;
        }
    }
}

static void fill_batch(exact_batch *b, int64_t number)
{
    const cgam_packing *k = &b->r->packing;
    int64_t count = k->first[number + 1] - k->first[number];
    b->tails = cgam_exact_fill(&b->p, b->r, number, false);
    add_candidates(b, count);
    list_wanted(b, count);
}

static void keep_layer(exact_batch *b, int64_t layer)
{
    const cgam_running *r = b->r;
    const float *rows = cgam_exact_part(&b->p);
    int64_t d = cgam_running_width(r);
    for (int64_t i = 0; i < r->layers_count; i++)
        for (int64_t k = 0; k < b->wanted && r->layers[i] == layer; k++)
            memcpy(b->states + (i * b->wanted + k) * d, rows + b->rows[k] * d,
                   (size_t)d * sizeof *b->states);
}

static cgam_status run_blocks(exact_batch *b, int64_t fresh)
{
    const cgam_running *r = b->r;
    cgam_exact *p = &b->p;
    cgam_status status = cgam_exact_embed(p);
    if (status == CGAM_OK) keep_layer(b, 0);
    for (int64_t l = 0; l < p->s.layers && status == CGAM_OK; l++) {
        status = cgam_interrupted(r->lm->env) ? CGAM_E_INTERRUPTED : cgam_exact_block(p, l);
        if (status != CGAM_OK) break;
        keep_layer(b, l + 1);
        cgam_running_tell(r, r->candidate ? "exact score" : "exact capture",
                          (double)b->done + (double)fresh * (double)(l + 1) / (double)p->s.layers);
    }
    return status;
}

/* The first row of segment g that its prompt requests, and the count of rows from there. */
static int64_t own_rows(const exact_batch *b, int64_t g, int64_t *count)
{
    const cgam_exact_segment *seg = &b->p.segment[g];
    int64_t from = cgam_running_from(b->r, seg->prompt) - seg->position;
    if (from < 0) from = 0;
    *count = seg->count > from ? seg->count - from : 0;
    return seg->begin + from;
}

/* The scores of n rows of segment g from `first`. The next rows, of the prompts that follow, are computed
 * with them: the unembedding is read once for AT_ONCE rows. */
static cgam_status score_rows(exact_batch *b, int64_t g, int64_t n, int64_t first, int64_t prompts,
                              const float **out)
{
    int64_t count;
    cgam_status status = CGAM_OK;
    if (b->held_at + n > b->held_count || b->held[b->held_at] != first) {
        for (int64_t k = 0; k < n; k++) b->held[k] = first + k;
        b->held_count = n;
        b->held_at = 0;
        for (int64_t next = g + 1; next <= prompts && g > 0; next++) {
            int64_t row = own_rows(b, next, &count);
            const cgam_exact_segment *seg = &b->p.segment[next];
            bool more = cgam_running_from(b->r, seg->prompt) < seg->position;
            if (more || b->held_count + count > AT_ONCE) break;
            for (int64_t k = 0; k < count; k++) b->held[b->held_count++] = row + k;
        }
        status = cgam_exact_scores(&b->p, b->held_count, b->held, b->scores);
    }
    *out = b->scores + b->held_at * b->r->lm->info.vocab;
    b->held_at += n;
    return status;
}

/* Passes tokens of segment g to prompt `which`, from the first that it requests. */
static cgam_status hand_over(exact_batch *b, int64_t g, int64_t which, int64_t prompts)
{
    const cgam_running *r = b->r;
    const cgam_exact_segment *seg = &b->p.segment[g];
    int64_t d = cgam_running_width(r), from = cgam_running_from(r, which) - seg->position;
    cgam_status status = CGAM_OK;
    for (int64_t t = from > 0 ? from : 0; t < seg->count && status == CGAM_OK; t += AT_ONCE) {
        int64_t n = seg->count - t < AT_ONCE ? seg->count - t : AT_ONCE;
        cgam_lm_span span = {.which = which, .first = seg->position + t, .count = n};
        for (int64_t i = 0; i < r->layers_count; i++)
            memcpy(b->span_states + i * n * d,
                   b->states + (i * b->wanted + b->slot[seg->begin + t]) * d,
                   (size_t)(n * d) * sizeof *b->states);
        if (r->opts->scores) status = score_rows(b, g, n, seg->begin + t, prompts, &span.scores);
        span.states = r->layers_count > 0 ? b->span_states : NULL;
        if (status == CGAM_OK) status = cgam_running_hand(r, &span);
    }
    return status;
}

static cgam_status hand_over_all(exact_batch *b, int64_t count)
{
    const cgam_running *r = b->r;
    cgam_status status = CGAM_OK;
    b->held_count = b->held_at = 0;
    for (int64_t i = 1; i <= count && status == CGAM_OK; i++) {
        int64_t stem = b->p.segment[i].parent, which = b->p.segment[i].prompt;
        status = hand_over(b, 0, which, count);
        if (status == CGAM_OK && stem > 0) status = hand_over(b, stem, which, count);
        if (status == CGAM_OK) status = hand_over(b, i, which, count);
    }
    if (status == CGAM_OK && r->opts->run.batch_end) status = r->opts->run.batch_end(r->user);
    return status;
}

/* The user of a row's scores: a prompt (token 0 of its candidates), or a candidate. */
typedef struct asker {
    int64_t prompt, candidate, token;
} asker;

static cgam_status score_rows_now(exact_batch *b, int64_t n, const int64_t *rows, const asker *who)
{
    const cgam_running *r = b->r;
    cgam_status status = cgam_exact_scores(&b->p, n, rows, b->scores);
    for (int64_t k = 0; k < n && status == CGAM_OK; k++) {
        const float *scores = b->scores + k * r->lm->info.vocab;
        if (who[k].token == 0) cgam_running_first(r, who[k].prompt, scores);
        else cgam_running_next(r, who[k].candidate, who[k].token, scores);
    }
    return status;
}

/* The prompts' last rows first, then every row of a candidate. */
static cgam_status score_candidates(exact_batch *b, int64_t count)
{
    const cgam_running *r = b->r;
    int64_t rows[AT_ONCE], n = 0, g = b->tails;
    asker who[AT_ONCE];
    cgam_status status = CGAM_OK;
    for (int64_t i = 1; i <= count && status == CGAM_OK; i++) {
        const cgam_exact_segment *seg = &b->p.segment[i];
        rows[n] = seg->begin + seg->count - 1;
        who[n++] = (asker){.prompt = seg->prompt};
        if (n < AT_ONCE && i < count) continue;
        status = score_rows_now(b, n, rows, who);
        n = 0;
    }
    for (int64_t i = 1; i <= count && status == CGAM_OK; i++) {
        int64_t which = b->p.segment[i].prompt;
        for (int64_t c = r->first[which]; c < r->first[which + 1] && status == CGAM_OK; c++) {
            const cgam_exact_segment *seg = &b->p.segment[g];
            for (int64_t k = 1; k < r->candidate[c].length && status == CGAM_OK; k++) {
                rows[n] = seg->begin + k - 1;
                who[n++] = (asker){which, c, k};
                if (n == AT_ONCE) status = score_rows_now(b, n, rows, who), n = 0;
            }
            g += r->candidate[c].length > 1;
        }
    }
    return status == CGAM_OK && n > 0 ? score_rows_now(b, n, rows, who) : status;
}

cgam_status cgam_exact_run(cgam_running *r)
{
    const cgam_packing *k = &r->packing;
    exact_batch b;
    cgam_status status = prepare_batch(&b, r);
    for (int64_t i = 0; i < k->batches && status == CGAM_OK; i++) {
        int64_t count = k->first[i + 1] - k->first[i], left_out = cgam_running_needless(r, i);
        b.done += left_out;
        if (left_out > 0) continue;
        fill_batch(&b, i);
        int64_t fresh = b.p.tokens - k->shared;
        status = run_blocks(&b, fresh);
        if (status == CGAM_OK)
            status = r->candidate ? score_candidates(&b, count) : hand_over_all(&b, count);
        b.done += fresh;
    }
    empty_batch(&b);
    return status;
}
