/* llama_packing.c: which prompts run together, and which tokens they share.
 *
 * The common beginning of all prompts is computed once. Consecutive prompts with a longer common beginning form a stem,
 * which is also computed once: the cells of an injection are the same prompt many times with its last token edited, and
 * cost one token each. Edits count as part of a token: prompts share tokens only as far as the same edits apply to
 * them. */
#include "lm/llama.h"

#include <stdlib.h>

enum { WORTH_SHARING = 4 }; /* tokens */

/* The number of leading tokens that two prompts share, at most `most`; each keeps one unshared token. */
static int64_t common_tokens(const cgam_running *r, int64_t a, int64_t b, int64_t most)
{
    const cgam_lm_prompt *p = &r->prompts[a], *q = &r->prompts[b];
    int64_t k = 0;
    if (p->count - 1 < most) most = p->count - 1;
    if (q->count - 1 < most) most = q->count - 1;
    while (k < most && p->tokens[k] == q->tokens[k] && cgam_edit_plan_same(r->plan, a, b, k)) k++;
    return k;
}

int64_t cgam_running_shared(const cgam_running *r)
{
    if (r->opts->run.no_sharing || r->count < 2) return 0;
    int64_t shared = INT64_MAX;
    for (int64_t i = 1; i < r->count; i++) shared = common_tokens(r, 0, i, shared);
    return shared < WORTH_SHARING ? 0 : shared;
}

/* Prompts that always run together, and their cost. */
typedef struct unit {
    cgam_stem stem;
    int64_t tokens;
} unit;

typedef struct limits {
    int64_t tokens, prompts;
    bool with_tails;
} limits;

/* The prompts from `first` on that are a stem: one more joins where that saves more than the beginning
 * that it cuts short. */
static unit grow_unit(const cgam_running *r, int64_t first, int64_t shared, const limits *most)
{
    int64_t tail = most->with_tails ? cgam_running_tail(r, first) : 0;
    int64_t g = 1, stem = r->prompts[first].count - 1, sum = r->prompts[first].count + tail;
    for (; first + g < r->count && g < most->prompts && !r->opts->run.no_sharing; g++) {
        int64_t next = first + g, m = common_tokens(r, first, next, stem);
        if (m - shared < WORTH_SHARING || g * (m - shared) < (g - 1) * (stem - shared)) break;
        tail = most->with_tails ? cgam_running_tail(r, next) : 0;
        int64_t size = sum + r->prompts[next].count + tail - g * m - shared;
        if (size > most->tokens && size > 2 * (m - shared)) break; /* half of a batch is its own */
        sum += r->prompts[next].count + tail;
        stem = m;
    }
    if (g == 1) stem = shared;
    return (unit){{first, g, stem}, sum - (g - 1) * stem - shared};
}

static int longest_first(const void *a, const void *b)
{
    const unit *x = a, *y = b;
    if (x->tokens != y->tokens) return x->tokens < y->tokens ? 1 : -1;
    return x->stem.first < y->stem.first ? -1 : 1;
}

void cgam_packing_free(cgam_env *env, cgam_packing *packing)
{
    cgam_free_all(env, packing->order, packing->first, packing->stem, packing->of);
    *packing = (cgam_packing){0};
}

/* The next prompts in the order are those of a unit. */
static void place_unit(cgam_packing *p, int64_t number, const unit *u, int64_t *placed)
{
    p->stem[number] = (cgam_stem){*placed, u->stem.count, u->stem.tokens};
    for (int64_t k = 0; k < u->stem.count; k++) {
        p->of[u->stem.first + k] = number;
        p->order[(*placed)++] = u->stem.first + k;
    }
}

/* The longest that is left opens a batch, even when it is larger than that; whatever still fits
 * follows, longest first. */
static void fill_batches(cgam_packing *out, int64_t units, unit *left, const limits *most)
{
    int64_t placed = 0, stems = 0;
    while (units > 0) {
        int64_t used = 0, taken = 0, kept = 0;
        out->first[out->batches++] = placed;
        for (int64_t i = 0; i < units; i++) {
            int64_t prompts = taken + left[i].stem.count;
            if (taken == 0 || (used + left[i].tokens <= most->tokens && prompts <= most->prompts)) {
                used += left[i].tokens;
                taken = prompts;
                place_unit(out, stems++, &left[i], &placed);
            } else {
                left[kept++] = left[i];
            }
        }
        units = kept;
        if (used > out->batch_tokens) out->batch_tokens = used;
        if (taken > out->batch_prompts) out->batch_prompts = taken;
    }
    out->first[out->batches] = placed;
}

cgam_status cgam_packing_new(const cgam_running *r, int64_t tokens_max, int64_t prompts_max,
                             bool with_tails, cgam_packing *out)
{
    cgam_env *env = r->lm->env;
    size_t count = (size_t)r->count;
    limits most = {tokens_max, prompts_max, with_tails};
    *out = (cgam_packing){.shared = cgam_running_shared(r)};
    unit *units;
    cgam_status status =
        cgam_alloc_all(env, "the order of the prompts", CGAM_ARRAY(out->order, count),
                       CGAM_ARRAY(out->first, count + 1), CGAM_ARRAY(out->stem, count),
                       CGAM_ARRAY(out->of, count), CGAM_ARRAY(units, count));
    if (status != CGAM_OK) {
        cgam_free(env, units);
        cgam_packing_free(env, out);
        return status;
    }
    int64_t n = 0;
    out->tokens = out->shared;
    for (int64_t i = 0; i < r->count; i += units[n++].stem.count) {
        units[n] = grow_unit(r, i, out->shared, &most);
        out->tokens += units[n].tokens;
    }
    for (int64_t i = 0; i < r->count && !with_tails; i++) out->tokens += cgam_running_tail(r, i);
    if (n > 0) qsort(units, (size_t)n, sizeof *units, longest_first);
    fill_batches(out, n, units, &most);
    cgam_free(env, units);
    return CGAM_OK;
}
