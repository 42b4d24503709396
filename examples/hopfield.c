/* hopfield.c: damaged letters are repaired by a modern Hopfield network, and the bounds of its
 * theory are set beside what happened. This is the memory without coupling (lambda = 0) and with a
 * query that moves: xi <- Z' softmax(beta Z xi). */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>

enum { LETTERS = 4, SIDE = 5, PIXELS = SIDE * SIDE };
static const char *const pictures[LETTERS] = {
    ".###.#...#######...##...#", /* A, row after row */
    ".#####....#....#.....####", /* C */
    "#####..#....#....#....#..", /* T */
    "#...#.#.#...#...#.#.#...#", /* X */
};
static const double beta = 20;

static double Z[LETTERS][PIXELS]; /* unit rows, +-1/5 */

static double distance(const double *x, const double *y)
{
    double total = 0;
    for (int j = 0; j < PIXELS; j++) total += (x[j] - y[j]) * (x[j] - y[j]);
    return sqrt(total);
}

static void show(const double *before, const double *after)
{
    for (int i = 0; i < SIDE; i++) {
        printf("    ");
        for (int j = 0; j < SIDE; j++) putchar(before[i * SIDE + j] > 0 ? '#' : '.');
        printf("   ->   ");
        for (int j = 0; j < SIDE; j++) putchar(after[i * SIDE + j] > 0 ? '#' : '.');
        putchar('\n');
    }
}

/* Settles from xi, which came from letter i, and compares one step with the bounds. */
static cgam_status repair(const cgam_bank *bank, const char *what, int i, const double *xi)
{
    double fixed[PIXELS], step[PIXELS], energy, rested;
    int64_t iterations;
    cgam_hopfield_bounds bound;
    cgam_status status =
        cgam_hopfield_settle(bank, beta, xi, 1e-15, 1000, fixed, &iterations, NULL);
    if (status == CGAM_OK) status = cgam_hopfield_update(bank, beta, xi, step);
    if (status == CGAM_OK) status = cgam_hopfield_energy(bank, beta, xi, &energy);
    if (status == CGAM_OK) status = cgam_hopfield_energy(bank, beta, fixed, &rested);
    if (status == CGAM_OK) status = cgam_hopfield_bound(bank, beta, i, xi, fixed, &bound);
    if (status != CGAM_OK) return status;
    printf("%s, %.3f away from the stored letter\n", what, distance(xi, Z[i]));
    show(xi, fixed);
    printf("  settled in %lld updates, energy %.4f -> %.4f\n", (long long)iterations, energy,
           rested);
    printf("  one update, |f(xi) - x*|   %8.2e, bound %8.2e (theorem 4)\n", distance(step, fixed),
           bound.one_step);
    printf("  retrieval,  |f(xi) - x|    %8.2e, bound %8.2e (theorem 5)\n\n", distance(step, Z[i]),
           bound.retrieval);
    return CGAM_OK;
}

/* The same update is attention with keys Z, values Z and the query scaled to the temperature. */
static cgam_status attend(cgam_env *env, const cgam_bank *bank, const double *xi)
{
    double update[PIXELS], attended[PIXELS], scaled[PIXELS];
    for (int j = 0; j < PIXELS; j++) scaled[j] = beta * sqrt(PIXELS) * xi[j];
    cgam_status status = cgam_hopfield_update(bank, beta, xi, update);
    if (status == CGAM_OK)
        status = cgam_attention(env, 1, LETTERS, PIXELS, PIXELS, scaled, Z[0], Z[0], attended);
    if (status == CGAM_OK)
        printf("softmax(Q K'/sqrt(d)) V and the update agree to %s\n",
               distance(update, attended) < 1e-14 ? "1e-14" : "less than 1e-14");
    return status;
}

int main(void)
{
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    double flipped[PIXELS], faint[PIXELS];
    for (int i = 0; i < LETTERS; i++)
        for (int j = 0; j < PIXELS; j++) Z[i][j] = pictures[i][j] == '#' ? 0.2 : -0.2;
    for (int j = 0; j < PIXELS; j++) {
        flipped[j] = j % 6 == 1 ? -Z[0][j] : Z[0][j]; /* four pixels of the A */
        faint[j] = Z[1][j] + (j % 2 ? 0.03 : -0.03);  /* a slightly blurred C */
    }
    cgam_status status = cgam_env_new(NULL, &env);
    if (status == CGAM_OK) status = cgam_bank_new(env, Z, CGAM_F64, LETTERS, PIXELS, NULL, &bank);
    if (status == CGAM_OK) status = repair(bank, "A with four pixels flipped", 0, flipped);
    if (status == CGAM_OK) status = repair(bank, "C with faint noise", 1, faint);
    if (status == CGAM_OK) status = attend(env, bank, flipped);

    if (status != CGAM_OK)
        fprintf(stderr, "%s\n", env ? cgam_env_message(env) : cgam_status_text(status));
    cgam_bank_free(bank);
    cgam_env_free(env);
    return status != CGAM_OK;
}
