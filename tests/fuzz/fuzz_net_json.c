/* Any bytes as a network in JSON: what is refused is refused in one line and leaves nothing behind,
 * what is read can be drawn, evaluated and flow for some steps without leaving its memory. */
#include "fuzz/readers.h"
#include "lab/net_file.h"
#include "net/net.h"

#include "lab/figures/net_draw.h"

#include <cgam/flow.h>
#include <math.h>

/* Memory for one block, so that a large shape is refused and not filled. */
enum { BLOCK_MAX = 1 << 22 };

static void *small_alloc(void *user, size_t align, size_t bytes)
{
    (void)user;
    void *block = NULL;
    if (bytes > BLOCK_MAX) return NULL;
    return posix_memalign(&block, align, bytes) == 0 ? block : NULL;
}

static void small_free(void *user, void *block)
{
    (void)user;
    free(block);
}

static cgam_env *small_env(void)
{
    static cgam_env *env;
    cgam_env_opts opts = {.threads = 1, .alloc = small_alloc, .free = small_free};
    if (!env && cgam_env_new(&opts, &env) != CGAM_OK) abort();
    return env;
}

static void draw(const cgam_net *net, const char *title, const double *parts)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    must(to != NULL);
    cgam_net_draw_dot(net, title, to);
    cgam_net_draw_text(net, parts, to);
    must(fclose(to) == 0);
    free(text);
}

static void use(cgam_env *env, cgam_net_file *file)
{
    double parts[32], E, total = 0;
    cgam_flow_report r;
    cgam_status status = cgam_net_eval(file->net, 1, file->x, NULL,
                                       &(cgam_net_values){.energy = &E, .parts = parts});
    if (status != CGAM_OK) {
        must_be_one_line(env);
        return;
    }
    for (int i = 0; i < cgam_net_describe(file->net).parts; i++) total += parts[i];
    must(total == E || fabs(total - E) <= 1e-9 * fabs(E));
    draw(file->net, file->title, parts);
    file->flow.max_steps = 3;
    status = cgam_flow_run(file->net, 1, file->x, &file->flow, &r);
    if (status != CGAM_OK) must_be_one_line(env);
    else must(r.steps <= 3 && r.end <= CGAM_FLOW_STUCK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cgam_env *env = small_env();
    cgam_net_file file;
    if (cgam_net_file_parse(env, "fuzz", data, size, NULL, &file) != CGAM_OK) {
        must_be_one_line(env);
        must(!file.net && !file.x && !file.owner);
        return 0;
    }
    if (cgam_net_describe(file.net).size <= 512 && cgam_net_describe(file.net).parts <= 32 &&
        file.flow.clamp_count <= 32)
        use(env, &file);
    cgam_net_file_close(&file);
    return 0;
}
