/* verb_lm_lens.c: the layer x token picture of a text, or of two side by side. */
#include "app/lm.h"
#include "app/verbs.h"
#include "lab/figures/picture.h"
#include "lab/folder.h"
#include "lm/model.h"

#include <cgam/lm.h>

static const cgam_param params[] = {
    CGAM_PARAM_LM_MODEL,
    CGAM_PARAM_TEXT("prompt", "TEXT", "the text to look into", .required = true),
    CGAM_PARAM_TEXT("compare", "TEXT", "another text to compare with"),
    CGAM_PARAM_CHOICE(
        "lens", "norm|raw", "norm",
        "pass states through the final norm before the unembedding, or use them as they are"),
    CGAM_PARAM_INT("top", "K", "5", 1, 1000, "number of most probable words in each cell"),
    CGAM_PARAM_FLAG("exact",
                    "compute states by the plain f32 pass, not by libllama; Llama family only"),
    CGAM_PARAM_OUT(NULL, "write lens.json, lens.csv and the figure here"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

/* ---- The document ------------------------------------------------------------------------- */
static json_t *cell_words(const cgam_lm *lm, const cgam_lens_word *words, int64_t top)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < top; i++) {
        json_t *word = json_array();
        json_array_append_new(word, json_integer(words[i].token));
        json_array_append_new(word, cgam_lm_piece_json(lm, words[i].token));
        json_array_append_new(word, cgam_json_real(words[i].p));
        json_array_append_new(list, word);
    }
    return list;
}

static void put_view(json_t *doc, const cgam_lm *lm, const cgam_lens_view *v)
{
    json_t *tokens = json_array(), *neff = json_array();
    json_t *kl = json_array(), *rank = json_array(), *top = json_array();
    for (int64_t t = 0; t < v->tokens; t++) {
        json_t *token =
            cgam_json_object("id=%d piece=%p", v->token[t], cgam_lm_piece_json(lm, v->token[t]));
        json_array_append_new(tokens, token);
    }
    for (int64_t l = 0; l < v->layers; l++) {
        json_t *row[] = {json_array(), json_array(), json_array(), json_array()};
        for (int64_t t = 0; t < v->tokens; t++) {
            const cgam_lens_cell *c = &v->cells[t * v->layers + l];
            json_array_append_new(row[0], cgam_json_real(c->neff));
            json_array_append_new(row[1], cgam_json_real(c->kl_final));
            json_array_append_new(row[2], json_integer(c->rank_final));
            json_array_append_new(row[3],
                                  cell_words(lm, v->words + (t * v->layers + l) * v->top, v->top));
        }
        json_array_append_new(neff, row[0]);
        json_array_append_new(kl, row[1]);
        json_array_append_new(rank, row[2]);
        json_array_append_new(top, row[3]);
    }
    cgam_json_put(doc, "tokens", tokens);
    cgam_json_put(doc, "layers", cgam_json_ints(NULL, v->layers));
    cgam_json_put(doc, "neff", neff);
    cgam_json_put(doc, "kl_final", kl);
    cgam_json_put(doc, "rank_final", rank);
    cgam_json_put(doc, "top", top);
}

static cgam_status leave_views(cgam_call *call, const char *out, const cgam_lens_view *views,
                               int count)
{
    json_t *files = json_array();
    cgam_status status = CGAM_OK;
    for (int i = 0; i < count && status == CGAM_OK; i++) {
        const char *name = i ? "lens_compare" : "lens";
        status = cgam_lens_table_write(call->env, out, name, &views[i]);
        json_array_append_new(files, json_sprintf("%s.csv", name));
    }
    if (status == CGAM_OK)
        return cgam_picture_leave(call->env, call->doc, out, "lens",
                                  cgam_args_is(call->args, "figures", "yes"),
                                  cgam_lens_figures_write, files);
    json_decref(files);
    return status;
}

static cgam_status run_lens(cgam_call *call)
{
    cgam_line line;
    cgam_lm *lm = NULL;
    const cgam_lens *lens = NULL;
    cgam_lens_view views[2] = {{0}, {0}};
    const char *out = cgam_args_text(call->args, "out");
    const char *texts[] = {cgam_args_text(call->args, "prompt"),
                           cgam_args_text(call->args, "compare")};
    int count = texts[1] ? 2 : 1;
    cgam_lens_view_opts opts = cgam_lens_view_opts_default();
    opts.kind = (cgam_lens_kind)cgam_word_find(cgam_lens_words, cgam_args_text(call->args, "lens"));
    opts.top = cgam_args_int(call->args, "top");
    opts.exact = cgam_args_flag(call->args, "exact");
    opts.progress = cgam_line_begin(&line, call->progress);
    cgam_status status = out ? cgam_folder_make(call->env, out) : CGAM_OK;
    if (status == CGAM_OK) status = cgam_lm_of(call, &lm);
    if (status == CGAM_OK) status = cgam_lm_lens(lm, &lens);
    for (int i = 0; i < count && status == CGAM_OK; i++)
        status = cgam_lens_view_make(lm, lens, texts[i], &opts, &views[i]);
    cgam_line_clear(&line);
    if (status == CGAM_OK) {
        cgam_put_lm(call->doc, lm);
        cgam_json_add(call->doc, "engine=%s lens=%s prompt=%s", opts.exact ? "exact" : "llama",
                      cgam_word(cgam_lens_words, opts.kind), texts[0]);
        put_view(call->doc, lm, &views[0]);
        if (count == 2) {
            json_t *other = json_object();
            cgam_json_put_text(other, "prompt", texts[1]);
            put_view(other, lm, &views[1]);
            cgam_json_put(call->doc, "compare", other);
        }
        if (out) status = leave_views(call, out, views, count);
    }
    for (int i = 0; i < 2; i++) cgam_lens_view_free(call->env, &views[i]);
    cgam_lm_done(call, lm);
    return status;
}

static void print_lens(const json_t *doc, FILE *to)
{
    cgam_lens_screen(doc, cgam_help_colours(to), to);
}

const cgam_verb cgam_verb_lm_lens = {
    .name = "lm lens",
    .params = params,
    .run = run_lens,
    .print = print_lens,
};
