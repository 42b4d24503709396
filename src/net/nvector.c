/* nvector.c: serial vectors; a note before the numbers has the family of the vector. */
#include "net/nvector.h"

enum { NOTE = 64 }; /* bytes before the numbers, which stay aligned */

static double *numbers_new(cgam_nvectors *family, int64_t n)
{
    char *block = cgam_alloc(family->env, (size_t)n * sizeof(double) + NOTE, 1);
    if (!block) return NULL;
    *(cgam_nvectors **)(void *)block = family;
    return (double *)(void *)(block + NOTE);
}

static cgam_nvectors **note_of(double *numbers)
{
    return (cgam_nvectors **)(void *)((char *)numbers - NOTE);
}

static void destroy_vector(N_Vector v)
{
    if (!v) return;
    double *numbers = N_VGetArrayPointer_Serial(v);
    cgam_nvectors **note = note_of(numbers), *family = *note;
    if (numbers != family->spare) cgam_free(family->env, note);
    N_VSetArrayPointer_Serial(NULL, v);
    N_VDestroy_Serial(v);
}

static N_Vector clone_vector(N_Vector w)
{
    N_Vector v = N_VCloneEmpty_Serial(w);
    if (!v) return NULL;
    cgam_nvectors *family = *note_of(N_VGetArrayPointer_Serial(w));
    double *numbers = numbers_new(family, N_VGetLength_Serial(w));
    if (!numbers) {
        family->failed = true;
        numbers = family->spare;
    }
    N_VSetArrayPointer_Serial(numbers, v);
    return v;
}

N_Vector cgam_nvector_new(cgam_nvectors *family, int64_t n, SUNContext context)
{
    family->spare = numbers_new(family, n);
    double *numbers = family->spare ? numbers_new(family, n) : NULL;
    N_Vector v = numbers ? N_VMake_Serial(n, numbers, context) : NULL;
    if (!v) {
        if (numbers) cgam_free(family->env, note_of(numbers));
        return NULL;
    }
    v->ops->nvclone = clone_vector;
    v->ops->nvdestroy = destroy_vector;
    return v;
}

void cgam_nvectors_free(cgam_nvectors *family)
{
    if (family->spare) cgam_free(family->env, note_of(family->spare));
    family->spare = NULL;
    family->failed = false;
}
