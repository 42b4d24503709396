/* where.c: for which memories is a predicate on columns true?
 *
 *     predicate := terms { or terms }      terms := term { and term }
 *     term      := not term | ( predicate ) | COLUMN op LITERAL | COLUMN [not] in ( LITERAL {, LITERAL} )
 *
 * Parsed by descent and evaluated on the way, on masks with a bit per row: first on no rows, to report any error before
 * there is work, then on all. Integers and reals are compared exactly, without rounding one to the type of the other;
 * texts byte by byte. A missing number (NaN) is different from every number and neither below nor above it. */
#include "memory/columns.h"

#include "io/csv.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEPTH_MAX = 100, LITERALS_MAX = 1 << 16, SHOWN = 40 };

typedef enum kind { END, WORD, TEXT, INTEGER, REAL, OPERATOR } kind;

/* A literal, or another token; `text` is unescaped, in the parser's buffer. */
typedef struct token {
    kind kind;
    const char *at; /* its begin in the predicate */
    size_t size;    /* its length there */
    const char *text;
    size_t length;
    int64_t integer;
    double real;
    bool quoted; /* a name in quotes, never a keyword */
} token;

typedef struct parser {
    const cgam_columns *columns;
    cgam_env *env;
    const char *predicate, *at;
    char *room, *to; /* unescaped texts: as long as the predicate */
    token next;
    locale_t plain;
    int depth;
    bool counts; /* evaluates; else only checks */
} parser;

/* ---- Tokens -------------------------------------------------------------------------------- */
static cgam_status fail_at(const parser *p, const token *t, const char *what)
{
    if (t->kind == END) return cgam_fail(p->env, CGAM_E_ARG, "where: %s at the end", what);
    return cgam_fail(p->env, CGAM_E_ARG, "where: %s at character %td: %.*s", what,
                     t->at - p->predicate + 1, t->size < SHOWN ? (int)t->size : SHOWN, t->at);
}

/* A text between `quote`s, each of which is doubled inside. */
static cgam_status read_quoted(parser *p, token *t, char quote)
{
    char *to = p->to;
    t->text = to;
    for (p->at++;; p->at++) {
        if (!*p->at) {
            t->size = (size_t)(p->at - t->at);
            return fail_at(p, t, "the closing quote is missing");
        }
        if (*p->at == quote && *++p->at != quote) break;
        *to++ = *p->at;
    }
    t->length = (size_t)(to - t->text);
    *to = 0;
    p->to = to + 1;
    return CGAM_OK;
}

static cgam_status read_number(parser *p, token *t)
{
    const char *end = p->at + (*p->at == '+' || *p->at == '-');
    while (isalnum((unsigned char)*end) || *end == '.' ||
           ((*end == '+' || *end == '-') && (end[-1] == 'e' || end[-1] == 'E')))
        end++;
    t->size = (size_t)(end - p->at);
    if (!cgam_csv_is_number(p->at, end)) return fail_at(p, t, "not a number");
    char *stop;
    errno = 0;
    t->integer = strtoll(p->at, &stop, 10);
    t->kind = stop == end && errno == 0 ? INTEGER : REAL;
    t->real = strtod_l(p->at, NULL, p->plain);
    if (t->kind == REAL && !isfinite(t->real)) return fail_at(p, t, "beyond the range of a double");
    p->at = end;
    return CGAM_OK;
}

/* Reads the next token. */
static cgam_status advance(parser *p)
{
    token *t = &p->next;
    while (isspace((unsigned char)*p->at)) p->at++;
    *t = (token){.kind = END, .at = p->at, .size = 1};
    const unsigned char c = (unsigned char)*p->at, d = c ? (unsigned char)p->at[1] : 0;
    cgam_status status = CGAM_OK;
    if (!c) return CGAM_OK;
    if (c == '\'' || c == '"') {
        t->kind = c == '"' ? WORD : TEXT;
        t->quoted = true;
        status = read_quoted(p, t, (char)c);
    } else if (isdigit(c) || ((c == '+' || c == '-' || c == '.') && (isdigit(d) || d == '.'))) {
        t->kind = REAL;
        status = read_number(p, t);
    } else if (isalpha(c) || c == '_' || c >= 0x80) {
        t->kind = WORD;
        t->text = p->to;
        for (; isalnum((unsigned char)*p->at) || *p->at == '_' || (unsigned char)*p->at >= 0x80;
             p->at++)
            *p->to++ = *p->at;
        *p->to++ = 0;
        t->length = strlen(t->text);
    } else {
        t->kind = OPERATOR;
        p->at += (c == '!' || c == '<' || c == '>') && d == '=' ? 2 : 1;
        if (!strchr("=!<>(),", c) || (c == '!' && d != '='))
            return fail_at(p, t, "an unknown sign");
    }
    t->size = (size_t)(p->at - t->at);
    return status;
}

static bool is_sign(const token *t, const char *sign)
{
    return t->kind == OPERATOR && t->size == strlen(sign) && strncmp(t->at, sign, t->size) == 0;
}

static bool is_keyword(const token *t, const char *word)
{
    return t->kind == WORD && !t->quoted && strcasecmp(t->text, word) == 0;
}

/* Skips a sign that must come. */
static cgam_status expect(parser *p, const char *sign)
{
    char what[24];
    if (is_sign(&p->next, sign)) return advance(p);
    snprintf(what, sizeof what, "expected '%s'", sign);
    return fail_at(p, &p->next, what);
}

/* ---- Comparisons --------------------------------------------------------------------------- */
/* -1, 0 or 1 as a value is below, equal to or above a literal; 2 for a missing number. */
static inline int compare_integers(int64_t a, int64_t b) { return (a > b) - (a < b); }
static inline int compare_reals(double a, double b) { return isnan(a) ? 2 : (a > b) - (a < b); }

/* Exact, where the integer has more digits than a double. */
static int compare_mixed(int64_t a, double b)
{
    if (b >= 0x1p63) return -1;
    if (b < -0x1p63) return 1;
    int64_t whole = (int64_t)b; /* towards 0 */
    if (a != whole) return a < whole ? -1 : 1;
    return compare_reals((double)0, b - (double)whole);
}

static int compare_texts(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int sign = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return sign ? (sign > 0) - (sign < 0) : (a_size > b_size) - (a_size < b_size);
}

static inline int compare(const cgam_column *c, int64_t i, const token *t)
{
    switch (c->kind) {
    case CGAM_COLUMN_TEXT:
        return compare_texts(c->text + c->begin[i], (size_t)(c->begin[i + 1] - c->begin[i]),
                             t->text, t->length);
    case CGAM_COLUMN_INTEGER:
        return t->kind == INTEGER ? compare_integers(c->integer[i], t->integer)
                                  : compare_mixed(c->integer[i], t->real);
    case CGAM_COLUMN_REAL:
    default:
        if (t->kind == REAL) return compare_reals(c->real[i], t->real);
        return isnan(c->real[i]) ? 2 : -compare_mixed(t->integer, c->real[i]);
    }
}

static int compare_literals(const void *x, const void *y)
{
    const token *a = x, *b = y;
    if (a->kind == TEXT) return compare_texts(a->text, a->length, b->text, b->length);
    if (a->kind == INTEGER)
        return b->kind == INTEGER ? compare_integers(a->integer, b->integer)
                                  : compare_mixed(a->integer, b->real);
    return b->kind == INTEGER ? -compare_mixed(b->integer, a->real)
                              : compare_reals(a->real, b->real);
}

/* Is row i equal to one of the sorted literals? */
static bool is_among(const cgam_column *c, int64_t i, const token *literal, int64_t count)
{
    for (int64_t low = 0, high = count; low < high;) {
        int64_t middle = low + (high - low) / 2;
        int sign = compare(c, i, &literal[middle]);
        if (sign == 0) return true;
        if (sign == 2) return false;
        if (sign < 0) high = middle;
        else low = middle + 1;
    }
    return false;
}

static int64_t words_of(const parser *p)
{
    return p->counts ? cgam_mask_words(p->columns->rows) : 0;
}

static cgam_status new_mask(const parser *p, uint64_t **out)
{
    *out = cgam_zalloc(p->env, (size_t)words_of(p) + 1, sizeof **out);
    return *out ? CGAM_OK : cgam_fail_nomem(p->env, "a mask");
}

/* The bits 1 << (sign + 1) of the results that an operator accepts. */
enum { BELOW = 1, EQUAL = 2, ABOVE = 4, MISSING = 8 };
static const struct {
    const char *sign;
    unsigned accepts;
} operators[] = {{"=", EQUAL}, {"!=", BELOW | ABOVE | MISSING},
                 {"<", BELOW}, {"<=", BELOW | EQUAL},
                 {">", ABOVE}, {">=", ABOVE | EQUAL}};

/* Texts of the literal's length that equal it: most differ in length or in the first byte. */
static inline bool equals(const cgam_column *c, int64_t i, const token *t)
{
    const char *text = c->text + c->begin[i];
    const size_t size = t->length;
    return (size_t)(c->begin[i + 1] - c->begin[i]) == size &&
           (size == 0 || (text[0] == t->text[0] && memcmp(text, t->text, size) == 0));
}

/* 64 rows or fewer from row i: the bits of those that are accepted. Common cases have loops of their own. */
#define BITS_OF(is_)                                                                               \
    do {                                                                                           \
        for (int k = 0; k < count; k++) bits |= (uint64_t)((is_) != 0) << k;                       \
    } while (0)
static uint64_t bits_of(const cgam_column *c, int64_t i, int count, const token *t,
                        unsigned accepts)
{
    uint64_t bits = 0;
    if (c->kind == CGAM_COLUMN_TEXT && accepts == EQUAL) {
        BITS_OF(equals(c, i + k, t));
    } else if (c->kind == CGAM_COLUMN_INTEGER && t->kind == INTEGER) {
        const int64_t *x = c->integer + i, y = t->integer;
        BITS_OF(accepts >> (compare_integers(x[k], y) + 1) & 1);
    } else if (c->kind == CGAM_COLUMN_REAL && t->kind == REAL) {
        const double *x = c->real + i, y = t->real;
        BITS_OF(accepts >> (compare_reals(x[k], y) + 1) & 1);
    } else {
        BITS_OF(accepts >> (compare(c, i + k, t) + 1) & 1);
    }
    return bits;
}

/* Sets the bits of rows whose comparison is accepted; with a list, of rows that are in it. */
static cgam_status compare_rows(const parser *p, const cgam_column *c, const token *literal,
                                int64_t count, unsigned accepts, uint64_t *mask)
{
    for (int64_t i = 0, n = p->counts ? p->columns->rows : 0; i < n; i += 64) {
        int last = n - i < 64 ? (int)(n - i) : 64;
        if (accepts) mask[i / 64] = bits_of(c, i, last, literal, accepts);
        for (int k = 0; k < last && !accepts; k++)
            mask[i / 64] |= (uint64_t)is_among(c, i + k, literal, count) << k;
    }
    return cgam_interrupted(p->env) ? CGAM_E_INTERRUPTED : CGAM_OK;
}

/* ---- The grammar --------------------------------------------------------------------------- */
static cgam_status parse_any(parser *p, uint64_t **out);

/* Reads a literal that the column can be compared with. */
static cgam_status parse_literal(parser *p, const cgam_column *c, token *out)
{
    char what[2 * SHOWN + 64];
    const bool text = p->next.kind == TEXT, wants = c->kind == CGAM_COLUMN_TEXT;
    if (!text && p->next.kind != INTEGER && p->next.kind != REAL)
        return fail_at(p, &p->next, wants ? "expected a text in 'quotes'" : "expected a number");
    if (text != wants) {
        snprintf(what, sizeof what, "column %.*s holds %s; it cannot be compared with %s", SHOWN,
                 c->name, wants ? "text" : "numbers", text ? "text" : "a number");
        return fail_at(p, &p->next, what);
    }
    *out = p->next;
    return advance(p);
}

/* ( literal, literal .. ) after `in`. */
static cgam_status parse_list(parser *p, const cgam_column *c, uint64_t *mask)
{
    int64_t count = 0, capacity = 8;
    token *list = cgam_alloc(p->env, (size_t)capacity, sizeof *list), *more;
    cgam_status status = list ? expect(p, "(") : cgam_fail_nomem(p->env, "where");
    while (status == CGAM_OK) {
        if (count == LITERALS_MAX) status = fail_at(p, &p->next, "too many values");
        if (status == CGAM_OK && count == capacity) {
            more = cgam_alloc(p->env, 2 * (size_t)capacity, sizeof *more);
            if (!more) {
                status = cgam_fail_nomem(p->env, "where");
                break;
            }
            memcpy(more, list, (size_t)count * sizeof *list);
            cgam_free(p->env, list);
            list = more;
            capacity *= 2;
        }
        if (status == CGAM_OK) status = parse_literal(p, c, &list[count]);
        if (status != CGAM_OK) break;
        count++;
        if (!is_sign(&p->next, ",")) break;
        status = advance(p);
    }
    if (status == CGAM_OK) status = expect(p, ")");
    if (status == CGAM_OK) {
        qsort(list, (size_t)count, sizeof *list, compare_literals);
        status = compare_rows(p, c, list, count, 0, mask);
    }
    cgam_free(p->env, list);
    return status;
}

static void invert(const parser *p, uint64_t *mask)
{
    for (int64_t k = 0; k < words_of(p); k++) mask[k] = ~mask[k];
}

/* COLUMN op LITERAL, or COLUMN [not] in (..). */
static cgam_status parse_comparison(parser *p, uint64_t *mask)
{
    token name = p->next, literal;
    if (name.kind != WORD) return fail_at(p, &name, "expected a column");
    const cgam_column *c = cgam_columns_find(p->columns, name.text);
    if (!c) return fail_at(p, &name, "no such column");
    cgam_status status = advance(p);
    if (status != CGAM_OK) return status;
    const bool negated = is_keyword(&p->next, "not");
    if (negated) status = advance(p);
    if (status == CGAM_OK && is_keyword(&p->next, "in")) {
        status = advance(p);
        if (status == CGAM_OK) status = parse_list(p, c, mask);
        if (negated) invert(p, mask);
        return status;
    }
    if (status == CGAM_OK && negated) return fail_at(p, &p->next, "expected 'in' after 'not'");
    for (size_t k = 0; k < sizeof operators / sizeof *operators && status == CGAM_OK; k++) {
        if (!is_sign(&p->next, operators[k].sign)) continue;
        status = advance(p);
        if (status == CGAM_OK) status = parse_literal(p, c, &literal);
        return status == CGAM_OK ? compare_rows(p, c, &literal, 1, operators[k].accepts, mask)
                                 : status;
    }
    return status == CGAM_OK ? fail_at(p, &p->next, "expected one of = != < <= > >= in") : status;
}

static cgam_status parse_term(parser *p, uint64_t **out)
{
    *out = NULL;
    bool negated = false;
    cgam_status status = CGAM_OK;
    while (status == CGAM_OK && is_keyword(&p->next, "not")) {
        negated = !negated;
        status = advance(p);
    }
    if (status != CGAM_OK) return status;
    if (is_sign(&p->next, "(")) {
        if (p->depth == DEPTH_MAX) return fail_at(p, &p->next, "too many parentheses");
        p->depth++;
        status = advance(p);
        if (status == CGAM_OK) status = parse_any(p, out);
        if (status == CGAM_OK) status = expect(p, ")");
        p->depth--;
    } else {
        status = new_mask(p, out);
        if (status == CGAM_OK) status = parse_comparison(p, *out);
    }
    if (status == CGAM_OK && negated) invert(p, *out);
    return status;
}

/* Combines what `part` parses, one or several with `word` between them. */
static cgam_status parse_joined(parser *p, const char *word,
                                cgam_status (*part)(parser *, uint64_t **), uint64_t **out)
{
    const bool both = strcmp(word, "and") == 0;
    cgam_status status = part(p, out);
    while (status == CGAM_OK && is_keyword(&p->next, word)) {
        uint64_t *other = NULL;
        status = advance(p);
        if (status == CGAM_OK) status = part(p, &other);
        uint64_t *mine = status == CGAM_OK ? *out : NULL;
        for (int64_t k = 0; mine && other && k < words_of(p); k++)
            mine[k] = both ? mine[k] & other[k] : mine[k] | other[k];
        cgam_free(p->env, other);
    }
    return status;
}

static cgam_status parse_terms(parser *p, uint64_t **out)
{
    return parse_joined(p, "and", parse_term, out);
}

static cgam_status parse_any(parser *p, uint64_t **out)
{
    return parse_joined(p, "or", parse_terms, out);
}

/* One reading of the predicate. The mask has a bit for each row. */
static cgam_status parse(parser *p, bool counts, uint64_t **out)
{
    *out = NULL;
    p->at = p->predicate;
    p->to = p->room;
    p->counts = counts;
    cgam_status status = advance(p);
    if (status == CGAM_OK && p->next.kind == END)
        status = fail_at(p, &p->next, "expected a column");
    if (status == CGAM_OK) status = parse_any(p, out);
    if (status == CGAM_OK && p->next.kind != END)
        status = fail_at(p, &p->next, "expected 'and' or 'or'");
    return status;
}

cgam_status cgam_columns_where(const cgam_columns *columns, const char *predicate, uint64_t **mask)
{
    cgam_env *env = columns->env;
    parser p = {.columns = columns, .env = env, .predicate = predicate};
    uint64_t *rows = NULL;
    *mask = NULL;
    p.room = cgam_alloc(env, 2 * strlen(predicate) + 2, 1);
    p.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    cgam_status status = p.room && p.plain ? CGAM_OK : cgam_fail_nomem(env, "where");
    for (int counts = 0; counts < 2 && status == CGAM_OK; counts++) {
        cgam_free(env, rows);
        status = parse(&p, counts, &rows);
    }
    if (p.plain) freelocale(p.plain);
    cgam_free(env, p.room);
    if (status == CGAM_OK) *mask = cgam_zalloc(env, (size_t)cgam_mask_words(columns->whole) + 1, 8);
    if (status == CGAM_OK && !*mask) status = cgam_fail_nomem(env, "a mask");
    if (status == CGAM_OK && !columns->number)
        memcpy(*mask, rows, (size_t)cgam_mask_words(columns->rows) * sizeof *rows);
    if (*mask && !columns->number && columns->rows % 64) /* `not` sets bits beyond the rows */
        (*mask)[columns->rows / 64] &= (UINT64_C(1) << columns->rows % 64) - 1;
    for (int64_t i = 0; status == CGAM_OK && columns->number && i < columns->rows; i++) {
        int64_t number = columns->number[i];
        (*mask)[number / 64] |= (rows[i / 64] >> i % 64 & 1) << number % 64;
    }
    cgam_free(env, rows);
    return status;
}
