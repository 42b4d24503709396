/* llama_runtime.c: finds libllama and loads its functions. */
#include "lm/cache.h"
#include "lm/llama.h"
#include "lm/model.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cgam_llama table;
static bool loaded;
static _Thread_local char complaint[256]; /* libllama reports errors on the calling thread */

const char *cgam_llama_complaint(void) { return complaint; }

void cgam_llama_complaint_reset(void) { complaint[0] = '\0'; }

/* The first message names the cause; later ones only say that something failed. */
static void on_log(enum ggml_log_level level, const char *text, void *user)
{
    (void)user;
    if (level != GGML_LOG_LEVEL_ERROR || complaint[0]) return;
    snprintf(complaint, sizeof complaint, "%s", text);
    complaint[strcspn(complaint, "\n")] = '\0';
}

/* ---- Its end ------------------------------------------------------------------------------- */
static void (*say_last)(const char *words);

void cgam_llama_last_words(void (*say)(const char *words)) { say_last = say; }

/* "FILE:LINE: GGML_ASSERT(..) failed", and perhaps more lines: without the folders of the build machine. */
static void on_abort(const char *text)
{
    char words[256];
    size_t length = strcspn(text, "\n"), from = strcspn(text, ":\n");
    while (from > 0 && text[from - 1] != '/') from--;
    snprintf(words, sizeof words, "%.*s", (int)(length - from), text + from);
    say_last(words);
}

/* std::terminate ends the process when this returns. */
static void on_terminate(void) { say_last("an exception that it does not catch"); }

static void hear_last_words(const cgam_llama *t, void *handle)
{
    void *address = dlsym(handle, "_ZSt13set_terminatePFvvE"); /* std::set_terminate */
    void (*(*set_terminate)(void (*)(void)))(void) = NULL;
    if (!say_last) return;
    t->ggml_set_abort_callback(on_abort);
    memcpy(&set_terminate, &address, sizeof address);
    if (set_terminate) set_terminate(on_terminate);
}

/* libllama.so, or a name with a version in it: libllama.v0.5.0.so, libllama.so.0. */
static bool library_in(const char *folder, char *path)
{
    DIR *d = opendir(folder);
    if (!d) return false;
    bool found = false;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        const char *name = e->d_name;
        if (strncmp(name, "libllama.", 9) != 0 || !strstr(name, ".so")) continue;
        bool plain = strcmp(name, "libllama.so") == 0;
        if (found && !plain) continue;
        found = snprintf(path, CGAM_PATH_ROOM, "%s/%s", folder, name) < CGAM_PATH_ROOM;
        if (plain) break;
    }
    closedir(d);
    return found;
}

static cgam_status find_library(cgam_env *env, char *folder, char *library)
{
    const char *given = getenv("CGAM_LLAMA");
    if (given && given[0]) {
        static const char *const under[] = {"", "/lib"};
        for (int i = 0; i < 2; i++) {
            snprintf(folder, CGAM_PATH_ROOM, "%s%s", given, under[i]);
            if (library_in(folder, library)) return CGAM_OK;
        }
        return cgam_fail(env, CGAM_E_NOT_FOUND, "CGAM_LLAMA: no libllama in %s",
                         cgam_path_tail(given));
    }
    snprintf(folder, CGAM_PATH_ROOM, "%s", CGAM_LLAMA_LIBDIR);
    if (folder[0] && library_in(folder, library)) return CGAM_OK;
    cgam_status status = cgam_lm_runtime_path(env, folder);
    if (status == CGAM_OK && !library_in(folder, library))
        status = cgam_fail(env, CGAM_E_NOT_FOUND,
                           "libllama was not found; run cgam lm get, or set CGAM_LLAMA to its "
                           "directory");
    return status;
}

/* The builds of libllama that are fetched look for libraries beside them, then in the current folder (their RUNPATH
 * is "$ORIGIN:"), and only then in the system's folders, so a libstdc++.so.6 planted in the current folder would be run. A
 * library that is already loaded is not searched for. */
static cgam_status load_system(cgam_env *env)
{
    static const char *const names[] = {"libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!dlopen(names[i], RTLD_NOW | RTLD_LOCAL)) /* never closed, as libllama is not */
            return cgam_fail(env, CGAM_E_NOT_FOUND, "libllama cannot be loaded: %s", dlerror());
    return CGAM_OK;
}

static cgam_status load_library(cgam_env *env)
{
    char folder[CGAM_PATH_ROOM], library[CGAM_PATH_ROOM];
    cgam_status status = find_library(env, folder, library);
    if (status == CGAM_OK) status = load_system(env);
    if (status != CGAM_OK) return status;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return cgam_fail(env, CGAM_E_FORMAT, "libllama cannot be loaded: %s", dlerror());
    const char *missing = NULL;
    cgam_llama t;
#define FIND(name)                                                                                 \
    {                                                                                              \
        void *address = dlsym(handle, #name);                                                      \
        memcpy(&t.name, &address, sizeof address);                                                 \
        if (!address && !missing) missing = #name;                                                 \
    }
    CGAM_LLAMA_FUNCTIONS(FIND)
#undef FIND
    if (missing) {
        dlclose(handle);
        return cgam_fail(env, CGAM_E_UNSUPPORTED, "%s lacks %s: its version differs from llama.h",
                         cgam_path_tail(library), missing);
    }
    t.llama_log_set(on_log, NULL);
    t.ggml_log_set(on_log, NULL);
    /* Structs are returned by value; another version of the library could have another layout. */
    struct llama_context_params p = t.llama_context_default_params();
    struct llama_model_params m = t.llama_model_default_params();
    if (p.n_ctx != 512 || p.n_seq_max != 1 || p.type_k != GGML_TYPE_F16 ||
        p.type_v != GGML_TYPE_F16 || p.cb_eval || m.vocab_only || m.progress_callback) {
        dlclose(handle);
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "%s does not match the llama.h that cgam was built with",
                         cgam_path_tail(library));
    }
    hear_last_words(&t, handle);
    t.ggml_backend_load_all_from_path(folder);
    t.llama_backend_init();
    static cgam_iq2 iq2;
    cgam_to_float *judge = t.ggml_get_type_traits(GGML_TYPE_IQ2_XXS)->to_float;
    t.iq2 = judge && cgam_iq2_learn(judge, &iq2) ? &iq2 : NULL;
    table = t; /* never unloaded: its threads and registries live as long as the process */
    return CGAM_OK;
}

cgam_status cgam_llama_load(cgam_env *env, const cgam_llama **out)
{
    *out = NULL;
    pthread_mutex_lock(&lock);
    cgam_status status = loaded ? CGAM_OK : load_library(env);
    loaded = status == CGAM_OK;
    pthread_mutex_unlock(&lock);
    if (status == CGAM_OK) *out = &table;
    return status;
}
