/* mpi.c: see mpi.h. Counts of MPI are ints, so longer messages are sent in pieces. */
#include <cgam/mpi.h>

#include <limits.h>

enum { TAG = 1, PIECE = 1 << 30 };

typedef struct carrier {
    cgam_ranks ranks; /* first */
    MPI_Comm comm;
    int *counts, *begins; /* [ranks] */
} carrier;

/* Memory from MPI: there is no env here. */
static void *alloc_mpi(size_t bytes)
{
    void *block = NULL;
    return MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &block) == MPI_SUCCESS ? block : NULL;
}

static int piece_length(size_t bytes) { return bytes < PIECE ? (int)bytes : PIECE; }

static bool send_bytes(void *user, int to, const void *data, size_t bytes)
{
    const carrier *c = user;
    const char *at = data;
    int status = MPI_SUCCESS;
    for (size_t left = bytes; left > 0 && status == MPI_SUCCESS;
         left -= (size_t)piece_length(left)) {
        status = MPI_Send(at, piece_length(left), MPI_BYTE, to, TAG, c->comm);
        at += piece_length(left);
    }
    return status == MPI_SUCCESS;
}

static bool receive_bytes(void *user, int from, void *data, size_t bytes)
{
    const carrier *c = user;
    char *at = data;
    int status = MPI_SUCCESS;
    for (size_t left = bytes; left > 0 && status == MPI_SUCCESS;
         left -= (size_t)piece_length(left)) {
        status = MPI_Recv(at, piece_length(left), MPI_BYTE, from, TAG, c->comm, MPI_STATUS_IGNORE);
        at += piece_length(left);
    }
    return status == MPI_SUCCESS;
}

static bool broadcast_bytes(void *user, int from, void *data, size_t bytes)
{
    const carrier *c = user;
    char *at = data;
    int status = MPI_SUCCESS;
    for (size_t left = bytes; left > 0 && status == MPI_SUCCESS;
         left -= (size_t)piece_length(left)) {
        status = MPI_Bcast(at, piece_length(left), MPI_BYTE, from, c->comm);
        at += piece_length(left);
    }
    return status == MPI_SUCCESS;
}

static bool gather_ranges(void *user, void *data, const size_t *at)
{
    carrier *c = user;
    int ranks = c->ranks.ranks;
    bool fine = true;
    if (at[ranks] > INT_MAX) { /* one rank after the other */
        for (int r = 0; r < ranks && fine; r++)
            fine = broadcast_bytes(user, r, (char *)data + at[r], at[r + 1] - at[r]);
        return fine;
    }
    for (int r = 0; r < ranks; r++) {
        c->begins[r] = (int)at[r];
        c->counts[r] = (int)(at[r + 1] - at[r]);
    }
    return MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, c->counts, c->begins, MPI_BYTE,
                          c->comm) == MPI_SUCCESS;
}

static bool or_words(void *user, uint64_t *words, size_t count)
{
    const carrier *c = user;
    int status = MPI_SUCCESS;
    for (size_t left = count; left > 0 && status == MPI_SUCCESS;
         left -= (size_t)piece_length(left)) {
        status =
            MPI_Allreduce(MPI_IN_PLACE, words, piece_length(left), MPI_UINT64_T, MPI_BOR, c->comm);
        words += piece_length(left);
    }
    return status == MPI_SUCCESS;
}

void cgam_mpi_close(cgam_ranks *ranks)
{
    if (!ranks) return;
    carrier *c = ranks->user;
    if (c->comm != MPI_COMM_NULL) MPI_Comm_free(&c->comm);
    if (c->counts) MPI_Free_mem(c->counts);
    MPI_Free_mem(c);
}

cgam_status cgam_mpi_open(MPI_Comm comm, cgam_ranks **out)
{
    *out = NULL;
    int begun = 0, ended = 0;
    if (MPI_Initialized(&begun) != MPI_SUCCESS || MPI_Finalized(&ended) != MPI_SUCCESS || !begun ||
        ended || comm == MPI_COMM_NULL)
        return CGAM_E_ARG;
    carrier *c = alloc_mpi(sizeof *c);
    if (!c) return CGAM_E_NOMEM;
    *c = (carrier){.comm = MPI_COMM_NULL};
    c->ranks = (cgam_ranks){.user = c,
                            .send = send_bytes,
                            .receive = receive_bytes,
                            .share = gather_ranges,
                            .spread = broadcast_bytes,
                            .merge = or_words};
    cgam_status status = CGAM_OK;
    if (MPI_Comm_dup(comm, &c->comm) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(c->comm, &c->ranks.rank) != MPI_SUCCESS ||
        MPI_Comm_size(c->comm, &c->ranks.ranks) != MPI_SUCCESS)
        status = CGAM_E_IO;
    if (status == CGAM_OK) {
        c->counts = alloc_mpi(2 * (size_t)c->ranks.ranks * sizeof *c->counts);
        if (!c->counts) status = CGAM_E_NOMEM;
        else c->begins = c->counts + c->ranks.ranks;
    }
    if (status == CGAM_OK) *out = &c->ranks;
    else cgam_mpi_close(&c->ranks);
    return status;
}
