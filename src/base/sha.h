/* sha.h: SHA-256 and SHA-512 (FIPS 180-4), to name models and to check what was fetched. */
#ifndef CGAM_SRC_BASE_SHA_H
#define CGAM_SRC_BASE_SHA_H

#include <stddef.h>
#include <stdint.h>

enum { CGAM_SHA256_BYTES = 32, CGAM_SHA512_BYTES = 64, CGAM_SHA256_TEXT = 65 };

typedef struct cgam_sha256 {
    uint32_t h[8];
    uint64_t length; /* bytes so far */
    uint8_t block[64];
} cgam_sha256;

typedef struct cgam_sha512 {
    uint64_t h[8];
    uint64_t length;
    uint8_t block[128];
} cgam_sha512;

void cgam_sha256_begin(cgam_sha256 *sha);
void cgam_sha256_add(cgam_sha256 *sha, const void *bytes, size_t size);
void cgam_sha256_end(cgam_sha256 *sha, uint8_t out[CGAM_SHA256_BYTES]);
/* The whole in lower-case hexadecimal digits. */
void cgam_sha256_hex(const void *bytes, size_t size, char text[CGAM_SHA256_TEXT]);
void cgam_sha_hex(const uint8_t *digest, size_t size, char *text); /* text[2 * size + 1] */

void cgam_sha512_begin(cgam_sha512 *sha);
void cgam_sha512_add(cgam_sha512 *sha, const void *bytes, size_t size);
void cgam_sha512_end(cgam_sha512 *sha, uint8_t out[CGAM_SHA512_BYTES]);

/* Base 64 with padding; text[4 * ((size + 2) / 3) + 1]. */
void cgam_base64(const uint8_t *bytes, size_t size, char *text);

#endif
