/* The digests of the examples of FIPS 180-4, and that pieces make the same digest as the whole. */
#include "base/sha.h"
#include "support/check.h"

#include <string.h>

static void digest512(const char *text, size_t size, size_t piece, char *out)
{
    uint8_t digest[CGAM_SHA512_BYTES];
    cgam_sha512 sha;
    cgam_sha512_begin(&sha);
    for (size_t i = 0; i < size; i += piece)
        cgam_sha512_add(&sha, text + i, size - i < piece ? size - i : piece);
    cgam_sha512_end(&sha, digest);
    cgam_sha_hex(digest, sizeof digest, out);
}

static void digests_are_those_of_the_standard(void **state)
{
    (void)state;
    char text[2 * CGAM_SHA512_BYTES + 1];
    cgam_sha256_hex("abc", 3, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    cgam_sha256_hex("", 0, text);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    cgam_sha256_hex(two, strlen(two), text);
    assert_string_equal(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    digest512("abc", 3, 3, text);
    assert_string_equal(text, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                              "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
}

static void pieces_make_the_whole(void **state)
{
    (void)state;
    char bytes[700], whole[2 * CGAM_SHA512_BYTES + 1], parts[2 * CGAM_SHA512_BYTES + 1];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 37);
    for (size_t size = 0; size <= sizeof bytes; size += 35) {
        digest512(bytes, size, sizeof bytes, whole);
        for (size_t piece = 1; piece < 300; piece += 29) {
            digest512(bytes, size, piece, parts);
            assert_string_equal(parts, whole);
        }
    }
}

static void base64_pads(void **state)
{
    (void)state;
    char text[16];
    cgam_base64((const uint8_t *)"foobar", 6, text);
    assert_string_equal(text, "Zm9vYmFy");
    cgam_base64((const uint8_t *)"fooba", 5, text);
    assert_string_equal(text, "Zm9vYmE=");
    cgam_base64((const uint8_t *)"foob", 4, text);
    assert_string_equal(text, "Zm9vYg==");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_standard),
        cmocka_unit_test(pieces_make_the_whole),
        cmocka_unit_test(base64_pads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
