/* run.c: runs blocks of work in parallel, and keeps progress that survives a kill.
 *
 * The journal has a record for every block, and a fingerprint of everything that the numbers depend on (version, options,
 * seed, vector code, the rows of a given bank). */
#include "lab/folder.h"
#include "lab/journal.h"
#include "lab/synthetic/study.h"
#include "num/ranks.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { ROOMS_MAX = 4096 };
static const double TELL_SECONDS = 0.1;

typedef struct run {
    cgam_study *study;
    cgam_blocks *b;
    bool *done;
    int64_t finished, before; /* blocks done, and of those the ones an earlier run did */
    pthread_mutex_t lock;     /* guards what follows */
    int rooms;
    void *room[ROOMS_MAX]; /* rooms nobody uses just now */
    double begun, told;
} run;

/* Every row: norms alone would not tell two normalised banks apart. */
cgam_status cgam_study_hash(cgam_env *env, const cgam_bank *bank, uint64_t *key)
{
    cgam_bank_info info = cgam_bank_describe(bank);
    uint64_t h = cgam_hash(cgam_hash(*key, &info.n, sizeof info.n), &info.d, sizeof info.d);
    double *row = cgam_alloc(env, (size_t)info.d, sizeof *row);
    cgam_status status = row ? CGAM_OK : cgam_fail_nomem(env, "progress");
    for (int64_t i = 0; i < info.n && status == CGAM_OK; i++) {
        status = cgam_bank_row(bank, i, row);
        for (int64_t j = 0; j < info.d && status == CGAM_OK; j++) {
            uint64_t bits; /* a word at a time: a bank may be large */
            memcpy(&bits, &row[j], sizeof bits);
            h = (h ^ bits) * 0x9e3779b97f4a7c15u;
            h ^= h >> 32;
        }
    }
    cgam_free(env, row);
    *key = h;
    return status;
}

/* Everything the records depend on. */
static cgam_status fingerprint(const cgam_study *study, const cgam_blocks *b, uint64_t *key)
{
    const cgam_study_opts *o = &study->opts;
    uint64_t h = CGAM_HASH;
    const char *texts[] = {cgam_version(), cgam_studies[o->kind].name, study->lanes->name};
    for (int i = 0; i < 3; i++) h = cgam_hash(h, texts[i], strlen(texts[i]) + 1);
    int64_t sizes[] = {b->count, b->record};
    h = cgam_hash(h, sizes, sizeof sizes);
    const cgam_study_param *p;
    for (int64_t k = 0; (p = cgam_study_param_at(o->kind, k)); k++) {
        int64_t count = cgam_study_param_count(p, o);
        h = cgam_hash(h, p->name, strlen(p->name) + 1);
        h = cgam_hash(h, &count, sizeof count);
        for (int64_t i = 0; i < count; i++) {
            double value = cgam_study_param_value(p, o, i);
            h = cgam_hash(h, &value, sizeof value);
        }
    }
    h = cgam_hash(h, &o->seed, sizeof o->seed); /* all of its bits */
    *key = h;
    return o->bank ? cgam_study_hash(study->env, o->bank, key) : CGAM_OK;
}

/* Opens the progress file and takes over what it holds. */
static cgam_status progress_open(run *r)
{
    cgam_study *study = r->study;
    cgam_blocks *b = r->b;
    size_t at = 0, size = (size_t)b->record * sizeof *b->records;
    uint64_t key;
    cgam_record old;
    cgam_status status = cgam_study_claim(study, study->out);
    if (status == CGAM_OK) status = cgam_folder_make(study->env, study->out);
    if (status == CGAM_OK) status = fingerprint(study, b, &key);
    if (status != CGAM_OK) return status;
    status = (study->opts.overwrite ? cgam_journal_open : cgam_journal_resume)(
        study->env, study->progress, key, &study->journal);
    if (status == CGAM_E_ARG)
        status = cgam_fail(study->env, CGAM_E_ARG,
                           "out %s holds an unfinished run with other options; give overwrite or "
                           "another folder",
                           study->out);
    while (status == CGAM_OK && cgam_journal_next(study->journal, &at, &old)) {
        if (old.key >= (uint64_t)b->count || old.size != size) continue;
        memcpy(b->records + (int64_t)old.key * b->record, old.bytes, size);
        r->finished += !r->done[old.key];
        r->done[old.key] = true;
    }
    r->before = r->finished;
    return status;
}

/* Under the lock. */
static cgam_status progress_note(run *r, int64_t i)
{
    const cgam_blocks *b = r->b;
    const double *record = b->records + i * b->record;
    double now = cgam_clock();
    r->done[i] = true;
    r->finished++;
    cgam_record made = {(uint64_t)i, (size_t)b->record * sizeof *record, record};
    cgam_status status = r->study->journal ? cgam_journal_add(r->study->journal, made) : CGAM_OK;
    if (status != CGAM_OK) return status;
    if (now - r->told > TELL_SECONDS || r->finished == b->count) {
        double here = (double)(r->finished - r->before);
        cgam_progress_at at = {.phase = cgam_studies[r->study->opts.kind].name,
                               .done = (double)r->finished / (double)b->count,
                               .total = 1,
                               .unit = "",
                               .seconds_left =
                                   (now - r->begun) / here * (double)(b->count - r->finished)};
        r->told = now;
        cgam_progress_tell(&r->study->opts.progress, at);
    }
    return CGAM_OK;
}

static void room_free(run *r, void *room)
{
    if (room) r->b->close(r->study, r->b->arg, room);
    cgam_free(r->study->env, room);
}

static cgam_status room_take(run *r, void **room)
{
    *room = NULL;
    if (!r->b->room) return CGAM_OK;
    pthread_mutex_lock(&r->lock);
    if (r->rooms > 0) *room = r->room[--r->rooms];
    pthread_mutex_unlock(&r->lock);
    if (*room) return CGAM_OK;
    *room = cgam_zalloc(r->study->env, r->b->room, 1);
    return *room ? r->b->open(r->study, r->b->arg, *room)
                 : cgam_fail_nomem(r->study->env, "a trial");
}

static cgam_status one_block(void *arg, int64_t i)
{
    run *r = arg;
    cgam_blocks *b = r->b;
    if (r->done[i]) return CGAM_OK;
    if (cgam_interrupted(r->study->env))
        return cgam_fail(r->study->env, CGAM_E_INTERRUPTED, "stopped on request");
    void *room;
    double *record = b->records + i * b->record;
    cgam_status status = room_take(r, &room);
    memset(record, 0, (size_t)b->record * sizeof *record); /* here: all of them take seconds */
    if (status == CGAM_OK) status = b->block(r->study, b->arg, room, i, record);
    if (status == CGAM_OK &&
        cgam_interrupted(r->study->env)) /* its record may be of half a block */
        status = cgam_fail(r->study->env, CGAM_E_INTERRUPTED, "stopped on request");
    pthread_mutex_lock(&r->lock);
    if (room && status == CGAM_OK && r->rooms < ROOMS_MAX) {
        r->room[r->rooms++] = room;
        room = NULL;
    }
    if (status == CGAM_OK) status = progress_note(r, i);
    pthread_mutex_unlock(&r->lock);
    room_free(r, room);
    return status;
}

/* ---- Ranks: blocks are distributed in rounds by index; after each round all ranks have all of them --- */
static const double TURN_SECONDS = 0.5;

typedef struct turn {
    run *r;
    const int64_t *blocks;
} turn;

static cgam_status block_of_turn(void *arg, int64_t i)
{
    const turn *t = arg;
    return one_block(t->r, t->blocks[i]);
}

/* Checks that all ranks run the same study; then rank 0 sends the blocks of an earlier run. */
static cgam_status spread_begin(run *r)
{
    cgam_study *study = r->study;
    cgam_env *env = study->env;
    cgam_blocks *b = r->b;
    cgam_ranks *ranks = study->opts.ranks;
    uint64_t mine, first;
    cgam_status status = fingerprint(study, b, &mine);
    first = mine;
    if (status == CGAM_OK) status = cgam_ranks_tell(env, ranks, &first, sizeof first);
    if (status == CGAM_OK && first != mine)
        status = cgam_fail(env, CGAM_E_ARG, "options, memories or CPU differ from rank 0");
    if (status == CGAM_OK) status = cgam_ranks_tell(env, ranks, &r->before, sizeof r->before);
    if (status != CGAM_OK || r->before == 0) return status;
    r->finished = r->before;
    status = cgam_ranks_tell(env, ranks, r->done, (size_t)b->count * sizeof *r->done);
    return status != CGAM_OK ? status
                             : cgam_ranks_tell(env, ranks, b->records,
                                               (size_t)(b->count * b->record) * sizeof(double));
}

/* blocks[count], up to `each` for every rank: computes ours, receives the others'. */
static cgam_status spread_turn(run *r, int64_t each, const int64_t *blocks, int64_t count)
{
    cgam_study *study = r->study;
    cgam_env *env = study->env;
    cgam_ranks *ranks = study->opts.ranks;
    size_t size = (size_t)r->b->record * sizeof(double);
    int64_t begin = ranks->rank * each < count ? ranks->rank * each : count;
    int64_t end = begin + each < count ? begin + each : count;
    char *all = cgam_alloc(env, (size_t)count, size);
    size_t *at = cgam_alloc(env, (size_t)ranks->ranks + 1, sizeof *at);
    cgam_status status = all && at ? CGAM_OK : cgam_fail_nomem(env, "results");
    if (status == CGAM_OK)
        status = cgam_parallel(env, end - begin, block_of_turn, &(turn){r, blocks + begin});
    for (int64_t i = begin; i < end && status == CGAM_OK; i++)
        memcpy(all + (size_t)i * size, r->b->records + blocks[i] * r->b->record, size);
    for (int64_t k = 0; at && k <= ranks->ranks; k++)
        at[k] = (size_t)(k * each < count ? k * each : count) * size;
    if (status == CGAM_OK) status = cgam_ranks_share(env, ranks, all, at);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        if (i >= begin && i < end) continue;
        memcpy(r->b->records + blocks[i] * r->b->record, all + (size_t)i * size, size);
        status = progress_note(r, blocks[i]);
    }
    cgam_free(env, all);
    cgam_free(env, at);
    return status;
}

/* A round takes about TURN_SECONDS of rank 0, which is the most work that a kill can lose. */
static cgam_status run_spread(run *r)
{
    cgam_study *study = r->study;
    cgam_ranks *ranks = study->opts.ranks;
    int64_t left = 0, each = cgam_env_threads(study->env);
    int64_t *blocks = cgam_alloc(study->env, (size_t)r->b->count, sizeof *blocks);
    cgam_status status = blocks ? spread_begin(r) : cgam_fail_nomem(study->env, "results");
    for (int64_t i = 0; i < r->b->count && status == CGAM_OK; i++)
        if (!r->done[i]) blocks[left++] = i;
    for (int64_t at = 0; at < left && status == CGAM_OK;) {
        double begun = cgam_clock();
        status = cgam_ranks_tell(study->env, ranks, &each, sizeof each);
        int64_t count = left - at < each * ranks->ranks ? left - at : each * ranks->ranks;
        if (status == CGAM_OK)
            status = spread_turn(r, (count + ranks->ranks - 1) / ranks->ranks, blocks + at, count);
        at += count;
        if (cgam_clock() - begun > TURN_SECONDS) each = each > 1 ? each / 2 : 1;
        else if (each < left) each *= 2;
    }
    cgam_free(study->env, blocks);
    return status;
}

cgam_status cgam_blocks_run(cgam_study *study, cgam_blocks *b)
{
    const cgam_ranks *ranks = study->opts.ranks;
    double needs = (double)b->count * ((double)b->record * sizeof(double) + sizeof(bool));
    cgam_status status = cgam_env_expect(study->env, needs, "the results of all trials");
    if (status != CGAM_OK) return status;
    run *r = cgam_zalloc(study->env, 1, sizeof *r);
    b->records = cgam_alloc(study->env, (size_t)b->count * (size_t)b->record, sizeof(double));
    bool *done = cgam_zalloc(study->env, (size_t)b->count, sizeof *done);
    if (!r || !b->records || !done) status = cgam_fail_nomem(study->env, "results");
    if (status == CGAM_OK) {
        *r = (run){.study = study, .b = b, .done = done};
        pthread_mutex_init(&r->lock, NULL);
        if (study->progress && (!ranks || ranks->rank == 0)) status = progress_open(r);
        r->begun = r->told = cgam_clock();
        if (status == CGAM_OK)
            status = ranks ? run_spread(r) : cgam_parallel(study->env, b->count, one_block, r);
        for (int i = 0; i < r->rooms; i++) room_free(r, r->room[i]);
        cgam_journal_close(study->journal);
        study->journal = NULL;
        pthread_mutex_destroy(&r->lock);
    }
    cgam_free(study->env, done);
    cgam_free(study->env, r);
    if (status == CGAM_OK) status = b->tables(study, b->arg, b);
    cgam_free(study->env, b->records);
    return status;
}
