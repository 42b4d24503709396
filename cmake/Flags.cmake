# Compiler flags, as interface targets: cgam_flags for everything built here, cgam_sanitizer for
# what must also be there at link time.
#
# -ffast-math is never used: NaN has to be noticed, and sums have to keep their order.
# -fno-math-errno only says that nobody reads errno after sqrt, which lets it become one
# instruction. Fused multiply-add changes the last bit, so it is off wherever results are to be
# the same on every machine and on in the kernels, whose reference bounds the difference.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)

# Release drops assert(); the other two keep it alive, and `make san` runs every test that way.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")

add_library(cgam_flags INTERFACE)
target_compile_definitions(cgam_flags INTERFACE _GNU_SOURCE)
target_compile_options(cgam_flags INTERFACE
  -fno-math-errno -ffp-contract=off -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
  -Wwrite-strings -Wvla -Wformat=2 -Wpointer-arith -Wundef -Wcast-qual
  $<$<BOOL:${CGAM_WERROR}>:-Werror>)

# What reads files from strangers carries the checks of the compiler and the C library.
if(NOT CGAM_SANITIZE AND NOT CGAM_FUZZ)
  target_compile_options(cgam_flags INTERFACE -fstack-protector-strong
    $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
  target_link_options(cgam_flags INTERFACE -Wl,-z,relro,-z,now)
endif()

# Nobody reads the floating-point exception flags, and saying so lets the kernels vectorise.
set(kernel_flags -ffp-contract=fast -fno-trapping-math)

add_library(cgam_sanitizer INTERFACE)
if(CGAM_SANITIZE STREQUAL "address")
  set(sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all
      -fno-omit-frame-pointer)
elseif(CGAM_SANITIZE STREQUAL "thread")
  set(sanitizer_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(CGAM_SANITIZE STREQUAL "coverage") # counted where it is written, so optimising changes no count
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "CGAM_SANITIZE=coverage needs clang; the compiler is ${CMAKE_C_COMPILER_ID}")
  endif()
  # Counters lie in the file of the profile itself (%c, in the Makefile), so that a program that is killed, calls _exit or
  # has shut itself off from all files has counted too. Names relative to the build: tools/coverage knows where that is.
  set(sanitizer_flags -fprofile-instr-generate -fcoverage-mapping)
  # That file is shared by all who run the library at the same time: without atomic counts some are lost, and an outcome, which is
  # the difference of two of them, can come out as none. Kernels count plainly: their loops would wait for the counts.
  set(counter_flags -fcoverage-compilation-dir=. "SHELL:-mllvm -runtime-counter-relocation" -fprofile-update=atomic)
  list(APPEND kernel_flags -fprofile-update=single)
elseif(CGAM_SANITIZE)
  message(FATAL_ERROR "CGAM_SANITIZE is '${CGAM_SANITIZE}'; address, thread, coverage or nothing")
endif()
if(CGAM_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "CGAM_FUZZ needs clang; the compiler is ${CMAKE_C_COMPILER_ID}")
  endif()
  if(CGAM_FUZZ STREQUAL "fast") # for numbers: neither ASan nor a look at what is compared with what
    set(sanitizer_flags -fsanitize=fuzzer-no-link,undefined -fno-sanitize-coverage=trace-cmp,indirect-calls
        -fsanitize-coverage-ignorelist=${PROJECT_SOURCE_DIR}/tests/fuzz/unwatched)
  else()
    set(sanitizer_flags -fsanitize=fuzzer-no-link,address,undefined)
  endif()
  list(APPEND sanitizer_flags -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()
# For the kernels, whose copies of a loop would take minutes to compile with checks in each.
if(sanitizer_flags AND NOT CGAM_SANITIZE STREQUAL "coverage")
  target_compile_definitions(cgam_flags INTERFACE CGAM_CHECKED)
endif()
target_compile_options(cgam_sanitizer INTERFACE ${sanitizer_flags} ${counter_flags})
target_link_options(cgam_sanitizer INTERFACE ${sanitizer_flags})
target_link_libraries(cgam_flags INTERFACE cgam_sanitizer)
