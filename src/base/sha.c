/* sha.c: FIPS 180-4, written once for both word sizes.
 *
 * The constants are the first 64 bits of the fractional parts of the cube roots of the first 80
 * primes (K) and of the square roots of the first 8 (the start). SHA-256 takes the upper half of
 * each, so one table serves both. */
#include "base/sha.h"

#include <string.h>

static const uint64_t K[80] = {
    0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
    0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
    0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
    0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
    0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
    0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
    0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
    0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
    0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
    0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
    0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
    0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
    0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
    0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

static const uint64_t START[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

#define ROTATE(x, n) ((x) >> (n) | (x) << (8 * sizeof(x) - (n)))

/* One block of 16 words of type WORD. The eight letters of the standard are v[0] .. v[7]. */
#define COMPRESS(NAME, WORD, ROUNDS, KSHIFT, A0, A1, A2, E0, E1, E2, S0, S1, S2, T0, T1, T2)       \
    static void NAME(WORD h[8], const uint8_t *block)                                              \
    {                                                                                              \
        WORD w[ROUNDS], v[8];                                                                      \
        for (int t = 0; t < 16; t++) {                                                             \
            w[t] = 0;                                                                              \
            for (size_t k = 0; k < sizeof(WORD); k++)                                              \
                w[t] = w[t] << 8 | block[(size_t)t * sizeof(WORD) + k];                            \
        }                                                                                          \
        for (int t = 16; t < ROUNDS; t++) {                                                        \
            WORD s = w[t - 15], r = w[t - 2];                                                      \
            w[t] = (ROTATE(r, T0) ^ ROTATE(r, T1) ^ r >> T2) + w[t - 7] +                          \
                   (ROTATE(s, S0) ^ ROTATE(s, S1) ^ s >> S2) + w[t - 16];                          \
        }                                                                                          \
        memcpy(v, h, sizeof v);                                                                    \
        for (int t = 0; t < ROUNDS; t++) {                                                         \
            WORD e = v[4], a = v[0];                                                               \
            WORD one = v[7] + (ROTATE(e, E0) ^ ROTATE(e, E1) ^ ROTATE(e, E2)) +                    \
                       ((e & v[5]) ^ (~e & v[6])) + (WORD)(K[t] >> KSHIFT) + w[t];                 \
            WORD two = (ROTATE(a, A0) ^ ROTATE(a, A1) ^ ROTATE(a, A2)) +                           \
                       ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));                                  \
            memmove(v + 1, v, 7 * sizeof *v);                                                      \
            v[4] += one;                                                                           \
            v[0] = one + two;                                                                      \
        }                                                                                          \
        for (int i = 0; i < 8; i++) h[i] += v[i];                                                  \
    }

COMPRESS(compress256, uint32_t, 64, 32, 2, 13, 22, 6, 11, 25, 7, 18, 3, 17, 19, 10)
COMPRESS(compress512, uint64_t, 80, 0, 28, 34, 39, 14, 18, 41, 1, 8, 7, 19, 61, 6)

/* begin, add and end differ only in sizes. The length in bits ends the last block; its upper half
 * is zero, since 2^61 bytes are not to be had. */
#define STREAM(SIZE, WORD, KSHIFT)                                                                 \
    void cgam_sha##SIZE##_begin(cgam_sha##SIZE *sha)                                               \
    {                                                                                              \
        *sha = (cgam_sha##SIZE){.length = 0};                                                      \
        for (int i = 0; i < 8; i++) sha->h[i] = (WORD)(START[i] >> KSHIFT);                        \
    }                                                                                              \
    void cgam_sha##SIZE##_add(cgam_sha##SIZE *sha, const void *bytes, size_t size)                 \
    {                                                                                              \
        const uint8_t *from = bytes;                                                               \
        size_t held = sha->length % sizeof sha->block;                                             \
        sha->length += size;                                                                       \
        while (size > 0) {                                                                         \
            size_t room = sizeof sha->block - held, take = size < room ? size : room;              \
            if (take == sizeof sha->block) {                                                       \
                compress##SIZE(sha->h, from);                                                      \
            } else {                                                                               \
                memcpy(sha->block + held, from, take);                                             \
                if (take == room) compress##SIZE(sha->h, sha->block);                              \
                held = take == room ? 0 : held + take;                                             \
            }                                                                                      \
            from += take;                                                                          \
            size -= take;                                                                          \
        }                                                                                          \
    }                                                                                              \
    void cgam_sha##SIZE##_end(cgam_sha##SIZE *sha, uint8_t out[SIZE / 8])                          \
    {                                                                                              \
        const uint64_t bits = sha->length * 8;                                                     \
        const uint8_t one = 0x80, zero = 0;                                                        \
        cgam_sha##SIZE##_add(sha, &one, 1);                                                        \
        while (sha->length % sizeof sha->block != sizeof sha->block - 8)                           \
            cgam_sha##SIZE##_add(sha, &zero, 1);                                                   \
        uint8_t tail[8];                                                                           \
        for (int i = 0; i < 8; i++) tail[i] = (uint8_t)(bits >> (56 - 8 * i));                     \
        cgam_sha##SIZE##_add(sha, tail, 8);                                                        \
        for (size_t i = 0; i < sizeof sha->h; i++)                                                 \
            out[i] = (uint8_t)(sha->h[i / sizeof(WORD)] >>                                         \
                               (8 * (sizeof(WORD) - 1 - i % sizeof(WORD))));                       \
    }

STREAM(256, uint32_t, 32)
STREAM(512, uint64_t, 0)

void cgam_sha_hex(const uint8_t *digest, size_t size, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[2 * size] = '\0';
}

void cgam_sha256_hex(const void *bytes, size_t size, char text[CGAM_SHA256_TEXT])
{
    uint8_t digest[CGAM_SHA256_BYTES];
    cgam_sha256 sha;
    cgam_sha256_begin(&sha);
    cgam_sha256_add(&sha, bytes, size);
    cgam_sha256_end(&sha, digest);
    cgam_sha_hex(digest, sizeof digest, text);
}

void cgam_base64(const uint8_t *bytes, size_t size, char *text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16;
        if (i + 1 < size) three |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < size) three |= bytes[i + 2];
        *text++ = letters[three >> 18];
        *text++ = letters[three >> 12 & 63];
        *text++ = i + 1 < size ? letters[three >> 6 & 63] : '=';
        *text++ = i + 2 < size ? letters[three & 63] : '=';
    }
    *text = '\0';
}
