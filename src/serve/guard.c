/* guard.c: access control. Three checks, each of something that the client cannot choose freely:
 *
 * Host: a foreign page can have its own name point to this machine (DNS rebinding) and would then be
 * of the same origin as ours. So the server answers only under its own names: the loopback's, the address
 * it listens on, the address the connection came to, and those allowed by name.
 * Origin: a browser says which page makes the request; it must be ours. Other programs send no origin.
 * Token: compared through keyed hashes of equal length, in constant time. */
#include "serve/server.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

bool cgam_address_is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (strcasecmp(host, "localhost") == 0) return true;
    if (inet_pton(AF_INET, host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

/* ---- the token --------------------------------------------------------------------------------- */

static void hash_token(const cgam_guard *guard, const char *token, size_t length, uint8_t *out)
{
    crypto_generichash(out, CGAM_TOKEN_HASH, (const uint8_t *)token, length, guard->key,
                       sizeof guard->key);
}

static const char LETTERS[] = "expected letters, digits and -._~+/=";

/* The first line of a file. */
static cgam_status read_token(cgam_env *env, const char *path, char *token)
{
    cgam_file file;
    cgam_status status = cgam_file_map(env, path, &file);
    if (status != CGAM_OK) return status;
    const uint8_t *end = memchr(file.bytes, '\n', file.size);
    size_t length = end ? (size_t)(end - file.bytes) : file.size;
    if (length > 0 && file.bytes[length - 1] == '\r') length--;
    if (length > CGAM_TOKEN_MAX)
        status = cgam_fail(env, CGAM_E_ARG, "token-file: the token is longer than %d bytes",
                           CGAM_TOKEN_MAX);
    else if (length > 0 && memchr(file.bytes, 0, length)) /* a letter is not the whole token */
        status = cgam_fail(env, CGAM_E_ARG, "token-file: %s", LETTERS);
    else memcpy(token, file.bytes, length);
    cgam_file_unmap(&file);
    return status;
}

/* Letters that stand in a header and in an address as they are. */
static bool is_token_text(const char *text)
{
    for (; *text; text++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=", *text))
            return false;
    return true;
}

cgam_status cgam_guard_open(cgam_call *call, cgam_guard *guard)
{
    enum { RANDOM = 24 };
    cgam_env *env = call->env;
    const char *token = cgam_args_text(call->args, "token");
    const char *file = cgam_args_text(call->args, "token-file");
    bool none = cgam_args_flag(call->args, "no-token");
    const char *host = cgam_args_text(call->args, "host");
    guard->hosts_count = cgam_args_words(call->args, "allow-host", &guard->hosts);
    guard->origins_count = cgam_args_words(call->args, "allow-origin", &guard->origins);
    snprintf(guard->host, sizeof guard->host, "%s", host);
    if ((token != NULL) + (file != NULL) + none > 1)
        return cgam_fail(env, CGAM_E_ARG, "give token, token-file or no-token, only one of them");
    if (none && !cgam_address_is_loopback(host))
        return cgam_fail(env, CGAM_E_ARG, "no-token: requires a loopback host, not %s", host);
    if (sodium_init() < 0) return cgam_fail(env, CGAM_E_INTERNAL, "no source of random numbers");
    guard->open = none;
    if (none) return CGAM_OK;
    cgam_status status = CGAM_OK;
    if (token && strlen(token) > CGAM_TOKEN_MAX)
        status = cgam_fail(env, CGAM_E_ARG, "token: longer than %d characters", CGAM_TOKEN_MAX);
    else if (token) memcpy(guard->token, token, strlen(token) + 1);
    else if (file) status = read_token(env, file, guard->token);
    else {
        uint8_t bytes[RANDOM];
        randombytes_buf(bytes, sizeof bytes);
        sodium_bin2base64(guard->token, sizeof guard->token, bytes, sizeof bytes,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    }
    if (status == CGAM_OK && (!*guard->token || !is_token_text(guard->token)))
        status = cgam_fail(env, CGAM_E_ARG, "%s: %s", file ? "token-file" : "token", LETTERS);
    randombytes_buf(guard->key, sizeof guard->key);
    hash_token(guard, guard->token, strlen(guard->token), guard->hash);
    return status;
}

bool cgam_guard_token(const cgam_guard *guard, const char *header)
{
    static const char scheme[] = "Bearer ";
    uint8_t theirs[CGAM_TOKEN_HASH];
    if (guard->open) return true;
    if (!header || strncasecmp(header, scheme, sizeof scheme - 1) != 0) return false;
    header += sizeof scheme - 1;
    while (*header == ' ') header++;
    hash_token(guard, header, strlen(header), theirs);
    return sodium_memcmp(theirs, guard->hash, sizeof theirs) == 0;
}

/* ---- names ------------------------------------------------------------------------------------- */

/* NAME, NAME:PORT, [ADDRESS] or [ADDRESS]:PORT taken apart; *port -1: none. False: not of this form. */
static bool split_host(const char *text, char *name, size_t size, int *port)
{
    bool brackets = *text == '[';
    const char *from = text + brackets;
    size_t length = strcspn(from, brackets ? "]" : ":");
    const char *rest = from + length;
    if (length == 0 || length >= size || (brackets && *rest++ != ']')) return false;
    memcpy(name, from, length);
    name[length] = 0;
    *port = -1;
    if (!*rest) return true;
    if (*rest++ != ':' || !*rest || strlen(rest) > 5 || rest[strspn(rest, "0123456789")])
        return false;
    *port = 0;
    for (; *rest; rest++) *port = 10 * *port + (*rest - '0');
    return *port <= 65535;
}

/* Is it one of the names given by allow-host? A name given without port is good with any. */
static bool is_allowed_host(const cgam_guard *guard, const char *name, int port)
{
    for (int64_t i = 0; i < guard->hosts_count; i++) {
        char ours[256];
        int ours_port;
        if (split_host(guard->hosts[i], ours, sizeof ours, &ours_port) &&
            strcasecmp(ours, name) == 0 && (ours_port < 0 || ours_port == port))
            return true;
    }
    return false;
}

static bool is_own_host(const cgam_guard *guard, const char *name, int port, const char *local)
{
    if (port != guard->port) return false;
    return cgam_address_is_loopback(name) || strcasecmp(name, guard->host) == 0 ||
           (local && strcasecmp(name, local) == 0);
}

bool cgam_guard_host(const cgam_guard *guard, const char *header, const char *local)
{
    char name[256];
    int port;
    if (!header || !split_host(header, name, sizeof name, &port)) return false;
    return is_own_host(guard, name, port < 0 ? 80 : port, local) ||
           is_allowed_host(guard, name, port);
}

bool cgam_guard_cors(const cgam_guard *guard, const char *header)
{
    for (int64_t i = 0; header && i < guard->origins_count; i++)
        if (strcasecmp(guard->origins[i], header) == 0) return true;
    return false;
}

bool cgam_guard_origin(const cgam_guard *guard, const char *header, const char *local)
{
    char name[256];
    int port;
    if (!header || cgam_guard_cors(guard, header)) return true;
    bool tls = strncasecmp(header, "https://", 8) == 0;
    if (!tls && strncasecmp(header, "http://", 7) != 0) return false;
    if (!split_host(header + (tls ? 8 : 7), name, sizeof name, &port)) return false;
    if (!tls && is_own_host(guard, name, port < 0 ? 80 : port, local)) return true;
    return is_allowed_host(guard, name, port);
}
