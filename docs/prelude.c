/* prelude.c: what surrounds the lines of C shown on the pages of docs/theorems. */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Stops with the library's message. The process ends here, so nothing is freed. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != CGAM_OK) {                                                                   \
            fprintf(stderr, "%s\n", cgam_env_message(env));                                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* The numbers of an array file, widened; NULL when it cannot be read. */
__attribute__((unused)) static double *load(cgam_env *env, const char *path)
{
    cgam_array array;
    if (cgam_array_open(env, path, &array) != CGAM_OK) return NULL;
    double *x = malloc((size_t)array.size * sizeof *x);
    if (x && cgam_array_read_f64(env, &array, path, x) != CGAM_OK) x = NULL;
    cgam_array_close(env, &array);
    return x;
}

int main(void)
{
    cgam_env *env = NULL;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 1;
    /* the lines of the page */
    return 0;
}
