# Tests, found by glob; a test's name in ctest is its path under tests/ without the ending.
#
#   tests/unit/<layer>/test_*.c  tests/identity/test_*.c  tests/oracle/test_*.c   one program each
#   tests/rigour/*.c             one program that decides certificates in ball arithmetic
#   tests/system/*.sh            scripts; exit 77 means skipped
#   tests/golden/golden.py       every verb's --json against stored answers
#   tests/serve/test_*.py        clients of `cgam serve`
#   tests/rank/*                 scripts that start ranks by mpirun, and a program for them
#   tests/fuzz/fuzz_*.c          fuzz targets, fed by tests/fuzz/standalone.c
#   examples/*.c                 built against the public headers and the shared library, and run
#
# A line of the form `ctest: labels=threads timeout=300` in the first ten lines of a test adds
# labels (separated by commas) and changes its time limit; `mutations=1000` is for slow fuzz targets.
#
#   threads   `make san` runs it under TSan
#   core      tests of base, num, io, net and memory, which `make san` runs under ASan and UBSan; set by folder
#   nightly   `make nightly` builds and runs it; `make test`, `make san` and `make check` do not
#
# Every test gets CGAM (the program), CGAM_SRC, CGAM_BUILD, CGAM_SANITIZE in its environment.
set(program "${PROJECT_BINARY_DIR}/cgam")
if(CMAKE_CROSSCOMPILING) # tests start it, and so does what they start
  set(program "${PROJECT_BINARY_DIR}/emulated/cgam")
  string(REPLACE ";" "' '" emulator "${CMAKE_CROSSCOMPILING_EMULATOR}")
  file(WRITE "${program}" "#!/bin/sh\nexec '${emulator}' '${PROJECT_BINARY_DIR}/cgam' \"$@\"\n")
  file(CHMOD "${program}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()
set(test_environment
  "CGAM=${program}" "CGAM_SRC=${PROJECT_SOURCE_DIR}"
  "CGAM_BUILD=${PROJECT_BINARY_DIR}" "CGAM_SANITIZE=${CGAM_SANITIZE}"
  "CGAM_CONFIG=$<CONFIG>"
  "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp")
set(default_timeout 300) # a hang; no limit of a machine that does other things
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
if(CMAKE_CROSSCOMPILING)
  set(slower 20)
elseif(CGAM_SANITIZE)
  set(slower 5)
else()
  set(slower 1)
endif()

# What the tests with the labels `threads`, `core` and `nightly` need, and nothing else.
add_custom_target(threaded DEPENDS cgam)
add_custom_target(core)
add_dependencies(core cgam_shared) # tests/unit/io/test_json loads it
add_custom_target(nightly DEPENDS cgam)
set(core_tests "^unit/(base|num|io|net|memory)/")

# Registers COMMAND as test NAME, with LABELS and the properties that SOURCE asks for.
function(register_test name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "COMMAND;LABELS")
  string(REGEX MATCH "^[^/]+" labels "${name}")
  set(timeout ${default_timeout})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  file(STRINGS "${source}" wishes LIMIT_COUNT 10)
  if(wishes MATCHES "ctest:[^;]*labels=([a-z,]+)")
    string(REPLACE "," ";" wished "${CMAKE_MATCH_1}")
    list(APPEND labels ${wished})
  endif()
  set(own_labels ${labels})
  list(APPEND labels ${arg_LABELS})
  if(name MATCHES "${core_tests}")
    list(APPEND labels core)
  endif()
  if(wishes MATCHES "ctest:[^;]*timeout=([0-9]+)")
    set(timeout ${CMAKE_MATCH_1})
  endif()
  math(EXPR timeout "${timeout} * ${slower}")
  add_test(NAME ${name} COMMAND ${arg_COMMAND}
           WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  set_tests_properties(${name} PROPERTIES
    LABELS "${labels}" TIMEOUT ${timeout}
    ENVIRONMENT "${test_environment}")
  list(GET arg_COMMAND 0 program)
  if(NOT TARGET ${program})
    return()
  endif()
  if("nightly" IN_LIST own_labels)
    add_dependencies(nightly ${program})
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if("threads" IN_LIST labels)
    add_dependencies(threaded ${program})
  endif()
  if("core" IN_LIST labels)
    add_dependencies(core ${program})
  endif()
endfunction()

# Makes the program for tests/NAME.c at build/tests/NAME.
function(add_test_program target name)
  get_filename_component(folder "${PROJECT_BINARY_DIR}/tests/${name}" DIRECTORY)
  get_filename_component(file ${name} NAME)
  add_executable(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${file} RUNTIME_OUTPUT_DIRECTORY "${folder}")
  target_include_directories(${target} PRIVATE src tests .)
  if(llama_include)
    target_include_directories(${target} SYSTEM PRIVATE "${llama_include}")
  endif()
  target_compile_options(${target} PRIVATE -UNDEBUG)
  target_link_libraries(${target} PRIVATE cgam_ask_static cgam_flags cgam_sundials ${cgam_ask_needs})
endfunction()

# ---- C tests ----------------------------------------------------------------------------------
function(add_support_library name)
  add_library(${name} STATIC ${ARGN})
  target_compile_definitions(${name} PRIVATE CGAM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    $<$<BOOL:${CMAKE_CROSSCOMPILING}>:CGAM_EMULATED>)
  target_include_directories(${name} PRIVATE src tests)
  target_compile_options(${name} PRIVATE -UNDEBUG)
  target_link_libraries(${name} PUBLIC PkgConfig::cmocka cgam_ask_static PRIVATE cgam_flags)
endfunction()
# failing_calls.c has functions of the C library, so only those who ask for it are linked with it.
file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
list(FILTER support_sources EXCLUDE REGEX "/failing_calls\\.c$")
add_support_library(test_support ${support_sources})
add_support_library(failing_calls tests/support/failing_calls.c)
target_link_libraries(failing_calls PUBLIC test_support)

file(GLOB test_sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
     tests/unit/*/test_*.c tests/identity/test_*.c tests/oracle/test_*.c)
foreach(source ${test_sources})
  string(REGEX REPLACE "\\.c$" "" name ${source})
  string(MAKE_C_IDENTIFIER ${name} target)
  add_test_program(${target} ${name} tests/${source})
  target_link_libraries(${target} PRIVATE test_support)
  if(name MATCHES "/test_calls(_[a-z]+)?$")
    target_link_libraries(${target} PRIVATE failing_calls)
  endif()
  if(name MATCHES "^unit/serve/")
    target_link_libraries(${target} PRIVATE cgam_serve)
  endif()
  register_test(${name} "${PROJECT_SOURCE_DIR}/tests/${source}" COMMAND ${target})
endforeach()

# ---- certificates, decided in ball arithmetic: Arb, which FLINT 3 holds and FLINT 2 has beside it --
find_path(arb_include arb_mat.h PATH_SUFFIXES flint)
find_library(flint_library flint)
find_library(arb_library NAMES flint-arb arb)
mark_as_advanced(arb_include flint_library arb_library)
if(arb_include AND flint_library)
  file(GLOB rigour_sources CONFIGURE_DEPENDS tests/rigour/*.c)
  add_test_program(rigour_campaign rigour/campaign ${rigour_sources})
  target_include_directories(rigour_campaign SYSTEM PRIVATE ${arb_include})
  if(arb_library)
    target_link_libraries(rigour_campaign PRIVATE ${arb_library})
  endif()
  target_link_libraries(rigour_campaign PRIVATE ${flint_library})
  set(source "${PROJECT_SOURCE_DIR}/tests/rigour/campaign.c")
  register_test(rigour/campaign "${source}" COMMAND rigour_campaign seconds=20)
  register_test(rigour/long "${source}" COMMAND rigour_campaign seconds=120 around=600 LABELS nightly)
else()
  message(STATUS "without Arb (libflint-arb-dev) tests/rigour is not built")
endif()

# ---- a tiny model as a file, for clients in Python ------------------------------------------------
add_test_program(tiny_model python/tiny_model tests/python/tiny_model.c)
target_link_libraries(tiny_model PRIVATE test_support)

# ---- system tests -----------------------------------------------------------------------------
# Without our libraries, sanitizers or not: it only watches another program.
add_executable(system_faults tests/system/faults.c)
set_target_properties(system_faults PROPERTIES
  OUTPUT_NAME faults RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/system")
target_link_libraries(system_faults PRIVATE cgam_flags)
file(GLOB test_scripts CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
     tests/system/*.sh)
foreach(source ${test_scripts})
  string(REGEX REPLACE "\\.sh$" "" name ${source})
  register_test(${name} "${PROJECT_SOURCE_DIR}/tests/${source}"
    COMMAND bash "${PROJECT_SOURCE_DIR}/tests/${source}")
  # Scripts only: libFuzzer says 77 when it has found a crash.
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()

# ---- every verb's --json, as it was ---------------------------------------------------------------
set(source "${PROJECT_SOURCE_DIR}/tests/golden/golden.py")
register_test(golden "${source}" COMMAND /usr/bin/python3 -B "${source}")

# ---- the server, by clients in Python -------------------------------------------------------------
add_test_program(serve_crowd serve/crowd tests/serve/crowd.c)
add_dependencies(threaded serve_crowd tiny_model)
file(GLOB serve_tests CONFIGURE_DEPENDS tests/serve/test_*.py)
foreach(source ${serve_tests})
  get_filename_component(name ${source} NAME_WE)
  register_test(serve/${name} "${source}" COMMAND /usr/bin/python3 -B "${source}")
endforeach()

# ---- ranks, by mpirun ----------------------------------------------------------------------------
if(TARGET cgam-mpi AND NOT CGAM_SANITIZE STREQUAL "thread")
  add_test_program(rank_same rank/same tests/rank/same.c ${rank_sources})
  target_link_libraries(rank_same PRIVATE MPI::MPI_C)
  file(GLOB rank_tests CONFIGURE_DEPENDS tests/rank/*.sh tests/rank/test_*.py)
  foreach(source ${rank_tests})
    get_filename_component(name ${source} NAME_WE)
    if(source MATCHES "py$")
      register_test(rank/${name} "${source}" COMMAND /usr/bin/python3 -B "${source}")
    else()
      register_test(rank/${name} "${source}" COMMAND bash "${source}")
    endif()
    set_tests_properties(rank/${name} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endif()

# ---- fuzz targets: a short run with any compiler, and with libFuzzer where there is clang ------
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
find_program(CGAM_CLANG NAMES clang)
if(CGAM_CLANG AND NOT DEFINED CGAM_LIBFUZZER)
  # clang can be there without its runtime libraries (libclang-rt-dev).
  set(probe "${PROJECT_BINARY_DIR}/fuzz_probe")
  file(WRITE "${probe}.c" "int LLVMFuzzerTestOneInput(const char *, long);\n"
    "int LLVMFuzzerTestOneInput(const char *p, long n) { return p && n < 0; }\n")
  execute_process(COMMAND "${CGAM_CLANG}" -fsanitize=fuzzer,address,undefined -o "${probe}"
    "${probe}.c" RESULT_VARIABLE probe_failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT probe_failed)
    set(CGAM_LIBFUZZER ON CACHE INTERNAL "clang can link libFuzzer programs")
  endif()
  file(REMOVE "${probe}" "${probe}.c")
endif()
foreach(source ${fuzz_sources})
  get_filename_component(file ${source} NAME_WE)
  string(REGEX REPLACE "^fuzz_" "" name ${file})
  add_test_program(${file} fuzz/${file} ${source} tests/fuzz/standalone.c)
  if(file MATCHES "^fuzz_(request|http)$")
    target_link_libraries(${file} PRIVATE cgam_serve)
  endif()
  set(mutations 20000)
  file(STRINGS "${source}" wishes LIMIT_COUNT 10)
  if(wishes MATCHES "ctest:[^;]*mutations=([0-9]+)")
    set(mutations ${CMAKE_MATCH_1})
  endif()
  register_test(fuzz/${name} "${source}"
    COMMAND ${file} -mutations=${mutations} -seed=1 "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  if(CGAM_LIBFUZZER AND NOT CGAM_SANITIZE)
    register_test(fuzz/libfuzzer/${name} "${source}"
      COMMAND "${PROJECT_SOURCE_DIR}/tools/fuzz" short ${name} LABELS nightly)
    set_tests_properties(fuzz/libfuzzer/${name} PROPERTIES FIXTURES_REQUIRED libfuzzer)
  endif()
endforeach()
if(fuzz_sources AND CGAM_LIBFUZZER AND NOT CGAM_SANITIZE)
  register_test(fuzz/libfuzzer/build "${PROJECT_SOURCE_DIR}/tools/fuzz"
    COMMAND "${PROJECT_SOURCE_DIR}/tools/fuzz" build LABELS nightly)
  set_tests_properties(fuzz/libfuzzer/build PROPERTIES FIXTURES_SETUP libfuzzer TIMEOUT 600)
endif()

# ---- public headers: each compiles alone, as C11 and as C++17 -----------------------------------
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
  set(header_kinds c cpp)
else()
  set(header_kinds c)
endif()
list(FILTER public_headers EXCLUDE REGEX "/mpi\\.h$") # tests/rank includes it
foreach(kind ${header_kinds})
  foreach(header ${public_headers})
    get_filename_component(name ${header} NAME_WE)
    set(probe "${PROJECT_BINARY_DIR}/headers/${name}.${kind}")
    file(CONFIGURE OUTPUT "${probe}" @ONLY CONTENT
      "#include <cgam/@name@.h>\n#include <cgam/@name@.h>\n")
    list(APPEND probes_${kind} "${probe}")
  endforeach()
  if(probes_${kind})
    add_library(headers_${kind} OBJECT ${probes_${kind}})
    target_include_directories(headers_${kind} PRIVATE include)
    target_compile_options(headers_${kind} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  endif()
endforeach()
if(TARGET headers_c)
  set_target_properties(headers_c PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
endif()
if(TARGET headers_cpp)
  set_target_properties(headers_cpp PROPERTIES
    CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endif()

# ---- the Python package, installed from its wheel; TSan and the interpreter do not get along ------
if(TARGET wheel AND NOT CGAM_SANITIZE STREQUAL "thread")
  set(python_runner "${PROJECT_SOURCE_DIR}/tests/python/run.sh")
  register_test(python/wheel "${python_runner}" COMMAND "${python_runner}" "${CGAM_PYTHON}")
  set_tests_properties(python/wheel PROPERTIES FIXTURES_SETUP wheel)
  file(GLOB python_tests CONFIGURE_DEPENDS tests/python/test_*.py)
  foreach(source ${python_tests})
    get_filename_component(name ${source} NAME_WE)
    register_test(python/${name} "${source}" COMMAND "${python_runner}" "${CGAM_PYTHON}" "${source}")
    set_tests_properties(python/${name} PROPERTIES FIXTURES_REQUIRED wheel)
  endforeach()
endif()
